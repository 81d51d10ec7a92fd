"""The columns of a typed table, as `latest` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import count as numbers
from itertools import islice
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StructField, StructType

from .carriers import column_of

ABOUT_COLUMNS = ("_change_type", "_sequence", "_xid", "_commit_time", "_old", "_unchanged")
"""Columns that a typed table has beside those of the table; PERMISSIVE adds `_error`, `keep` what it names."""

IMAGES = ("insert", "update", "update_postimage", "delete")
"""Changes that say what becomes of a row."""

_SIGN = -(2**63)


class TypedRows:
    """A typed table and what its rows say.

    all           every row
    keys          names of the columns that tell rows of a stream apart
    streams       fields of the columns that tell streams apart
    fields        the table's columns; others: those that are no keys
    change        its `_change_type`
    place         `_sequence` as it sorts, LSNs being unsigned; then the stream, so that no two changes share one
    """

    def __init__(self, typed: DataFrame, keys: Sequence[str], streams: Sequence[StructField] = ()) -> None:
        self.all = typed
        self.keys = tuple(keys)
        self.streams = tuple(streams)
        of_table = table_columns(typed)
        self.fields = [field for field in typed.schema if field.name in of_table]
        self.others = [field for field in self.fields if field.name not in self.keys]
        self.change = F.col("_change_type")
        self.is_truncate = self.change == "truncate"
        lsn, ordinal = F.col("_sequence.commit_lsn"), F.col("_sequence.ordinal")
        stream = [column.alias(f"stream_{place}") for place, column in enumerate(self.stream)]
        self.place = F.struct(lsn.bitwiseXOR(F.lit(_SIGN)).alias("lsn"), ordinal.alias("ordinal"), *stream)

    def after(self, truncated: Any) -> DataFrame:
        """The changes of rows that count: those behind the last TRUNCATE, without images before an update.

        truncated   the place of the last TRUNCATE of all; None where there is none
        """
        found = self.all.where(self.change.isin(*IMAGES))
        if truncated is None:
            return found
        if self.streams:
            return self._after_each(found)
        return found.where(
            self.place > F.struct(*[F.lit(truncated[name]).cast("bigint") for name in ("lsn", "ordinal")])
        )

    def _after_each(self, found: DataFrame) -> DataFrame:
        """The same where each stream has TRUNCATEs of its own: few rows, which go to all tasks."""
        last, *names = free_names(found.columns, 1 + len(self.streams))
        truncates = (
            self.all.where(self.is_truncate)
            .groupBy(*[column.alias(name) for column, name in zip(self.stream, names, strict=True)])
            .agg(F.max(self.place).alias(last))
        )
        same = [column == F.col(name) for column, name in zip(self.stream, names, strict=True)]
        return found.join(F.broadcast(truncates), reduce(and_, [*same, self.place <= F.col(last)]), "left_anti")

    @cached_property
    def stream(self) -> list[Column]:
        """The columns that tell streams apart."""
        return [column_of(field) for field in self.streams]

    def old(self, name: str) -> Column:
        """The column in the image before the change."""
        return F.col("_old").getField(name)

    def is_listed(self, name: str) -> Column:
        """Whether `_unchanged` names the column."""
        return F.coalesce(F.array_contains("_unchanged", F.lit(name)), F.lit(False))

    def unsent(self, name: str) -> Column:
        """Whether the column's value is nowhere in the change. One that was stored out of line is never NULL."""
        return self.is_listed(name) & self.old(name).isNull()

    def sent_value(self, name: str) -> Column:
        """The column after the change, where it was sent."""
        value = self._column(name)
        return F.when(self.is_listed(name), self.old(name)).otherwise(value)

    def row_value(self, name: str) -> Column:
        """The column after the change, or of what is deleted."""
        value = F.coalesce(self._column(name), self.old(name))
        return F.when(self.is_listed(name) | (self.change == "delete"), value).otherwise(self._column(name))

    @cached_property
    def new_key(self) -> list[Column]:
        """The key after the change, or of what is deleted."""
        return [self.row_value(name) for name in self.keys]

    @cached_property
    def old_key(self) -> list[Column]:
        """The key before the change."""
        return [F.coalesce(self.old(name), self.row_value(name)) for name in self.keys]

    @cached_property
    def moves(self) -> Column:
        """Whether an update gives the row another key."""
        other = (~old.eqNullSafe(new) for old, new in zip(self.old_key, self.new_key, strict=True))
        return self.change.isin("update", "update_postimage") & reduce(or_, other, F.lit(False))

    @cached_property
    def lists_unsent(self) -> Column:
        """Whether `_unchanged` names a column."""
        return F.coalesce(F.size("_unchanged") > 0, F.lit(False))

    def _column(self, name: str) -> Column:
        return column_of(next(field for field in self.fields if field.name == name))


def table_columns(typed: DataFrame) -> list[str]:
    """The names of the table's columns: those that old images have."""
    old = typed.schema["_old"].dataType
    return list(old.names) if isinstance(old, StructType) else []


def free_names(taken: Sequence[str], count: int) -> list[str]:
    """Names of columns that no column has."""
    known = {name.lower() for name in taken}
    return list(islice((name for number in numbers() if (name := f"step_{number}") not in known), count))
