"""A tree as rows, as a terminal, a text and a page show it: offset, hex, text, name, value and rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import DecodeError
from ..events import Event
from ..limits import SPOT_BYTES
from ..printable import printable
from .nodes import Node, value_text

BYTES_IN_ROW = 16
"""How many bytes of a leaf are usually shown; the rest is counted."""

VALUE_WIDTH = 60
"""How many characters of a value are shown."""


class TreeRow(NamedTuple):
    """One node of a tree.

    depth    how many nodes it is in
    node     the node itself
    offset   of its first byte, in hexadecimal
    hex      its first bytes; empty for a node that has children
    text     the same as characters, `.` for what is not printable ASCII
    value    what they say; empty for words of the grammar and for nodes that only hold others
    """

    depth: int
    node: Node
    offset: str
    hex: str
    text: str
    value: str


def rows(message: bytes, node: Node, depth: int = 0, *, most: int = BYTES_IN_ROW) -> Iterator[TreeRow]:
    """Yields the rows of a node and of all below it; `most` is how many bytes of a leaf are shown."""
    hex = text = ""
    if node.is_leaf:
        shown = message[node.start : min(node.stop, node.start + most)]
        left = node.stop - node.start - len(shown)
        hex = shown.hex(" ") + (f" … {left} more" if left else "")
        text = plain(shown)
    yield TreeRow(depth, node, f"{node.start:06x}", hex, text, shown_value(node))
    for child in node.children:
        yield from rows(message, child, depth + 1, most=most)


def plain(data: bytes) -> str:
    """Bytes as characters of ASCII, `.` where there is none that is printed."""
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


def shown_value(node: Node) -> str:
    """The value of a node, in one line of printable characters."""
    if node.value is None and (node.children or node.is_word or node.error is not None):
        return ""
    return shown_event(node.value) if isinstance(node.value, Event) else value_text(node.value, VALUE_WIDTH)


def shown_event(event: Event) -> str:
    """Kind and table of a record, in one line of printable characters."""
    table = getattr(event, "table_name", None)
    names = f" {event.table_schema}.{table}" if table is not None else ""  # type: ignore[attr-defined]
    return printable(event.kind + names)


def error_lines(message: bytes, error: DecodeError) -> list[str]:
    """What is wrong: how far reading came, what was expected, and the bytes there."""
    at = error.message_offset if error.message_offset is not None else 0
    at += error.field_offset or 0
    there = message[at : at + SPOT_BYTES]
    lines = [
        f"{error.words}: expected {error.expected}, got {error.got}",
        f"read to byte {at} of {len(message)}" + (f", field {error.path}" if error.path else ""),
        f"bytes there: {there.hex(' ')}  {plain(there)}" if there else "bytes there: none, the message ends",
    ]
    return [printable(line) for line in [*lines, *([error.hint] if error.hint else [])]]


def text_lines(message: bytes, records: list[Node]) -> Iterator[str]:
    """Yields the rows of some records as lines of text."""
    for record in records:
        for row in rows(message, record):
            name = "  " * row.depth + row.node.name
            said = f"{row.value}  " if row.value else ""
            yield f"{row.offset}  {row.hex:<47}  {row.text:<16}  {name:<28}  {said}({row.node.rule})"
        if record.error is not None:
            yield from (f"  ! {line}" for line in error_lines(message, record.error))
