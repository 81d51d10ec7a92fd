"""Reads Relation messages without construct, which takes twenty times as long: servers send them very often."""

from __future__ import annotations

import struct
from functools import lru_cache

from ...events import Relation
from .messages import REPLICA_IDENTITIES, SYSTEM_SCHEMA
from .relations import Columns, RelationMessage

HEAD_BYTES, STREAMED_HEAD_BYTES = 5, 9
"""A Relation message begins with its kind, in streamed blocks a transaction id, and the number of the relation."""

_NUMBER = struct.Struct(">I")

_TYPE = struct.Struct(">Ii")
"""Number and modifier of a column's type."""

MOST_CACHED_BYTES = 1 << 14
"""Longer columns of a relation are not kept: most are some hundred bytes."""


def read_relation(record: bytes, streamed: bool, encoding: str, errors: str) -> Relation | None:
    """The event of a Relation message, without an LSN; None if the declaration must read it, which says what is wrong.

    record             from the kind byte to the end
    streamed           whether it has a transaction id
    encoding, errors   as bytes.decode takes them
    """
    found = try_message(record, STREAMED_HEAD_BYTES if streamed else HEAD_BYTES, encoding, errors)
    return found and found.event(int.from_bytes(record[1:5], "big") if streamed else None)


def number_of(record: bytes) -> int:
    """The number of the relation in a Relation message without a transaction id."""
    return int(_NUMBER.unpack_from(record, HEAD_BYTES - _NUMBER.size)[0])


def read_message(record: bytes, encoding: str, errors: str) -> RelationMessage:
    """What a Relation message says that compiled code has found to be good; it has no transaction id."""
    found = try_message(record, HEAD_BYTES, encoding, errors)
    assert found is not None
    return found


def try_message(record: bytes, head: int, encoding: str, errors: str) -> RelationMessage | None:
    """What a Relation message says, or None if the declaration must read it; see `read_relation`.

    head   the bytes before the names of a table
    """
    try:
        schema, table, columns = record[head:].split(b"\0", 2)
        rest = (_cached_columns if len(columns) <= MOST_CACHED_BYTES else _read_columns)(columns, encoding, errors)
        schema_name, name = str(schema, encoding, errors), str(table, encoding, errors)
    except ValueError:  # a name without its end, or bytes that are no text
        return None
    (relation_id,) = _NUMBER.unpack_from(record, head - _NUMBER.size)
    return rest and RelationMessage(relation_id, schema_name or SYSTEM_SCHEMA, name, rest)


def _read_columns(data: bytes, encoding: str, errors: str) -> Columns | None:
    """Reads what follows the names of the table; raises UnicodeDecodeError. None as for `read_relation`."""
    at = 3  # after the replica identity and the number of columns
    if len(data) < at or data[0] not in REPLICA_IDENTITIES:
        return None
    flags: list[int] = []
    numbers: list[int] = []
    names: list[bytes] = []
    for _ in range(int.from_bytes(data[1:3], "big")):
        end = data.find(b"\0", at + 1)
        if end < 0 or end + _TYPE.size >= len(data) or data[at] > 1:
            return None
        flags.append(data[at])
        names.append(data[at + 1 : end])
        numbers += _TYPE.unpack_from(data, end + 1)
        at = end + 1 + _TYPE.size
    if at != len(data):
        return None
    columns = tuple([name.decode(encoding, errors) for name in names])
    return Columns(
        replica_identity=REPLICA_IDENTITIES[data[0]],
        columns=columns,
        type_oids=tuple(numbers[::2]),
        typmods=tuple(numbers[1::2]),
        key_columns=tuple([name for name, flag in zip(columns, flags, strict=True) if flag]),
    )


_cached_columns = lru_cache(maxsize=256)(_read_columns)
"""Thousands of tables are mostly partitions, or those of many clients: they have their columns in common."""
