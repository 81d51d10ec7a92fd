"""Reads Relation messages without construct, which takes twenty times as long: servers send them very often."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from ...events import Relation
from .messages import REPLICA_IDENTITIES, SYSTEM_SCHEMA

_TYPE = struct.Struct(">Ii")
"""Number and modifier of a column's type."""


MOST_CACHED_BYTES = 1 << 14
"""Longer columns of a relation are not kept: most are some hundred bytes."""


class Columns(NamedTuple):
    """What a Relation message says after the names of its table; see Relation."""

    replica_identity: str
    columns: tuple[str, ...]
    type_oids: tuple[int, ...]
    typmods: tuple[int, ...]
    key_columns: tuple[str, ...]


def read_relation(record: bytes, streamed: bool, encoding: str, errors: str) -> Relation | None:
    """The event of a Relation message, without an LSN; None if the declaration must read it, which says what is wrong.

    record             from the kind byte to the end
    streamed           whether it has a transaction id
    encoding, errors   as bytes.decode takes them
    """
    head = 9 if streamed else 5  # the kind, a transaction id, the number of the relation
    schema_end = record.find(b"\0", head)
    table_end = record.find(b"\0", schema_end + 1)
    if schema_end < 0 or table_end < 0:
        return None
    tail = record[table_end + 1 :]
    read = _cached_columns if len(tail) <= MOST_CACHED_BYTES else _read_columns
    try:
        schema = str(record[head:schema_end], encoding, errors)
        table = str(record[schema_end + 1 : table_end], encoding, errors)
        columns = read(tail, encoding, errors)
    except UnicodeDecodeError:
        return None
    if columns is None:
        return None
    return Relation(
        lsn=None,
        relation_id=int.from_bytes(record[head - 4 : head], "big"),
        table_schema=schema or SYSTEM_SCHEMA,
        table_name=table,
        replica_identity=columns.replica_identity,
        columns=columns.columns,
        type_oids=columns.type_oids,
        typmods=columns.typmods,
        key_columns=columns.key_columns,
        xid=int.from_bytes(record[1:5], "big") if streamed else None,
    )


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
