"""Columns of a user's DataFrame by name."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

import wireformat as wf
from wireformat.options.table import nearest


def field_of(df: DataFrame, option: str, name: str) -> StructField:
    """The one field of this name; raises OptionError."""
    found = [field for field in df.schema if field.name == name]
    if not found:
        near = nearest(name, df.columns)
        raise wf.OptionError(f"option {option}: no column {name!r}{near}; there are {', '.join(df.columns)}")
    if len(found) > 1:
        raise wf.OptionError(f"option {option}: there are {len(found)} columns {name!r}; rename them")
    return found[0]
