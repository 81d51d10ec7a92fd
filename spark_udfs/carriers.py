"""Kept columns of types that Arrow or pandas cannot carry: they travel as text.

Spark takes no interval of months back from Python. pandas has no null beside NaN, turns integers with nulls into floats
and instants into local times, of which an hour in autumn comes twice. Nested values travel as they are: pandas may harm
such values inside of them.
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
    """Whether the column travels as text, where `cannot` are the types that have to."""
    return isinstance(field.dataType, cannot) and not isinstance(field.dataType, (StringType, BinaryType))


def carrier(field: StructField, cannot: Types) -> StructField:
    """The field as it travels."""
    kind = StringType() if is_text(field, cannot) else field.dataType
    return StructField(field.name, kind, field.nullable, field.metadata)


def packed(field: StructField, cannot: Types) -> Column:
    """The column as it travels."""
    column = column_of(field)
    if not is_text(field, cannot):
        return column
    if isinstance(field.dataType, TimestampType):
        column = F.unix_micros(column)  # as text it would be local time
    return column.cast(StringType())


def unpacked(field: StructField, cannot: Types) -> Column:
    """The column after its travel, as it was."""
    column = column_of(field)
    if not is_text(field, cannot):
        return column
    if isinstance(field.dataType, TimestampType):
        column = F.timestamp_micros(column.cast("bigint"))
    return column.cast(field.dataType).alias(field.name, metadata=field.metadata)


def column_of(field: StructField) -> Column:
    """The column of this name, whatever characters are in it."""
    return F.col("`" + field.name.replace("`", "``") + "`")
