"""The tree of a message: which bytes are which field, by which rule; and the tree as rows.

A terminal, a text and a page show of each row offset, hex, text, name, value and rule. A notebook shows the rows as
HTML, in which everything that comes from the wire is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import DecodeError, counted
from ..events import Event
from ..limits import SPOT_BYTES
from ..options.table_names import suggestion
from ..printable import printable

SHOWN_VALUE = 60
"""How many characters of a value its `repr` shows."""


@dataclass(slots=True, eq=False)
class Node:
    """Some bytes of a message and what they are.

    path         the field in its record, as in an error: `new.cells[3].value.length`; of a record `records[0]`
    name         the last step of the path
    value        what the bytes say: a number, a text, bytes, the event of a record; None for NULL, for words of a
                 grammar and for what only holds other nodes
    rule         the rule of the format that took the bytes; of bytes that cannot be read, what was expected
    start, stop  first byte in the message, one past the last
    children     what it consists of, in the order of the bytes
    error        what is wrong here
    """

    path: str
    name: str
    value: Any
    rule: str
    start: int
    stop: int
    children: list[Node] = field(default_factory=list)
    error: DecodeError | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children

    @property
    def is_word(self) -> bool:
        """Whether it is a word of the grammar, such as `INSERT:`, and not a field."""
        return self.is_leaf and self.value is None and self.rule[:1] in ("'", '"')

    def walk(self) -> Iterator[Node]:
        """Yields the node and all below it, in the order of the bytes."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Node]:
        """Yields the nodes without children: together they cover the bytes of this node, each byte once."""
        return (node for node in self.walk() if node.is_leaf)

    def find(self, path: str) -> Node:
        """Returns the first node of this path; raises KeyError if there is none."""
        for node in self.walk():
            if node.path == path:
                return node
        raise KeyError(f"no node of the path {path!r}{suggestion(path, {node.path for node in self.walk()} - {''})}")

    def __repr__(self) -> str:
        said = "" if self.value is None else f" = {value_text(self.value, SHOWN_VALUE)}"
        more = f", {counted(len(self.children), 'child').replace('childs', 'children')}" if self.children else ""
        return f"<Node {self.path or self.name}{said}, bytes {self.start} to {self.stop}{more}: {self.rule}>"


def value_text(value: Any, most: int | None = None) -> str:
    """A value in one line of printable characters, cut after `most` of them."""
    if value is None:
        return "NULL"
    if isinstance(value, Event):
        text = value.kind
    elif isinstance(value, (bytes, bytearray)):
        text = value.hex(" ")
    elif isinstance(value, tuple):
        text = ", ".join(map(repr, value))
    else:
        text = repr(value)
    if most is not None and len(text) > most:
        return text[: most - 1] + "…"
    return text


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


MOST_ROWS = 2000
"""How many rows a notebook shows; more would slow it down."""

_STYLE = (  # Without a background of its own: the one red reads on white and on nearly black.
    "<style>.wireformat-tree{font-family:monospace;font-size:12px;border-collapse:collapse}"
    ".wireformat-tree td{text-align:left;padding:1px 8px;white-space:pre;vertical-align:top}"
    ".wireformat-tree .rule{opacity:.65}.wireformat-tree .value{font-weight:bold}"
    ".wireformat-tree .bad{color:#e02f3a}</style>"
)


def fragment(message: bytes, records: list[Node]) -> str:
    """A table of some records of a message."""
    from html import escape  # loads a large table

    lines: list[str] = []
    for record in records:
        for row in rows(message, record):
            if len(lines) >= MOST_ROWS:
                break
            name = "  " * row.depth + row.node.name
            cells = (
                ("", row.offset),
                ("", row.hex),
                ("", row.text),
                ("", name),
                ("value", row.value),
                ("rule", row.node.rule),
            )
            kind = ' class="bad"' if row.node.error is not None and row.node.is_leaf else ""
            path = escape(row.node.path, quote=True)
            shown = "".join(f'<td class="{of}">{escape(text)}</td>' for of, text in cells)
            lines.append(f'<tr title="{path}"{kind}>{shown}</tr>')
        if record.error is not None:
            lines += [
                f'<tr class="bad"><td colspan="6">{escape(line)}</td></tr>'
                for line in error_lines(message, record.error)
            ]
    more = "<p>There are more rows: inspect one record with record=…</p>" if len(lines) >= MOST_ROWS else ""
    return f'{_STYLE}<table class="wireformat-tree">{"".join(lines)}</table>{more}'
