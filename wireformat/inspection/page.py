"""A page of one file that shows a capture: a list of all its records, and the trees of some beside their bytes.

The page loads nothing: styles and script are in it, and its policy forbids every connection. What comes from the wire
is in one block of JSON without markup, and the script makes text nodes of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from ..errors import DecodeError
from .nodes import Node, error_lines, rows

MOST_TREES = 2000
"""How many records of a page have a tree."""

MOST_BYTES = 1 << 16
"""How many bytes of a record the page holds."""


class Listed(NamedTuple):
    """A record in the list.

    message, record   the index of its message in the file, and its own in the message
    size              its bytes, with its framing
    kind, table       what it is, and of which table
    """

    message: int
    record: int
    size: int
    kind: str
    table: str


class RecordTree(NamedTuple):
    """A record with a tree.

    number   of the record in the list
    message  the bytes of its message
    node     its tree
    """

    number: int
    message: bytes
    node: Node


def page(title: str, note: str, listed: Sequence[Listed], chosen: Sequence[RecordTree]) -> str:
    """Returns the page as HTML."""
    kinds, tables, rules = Numbers(), Numbers(), Numbers()
    data = {
        "records": [[item.message, item.record, item.size, kinds[item.kind], tables[item.table]] for item in listed],
        "trees": {str(item.number): _tree(item, rules) for item in chosen},
        "kinds": kinds.names,
        "tables": tables.names,
        "rules": rules.names,
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    body = (files(__package__) / "page.html").read_text(encoding="utf-8")
    style, script = (body.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("style", "script"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": escape(policy), "title": escape(title), "note": escape(note)}
    for name, part in {**parts, "data": text}.items():
        head, mark, tail = body.partition(f"<!--{name}-->")
        assert mark, name
        body = head + part + tail
    return body


class Numbers:
    """Numbers of texts: a page contains each text once."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


def _tree(item: RecordTree, rules: Numbers) -> dict[str, Any]:
    """Bytes, rows (depth, path, name, start, stop, value, rule, is leaf, is bad) and what is wrong."""
    start, stop = item.node.start, min(item.node.stop, item.node.start + MOST_BYTES)
    return {
        "offset": start,
        "bytes": base64.b64encode(item.message[start:stop]).decode("ascii"),
        "left": item.node.stop - stop,
        "rows": [
            [
                row.depth,
                row.node.path,
                row.node.name,
                row.node.start - start,
                row.node.stop - start,
                row.value,
                rules[row.node.rule],
                int(row.node.is_leaf),
                int(row.node.error is not None),
            ]
            for row in rows(item.message, item.node)
        ],
        "errors": _errors(item.message, item.node.error),
    }


def _errors(message: bytes, error: DecodeError | None) -> list[str]:
    return [] if error is None else error_lines(message, error)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
