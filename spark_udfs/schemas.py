"""The row-change table as Spark types, derived from the Arrow schema, which is the only one that is spelled."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

import wireformat as wf

TYPES = "types"
"""The column whose metadata name the format that the rows were read from: it says what type names mean."""

MESSAGE = "message"
"""The column that Spark does not get: there, the columns that the caller keeps tell the messages apart."""


def change_names(columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """The names asked for, without `message`, in the order of the table; raises OptionError for an unknown one."""
    names = tuple(name for name in wf.arrow.CHANGES.names if name != MESSAGE)
    if columns is None:
        return names
    found = tuple(wf.arrow.change_schema(columns).names)
    if MESSAGE in found:
        raise wf.OptionError(f"option columns: {MESSAGE!r} is not there on Spark; keep columns of the input instead")
    return found


def change_fields(names: Sequence[str], format: str | None = None) -> list[StructField]:
    """The Spark fields of these columns; `types` says in its metadata of which format the rows are."""
    return told_format(list(from_arrow_schema(wf.arrow.change_schema(names)).fields), format)


def format_key() -> str:
    """The key of the metadata."""
    from wireformat.arrow.schemas import FORMAT  # loads numba

    return FORMAT.decode()


def told_format(fields: Sequence[StructField], format: str | None) -> list[StructField]:
    """The fields, with the name of the format in the metadata of `types`."""
    if format is None:
        return list(fields)
    told = {format_key(): format}
    return [
        StructField(field.name, field.dataType, field.nullable, {**field.metadata, **told})
        if field.name == TYPES
        else field
        for field in fields
    ]


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """What a worker decodes: these columns after `message`, which says where kept columns are to be repeated."""
    return wf.arrow.change_schema([MESSAGE, *names])


def change_struct(names: Sequence[str]) -> pa.DataType:
    """One row with these columns as one value."""
    return pa.struct(list(wf.arrow.change_schema(names)))


def rows_of_message() -> ArrayType:
    """What wal_decode gives for one message: an array of rows."""
    return ArrayType(StructType(change_fields(change_names())))


def rows_of_table() -> StructType:
    """What wal_changes gives: `seq`, then the rows."""
    return StructType([StructField("seq", LongType()), *change_fields(change_names())])


def added_fields() -> list[StructField]:
    """What committed rows have beside the columns of the row changes: `sequence`, which comes first, and the rest."""
    return list(from_arrow_schema(wf.arrow.committed_schema(pa.schema([]))).fields)


def committed_table() -> pa.Schema:
    """What wal_transactions gives: `seq`, the columns of committed rows, `stream`."""
    columns = pa.schema([pa.field("seq", pa.int64()), *arrow_schema(change_names()), pa.field("stream", pa.string())])
    found = wf.arrow.committed_schema(columns.remove(1))
    return pa.schema(
        [found.field("seq"), *[f for f in found if f.name not in ("seq", "stream")], found.field("stream")]
    )


def rows_of_transactions() -> StructType:
    """The same as Spark's types."""
    return from_arrow_schema(committed_table())
