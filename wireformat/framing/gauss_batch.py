"""GaussDB's binary framing: records with length and LSN, separated by P, closed by F or by P and a zero length.

    message  = record ( 'P' record )* ( 'F' | 'P' 00000000 )
    record   = length:u32 lsn:u64 kind:u8 body          length counts lsn, kind and body
    message  = 'h' 24 bytes 'F'                         a bare heartbeat

Source: GaussDB document "Logical Decoding Options"; openGauss's parallel decoding, binary style. 0x68 ('h') as the
first byte of a length would mean 1.7 GB, so the first byte tells a bare heartbeat from a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import BadTag, DecodeError, ShortData
from ..limits import RECORD_BYTES
from .frames import BATCH_HEAD, Frame, Part, batch_head, check_end, record_length, spot

MORE, END, BARE_HEARTBEAT = b"P", b"F", b"h"
BARE_HEARTBEAT_BYTES = 25  # without the F
LEAST_RECORD_BYTES = 9  # LSN and kind
CLOSE_BY_TIMEOUT = MORE + bytes(4)

HEAD = batch_head(", kind and body")
"""The parts before each record, except a bare heartbeat."""

TAIL = (
    Part("separator", "c", "'P' before another record or a zero length, 'F' at the end"),
    Part("end", "I", "a zero length, which ends the message"),
)
"""The parts after each record, as far as they are present."""


def frames(message: bytes, at: int = 0, record: int = 0) -> Iterator[Frame]:
    """Yields the frames of a whole message, or those from a record on.

    at, record  where the framing of this record begins

    Raises DecodeError where the framing is broken, after the frames before that spot; its message_offset is the first
    byte that belongs neither to a frame nor to good framing.
    """
    if not record and message[:1] == BARE_HEARTBEAT:
        if len(message) < BARE_HEARTBEAT_BYTES:
            got = f"{len(message)}, then the message ends"
            raise ShortData(f"{BARE_HEARTBEAT_BYTES + 1} bytes", got, **spot(message, 0, 0, "heartbeat"))
        yield Frame(0, 0, BARE_HEARTBEAT_BYTES, None)
        _check_heartbeat_end(message, 0)
        check_end(message, BARE_HEARTBEAT_BYTES + 1)
        return
    while True:
        length = record_length(message, at, len(message) - at - 4, LEAST_RECORD_BYTES)
        stop = at + 4 + length
        yield Frame(record, at + 12, stop, BATCH_HEAD.unpack_from(message, at)[1])
        record += 1
        end, at = _after_record(message, stop)
        if end:
            check_end(message, at)
            return


def find_end(data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
    """Looks for the end of the message that begins at `start`, in data that may be cut anywhere.

    searched    start, or what the last call returned: the beginning of the first record that is not known to be whole
    returns     (True, one past the message) or (False, searched)
    Raises DecodeError where the framing is broken.
    """
    if data[start : start + 1] == BARE_HEARTBEAT:
        if len(data) - start <= BARE_HEARTBEAT_BYTES:
            return False, start
        _check_heartbeat_end(data, start)
        return True, start + BARE_HEARTBEAT_BYTES + 1
    while len(data) >= searched + 4:
        stop = searched + 4 + record_length(data, searched, RECORD_BYTES, LEAST_RECORD_BYTES)
        if len(data) <= stop or (data[stop : stop + 1] == MORE and len(data) < stop + 5):
            break
        end, searched = _after_record(data, stop)
        if end:
            return True, searched
    return False, searched


def _after_record(data: bytes | bytearray, stop: int) -> tuple[bool, int]:
    """Returns whether the message ends, and where it ends or the next record begins."""
    separator = bytes(data[stop : stop + 1])
    if separator == END:
        return True, stop + 1
    if separator != MORE:
        raise _bad_separator(separator, "'P' or 'F'", data, stop)
    if data[stop + 1 : stop + 5] == bytes(4):
        return True, stop + 5
    return False, stop + 1


def _check_heartbeat_end(data: bytes | bytearray, start: int) -> None:
    at = start + BARE_HEARTBEAT_BYTES
    end = bytes(data[at : at + 1])
    if end != END:
        raise _bad_separator(end, "'F'", data, at)


def _bad_separator(separator: bytes, expected: str, data: bytes | bytearray, at: int) -> DecodeError:
    where = spot(data, at, 1, "separator")
    if not separator:
        return ShortData(f"{expected} after the record", "the end of the message", **where)
    return BadTag(f"{expected} after the record", f"0x{separator[0]:02X}", **where)
