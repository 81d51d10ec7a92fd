"""The row-change table as Spark types, derived from its Arrow schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

import wireformat as wf
from wireformat.options.table import nearest

TYPES = "types"
"""The column whose metadata name the format of the rows, which determines the meaning of type names."""

MESSAGE = "message"
"""The column that Spark does not get, because there the kept columns identify the messages."""


def change_names(columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """Returns the requested names in the order of the table, all but `message` for None; raises OptionError."""
    names = tuple(name for name in wf.arrow.CHANGES.names if name != MESSAGE)
    if columns is None:
        return names
    found = tuple(wf.arrow.change_schema(columns).names)
    if MESSAGE in found:
        raise wf.OptionError(f"option columns: {MESSAGE!r} does not exist on Spark; keep columns of the input instead")
    return found


def change_fields(names: Sequence[str], format: str | None = None) -> list[StructField]:
    """Returns the Spark fields of these columns; the metadata of `types` name the format."""
    return with_format(list(from_arrow_schema(wf.arrow.change_schema(names)).fields), format)


def format_key() -> str:
    """Returns the key of the format in the metadata."""
    from wireformat.arrow.schemas import FORMAT  # loads numba

    return FORMAT.decode()


def with_format(fields: Sequence[StructField], format: str | None) -> list[StructField]:
    """Returns the fields, with the name of the format in the metadata of `types`."""
    if format is None:
        return list(fields)
    named = {format_key(): format}
    return [
        StructField(field.name, field.dataType, field.nullable, {**field.metadata, **named})
        if field.name == TYPES
        else field
        for field in fields
    ]


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """Returns the schema that a worker decodes: `message`, by which kept columns are repeated, and these columns."""
    return wf.arrow.change_schema([MESSAGE, *names])


def change_struct(names: Sequence[str]) -> pa.DataType:
    """Returns the type of a row with these columns."""
    return pa.struct(list(wf.arrow.change_schema(names)))


def arrow_types(schema: StructType) -> pa.Schema:
    """Returns a Spark schema as Arrow; instants are in UTC."""
    has_timezone = "timezone" in signature(to_arrow_schema).parameters  # not in Spark 4.2
    zone: dict[str, Any] = {"timezone": "UTC"} if has_timezone else {}
    return to_arrow_schema(schema, **zone)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Returns rows of the driver as a DataFrame."""
    if int(str(spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch"))) > 0:
        return spark.createDataFrame(rows)
    # no limit: Spark hands the setting to Arrow, which takes none below 1
    return spark.createDataFrame(rows.to_pylist(), from_arrow_schema(rows.schema))


def as_declared(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the columns of a schema, with its types; raises OptionError if the rows have others, or nulls there."""
    columns = []
    for field in schema:
        if schema.names.count(field.name) > 1:
            raise wf.OptionError(f"option schema: column {field.name!r} is declared twice")
        if field.name not in rows.schema.names:
            names = rows.schema.names
            near = nearest(field.name, names)
            raise wf.OptionError(f"option schema: no column {field.name!r}{near}; there are {', '.join(names)}")
        column = rows[field.name]
        try:
            if not _may_be_cast(column.type, field.type):
                raise pa.ArrowInvalid("another meaning")
            columns.append(column if column.type == field.type else column.cast(field.type))
            has_gaps = _lacks_values(columns[-1], field)
        except pa.ArrowException:  # whose text may have a value
            declared, own = (from_arrow_type(type).simpleString() for type in (field.type, column.type))
            has_gaps = declared == own  # nulls in a field of a struct
            if not has_gaps:
                raise wf.OptionError(
                    f"option schema: column {field.name!r} is declared as {declared}, but has values of type {own}: "
                    f"declare it as {own}, and cast it in the query"
                ) from None
        if has_gaps:
            raise wf.OptionError(
                f"option schema: column {field.name!r} is declared as NOT NULL, but has nulls: declare it without it"
            )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _lacks_values(column: pa.Array, field: pa.Field) -> bool:
    """Whether a column has nulls where its field, or one within it, has none. The JVM would fail there."""
    if column.null_count:
        return not field.nullable or _lacks_values(column.drop_null(), field)
    type = field.type
    if pa.types.is_struct(type):
        return any(map(_lacks_values, column.flatten(), type))
    if pa.types.is_map(type):
        first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
        return _lacks_values(column.items[first:last], type.item_field)
    return pa.types.is_list(type) and _lacks_values(column.flatten(), type.value_field)


def _may_be_cast(own: pa.DataType, declared: pa.DataType) -> bool:
    """Whether Arrow's cast keeps values or refuses them. Of times, it makes others than Spark's."""
    if own == declared or pa.types.is_null(own):
        return True
    if not any(all(map(is_alike, (own, declared))) for is_alike in _ALIKE):
        return False
    return own.num_fields == declared.num_fields and all(
        _may_be_cast(own.field(index).type, declared.field(index).type) for index in range(own.num_fields)
    )


_ALIKE: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda type: bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)),
    lambda type: bool(pa.types.is_string(type) or pa.types.is_large_string(type)),
    lambda type: bool(pa.types.is_binary(type) or pa.types.is_large_binary(type)),
    lambda type: bool(pa.types.is_list(type) or pa.types.is_large_list(type)),
    pa.types.is_map,
    pa.types.is_struct,
    lambda type: pa.types.is_timestamp(type) and type.tz is not None,  # Spark's are in the zone of the session
)
"""Types that have values in common."""


def rows_of_message() -> ArrayType:
    """Returns the type of the result of wal_decode: an array of rows."""
    return ArrayType(StructType(change_fields(change_names())))


def rows_of_table() -> StructType:
    """Returns the schema of wal_changes: `seq`, then the row-change table."""
    return StructType([StructField("seq", LongType()), *change_fields(change_names())])


def committed_table() -> pa.Schema:
    """Returns the Arrow schema of wal_transactions: `seq`, the columns of committed rows, `stream`."""
    columns = pa.schema([pa.field("seq", pa.int64()), *arrow_schema(change_names()), pa.field("stream", pa.string())])
    found = wf.arrow.committed_schema(columns.remove(1))
    names = ["seq", *[name for name in found.names if name not in ("seq", "stream")], "stream"]
    return pa.schema([_nullable(found.field(name)) for name in names])


def _nullable(field: pa.Field) -> pa.Field:
    """Returns a field that may be null, as each part of it. What Spark casts loses that it may not."""
    parts = [_nullable(part) for part in field.type] if pa.types.is_struct(field.type) else []
    return field.with_nullable(True).with_type(pa.struct(parts) if parts else field.type)


def rows_of_transactions() -> StructType:
    """Returns the same schema as Spark types."""
    return from_arrow_schema(committed_table())
