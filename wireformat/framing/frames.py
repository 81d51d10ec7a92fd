"""A frame: the position of one record's kind and body in its message; and the framing of the serial plugins: none.

There, a message is one record, and only its carrier knows where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ..errors import OptionError, ShortData


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


def frames(message: bytes) -> Iterator[Frame]:
    """Yields the one frame of a message; raises ShortData if it is empty."""
    if not message:
        raise ShortData("a record", "an empty message", message_offset=0)
    yield Frame(0, 0, len(message), None)


def find_end(data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
    """Raises OptionError: nothing in the bytes says where a message ends."""
    raise OptionError(
        "option format: a message of this format does not say where it ends, so bytes that are cut anywhere cannot be "
        "read; give whole messages to decode"
    )
