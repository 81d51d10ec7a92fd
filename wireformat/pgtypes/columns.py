"""The table of column types: the Arrow type and the Spark type of each SQL type; docs/types.md says what fits."""

from __future__ import annotations

from typing import NamedTuple

from .sql_types import SqlType

MAX_DIGITS = 38
"""Digits of Arrow's decimal128 and of Spark's decimal."""


class ColumnType(NamedTuple):
    """The type of a column.

    reading      how the text of a value, or of an array's element, is read: a key of the readers in
                 wireformat/arrow/typed_tables/casts.py
    arrow        Arrow type, as Arrow prints it
    spark        Spark type, as Spark prints it
    dimensions   of an array
    delimiter    between elements
    """

    reading: str
    arrow: str
    spark: str
    dimensions: int = 0
    delimiter: str = ","


TEXT = ColumnType("text", "string", "string")

TYPES = {
    ("boolean",): ColumnType("boolean", "bool", "boolean"),
    ("smallint", "tinyint"): ColumnType("integer", "int16", "smallint"),
    ("integer",): ColumnType("integer", "int32", "int"),
    ("bigint", "oid", "xid", "xid32", "cid"): ColumnType("integer", "int64", "bigint"),
    ("xid8",): ColumnType("decimal", "decimal128(20, 0)", "decimal(20,0)"),
    ("real",): ColumnType("float", "float", "float"),
    ("double precision",): ColumnType("float", "double", "double"),
    ("bytea",): ColumnType("bytea", "binary", "binary"),
    ("raw", "blob"): ColumnType("hex", "binary", "binary"),
    ("date",): ColumnType("date", "date32[day]", "date"),
    ("time without time zone",): ColumnType("time", "time64[us]", "string"),
    ("timestamp without time zone", "smalldatetime"): ColumnType("timestamp", "timestamp[us]", "timestamp_ntz"),
    ("timestamp with time zone", "abstime"): ColumnType("timestamptz", "timestamp[us, tz=UTC]", "timestamp"),
    ("int2vector", "int2vector_extend"): ColumnType("integer vector", "list<element: int16>", "array<smallint>"),
    ("oidvector", "oidvector_extend"): ColumnType("integer vector", "list<element: int64>", "array<bigint>"),
}
"""The columns of the types of the catalogue that are not read as texts, but for numeric with a precision."""

_BY_NAME = {name: type for names, type in TYPES.items() for name in names}
_DELIMITERS = {"box": ";"}
"""Types whose elements are not separated by commas: pg_type.typdelim."""


def column_type(sql: SqlType) -> ColumnType:
    """The column type of an SQL type; text for one that is in no catalogue."""
    if sql.is_own:
        one = TEXT
    elif sql.name == "numeric" and sql.modifiers:
        one = _numeric(*sql.modifiers[:2])
    else:
        one = _BY_NAME.get(sql.name, TEXT)
    arrow, spark = one.arrow, one.spark
    for _ in range(sql.dimensions):
        arrow, spark = f"list<element: {arrow}>", f"array<{spark}>"
    return ColumnType(one.reading, arrow, spark, sql.dimensions, _DELIMITERS.get(sql.name, ","))


def _numeric(precision: int, scale: int = 0) -> ColumnType:
    """The column of a numeric(precision, scale); a value has at most precision - scale digits before the point."""
    digits, after = max(precision, scale, precision - scale), max(scale, 0)
    if not 1 <= digits <= MAX_DIGITS:
        return TEXT
    return ColumnType("decimal", f"decimal128({digits}, {after})", f"decimal({digits},{after})")
