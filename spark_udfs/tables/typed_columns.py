"""The columns of a typed table on Spark, which has no type for a time of day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.types import StructType

import wireformat as wf

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
