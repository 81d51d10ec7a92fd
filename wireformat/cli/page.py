"""`wireformat inspect --html`: a page with a list of all records of a capture, and trees of some beside their bytes.

The page loads nothing: styles and script are in it, and its policy forbids every connection. What comes from the wire
is in one block of JSON without markup, and the script makes text nodes of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Set
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import counted
from ..events import Corrupt, Event
from ..formats.registry import find_format
from ..inspection.nodes import Node, error_lines, rows
from ..inspection.reading import RecordReader, Slice
from ..options import ReadOptions
from ..printable import printable
from ..sources.decoding import SourceDecoder
from ..sources.source import message_bytes
from .exits import BAD_USAGE, Failed
from .inputs import all_messages, find_inputs, guessed_format
from .options import STDIN, STDOUT
from .output import check_is_no_input, open_file
from .screen import say

MOST_TREES = 2000
"""How many records of a page have a tree."""

MOST_BYTES = 1 << 16
"""How many bytes of a record the page holds."""

_RANGE = re.compile(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", re.ASCII)
"""An item of --records: a number, or the first and the last one."""


def write_page(
    path: str, output: Path, *, format: str | None, column: str | None, records: str | None, **options: Any
) -> None:
    """Writes a page with all records of a file, and trees of some.

    records   the records with a tree, such as 0-99,500, counted through the file; None for the first MOST_TREES

    The other options are those of `ReadOptions`. Raises Failed and OptionError.
    """
    wanted = _wanted(records)
    target = None if str(output) == STDOUT else output
    if target is not None:  # checked before the file is read, which may take minutes
        if not target.parent.is_dir():
            raise Failed(f"{target}: {target.parent} is not a folder", BAD_USAGE)
        check_is_no_input(target, [path])
    checked = ReadOptions.check(mode="PERMISSIVE", **options)
    name = guessed_format([path], format, column)
    found = find_format(name)
    page = Page(RecordReader(found, checked), wanted)
    decoder = SourceDecoder(found, checked)
    with find_inputs([path], found, column) as inputs:
        for given in all_messages(inputs):
            first = decoder.messages
            events: list[list[Event]] = [[] for _ in given.messages]
            for located in decoder.located(given):
                events[located.message - first].append(located.event)
            for index, (item, said) in enumerate(zip(given.messages, events, strict=True), first):
                message = message_bytes(item)
                if message is not None:
                    reader = page.reader
                    pieces = reader.unframed(message, given.error) if given.is_lost else reader.slices(message)
                    page.add(message, index, pieces, said)
    title = "standard input" if path == STDIN else Path(path).name
    listed, trees = counted(len(page.records), "record", ","), counted(len(page.trees), "tree", ",")
    if records is not None and not page.trees:
        raise Failed(f"--records: {title} has {listed}, from 0 on; got {records}", BAD_USAGE)
    note = f"{title}: {counted(decoder.messages, 'message', ',')}, {listed} of {name}"
    text = page.html(printable(f"{title} - wireformat inspect"), printable(note))
    with open_file(target) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    say(f"{target or 'standard output'}: {listed}, {trees}")


class Numbers(dict[str, int]):
    """Numbers of texts, in their order: a page contains each text once."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


class Page:
    """The records and trees of a page, as its script reads them.

    wanted    the numbers of the records that get a tree
    records   message, record in it, size with its framing, kind and table of each record
    trees     the trees, by the number of their record
    """

    def __init__(self, reader: RecordReader, wanted: Set[int]) -> None:
        self.reader = reader
        self._wanted = wanted
        self.records: list[tuple[int, ...]] = []
        self.trees: dict[int, dict[str, Any]] = {}
        self._kinds, self._tables, self._rules = Numbers(), Numbers(), Numbers()

    def add(self, message: bytes, index: int, pieces: Iterable[Slice], said: list[Event]) -> None:
        """Adds the records of a message, and the trees of those that are wanted."""
        is_learning = self.reader.format.relations is not None
        for record, piece in enumerate(pieces):
            number = len(self.records)
            event = said[record] if record < len(said) else Corrupt(error="", raw=b"")
            names = [getattr(event, name, None) for name in ("table_schema", "table_name")]
            table = printable(".".join(str(name) for name in names if name is not None))
            size = piece.stop - piece.start
            self.records.append((index, record, size, self._kinds[event.kind], self._tables[table]))
            if number in self._wanted:
                self.trees[number] = self._tree(message, self.reader.node(message, piece, record))
            elif is_learning:
                self.reader.learn(message)

    def _tree(self, message: bytes, node: Node) -> dict[str, Any]:
        """Bytes, rows (depth, path, name, start, stop, value, rule, is leaf, is bad) and what is wrong."""
        start, stop = node.start, min(node.stop, node.start + MOST_BYTES)
        return {
            "offset": start,
            "bytes": base64.b64encode(message[start:stop]).decode("ascii"),
            "left": node.stop - stop,
            "rows": [
                [
                    row.depth,
                    row.node.path,
                    row.node.name,
                    row.node.start - start,
                    row.node.stop - start,
                    row.value,
                    self._rules[row.node.rule],
                    int(row.node.is_leaf),
                    int(row.node.error is not None),
                ]
                for row in rows(message, node)
            ],
            "errors": [] if node.error is None else error_lines(message, node.error),
        }

    def html(self, title: str, note: str) -> str:
        """Returns the page."""
        data = {
            "records": self.records,
            "trees": self.trees,
            "kinds": [*self._kinds],
            "tables": [*self._tables],
            "rules": [*self._rules],
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


def _wanted(records: str | None) -> Set[int]:
    """Returns the numbers of an option such as 0-99,500; raises Failed."""
    if records is None:
        return frozenset(range(MOST_TREES))
    found: set[int] = set()
    for item in records.split(","):
        numbers = _RANGE.fullmatch(item)
        first, last = (int(numbers[1]), int(numbers[2] or numbers[1])) if numbers else (1, 0)
        if first > last:
            raise Failed(f"--records: expected numbers and ranges, as 0-99,500; got {printable(item)!r}", BAD_USAGE)
        if last - first >= MOST_TREES or len(found := found | {*range(first, last + 1)}) > MOST_TREES:
            raise Failed(f"--records: expected at most {counted(MOST_TREES, 'record', ',')}, got more", BAD_USAGE)
    return found


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
