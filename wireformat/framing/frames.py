"""A frame: the position of one record's kind and body in its message; what batches share; and no framing.

A message of the serial plugins is one record, and only its carrier knows where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ..errors import BadLength, OptionError, ShortData, TrailingBytes, counted
from ..limits import RECORD_BYTES


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


def find_end(
    data: bytes | bytearray, start: int, searched: int, seen: int = 0, format: str = "this format"
) -> tuple[bool, int]:
    """Raises OptionError: nothing in the bytes says where a message ends."""
    raise OptionError(
        f"option format: a message of {format} does not say where it ends, so bytes that are cut anywhere cannot be "
        "read; give whole messages to decode"
    )


def batch_head(body: str) -> tuple[Part, Part]:
    """Returns the parts before each record of a batch; `body` is what its length counts besides the LSN, in words."""
    return (
        Part("length", "I", f"length of LSN{body}, unsigned integer of 4 bytes"),
        Part("lsn", "Q", "LSN of the record, unsigned integer of 8 bytes"),
    )


BATCH_HEAD = layout(batch_head(""))
_LENGTH = Struct(">I")


def record(lsn: int, body: bytes) -> bytes:
    """Returns one framed record of a batch; in the binary style, the body includes the kind."""
    return BATCH_HEAD.pack(8 + len(body), lsn) + body


def record_length(data: bytes | bytearray, at: int, most: int, least: int, zero: str = "") -> int:
    """Returns the length of the record of a batch at a byte; raises ShortData or BadLength.

    zero   words for errors where a length of zero ends the message
    """
    left = len(data) - at
    if left < 4:
        expected = f"4 bytes{zero and ', a length or the zeros that end the message'}"
        raise ShortData(expected, f"{left}, then the message ends", **spot(data, at, 4, "length"))
    length: int = _LENGTH.unpack_from(data, at)[0]
    most = min(most, RECORD_BYTES)
    if not least <= length <= most and (length or not zero):
        expected = "a record that ends within the message" if most < least else f"a record length of {least} to {most}"
        got = f"a length of {length} with {counted(left - 4, 'byte')} left"
        raise BadLength(zero + expected, got, **spot(data, at, 4, "length"))
    return length


def check_end(message: bytes, at: int) -> None:
    """Raises TrailingBytes if the message goes on at a byte."""
    if at < len(message):
        got = counted(len(message) - at, "more byte")
        raise TrailingBytes("the end of the message", got, message_offset=at, path="end")


def spot(data: bytes | bytearray, at: int, size: int, path: str) -> dict[str, object]:
    """Returns the facts that an error has of some bytes."""
    return {"message_offset": at, "path": path, "spot": bytes(data[at : at + size])}
