"""The columns of a typed table on Spark, which has no type for a time of day, and as `latest` uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from itertools import count as numbers
from itertools import islice
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StructField, StructType

import wireformat as wf
from wireformat.arrow.row_changes import RELATION_ID_COLUMN
from wireformat.arrow.typed_tables.typed_changes import ROW_CHANGE_TYPES, UPDATES

from ..fields import column_of
from ..schemas import arrow_types

if TYPE_CHECKING:
    from wireformat.arrow.typed_tables.table import TypedPart


def typed_part(
    schema: pa.Schema, table: str, mode: str, format: str, versions: pa.Table | None = None, current: int = -1
) -> TypedPart:
    """Returns what reads the changes of a table.

    schema     the columns of the table
    versions   the list of the tables of the stream
    current    the index of the version before the first row; -1 if it is not known
    """
    from wireformat.arrow.typed_tables.batch import TypedOptions
    from wireformat.arrow.typed_tables.table import TypedPart

    return TypedPart(
        table,
        schema=schema,
        options=TypedOptions(mode, "new", False, False, None),
        evolution="union",
        kept=(),
        format=format,
        versions=versions,
        current=current,
    )


def spark_columns(schema: Any, table: str, format: str | None) -> Any:
    """Returns the columns of all versions as a mapping or an Arrow schema. Times of day become text."""
    empty = wf.arrow.typed(wf.arrow.CHANGES.empty_table(), table, schema=schema, format=format).schema
    fields = list(empty.field("_old").type)
    if isinstance(schema, Mapping):
        return {field.name: _without_times(schema[field.name], field.type) for field in fields}
    return pa.schema([field.with_type(_without_time(field.type)) for field in fields])


def _without_times(sql: str, type: pa.DataType) -> str:
    brackets = ""
    while pa.types.is_list(type):
        type, brackets = type.value_type, f"{brackets}[]"
    return f"text{brackets}" if pa.types.is_time(type) else sql


def _without_time(type: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_without_time(type.value_type)))
    return pa.string() if pa.types.is_time(type) else type


def arrow_columns(schema: StructType) -> pa.Schema:
    """Returns a Spark schema as Arrow; raises OptionError for a type that Arrow does not have."""
    try:
        return arrow_types(schema)
    except PySparkTypeError as error:
        raise wf.OptionError(f"option schema: expected types that Arrow has: {error}") from None


_SIGN = -(2**63)


class TypedRows:
    """A typed table and expressions over its rows.

    all           all rows; the expressions are made when they are first asked for, since each takes calls of the JVM
    keys          names of the columns that identify a row of a stream
    streams       fields of the columns that identify a stream
    fields        the table's columns
    others        the table's columns that are not keys
    """

    def __init__(
        self,
        typed: DataFrame,
        keys: Sequence[str],
        streams: Sequence[StructField] = (),
    ) -> None:
        self.all = typed
        self.keys = tuple(keys)
        self.streams = tuple(streams)
        of_table = table_columns(typed)
        self.fields = [field for field in typed.schema if field.name in of_table]
        self.others = [field for field in self.fields if field.name not in self.keys]

    @cached_property
    def change(self) -> Column:
        """`_change_type`."""
        return F.col("_change_type")

    @cached_property
    def is_truncate(self) -> Column:
        """Whether the change is a TRUNCATE."""
        return self.change == "truncate"

    @cached_property
    def position(self) -> Column:
        """`_sequence` as a value that sorts like unsigned LSNs, followed by the stream, which makes it unique."""
        lsn, ordinal = F.col("_sequence.commit_lsn"), F.col("_sequence.ordinal")
        stream = [column.alias(f"stream_{index}") for index, column in enumerate(self.stream)]
        return F.struct(lsn.bitwiseXOR(F.lit(_SIGN)).alias("lsn"), ordinal.alias("ordinal"), *stream)

    def after(self, truncated: Any) -> DataFrame:
        """Returns the changes of rows after the last TRUNCATE, without images before an update.

        truncated   the position of the last TRUNCATE of all streams; None if there is none
        """
        found = self.all.where(self.change.isin(*ROW_CHANGE_TYPES))
        if truncated is None:
            return found
        if self.streams:
            return self._after_each(found)
        return found.where(
            self.position > F.struct(*[F.lit(truncated[name]).cast("bigint") for name in ("lsn", "ordinal")])
        )

    def _after_each(self, found: DataFrame) -> DataFrame:
        """The same for several streams with their own TRUNCATEs. These are few rows, which are sent to all tasks."""
        last, *names = free_names(found.columns, 1 + len(self.streams))
        truncates = (
            self.all.where(self.is_truncate)
            .groupBy(*self.stream)
            .agg(F.max(self.position).alias(last), *self._named_stream(names))
            .select(last, *names)  # whether Spark keeps the columns of groups is a setting of the session
        )
        same = [column == F.col(name) for column, name in zip(self.stream, names, strict=True)]
        return found.join(F.broadcast(truncates), reduce(and_, [*same, self.position <= F.col(last)]), "left_anti")

    def of_last_relation(self) -> TypedRows:
        """Returns the changes without those of earlier tables of the same name, which were dropped or renamed.

        In each stream these are the changes with another OID than the last change that has one. Changes without an OID,
        such as a copy of the table, belong to the table of the first change that has one.
        """
        first, last, *names = free_names(self.all.columns, 2 + len(self.streams))
        has_id = F.when(self.relation_id.isNotNull(), self.position)
        ids = F.min_by(self.relation_id, has_id).alias(first), F.max_by(self.relation_id, has_id).alias(last)
        groups = self.all.groupBy(*self.stream).agg(*ids, *self._named_stream(names))
        relations = groups.select(first, last, *names)
        same = [column.eqNullSafe(F.col(name)) for column, name in zip(self.stream, names, strict=True)]
        is_of_last = F.coalesce(self.relation_id, F.col(first)).eqNullSafe(F.col(last))
        found = self.all.join(F.broadcast(relations), reduce(and_, [*same, is_of_last]), "left_semi")
        return TypedRows(found, self.keys, self.streams)

    @cached_property
    def relation_id(self) -> Column:
        """The OID of the table; null if the format does not send it. The table can have a column of this name."""
        has_ids = RELATION_ID_COLUMN in self.all.columns and RELATION_ID_COLUMN not in table_columns(self.all)
        return F.col(RELATION_ID_COLUMN) if has_ids else F.lit(None).cast("bigint")

    @cached_property
    def stream(self) -> list[Column]:
        """The columns that identify a stream."""
        return [column_of(field) for field in self.streams]

    def _named_stream(self, names: Sequence[str]) -> list[Column]:
        """The columns that identify a stream, of a group of its rows, under other names."""
        return [F.first(column).alias(name) for column, name in zip(self.stream, names, strict=True)]

    def old(self, name: str) -> Column:
        """Returns the column of the before image."""
        return F.col("_old").getField(name)

    def is_listed(self, name: str) -> Column:
        """Returns whether `_unchanged` names the column."""
        return F.coalesce(F.array_contains("_unchanged", F.lit(name)), F.lit(False))

    def unsent(self, name: str) -> Column:
        """Returns whether the change lacks the column's value. A value that was stored out of line is never NULL."""
        return self.is_listed(name) & self.old(name).isNull()

    def sent_value(self, name: str) -> Column:
        """Returns the column after the change, if it was sent."""
        value = self._column(name)
        return F.when(self.is_listed(name), self.old(name)).otherwise(value)

    def row_value(self, name: str) -> Column:
        """Returns the column after the change, or of the deleted row."""
        value = F.coalesce(self._column(name), self.old(name))
        return F.when(self.is_listed(name) | (self.change == "delete"), value).otherwise(self._column(name))

    @cached_property
    def new_key(self) -> list[Column]:
        """The key after the change, or of the deleted row."""
        return [self.row_value(name) for name in self.keys]

    @cached_property
    def old_key(self) -> list[Column]:
        """The key before the change."""
        return [F.coalesce(self.old(name), self.row_value(name)) for name in self.keys]

    @cached_property
    def moves(self) -> Column:
        """Whether an update changes the key of the row."""
        other = (~old.eqNullSafe(new) for old, new in zip(self.old_key, self.new_key, strict=True))
        return self.change.isin(*UPDATES) & reduce(or_, other, F.lit(False))

    @cached_property
    def lists_unsent(self) -> Column:
        """Whether `_unchanged` names a column."""
        return F.coalesce(F.size("_unchanged") > 0, F.lit(False))

    @cached_property
    def lacks_values(self) -> Column:
        """Whether the change has a value neither in the new row nor in the old one."""
        unsent = (self.unsent(field.name) for field in self.fields)
        return self.change.isin(*ROW_CHANGE_TYPES) & reduce(or_, unsent, F.lit(False))

    def _column(self, name: str) -> Column:
        return column_of(next(field for field in self.fields if field.name == name))


def table_columns(typed: DataFrame) -> list[str]:
    """Returns the names of the table's columns, which are those of the before image."""
    old = typed.schema["_old"].dataType
    return list(old.names) if isinstance(old, StructType) else []


def free_names(taken: Sequence[str], count: int) -> list[str]:
    """Returns names for columns that are not taken yet."""
    known = {name.lower() for name in taken}
    return list(islice((name for number in numbers() if (name := f"step_{number}") not in known), count))
