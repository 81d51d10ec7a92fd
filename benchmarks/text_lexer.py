"""The TEXT style read by hand with regular expressions: what a good Python programmer writes today.

From left to right, so that quotes and brackets inside of names, types and values mislead nobody. It trusts its input,
as the other readers by hand: no check of lengths, no positions in errors, no types, no commit times.
"""

from __future__ import annotations

import re
from struct import Struct

from .json_reader import unquoted, value_of
from .struct_reader import Row

read_head = Struct(">IQ").unpack_from  # length, LSN
read_length = Struct(">I").unpack_from

match_head = re.compile(r"table (.+?) (.+?) (INSERT|UPDATE|DELETE):", re.DOTALL).match
match_cell = re.compile(
    r"""
    [ ] ("[^"]*(?:""[^"]*)*" | [^ "\[]+)                # name
    \[ (?: [^]"[] | \[\] | "[^"]*(?:""[^"]*)*" )* \] :  # type
    (B?'[^']*(?:''[^']*)*' | [^ ]+)                     # value
    """,
    re.VERBOSE,
).match

OLD, NEW, NONE = " old-key:", " new-tuple:", " (no-tuple-data)"
NOT_SENT = "unchanged-toast-datum"


def read_message(message: bytes) -> list[Row]:
    """The rows of one batched message."""
    rows = []
    at = 0
    while length := read_length(message, at)[0]:
        _, lsn = read_head(message, at)
        stop = at + 4 + length
        rows.append(read_record(message[at + 12 : stop].decode(), lsn))
        at = stop
    return rows


def read_record(text: str, lsn: int | None) -> Row:
    """The row of one record."""
    head = match_head(text)
    if head is None:
        return (text.split(maxsplit=1)[0].upper(), lsn, None, None, None, None)
    schema, table, kind = head.groups()
    at = head.end()
    new = old = None
    if kind == "DELETE":
        old, at = read_tuple(text, at)
    else:
        if text.startswith(OLD, at):
            old, at = read_tuple(text, at + len(OLD))
            at += len(NEW)
        new, at = read_tuple(text, at)
    return (kind, lsn, schema, table, new, old)


def read_tuple(text: str, at: int) -> tuple[dict[str, str | None] | None, int]:
    """Column names to values, and where the tuple ends."""
    if text.startswith(NONE, at):
        return None, at + len(NONE)
    cells: dict[str, str | None] = {}
    while cell := match_cell(text, at):
        name, literal = cell.groups()
        if literal != NOT_SENT:
            cells[unquoted(name)] = value_of(literal)
        at = cell.end()
    return cells, at
