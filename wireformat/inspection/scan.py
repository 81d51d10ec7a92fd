"""Finds records in bytes of which the beginning, or something in between, is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import DecodeError, OptionError
from ..events import Event, Unknown
from ..formats.registry import find_row
from ..formats.signatures import PATTERNS
from ..framing.frames import Frame, layout
from .reading import RecordReader, Slice

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
