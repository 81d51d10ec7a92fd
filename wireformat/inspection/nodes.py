"""The tree of a message: which bytes are which field, by which rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import DecodeError, counted
from ..events import Event

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
        raise KeyError(path)

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
