"""Arguments of the SQL functions: options by position or by name, as Spark passes them to Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.options.table import nearest

OPTIONS = ("mode", "encoding", "encoding_errors", "heartbeat_unit", "tables", "kinds", "known_tables", "dialect")
"""The options of `wireformat.ReadOptions`, in the order in which they follow `format`."""


def read_arguments(
    function: str, format: pa.Array | None, given: Sequence[pa.Array], named: Mapping[str, pa.Array]
) -> Any:
    """Returns `format` and the options as `DecodingPlan.check` takes them; NULL is the default.

    Each argument is an array with one item per row, all of them equal. As in SQL, the case of names does not matter.
    Raises OptionError.
    """
    by_name = {name.lower(): column for name, column in named.items()}
    format = by_name.pop("format", None) if format is None else format
    if format is None:
        raise wf.OptionError(f"{function}: expected the name of a format, as in format => 'gaussdb-binary'")
    if len(given) > len(OPTIONS):
        raise wf.OptionError(f"{function}: expected at most {len(OPTIONS)} options: {', '.join(OPTIONS)}")
    for name in by_name:
        if name not in OPTIONS:
            near = nearest(name, OPTIONS)
            raise wf.OptionError(f"{function}: unknown option {name!r}{near}; known are {', '.join(OPTIONS)}")
    columns = {"format": format, **dict(zip(OPTIONS, given, strict=False)), **by_name}
    values = {name: _one_value(function, name, column) for name, column in columns.items()}
    return {name: value for name, value in values.items() if value is not None or name == "format"}


def _one_value(function: str, name: str, column: pa.Array) -> Any:
    values = column.to_pylist() if pa.types.is_nested(column.type) else pc.unique(column).to_pylist()
    if any(value != values[0] for value in values):
        raise wf.OptionError(f"{function}: {name} must be the same in all rows, not a column")
    return values[0]
