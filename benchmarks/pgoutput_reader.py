"""pgoutput read by hand with struct: what a good Python programmer writes today.

It trusts its input: no check of lengths, no positions in errors, no types, no commit times, no streamed transactions.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from .struct_reader import Row

KINDS = {ord("B"): "BEGIN", ord("C"): "COMMIT", ord("I"): "INSERT", ord("U"): "UPDATE", ord("D"): "DELETE"}
RELATION, KEY, OLD, NEW, TEXT, UNCHANGED = b"RKONtu"

read_oid = Struct(">I").unpack_from
read_count = Struct(">H").unpack_from

Relation = tuple[str, str, list[str], list[bool]]
"""schema, table, columns, and which of them are in the key"""


def read_messages(messages: Iterable[bytes]) -> list[Row]:
    """The rows of a stream, one a message."""
    relations: dict[int, Relation] = {}
    rows: list[Row] = []
    for message in messages:
        code = message[0]
        if code == RELATION:
            (oid,) = read_oid(message, 1)
            relations[oid] = relation = read_relation(message)
            rows.append(("RELATION", None, relation[0], relation[1], None, None))
            continue
        kind = KINDS[code]
        if kind in ("BEGIN", "COMMIT"):
            rows.append((kind, None, None, None, None, None))
            continue
        schema, table, names, keys = relations[read_oid(message, 1)[0]]
        new = old = None
        at = 5
        if message[at] == KEY:
            old, at = read_tuple(message, at + 1, names)
            old = {name: old[name] for name, is_key in zip(names, keys, strict=True) if is_key}
        elif message[at] == OLD:
            old, at = read_tuple(message, at + 1, names)
        if at < len(message) and message[at] == NEW:
            new, at = read_tuple(message, at + 1, names)
        rows.append((kind, None, schema, table, new, old))
    return rows


def read_relation(message: bytes) -> Relation:
    """What a Relation message says."""
    schema, table, rest = message[5:].split(b"\0", 2)
    names, keys = [], []
    at = 3
    for _ in range(read_count(rest, 1)[0]):
        end = rest.index(b"\0", at + 1)
        keys.append(rest[at] == 1)
        names.append(rest[at + 1 : end].decode())
        at = end + 9
    return schema.decode(), table.decode(), names, keys


def read_tuple(message: bytes, at: int, names: list[str]) -> tuple[dict[str, str | None], int]:
    """Column names to values, and where the tuple ends."""
    at += 2
    cells: dict[str, str | None] = {}
    for name in names:
        form = message[at]
        at += 1
        if form == TEXT:
            (size,) = read_oid(message, at)
            at += 4 + size
            cells[name] = message[at - size : at].decode()
        elif form != UNCHANGED:
            cells[name] = None
    return cells, at
