"""GaussDB's framing of the JSON and TEXT styles: records with length and LSN up to a zero length, or a text alone.

    message  = ( length:u32 lsn:u64 text )* 00000000    batched; length counts lsn and text
    message  = text                                     unbatched: no length, no LSN, no end

A text begins with a letter or `{`. As the first byte of a length, 0x42 and more would mean 1.1 GB, longer than any
record: so the first byte tells one from the other. Source: GaussDB document "Logical Decoding Options"; openGauss's
parallel decoding, decode-style=j and t.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import ShortData
from ..limits import RECORD_BYTES
from .buffer import NoFraming
from .frames import BATCH_HEAD, Frame, Part, batch_head, check_end, record_length, spot

FIRST_LETTER = 0x42
"""`B` of BEGIN: no text begins with a lower byte."""
LEAST_RECORD_BYTES = 8  # the LSN
END = bytes(4)

HEAD = batch_head(" and text")
"""Before each record of a batch."""

TAIL = (Part("length", "I", "a zero length, which ends the message"),)
"""After the last record of a batch."""

_ZERO = "zero, or "


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
            raise ShortData("a text, or a batch of them", "an empty message", **spot(message, 0, 4, "length"))
        yield Frame(0, 0, len(message), None)
        return
    while length := record_length(message, at, len(message) - at - 4, LEAST_RECORD_BYTES, _ZERO):
        yield Frame(record, at + 12, at + 4 + length, BATCH_HEAD.unpack_from(message, at)[1])
        record += 1
        at += 4 + length
    check_end(message, at + len(END))


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
        length = record_length(data, searched, RECORD_BYTES, LEAST_RECORD_BYTES, _ZERO)
        if not length:
            return True, searched + len(END)
        if len(data) < searched + 4 + length:
            break
        searched += 4 + length
    return False, searched
