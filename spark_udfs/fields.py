"""Columns of a user's DataFrame by name."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

import wireformat as wf
from wireformat.options.checks import shown
from wireformat.options.table import nearest


def check_frame(name: str, value: Any) -> None:
    """Raises TypeError unless the value is a DataFrame."""
    if not isinstance(value, DataFrame):
        raise TypeError(f"{name}: expected a DataFrame, got {type(value).__name__}")


def field_of(df: DataFrame, option: str, name: str) -> StructField:
    """Returns the only field of this name; raises OptionError."""
    if not isinstance(name, str):
        raise wf.OptionError(f"option {option}: expected the name of a column, got {shown(name)}")
    found = [field for field in df.schema if field.name == name]
    if not found:
        near = nearest(name, df.columns)
        raise wf.OptionError(f"option {option}: no column {name!r}{near}; there are {', '.join(df.columns)}")
    if len(found) == 1 and not _is_case_sensitive(df, name):
        found = [field for field in df.schema if field.name.lower() == name.lower()]
    if len(found) > 1:
        raise wf.OptionError(f"option {option}: there are {len(found)} columns {name!r}; rename them")
    return found[0]


def _is_case_sensitive(df: DataFrame, name: str) -> bool:
    """Whether Spark tells a column from others whose names differ in case, if there are any."""
    names = [field.name.lower() for field in df.schema]
    return names.count(name.lower()) == 1 or df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
