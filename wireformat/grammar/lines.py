"""The lines around transactions, of all text formats: one table of shapes, by which they are read and written.

A line is a word and parts in their order, each behind its mark. Words and marks are read in any case, since servers
differ in it. Sources: openGauss 3.0, 5.0 and 6.0, whose captures hold all of these; the GaussDB document "Logical
Decoding Options", which prints `COMMIT XID: 78110`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import BadValue, EncodeError
from ..events import Abort, Begin, Commit, Event, Prepare
from ..lsn import lsn_text, lsn_value
from .cursor import Cursor
from .literals import encoded


class Value(NamedTuple):
    """A kind of value: how it looks, in words too, how it is read, and how it is written."""

    pattern: re.Pattern[bytes]
    words: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


class Part(NamedTuple):
    """One part of a line.

    before      the mark in front of it
    field       the field of the event
    value       its kind
    after       what closes it
    required    whether it must be there
    also        other marks that older servers write
    """

    before: bytes
    field: str
    value: Value
    after: bytes = b""
    required: bool = False
    also: tuple[bytes, ...] = ()


class Line(NamedTuple):
    """One shape: the word that it begins with, its event, its parts."""

    word: bytes
    event: type[Event]
    parts: tuple[Part, ...]


def _integer(least: int, most: int) -> tuple[Callable[[str], int], Callable[[Any], str]]:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    def write(number: Any) -> str:
        if not isinstance(number, int) or not least <= number <= most:
            raise ValueError(number)
        return str(int(number))

    return read, write


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


UNSIGNED = Value(re.compile(rb"[0-9]{1,20}"), "a number of 64 bits", *_integer(0, (1 << 64) - 1))
OID = Value(re.compile(rb"[0-9]{1,10}"), "a number of 32 bits", *_integer(0, (1 << 32) - 1))
SIGNED = Value(re.compile(rb"-?[0-9]{1,10}"), "a signed number of 32 bits", *_integer(-(1 << 31), (1 << 31) - 1))
LSN = Value(re.compile(rb"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}"), "an LSN, as 0/CFE5C80", lsn_value, lsn_text)
TEXT = Value(re.compile(rb""), "text", str, _text)
"""Ends at the last place of what closes it, or at the mark of a later part, or with the line."""

_TIME = Part(b" (at ", "commit_time", TEXT, b")")
_XID = Part(b" ", "xid", UNSIGNED)

PARALLEL = (
    Line(
        b"BEGIN",
        Begin,
        (
            Part(b" CSN: ", "csn", UNSIGNED, required=True),
            Part(b" first_lsn: ", "first_lsn", LSN, required=True, also=(b" commit_lsn: ",)),
            Part(b" xid: ", "xid", UNSIGNED),
            Part(b" commit_time: ", "commit_time", TEXT),
            Part(b" origin_id: ", "origin", SIGNED),
        ),
    ),
    Line(b"commit", Commit, (Part(b" xid: ", "xid", UNSIGNED), _TIME)),
)
"""gaussdb-json and gaussdb-text. `commit_lsn:` is release 3.0's word for the same number."""

_ENDS = (Line(b"ABORT", Abort, (_XID, _TIME)), Line(b"PREPARE", Prepare, (_XID, _TIME)))
_COMMIT = Line(b"COMMIT", Commit, (_XID, _TIME, Part(b" CSN ", "csn", UNSIGNED)))

MPPDB = (Line(b"BEGIN", Begin, (_XID, Part(b" ORIGIN_ID ", "origin", SIGNED))), _COMMIT, *_ENDS)
TEST_DECODING = (Line(b"BEGIN", Begin, (_XID,)), _COMMIT, *_ENDS)
SQL = (
    Line(b"BEGIN", Begin, (Part(b" ", "csn", UNSIGNED),)),
    Line(b"COMMIT", Commit, (_TIME, Part(b" ", "csn", UNSIGNED))),
    *_ENDS,
)

_WORD = re.compile(rb"([A-Za-z]{1,7})(?: |\Z)")


def find_line(cursor: Cursor, lines: tuple[Line, ...]) -> Line | None:
    """The line that begins at the cursor, by its word; the cursor is then behind it."""
    match = _WORD.match(cursor.data, cursor.at, cursor.stop)
    word = match[1] if match else b""
    for line in lines:
        if word.lower() == line.word.lower():
            cursor.at += len(word)
            return line
    return None


def read_parts(cursor: Cursor, parts: tuple[Part, ...]) -> dict[str, Any]:
    """The fields of a line, read from the cursor on; raises DecodeError where a required one is not there."""
    fields: dict[str, Any] = {}
    for place, part in enumerate(parts):
        mark = _mark(cursor, part)
        if mark is None:
            if part.required:
                cursor.fail(_expected(part), part.field)
            continue
        cursor.at += len(mark)
        start = cursor.at
        raw = _raw(cursor, part, parts[place + 1 :])
        text = cursor.text(raw, start, part.field)
        try:
            fields[part.field] = part.value.read(text)
        except ValueError:
            cursor.fail(part.value.words, part.field, at=start, kind=BadValue)
    return fields


def read_line(cursor: Cursor, line: Line) -> dict[str, Any]:
    """The fields of a line to its end; raises DecodeError."""
    fields = read_parts(cursor, line.parts)
    if not cursor.ended:
        left = [part for part in line.parts if part.field not in fields]
        expected = " or ".join([*map(_expected, left), "the end of the record"])
        cursor.fail(expected, left[0].field if left else "end")
    return fields


def write_parts(parts: tuple[Part, ...], fields: dict[str, Any], encoding: str) -> bytes:
    """The parts that the fields have, in the order of the table; raises EncodeError."""
    written = []
    for part in parts:
        value = fields.get(part.field)
        if value is None and not part.required:
            continue
        try:
            text = part.value.write(value)
        except (TypeError, ValueError):
            raise EncodeError(f"{part.field}: expected {part.value.words}") from None
        written.append(part.before + encoded(text, part.field, encoding) + part.after)
    return b"".join(written)


def _mark(cursor: Cursor, part: Part) -> bytes | None:
    """The mark of this part, if it follows with a value behind it."""
    for mark in (part.before, *part.also):
        end = cursor.at + len(mark)
        follows = cursor.data[cursor.at : min(end, cursor.stop)].lower() == mark.lower()
        if follows and part.value.pattern.match(cursor.data, end, cursor.stop):
            return mark
    return None


def _raw(cursor: Cursor, part: Part, later: tuple[Part, ...]) -> bytes:
    """The bytes of the value behind the mark; the cursor is then behind it and what closes it."""
    start = cursor.at
    if part.value is not TEXT:
        match = part.value.pattern.match(cursor.data, start, cursor.stop)
        cursor.at = match.end() if match else start
        return cursor.data[start : cursor.at]
    if part.after:
        end = cursor.data.rfind(part.after, start, cursor.stop)
        if end < 0:
            cursor.fail(f"{part.after.decode()!r} to close the text", part.field, at=cursor.stop)
    else:
        found = [cursor.data.find(next_part.before, start, cursor.stop) for next_part in later]
        end = min((place for place in found if place >= 0), default=cursor.stop)
    cursor.at = end + len(part.after)
    return cursor.data[start:end]


def _expected(part: Part) -> str:
    return f"{part.before.decode()!r} and {part.value.words}"
