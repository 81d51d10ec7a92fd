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
    if len(found) > 1:
        raise wf.OptionError(f"option {option}: there are {len(found)} columns {name!r}; rename them")
    return found[0]
