"""Reads Relation messages without construct, which takes twenty times as long: servers send them very often."""

from __future__ import annotations

import struct

from ...events import Relation
from .messages import REPLICA_IDENTITIES, SYSTEM_SCHEMA

_TYPE = struct.Struct(">Ii")
"""Number and modifier of a column's type."""


def read_relation(record: bytes, streamed: bool, encoding: str, errors: str) -> Relation | None:
    """The event of a Relation message, without an LSN; None if the declaration must read it, which says what is wrong.

    record             from the kind byte to the end
    streamed           whether it has a transaction id
    encoding, errors   as bytes.decode takes them
    """
    head = 9 if streamed else 5  # the kind, a transaction id, the number of the relation
    schema_end = record.find(b"\0", head)
    table_end = record.find(b"\0", schema_end + 1)
    at = table_end + 4  # after the replica identity and the number of columns
    if schema_end < 0 or table_end < 0 or at > len(record) or record[at - 3] not in REPLICA_IDENTITIES:
        return None
    texts = [record[head:schema_end], record[schema_end + 1 : table_end]]
    flags: list[int] = []
    numbers: list[int] = []
    for _ in range(int.from_bytes(record[at - 2 : at], "big")):
        end = record.find(b"\0", at + 1)
        if end < 0 or end + _TYPE.size >= len(record) or record[at] > 1:
            return None
        flags.append(record[at])
        texts.append(record[at + 1 : end])
        numbers += _TYPE.unpack_from(record, end + 1)
        at = end + 1 + _TYPE.size
    if at != len(record):
        return None
    try:
        schema, table, *columns = [text.decode(encoding, errors) for text in texts]
    except UnicodeDecodeError:
        return None
    return Relation(
        lsn=None,
        relation_id=int.from_bytes(record[head - 4 : head], "big"),
        table_schema=schema or SYSTEM_SCHEMA,
        table_name=table,
        replica_identity=REPLICA_IDENTITIES[record[table_end + 1]],
        columns=tuple(columns),
        type_oids=tuple(numbers[::2]),
        typmods=tuple(numbers[1::2]),
        key_columns=tuple([name for name, flag in zip(columns, flags, strict=True) if flag]),
        xid=int.from_bytes(record[1:5], "big") if streamed else None,
    )
