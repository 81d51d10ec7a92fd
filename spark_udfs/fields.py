"""Columns of a user's DataFrame by name; those that Arrow or pandas cannot transport are sent as text.

Spark does not take intervals of months back from Python. pandas has no null besides NaN, turns integers with nulls into
floats, and instants into local times, which are ambiguous for an hour in autumn: text goes in, and Arrow values come
back. Nested values are sent as they are, so pandas may change such values inside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

import wireformat as wf
from wireformat.options.checks import shown
from wireformat.options.table import nearest


def check_frame(name: str, value: Any) -> None:
    """Raises TypeError unless the value is a DataFrame."""
    if not isinstance(value, DataFrame):
        raise TypeError(f"{name}: expected a DataFrame, got {type(value).__name__}")


def field_of(df: DataFrame, option: str, name: str, allowed: Sequence[str] | None = None) -> StructField:
    """Returns the only field of this name; raises OptionError, which lists the names that are allowed: None for all."""
    if not isinstance(name, str):
        raise wf.OptionError(f"option {option}: expected the name of a column, got {shown(name)}")
    found = [field for field in df.schema if field.name == name]
    if not found:
        names = df.columns if allowed is None else allowed
        there = f"there are {', '.join(names)}" if names else "there are none"
        raise wf.OptionError(f"option {option}: no column {name!r}{nearest(name, names)}; {there}")
    if len(found) == 1 and not _is_case_sensitive(df, name):
        found = [field for field in df.schema if field.name.lower() == name.lower()]
    if len(found) > 1:
        raise wf.OptionError(f"option {option}: there are {len(found)} columns {name!r}; rename them")
    return found[0]


def payload_of(df: DataFrame, name: str) -> StructField:
    """Returns the binary column with the messages; raises OptionError."""
    field = field_of(df, "payload", name)
    if not isinstance(field.dataType, BinaryType):
        kind = field.dataType.simpleString()
        raise wf.OptionError(f"option payload: expected a binary column, {name!r} is {kind}")
    return field


def _is_case_sensitive(df: DataFrame, name: str) -> bool:
    """Whether Spark tells a column from others whose names differ in case, if there are any."""
    names = [field.name.lower() for field in df.schema]
    return names.count(name.lower()) == 1 or is_set(df, "spark.sql.caseSensitive")


def is_set(df: DataFrame, setting: str) -> bool:
    """Whether a setting of Spark, which keeps the text as the user has written it, is true."""
    return str(df.sparkSession.conf.get(setting, "false")).strip().lower() == "true"


Types = tuple[type[DataType], ...]

ARROW_CANNOT: Types = (YearMonthIntervalType, CalendarIntervalType)
PANDAS_CANNOT: Types = (AtomicType, CalendarIntervalType)
READ_BACK: Types = (IntegralType, BooleanType, TimestampType)
"""Types whose text the worker reads back once for each message, so that Spark need not do it for each row."""

IN_ARROW: Types = (StringType, BinaryType, *READ_BACK)
"""Types of a `carrier` whose values a worker of pandas repeats as Arrow values, not as Python objects."""


def parts_of(type: DataType) -> Iterator[DataType]:
    """Yields the types within an array, a map or a struct, at any depth."""
    within: list[DataType] = []
    if isinstance(type, ArrayType):
        within = [type.elementType]
    elif isinstance(type, MapType):
        within = [type.keyType, type.valueType]
    elif isinstance(type, StructType):
        within = [field.dataType for field in type]
    for part in within:
        yield part
        yield from parts_of(part)


def is_text(field: StructField, cannot: Types) -> bool:
    """Returns whether the column is sent as text; `cannot` are the types that cannot be sent as they are."""
    return isinstance(field.dataType, cannot) and not isinstance(field.dataType, (StringType, BinaryType, VariantType))


def carrier(field: StructField, cannot: Types) -> StructField:
    """Returns the field as the worker returns it."""
    kind = StringType() if _stays_text(field, cannot) else field.dataType
    return StructField(field.name, kind, field.nullable, field.metadata)


def packed(field: StructField, cannot: Types) -> Column:
    """Returns the column as it is sent to the worker."""
    column = column_of(field)
    if not is_text(field, cannot):
        return column
    if isinstance(field.dataType, TimestampType):
        column = F.unix_micros(column)  # as text it would be local time
    return column.cast(StringType())


def unpacked(field: StructField, cannot: Types) -> Column:
    """Returns the received column with its original type."""
    column = column_of(field)
    if not _stays_text(field, cannot):
        return column
    return column.cast(field.dataType).alias(field.name, metadata=field.metadata)


def _stays_text(field: StructField, cannot: Types) -> bool:
    return is_text(field, cannot) and not isinstance(field.dataType, READ_BACK)


def column_of(field: StructField) -> Column:
    """Returns the column of this name, which may contain any characters."""
    return F.col("`" + field.name.replace("`", "``") + "`")
