"""The records of test-decoding in a file of pg_recvlogical, which puts a line feed after each.

Records hold line feeds of their own, so the grammar decides. Names, strings and gids are quoted, and a line feed is the
end only outside of quotes. For a message, the size decides: a prefix has no quotes, and ends before the first size that
is followed by as many bytes and a line feed. A line feed after which a record begins is never taken for a part of a
prefix.

    file     = ( record 0A )*

Where records come one by one, as in streaming replication and from SQL functions, a message is a record: there this
module has nothing to find. Source: PostgreSQL's pg_recvlogical and test_decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from ..grammar.lines import POSTGRES
from ..grammar.messages import CONTENT, MESSAGE, SIZE, STREAMED
from ..grammar.tuple_text import TABLE
from ..limits import PREFIX_BYTES, RECORD_BYTES
from .buffer import NoFraming
from .frames import frames

__all__ = ["SEPARATOR", "find_end", "frames"]

SEPARATOR = b"\n"
"""Follows each record, and belongs to none."""

QUOTED_HEADS = (TABLE, *(line.word for line in POSTGRES))
"""The beginnings of records whose end can be found by their quotes."""

HEADS = (*QUOTED_HEADS, MESSAGE, STREAMED)
"""The beginnings of all records."""

_LF, _QUOTES = 0x0A, b"'\""
_HEAD_BYTES = max(map(len, HEADS))
_NEXT = re.compile(rb"\n(?:" + b"|".join(map(re.escape, HEADS)) + rb")")
_UP_TO = rb"""[^'"\n]*(?:(?:'[^']*'|"[^"]*")[^'"\n]*){0,1000}"""
_OUTSIDE = re.compile(_UP_TO)
"""Up to a line feed or to a quote that is not closed. A doubled quote ends one quoted part and begins another. The
number bounds what the search keeps to go back to."""
_WHOLE = re.compile(b"(?:" + b"|".join(map(re.escape, QUOTED_HEADS)) + b")" + _UP_TO + rb"\n")
"""Matches nearly every record as a whole."""


def find_end(data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
    """Looks for the line feed after the record that begins at `start`, in data that may be cut anywhere.

    searched    start, or what the last call returned: a byte outside of quotes, or the quote that was not closed
    seen        one past the bytes of the last call, in which an open quote was not closed
    returns     (True, one past the line feed) or (False, searched)
    Raises NoFraming where no record begins, where nothing tells its end, and where it is longer than RECORD_BYTES.
    """
    whole = _WHOLE.match(data, start) if searched == start else None
    if whole:
        return True, whole.end()
    if not data.startswith(HEADS, start):
        begin = bytes(data[start : start + _HEAD_BYTES])
        if not any(head.startswith(begin) for head in HEADS):
            _fail("a record of PostgreSQL's test_decoding", "other bytes")
        return False, searched
    if data.startswith(MESSAGE, start):
        end = _message_end(data, start)
    elif data.startswith(STREAMED, start):
        end = _streamed_end(data, start)
    else:
        end, searched = _quoted_end(data, searched, seen)
    if end is None and len(data) - start > RECORD_BYTES:
        _fail(f"a line feed within the {RECORD_BYTES} bytes that a record can have", f"{len(data) - start} without one")
    return (False, searched) if end is None else (True, end + 1)


def _quoted_end(data: bytes | bytearray, at: int, seen: int) -> tuple[int | None, int]:
    """Returns the first line feed outside of quotes, and how far it looked."""
    while at < len(data):
        if data[at] == _LF:
            return at, at
        if data[at] in _QUOTES:
            closing = data.find(data[at : at + 1], max(at + 1, seen))
            if closing < 0:
                break
            at = closing + 1
        match = _OUTSIDE.match(data, at)
        at = match.end() if match else at
    return None, at


def _message_end(data: bytes | bytearray, start: int) -> int | None:
    """Returns the line feed after a message; None if more bytes are needed to tell."""
    end: int | None = None
    for place in _places(CONTENT, data, start):
        if end is not None and place.start() >= end:
            break
        stop = place.end() + int(place[1])
        if end is None:
            if stop >= len(data):
                return None
            end = stop if data[stop] == _LF else None
        elif stop > end or (stop < end and data[stop] == _LF and data.startswith(HEADS, stop + 1)):
            _fail("one place where the prefix can end", "two, and nothing tells which")
    if end is None and _is_over(data, start):
        _fail("', sz: ', a number and ' content:', then as many bytes and a line feed", "another record, or none")
    return end


def _streamed_end(data: bytes | bytearray, start: int) -> int | None:
    """Returns the line feed after a streamed message; None if more bytes are needed to tell."""
    for place in _places(SIZE, data, start):
        if place.end() == len(data):
            return None
        if data[place.end()] == _LF:
            return place.end()
    if _is_over(data, start):
        _fail("', sz: ', a number and a line feed after the prefix", "another record, or none")
    return None


def _places(pattern: re.Pattern[bytes], data: bytes | bytearray, start: int) -> Iterator[re.Match[bytes]]:
    """Yields the positions where the prefix of the message may end: before another record, and before the limit."""
    checked = start
    for place in pattern.finditer(data, start, start + PREFIX_BYTES):
        if _NEXT.search(data, checked, place.start()):
            return
        checked = max(start, place.start() - _HEAD_BYTES)
        yield place


def _is_over(data: bytes | bytearray, start: int) -> bool:
    """Whether the prefix cannot end at a later position."""
    return len(data) >= start + PREFIX_BYTES or _NEXT.search(data, start) is not None


def _fail(expected: str, got: str) -> NoReturn:
    raise NoFraming(expected, got, message_offset=0, path="record")
