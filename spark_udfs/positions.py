"""Where a row stands: its stream and its place in it, as columns; and where a capture is cut into chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import IntegralType, StringType, StructField

import wireformat as wf
from wireformat.options.checks import texts

from .carriers import column_of
from .fields import field_of

SAMPLES_PER_CHUNK = 64
"""How many positions are looked at for each chunk: a chunk then has its share of the rows to about an eighth."""

MOST_CHUNKS = 4096
"""What is collected is small, and so is the expression that finds a row's chunk."""


@dataclass(frozen=True)
class Places:
    """The columns that say where a row stands.

    stream_by   tell streams apart; none if there is one stream
    order_by    order the messages of a stream, no two alike
    """

    stream_by: tuple[StructField, ...]
    order_by: tuple[StructField, ...]

    @classmethod
    def check(cls, df: DataFrame, order_by: Sequence[str], stream_by: Sequence[str]) -> Places:
        """The columns of these names; raises OptionError unless they are there and hold integers or strings."""
        order_by, stream_by = texts("order_by", order_by), texts("stream_by", stream_by)
        if not order_by:
            raise wf.OptionError("option order_by: expected the names of columns, got none")
        found: dict[str, list[StructField]] = {"stream_by": [], "order_by": []}
        for option, names in (("stream_by", stream_by), ("order_by", order_by)):
            for name in names:
                found[option].append(place_field(df, option, name))
        all_names = [*stream_by, *order_by]
        for name in all_names:
            if all_names.count(name) > 1:
                raise wf.OptionError(f"options order_by and stream_by: {name!r} is named twice")
        return cls(tuple(found["stream_by"]), tuple(found["order_by"]))

    @property
    def fields(self) -> tuple[StructField, ...]:
        """All of them: streams first."""
        return (*self.stream_by, *self.order_by)

    @property
    def columns(self) -> list[Column]:
        """The same as columns; where one is null the query ends with an error, for such a row has no place."""
        return [_never_null(field) for field in self.fields]


def place_field(df: DataFrame, option: str, name: str) -> StructField:
    """The field of this name; raises OptionError unless it holds integers or strings."""
    field = field_of(df, option, name)
    if not isinstance(field.dataType, (IntegralType, StringType)):
        kind = field.dataType.simpleString()
        raise wf.OptionError(f"option {option}: expected integers or strings, {name!r} is {kind}")
    return field


def _never_null(field: StructField) -> Column:
    column = column_of(field)
    error = F.raise_error(f"options order_by and stream_by: a row has no {field.name}")
    return F.when(column.isNull(), error).otherwise(column)


def chunk_of(df: DataFrame, places: Places, chunks: int, within: Sequence[Column]) -> Column:
    """The number of a row's chunk: rows in order of their streams and places, cut into about equal parts.

    within      columns that tell the rows of one message apart
    A message is never cut. The cuts are values, found by looking at some of the rows, which is done at once; so a row's
    chunk is always the same, whoever asks.
    """
    cuts = _cuts(df, places, chunks, within) if chunks > 1 else []
    return _search(places.columns, cuts, 0, len(cuts))


def _cuts(df: DataFrame, places: Places, chunks: int, within: Sequence[Column]) -> list[Row]:
    """Positions at which a chunk begins, at most chunks - 1, in order."""
    names = [str(number) for number in range(len(places.fields))]
    positions = df.select(
        *[column.alias(name) for name, column in zip(names, places.columns, strict=True)],
        F.xxhash64(*places.columns, *within).alias("by_chance"),
    )
    few = positions.orderBy("by_chance", *names).limit(chunks * SAMPLES_PER_CHUNK)
    found = few.select(*names).orderBy(*names).collect()
    chosen = [found[number * len(found) // chunks] for number in range(1, chunks)] if found else []
    return [cut for cut, before in zip(chosen, [None, *chosen], strict=False) if cut != before]


def _search(columns: Sequence[Column], cuts: Sequence[Row], low: int, high: int) -> Column:
    """How many cuts do not lie behind the row, of those from low to high, as a search that halves them."""
    if low == high:
        return F.lit(low)
    middle = (low + high) // 2
    return F.when(_before(columns, cuts[middle]), _search(columns, cuts, low, middle)).otherwise(
        _search(columns, cuts, middle + 1, high)
    )


def _before(columns: Sequence[Column], cut: Sequence[Any]) -> Column:
    first, value = columns[0], F.lit(cut[0])
    if len(columns) == 1:
        return first < value
    return (first < value) | ((first == value) & _before(columns[1:], cut[1:]))
