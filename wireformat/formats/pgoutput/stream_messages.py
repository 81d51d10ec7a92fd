"""Reads the messages around streamed blocks without construct: where blocks are small, there are many of them."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ...events import Event, StreamAbort, StreamCommit, StreamStart, StreamStop
from ...times import MICROS_OF_2000, time_text

_START, _COMMIT, _ABORT = Struct(">BIB"), Struct(">BIBQQq"), Struct(">BII")


def _start(record: bytes, lsn: int | None) -> Event | None:
    _, xid, first = _START.unpack(record)
    return StreamStart(lsn=lsn, xid=xid, first_segment=first == 1) if first <= 1 else None


def _stop(record: bytes, lsn: int | None) -> Event:
    return StreamStop(lsn=lsn)


def _commit(record: bytes, lsn: int | None) -> Event | None:
    _, xid, flags, commit_lsn, end_lsn, micros = _COMMIT.unpack(record)
    time = time_text(micros + MICROS_OF_2000)
    if flags or time is None:
        return None
    return StreamCommit(lsn=lsn, xid=xid, commit_lsn=commit_lsn, end_lsn=end_lsn, commit_time=time)


def _abort(record: bytes, lsn: int | None) -> Event:
    _, xid, subxid = _ABORT.unpack(record)
    return StreamAbort(lsn=lsn, xid=xid, subxid=subxid)


_READERS: dict[tuple[int, int], Callable[[bytes, int | None], Event | None]] = {
    (ord("S"), _START.size): _start,
    (ord("E"), 1): _stop,
    (ord("c"), _COMMIT.size): _commit,
    (ord("A"), _ABORT.size): _abort,
}
"""By kind byte and size."""

STREAM_TAGS = frozenset(tag for tag, _ in _READERS)


def read_stream_message(record: bytes, lsn: int | None) -> Event | None:
    """The event of a message of PostgreSQL's dialect that begins or ends a block, or ends a streamed transaction.

    record   from the kind byte to the end
    lsn      of its frame

    None if the declaration must read it.
    """
    read = _READERS.get((record[0], len(record)))
    return None if read is None else read(record, lsn)
