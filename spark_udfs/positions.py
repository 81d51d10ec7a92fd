"""The columns that give the stream and the position of a row, and where a capture is split into chunks.

Positions that are null, not unique, or out of order are errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import IntegralType, StringType, StructField

import wireformat as wf
from wireformat.options.checks import texts

from .fields import column_of, field_of

SAMPLES_PER_CHUNK = 64
"""The number of positions that are sampled for each chunk. Chunks then differ in size by about an eighth."""

MOST_CHUNKS = 4096
"""The largest number of chunks. It keeps the sample, and the expression that finds the chunk of a row, small."""


@dataclass(frozen=True)
class PositionColumns:
    """The columns that give the stream and the position of a row.

    stream_by   identify a stream; empty if there is one stream
    order_by    order the messages; their values are unique within a stream
    """

    stream_by: tuple[StructField, ...]
    order_by: tuple[StructField, ...]

    @classmethod
    def check(cls, df: DataFrame, order_by: Sequence[str], stream_by: Sequence[str]) -> PositionColumns:
        """Returns the columns of these names; raises OptionError unless they hold integers or strings."""
        order_by, stream_by = texts("order_by", order_by), texts("stream_by", stream_by)
        if not order_by:
            raise wf.OptionError("option order_by: expected the names of columns, got an empty list")
        found: dict[str, list[StructField]] = {"stream_by": [], "order_by": []}
        for option, names in (("stream_by", stream_by), ("order_by", order_by)):
            for name in names:
                found[option].append(position_field(df, option, name))
        all_names = [*stream_by, *order_by]
        for name in all_names:
            if all_names.count(name) > 1:
                raise wf.OptionError(f"options order_by and stream_by: {name!r} is named twice")
        return cls(tuple(found["stream_by"]), tuple(found["order_by"]))

    @property
    def fields(self) -> tuple[StructField, ...]:
        """All of these columns, stream_by first."""
        return (*self.stream_by, *self.order_by)

    def check_result(self, names: Iterable[str]) -> None:
        """Raises OptionError if a result with these columns cannot begin with the columns stream_by."""
        taken = {name.lower() for name in names}
        for field in self.stream_by:
            if field.name.lower() in taken:
                raise wf.OptionError(
                    f"option stream_by: the result has a column {field.name!r} of its own; rename the one in df"
                )

    @property
    def columns(self) -> list[Column]:
        """The same as Spark columns. The query ends with an error if one of them is null in a row."""
        return [_never_null(field) for field in self.fields]


def position_field(df: DataFrame, option: str, name: str) -> StructField:
    """Returns the field of this name; raises OptionError unless it holds integers or strings without a collation."""
    field = field_of(df, option, name)
    kind = field.dataType.simpleString()
    if not isinstance(field.dataType, (IntegralType, StringType)):
        raise wf.OptionError(f"option {option}: expected integers or strings, {name!r} is {kind}")
    if isinstance(field.dataType, StringType) and kind != StringType().simpleString():
        raise wf.OptionError(
            f"option {option}: expected integers, or strings that are ordered by their bytes, {name!r} is {kind}: "
            "cast it to string collate UTF8_BINARY"
        )
    return field


def _never_null(field: StructField) -> Column:
    column = column_of(field)
    error = F.raise_error(str(no_position([field.name])))
    return F.when(column.isNull(), error).otherwise(column)


def chunk_of(df: DataFrame, positions: PositionColumns, chunks: int) -> Column:
    """Returns the number of a row's chunk: rows sorted by stream and position, split into chunks of about equal size.

    The call samples rows to find the positions at which chunks begin, so every evaluation of the column gives a row
    the same chunk.
    """
    starts = _chunk_starts(df, positions, chunks) if chunks > 1 else []
    return chunk_from(positions, starts)


def _chunk_starts(df: DataFrame, positions: PositionColumns, chunks: int) -> list[Row]:
    """Returns the positions at which a chunk begins, at most chunks - 1, sorted."""
    names = [str(index) for index in range(len(positions.fields))]
    hashed = df.select(
        *[column.alias(name) for name, column in zip(names, positions.columns, strict=True)],
        F.xxhash64(*positions.columns).alias("hash"),
    )
    sample = hashed.orderBy("hash", *names).limit(chunks * SAMPLES_PER_CHUNK)
    sorted_sample = sample.select(*names).orderBy(*names).collect()
    if not sorted_sample:
        return []
    chosen = [sorted_sample[chunk * len(sorted_sample) // chunks] for chunk in range(1, chunks)]
    return [start for start, previous in zip(chosen, [None, *chosen], strict=False) if start != previous]


def chunk_from(positions: PositionColumns, starts: Sequence[Sequence[Any]]) -> Column:
    """Returns the number of starts that are at or before the row.

    Every task gets the expression, and reads it again: it has the starts as two literals, since a tree of comparisons
    takes seconds to read where there are thousands of them.
    """
    if not starts:
        return F.lit(0)
    group = math.isqrt(len(starts) - 1) + 1
    groups = [starts[first : first + group] for first in range(0, len(starts), group)]
    firsts = F.expr(_array([_literal(positions, of_group[0]) for of_group in groups]))
    all_groups = F.expr(_array([_array([_literal(positions, start) for start in of_group]) for of_group in groups]))

    def found(position: Column) -> Column:
        groups_before = F.size(F.filter(firsts, lambda start: start <= position))
        last_group = F.element_at(all_groups, F.greatest(groups_before, F.lit(1)))
        in_last = F.size(F.filter(last_group, lambda start: start <= position))
        return F.when(groups_before == 0, 0).otherwise((groups_before - 1) * group + in_last)

    position = F.struct(*[column.alias(f"_{index}") for index, column in enumerate(positions.columns)])
    return F.element_at(F.transform(F.array(position), found), 1)  # so that the position is computed once


def _array(literals: Iterable[str]) -> str:
    return f"array({', '.join(literals)})"


def _literal(positions: PositionColumns, start: Sequence[Any]) -> str:
    """Returns a position in SQL."""
    kinds = (field.dataType.simpleString() for field in positions.fields)
    named = []
    for index, (value, kind) in enumerate(zip(start, kinds, strict=True)):
        shown = f"decode(X'{value.encode().hex()}', 'UTF-8')" if isinstance(value, str) else f"CAST({value} AS {kind})"
        named.append(f"'_{index}', {shown}")
    return f"named_struct({', '.join(named)})"


def check_positions(columns: Iterable[pa.Array], names: Iterable[str]) -> None:
    """Raises BadRows if one of these columns has a null, because the position of such a row is unknown."""
    empty = [name for name, column in zip(names, columns, strict=True) if column.null_count]
    if empty:
        raise no_position(empty)


def no_position(empty: Sequence[str]) -> wf.BadRows:
    """Returns the error for a row that has null in these columns."""
    got = f"a row that has no {' and no '.join(empty)}"
    return wf.BadRows("a value in every column of order_by and stream_by", got)


def not_unique(got: str) -> wf.BadRows:
    """Returns the error for two rows or messages with the same position."""
    hint = "add a column to order_by, or to stream_by if there are several streams"
    return wf.BadRows("positions that are unique within a stream", got, hint=hint)


def out_of_order(expected: str, got: str) -> wf.OrderError:
    """Returns the error for rows that do not come in the order of their positions."""
    return wf.OrderError(expected, got, state="rows of one stream", open="")
