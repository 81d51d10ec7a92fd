"""Columns of types that Arrow or pandas cannot transport: they are sent as text.

Spark does not take intervals of months back from Python. pandas has no null besides NaN, turns integers with nulls into
floats, and instants into local times, which are ambiguous for an hour in autumn. Nested values are sent as they are, so
pandas may change such values inside them.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    CalendarIntervalType,
    DataType,
    StringType,
    StructField,
    TimestampType,
    YearMonthIntervalType,
)

Types = tuple[type[DataType], ...]

ARROW_CANNOT: Types = (YearMonthIntervalType, CalendarIntervalType)
PANDAS_CANNOT: Types = (AtomicType, CalendarIntervalType)


def is_text(field: StructField, cannot: Types) -> bool:
    """Returns whether the column is sent as text; `cannot` are the types that cannot be sent as they are."""
    return isinstance(field.dataType, cannot) and not isinstance(field.dataType, (StringType, BinaryType))


def carrier(field: StructField, cannot: Types) -> StructField:
    """Returns the field as it is sent."""
    kind = StringType() if is_text(field, cannot) else field.dataType
    return StructField(field.name, kind, field.nullable, field.metadata)


def packed(field: StructField, cannot: Types) -> Column:
    """Returns the column as it is sent."""
    column = column_of(field)
    if not is_text(field, cannot):
        return column
    if isinstance(field.dataType, TimestampType):
        column = F.unix_micros(column)  # as text it would be local time
    return column.cast(StringType())


def unpacked(field: StructField, cannot: Types) -> Column:
    """Returns the received column with its original type."""
    column = column_of(field)
    if not is_text(field, cannot):
        return column
    if isinstance(field.dataType, TimestampType):
        column = F.timestamp_micros(column.cast("bigint"))
    return column.cast(field.dataType).alias(field.name, metadata=field.metadata)


def column_of(field: StructField) -> Column:
    """Returns the column of this name, which may contain any characters."""
    return F.col("`" + field.name.replace("`", "``") + "`")
