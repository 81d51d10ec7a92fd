"""The columns of row changes that `transactions` reads, and the check of a schema that has them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ...errors import OptionError
from ..schemas import CHANGES, format_of

_NEEDED: dict[str, Callable[[pa.DataType], bool]] = {
    "kind": lambda type: _is_text(type.value_type if pa.types.is_dictionary(type) else type),
    **dict.fromkeys(("lsn", "xid", "csn", "commit_lsn"), pa.types.is_int64),
    "commit_time": lambda type: pa.types.is_timestamp(type) and type.unit == "us",
    "detail": lambda type: pa.types.is_map(type) and _is_text(type.key_type) and _is_text(type.item_type),
}
"""The columns that are needed, with a check of their types. Other columns are passed through."""


def check_columns(schema: pa.Schema, first: pa.Schema | None) -> pa.Schema:
    """Returns the schema; raises OptionError if rows with these columns cannot be read.

    first   the schema of earlier rows, if there were any. The columns and the format must be the same
    """
    if schema is first:
        return schema
    names = schema.names
    if first is not None:
        if not schema.equals(first):
            raise OptionError(f"row changes: expected the columns of the first batch, got {', '.join(names)}")
        format_of([first, schema])
        return first
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise OptionError(
            f"row changes: expected the columns {', '.join(_NEEDED)}, got none named {', '.join(missing)}"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise OptionError(f"row changes: expected columns with different names, got {', '.join(repeated)} twice")
    for name, is_readable in _NEEDED.items():
        if not is_readable(schema.field(name).type):
            expected = CHANGES.field(name).type
            raise OptionError(f"row changes, column {name}: expected {expected}, got {schema.field(name).type}")
    for column in schema:
        if column.type == _TYPES.get(column.name):
            continue
        try:
            pa.nulls(0, column.type).take(pa.array([], pa.int64()))
        except pa.ArrowNotImplementedError:
            raise OptionError(
                f"row changes, column {column.name}: expected a type that `take` supports, got {column.type}; cast it"
            ) from None
    return schema


_TYPES = {field.name: field.type for field in CHANGES}
"""The types that need no look: to try them takes as long as to read a thousand rows."""


def _is_text(type: pa.DataType) -> bool:
    return pa.types.is_string(type) or pa.types.is_large_string(type)
