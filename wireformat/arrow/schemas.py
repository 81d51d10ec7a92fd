"""The schema of the row-change table: the only place that spells it, and what `transactions` needs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from ..errors import OptionError
from ..formats.registry import find_format_name
from ..options.checks import texts
from ..options.table import nearest

TEXT_MAP = pa.map_(pa.string(), pa.string())
NAME_LIST = pa.list_(pa.field("element", pa.string()))

NUMBER_COLUMNS = ("lsn", "xid", "csn", "commit_lsn")
"""The columns of unsigned numbers, which are stored as signed ones with the same bits."""

FLAG_OF_TEXT = {"true": True, "false": False}
"""The flags of `detail`, by their texts."""

CHANGES = pa.schema(
    [
        pa.field("message", pa.int64()),
        pa.field("record", pa.int32()),
        pa.field("kind", pa.string()),
        pa.field("lsn", pa.int64()),
        pa.field("xid", pa.int64()),
        pa.field("csn", pa.int64()),
        pa.field("commit_lsn", pa.int64()),
        pa.field("commit_time", pa.timestamp("us", "UTC")),
        pa.field("table_schema", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("new", TEXT_MAP),
        pa.field("old", TEXT_MAP),
        pa.field("unchanged", NAME_LIST),
        pa.field("types", NAME_LIST),
        pa.field("detail", TEXT_MAP),
        pa.field("error", pa.string()),
        pa.field("raw", pa.binary()),
    ]
)
"""A row is a record; docs/table.md says what the columns mean. Unsigned 64-bit numbers are int64 with the same bits."""

FORMAT = b"wireformat.format"
"""Key of the metadata of row changes that names the format they were read from: it says what type names mean."""


def format_of(schemas: Iterable[pa.Schema], given: str | None = None) -> str | None:
    """The format that row changes were read from, by their metadata; None where it is not known.

    given   what the caller says
    Raises OptionError for an unknown format, and for two different ones.
    """
    found = None if given is None else find_format_name(given)
    for schema in schemas:
        said = (schema.metadata or {}).get(FORMAT)
        if said is not None:
            name = find_format_name(said.decode())
            if found not in (None, name):
                raise OptionError(f"option format: expected {found}, but the metadata of the row changes say {name}")
            found = name
    return found


def with_format(schema: pa.Schema, format: str | None) -> pa.Schema:
    """The schema with the name of the format in its metadata, and what else was there."""
    return schema if format is None else schema.with_metadata({**(schema.metadata or {}), FORMAT: format})


def change_schema(columns: Sequence[str] | None = None) -> pa.Schema:
    """Returns the schema of the row-change table with these columns, in the order of the table; None for all.

    Raises OptionError for a column that is unknown or named twice.
    """
    if columns is None:
        return CHANGES
    columns = texts("columns", columns)
    for name in columns:
        if columns.count(name) > 1:
            raise OptionError(f"option columns: {name!r} is named twice")
        if name not in CHANGES.names:
            near = nearest(name, CHANGES.names)
            raise OptionError(f"option columns: no column {name!r}{near}; there are {', '.join(CHANGES.names)}")
    return pa.schema([field for field in CHANGES if field.name in columns])


def widened(schema: pa.Schema, *names: str) -> pa.Schema:
    """The schema of some columns of the row-change table, and of these too; with the same metadata."""
    return change_schema(tuple({*schema.names, *names})).with_metadata(schema.metadata)


DROPPED = b"wireformat.dropped"
"""Key of a table's metadata that says how many records DROPMALFORMED left out."""

POSITION = b"wireformat.position"
"""Key of the metadata of open rows: the position up to which the stream has been delivered."""

SEQUENCE = pa.struct(
    [pa.field("commit_lsn", pa.int64(), nullable=False), pa.field("ordinal", pa.int64(), nullable=False)]
)
"""The position of a committed row in its stream: unique, and sortable as unsigned numbers."""


def committed_schema(changes: pa.Schema) -> pa.Schema:
    """Returns the schema of committed rows: `sequence`, the columns of the row changes, `username`, `origin`.

    changes   the schema of the row changes
    Raises OptionError if the row changes have columns of these names, and TypeError if it is no pyarrow Schema.
    """
    if not isinstance(changes, pa.Schema):
        raise TypeError(f"changes: expected a pyarrow Schema, got {type(changes).__name__}")
    added = ("sequence", "username", "origin")
    taken = [name for name in added if name in changes.names]
    if taken:
        raise OptionError(f"row changes: {', '.join(added)} are added, got columns named {', '.join(taken)}")
    sequence = pa.field("sequence", SEQUENCE, nullable=False)
    facts = [pa.field("username", pa.string()), pa.field("origin", pa.string())]
    committed = pa.schema([sequence, *(field.with_nullable(True) for field in changes), *facts])
    return with_format(committed, format_of([changes]))


# Keys of the detail map, in its order.
DETAIL_KEYS = (
    "first_lsn",
    "commit_time",
    "origin",
    "username",
    "wal_end",
    "wal_flushed",
    "time",
    "sql",
    "content",
    "prefix",
    "relid",
    "cmdtype",
    "size",
    "owner",
    "restart_identity",
    "cascade",
    "text",
    "reply",
    "end_lsn",
    "gid",
    "prepare_time",
    "first_segment",
    "subxid",
    "transactional",
    "relation_id",
    "replica_identity",
    "columns",
    "type_oids",
    "typmods",
    "key_columns",
    "old",
    "binary",
)


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
