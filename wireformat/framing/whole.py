"""The framing of the serial plugins: none. A message is one record, and only its carrier knows where it ends."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import OptionError, ShortData
from .frames import Frame


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
