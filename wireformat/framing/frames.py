"""A frame: the position of one record's kind and body in its message."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple


class Frame(NamedTuple):
    """One record of a message, without its framing.

    record  index in the message
    start   first byte of the record's own bytes (binary: its kind)
    stop    one past the last
    lsn     the LSN in its frame; None if the framing has none
    """

    record: int
    start: int
    stop: int
    lsn: int | None


class Part(NamedTuple):
    """A number in the framing.

    name  its name in the path of an error
    code  its format character of the module struct
    rule  the rule of the format
    """

    name: str
    code: str
    rule: str


def layout(parts: tuple[Part, ...]) -> Struct:
    """Returns the struct that reads consecutive parts of a framing."""
    return Struct(">" + "".join(part.code for part in parts))
