"""`wireformat inspect --html`: a page of the whole capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...arrow.engine.choice import make_engine
from ...errors import counted
from ...events import Corrupt, Event
from ...formats.registry import find_format
from ...inspection.page import MOST_TREES, Chosen, Listed, page
from ...inspection.reading import RecordReader
from ...options import ReadOptions
from ...printable import printable
from ..exits import BAD_USAGE, Failed
from ..inputs import all_messages, find_inputs
from ..screen import say
from .guessed import guessed_format


def write_page(
    path: str, output: Path, *, format: str | None, column: str | None, records: str | None, **options: Any
) -> None:
    """Write a page with all records of a file, and trees of some.

    records     the records with a tree, as 0-99,500, counted through the file; None for the first MOST_TREES
    The other options are those of `ReadOptions`. Raises Failed, OptionError.
    """
    wanted = _wanted(records)
    if not output.parent.is_dir():  # known before the file is read, which may take minutes
        raise Failed(f"{output}: {output.parent} is not a folder", BAD_USAGE)
    checked = ReadOptions.check(mode="PERMISSIVE", **options)
    name = guessed_format([path], format, column)
    found = find_format(name)
    listed: list[Listed] = []
    chosen: list[Chosen] = []
    reader = RecordReader(found, checked)
    engine = make_engine(found, checked)
    messages = 0
    with find_inputs([path], found, column) as inputs:
        for given in all_messages(inputs):
            batch = [item if isinstance(item, bytes) else item.as_py() or b"" for item in given.messages]
            events: list[list[Event]] = [[] for _ in batch]
            for located in engine.events(batch):
                events[located.message].append(located.event)
            for message, said in zip(batch, events, strict=True):
                _add(reader, message, messages, said, wanted, listed, chosen)
                messages += 1
    note = f"{Path(path).name}: {counted(messages, 'message', ',')}, {counted(len(listed), 'record', ',')} of {name}"
    text = page(f"{Path(path).name} - wireformat inspect", printable(note), listed, chosen)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failed(f"{output}: {error.strerror}", BAD_USAGE) from None
    say(f"{output}: {counted(len(listed), 'record', ',')}, {counted(len(chosen), 'tree', ',')}")


def _add(
    reader: RecordReader,
    message: bytes,
    index: int,
    said: list[Event],
    wanted: list[range],
    listed: list[Listed],
    chosen: list[Chosen],
) -> None:
    """Adds the records of a message to the list, and the trees of those that are wanted."""
    is_learning = reader.format.relations is not None
    for record, piece in enumerate(reader.slices(message)):
        place = len(listed)
        event = said[record] if record < len(said) else Corrupt(error="", raw=b"")
        names = [getattr(event, name, None) for name in ("table_schema", "table_name")]
        table = ".".join(str(name) for name in names if name is not None)
        listed.append(Listed(index, record, piece.stop - piece.start, event.kind, printable(table)))
        if any(place in some for some in wanted):
            chosen.append(Chosen(place, message, reader.node(message, piece, record)))
        elif is_learning:
            reader.learn(message)


def _wanted(records: str | None) -> list[range]:
    """The ranges of an option like 0-99,500; raises Failed."""
    if records is None:
        return [range(MOST_TREES)]
    found = []
    for item in records.split(","):
        first, dash, last = item.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise Failed(f"--records: expected numbers and ranges, as 0-99,500; got {printable(item)!r}", BAD_USAGE)
        found.append(range(int(first), int(last if dash else first) + 1))
    count = sum(map(len, found))
    if count > MOST_TREES:
        raise Failed(f"--records: a page has at most {MOST_TREES:,} trees, got {count:,}", BAD_USAGE)
    return found
