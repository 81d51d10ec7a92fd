"""A frame: where one record's kind and body lie in its message."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple


class Frame(NamedTuple):
    """One record of a message, without what surrounds it.

    record  index in the message
    start   first byte of the record's own bytes (binary: its kind)
    stop    one past the last
    lsn     the position in its frame, None where the framing has none
    """

    record: int
    start: int
    stop: int
    lsn: int | None


class Part(NamedTuple):
    """A number in the framing, beside the records.

    name  what it is called in the path of an error
    code  of the module struct
    rule  what the format says of it
    """

    name: str
    code: str
    rule: str


def layout(parts: tuple[Part, ...]) -> Struct:
    """The struct that reads parts of a framing that follow each other."""
    return Struct(">" + "".join(part.code for part in parts))
