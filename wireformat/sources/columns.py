"""The binary column of a table that holds the messages."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import OptionError
from ..options.table import nearest

USUAL_COLUMNS = ("payload", "value")
"""The names that are tried first if the caller names no column. The second is Kafka's."""

_IS_BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)


def is_binary(type: pa.DataType) -> bool:
    """Whether messages can have this type."""
    return any(check(type) for check in _IS_BINARY)


def find_column(source: str, schema: pa.Schema, column: str | None) -> str:
    """Returns the name of the column with the messages.

    source   name of the source, for errors
    column   the name that the caller gives; None takes one of USUAL_COLUMNS, or the only binary column

    Raises OptionError.
    """
    binary = [field.name for field in schema if is_binary(field.type)]
    if column is None:
        found = [name for name in USUAL_COLUMNS if name in binary] or (binary if len(binary) == 1 else [])
        if not found:
            raise OptionError(
                f"option column: {source}: expected one binary column, got {_listed(binary)}; pass the one with the "
                "messages as column"
                if binary
                else f"option column: {source}: expected a binary column with the messages, got {_typed(schema)}"
            )
        column = found[0]
    if column not in schema.names:
        near = nearest(column, schema.names)
        raise OptionError(f"option column: {source}: no column {column!r}{near}; there are {', '.join(schema.names)}")
    if column not in binary:
        raise OptionError(
            f"option column: {source}: column {column!r}: expected binary, got {schema.field(column).type}"
        )
    if schema.names.count(column) > 1:
        raise OptionError(f"option column: {source}: expected one column {column!r}, got several")
    return column


def _typed(schema: pa.Schema) -> str:
    return _listed([f"{field.name} ({field.type})" for field in schema])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no columns"
