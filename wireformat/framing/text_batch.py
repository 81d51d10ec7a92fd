"""GaussDB's framing of the JSON and TEXT styles: records with length and LSN up to a zero length, or a text alone.

    message  = ( length:u32 lsn:u64 text )* 00000000    batched; length counts lsn and text
    message  = text                                     unbatched: no length, no LSN, no end

A text begins with a letter or `{`. As the first byte of a length, 0x42 and more would mean 1.1 GB, longer than any
record: so the first byte tells one from the other. Source: GaussDB document "Logical Decoding Options"; openGauss's
parallel decoding, decode-style=j and t.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import BadLength, ShortData, TrailingBytes, counted
from ..limits import RECORD_BYTES
from .buffer import NoFraming
from .frames import Frame, Part, layout

FIRST_LETTER = 0x42
"""`B` of BEGIN: no text begins with a lower byte."""
LEAST_RECORD_BYTES = 8  # the LSN
END = bytes(4)

HEAD = (
    Part("length", "I", "length of LSN and text, unsigned integer of 4 bytes"),
    Part("lsn", "Q", "LSN of the record, unsigned integer of 8 bytes"),
)
"""Before each record of a batch."""

TAIL = (Part("length", "I", "a zero length, which ends the message"),)
"""After the last record of a batch."""

_LENGTH = layout(HEAD[:1])
_HEAD = layout(HEAD)


def is_batched(message: bytes | bytearray, start: int = 0) -> bool:
    """Whether the message that begins there is batched, which its first byte tells."""
    return start < len(message) and message[start] < FIRST_LETTER


def frames(message: bytes, at: int = 0, record: int = 0) -> Iterator[Frame]:
    """Yields the frames of a whole message, or those from a record on.

    at, record  where the framing of this record begins

    Raises DecodeError where the framing is broken, after the frames before that spot; its message_offset is the first
    byte that belongs neither to a frame nor to good framing.
    """
    if not is_batched(message):
        if not message:
            raise ShortData("a text, or a batch of them", "an empty message", **_spot(message, 0))
        yield Frame(0, 0, len(message), None)
        return
    while length := _record_length(message, at, len(message) - at - 4):
        yield Frame(record, at + 12, at + 4 + length, _HEAD.unpack_from(message, at)[1])
        record += 1
        at += 4 + length
    at += len(END)
    if at < len(message):
        got = counted(len(message) - at, "more byte")
        raise TrailingBytes("the end of the message", got, message_offset=at, path="end")


def find_end(data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
    """Looks for the end of the message that begins at `start`, in data that may be cut anywhere.

    searched    start, or what the last call returned: the beginning of the first record that is not known to be whole
    returns     (True, one past the message) or (False, searched)
    Raises DecodeError where the framing is broken, NoFraming where there is none.
    """
    if start < len(data) and not is_batched(data, start):
        raise NoFraming(
            "batches, which say where they end",
            "a text without framing; give whole messages to decode",
            message_offset=0,
            path="length",
        )
    while len(data) >= searched + 4:
        length = _record_length(data, searched, RECORD_BYTES)
        if not length:
            return True, searched + len(END)
        if len(data) < searched + 4 + length:
            break
        searched += 4 + length
    return False, searched


def record(lsn: int, text: bytes) -> bytes:
    """Returns one framed record."""
    return _HEAD.pack(8 + len(text), lsn) + text


def _record_length(data: bytes | bytearray, at: int, most: int) -> int:
    """Returns the length of the record there; 0 at the end of the message."""
    left = len(data) - at
    if left < 4:
        raise ShortData(
            "4 bytes, a length or the zeros that end the message", f"{left}, then the message ends", **_spot(data, at)
        )
    (length,) = _LENGTH.unpack_from(data, at)
    if length and not LEAST_RECORD_BYTES <= length <= min(most, RECORD_BYTES):
        expected = f"zero, or a record length of {LEAST_RECORD_BYTES} to {min(most, RECORD_BYTES)}"
        if most < LEAST_RECORD_BYTES:
            expected = "zero, or a record that ends within the message"
        raise BadLength(expected, f"a length of {length} with {counted(left - 4, 'byte')} left", **_spot(data, at))
    return int(length)


def _spot(data: bytes | bytearray, at: int) -> dict[str, object]:
    return {"message_offset": at, "path": "length", "spot": bytes(data[at : at + 4])}
