"""Finds records in bytes of which the beginning, or something in between, is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ..errors import DecodeError, OptionError
from ..events import Event, Unknown
from ..formats.guess import Guess
from ..formats.registry import all_rows, find_format, find_row
from ..formats.signatures import PATTERNS
from ..framing.frames import Frame, layout
from ..options import ReadOptions
from .reading import RecordReader, Slice

GUESSED_BYTES, GUESSED_RECORDS = 4 << 20, 20
"""How many bytes are searched to guess their format, and how many records of each format are counted."""

BATCHED = "batched "
"""How the names of those patterns begin that know a record by its framing."""


def find_records(reader: RecordReader, data: bytes) -> Iterator[tuple[Slice, Event]]:
    """Yields the records that can be read somewhere in the bytes, in their order, and what they say; none overlap.

    A record is found where length, LSN and the first bytes of its body look like the format's, and all of it can be
    read. Raises OptionError for a format whose records have no length.
    """
    names = find_row(reader.format.name).signatures
    patterns = [PATTERNS[name] for name in names if isinstance(name, str) and name.startswith(BATCHED)]
    if not patterns:
        raise OptionError(
            f"option scan: records of {reader.format.name} have no length, so none can be found in the middle of "
            "bytes; a message is a record"
        )
    head = layout(reader.head)
    begins = re.compile(b"(?=" + b"|".join(patterns) + b")", re.DOTALL)
    at = 0
    while match := begins.search(data, at):
        start = match.start()
        length, lsn = head.unpack_from(data, start)
        body, stop = start + head.size, start + 4 + length
        at = start + 1
        if not body < stop <= len(data):
            continue
        frame = Frame(0, body, stop, lsn)
        try:
            event = reader.format.read(data, frame, reader.options)
        except DecodeError:
            continue
        if not isinstance(event, Unknown):
            at = stop
            yield Slice(frame, start, stop), event


def guess_scanned(data: bytes, options: ReadOptions) -> Guess:
    """The format of which the most records are found in the bytes, and why."""
    found = {}
    for name in all_rows():
        records = find_records(RecordReader(find_format(name), options), data[:GUESSED_BYTES])
        with suppress(OptionError):  # its records have no length
            found[name] = sum(1 for _ in islice(records, GUESSED_RECORDS))
    most = max(found.values())
    if not most:
        return Guess(None, (), "no record of a known format is found", 0)
    names = tuple(sorted(name for name, count in found.items() if count == most))
    reason = f"records of {' or '.join(names)} are found in the bytes"
    return Guess(names[0] if len(names) == 1 else None, names, reason, 0)
