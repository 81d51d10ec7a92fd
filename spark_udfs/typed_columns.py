"""The columns of a typed table on Spark, which has no type for a time of day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import wireformat as wf


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
