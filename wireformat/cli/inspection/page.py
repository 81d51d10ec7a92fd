"""`wireformat inspect --html`: a page of the whole capture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

from ...errors import counted
from ...events import Corrupt, Event
from ...formats.registry import find_format
from ...inspection.page import MOST_TREES, Listed, RecordTree, page
from ...inspection.reading import RecordReader, Slice
from ...options import ReadOptions
from ...printable import printable
from ...sources.decoding import SourceDecoder
from ...sources.source import message_bytes
from ..exits import BAD_USAGE, Failed
from ..inputs import all_messages, find_inputs
from ..options import STDIN, STDOUT
from ..output import check_is_no_input, open_file
from ..screen import say
from .guessed import guessed_format

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
    listed: list[Listed] = []
    chosen: list[RecordTree] = []
    reader = RecordReader(found, checked)
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
                    pieces = reader.unframed(message, given.error) if given.is_lost else reader.slices(message)
                    _add(reader, message, index, pieces, said, wanted, listed, chosen)
    title = "standard input" if path == STDIN else Path(path).name
    note = f"{title}: {counted(decoder.messages, 'message', ',')}, {counted(len(listed), 'record', ',')} of {name}"
    text = page(printable(f"{title} - wireformat inspect"), printable(note), listed, chosen)
    with open_file(target) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    say(f"{target or 'standard output'}: {counted(len(listed), 'record', ',')}, {counted(len(chosen), 'tree', ',')}")


def _add(
    reader: RecordReader,
    message: bytes,
    index: int,
    pieces: Iterable[Slice],
    said: list[Event],
    wanted: Set[int],
    listed: list[Listed],
    chosen: list[RecordTree],
) -> None:
    """Adds the records of a message to the list, and the trees of those that are wanted."""
    is_learning = reader.format.relations is not None
    for record, piece in enumerate(pieces):
        number = len(listed)
        event = said[record] if record < len(said) else Corrupt(error="", raw=b"")
        names = [getattr(event, name, None) for name in ("table_schema", "table_name")]
        table = ".".join(str(name) for name in names if name is not None)
        listed.append(Listed(index, record, piece.stop - piece.start, event.kind, printable(table)))
        if number in wanted:
            chosen.append(RecordTree(number, message, reader.node(message, piece, record)))
        elif is_learning:
            reader.learn(message)


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
