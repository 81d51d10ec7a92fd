"""The binary style read by hand with struct: what a good Python programmer writes today, and what all is compared with.

It trusts its input: no check of lengths, no positions in errors, no types, no commit times.
"""

from __future__ import annotations

from struct import Struct

Row = tuple[str, int | None, str | None, str | None, dict[str, str | None] | None, dict[str, str | None] | None]
"""kind, lsn, schema, table, new, old"""

FIELDS = 6

KINDS = {ord("B"): "BEGIN", ord("C"): "COMMIT", ord("I"): "INSERT", ord("U"): "UPDATE", ord("D"): "DELETE"}
NEW, OLD, END = ord("N"), ord("O"), ord("F")
NULL = 0xFFFFFFFF

read_head = Struct(">IQB").unpack_from  # length, LSN, kind
read_length = Struct(">I").unpack_from
read_count = Struct(">H").unpack_from
read_cell = Struct(">II").unpack_from  # type, length of the value


def read_message(message: bytes) -> list[Row]:
    """The rows of one message."""
    rows: list[Row] = []
    at = 0
    while True:
        length, lsn, code = read_head(message, at)
        stop = at + 4 + length
        kind = KINDS[code]
        if kind in ("BEGIN", "COMMIT"):
            rows.append((kind, lsn, None, None, None, None))
        else:
            schema, at = read_text(message, at + 13)
            table, at = read_text(message, at)
            new = old = None
            if at < stop and message[at] == NEW:
                new, at = read_tuple(message, at + 1)
            if at < stop and message[at] == OLD:
                old, at = read_tuple(message, at + 1)
            rows.append((kind, lsn, schema, table, new, old))
        at = stop + 1
        if message[stop] == END or read_length(message, at)[0] == 0:
            return rows


def read_text(message: bytes, at: int) -> tuple[str, int]:
    """A text with its length before it, and where it ends."""
    (size,) = read_count(message, at)
    stop = at + 2 + size
    return message[at + 2 : stop].decode(), stop


def read_tuple(message: bytes, at: int) -> tuple[dict[str, str | None], int]:
    """Column names to values, and where the tuple ends."""
    (count,) = read_count(message, at)
    at += 2
    cells: dict[str, str | None] = {}
    for _ in range(count):
        (size,) = read_count(message, at)
        stop = at + 2 + size
        name = message[at + 2 : stop].decode()
        if name.startswith('"'):
            name = name[1:-1].replace('""', '"')
        _, size = read_cell(message, stop)
        at = stop + 8
        if size == NULL:
            cells[name] = None
        else:
            stop = at + size
            cells[name] = message[at:stop].decode()
            at = stop
    return cells, at
