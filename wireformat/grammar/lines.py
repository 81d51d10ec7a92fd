"""The lines around transactions, of all text formats: one table of shapes, by which they are read and written.

A line is a word, or some words, and parts in their order, each after its mark. Words and marks are read in any case,
since servers differ in it. Sources: openGauss 3.0, 5.0 and 6.0, whose captures hold all of these; the GaussDB document
"Logical Decoding Options", which prints `COMMIT XID: 78110`; PostgreSQL's test_decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import BadValue, EncodeError, encoded
from ..events import (
    Abort,
    Begin,
    Commit,
    CommitPrepared,
    Event,
    Prepare,
    RollbackPrepared,
    StreamAbort,
    StreamChange,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
)
from ..lsn import lsn_text, lsn_value
from .cursor import Cursor

_BLANK = 0x20


class Value(NamedTuple):
    """A kind of value.

    pattern         how it looks
    words           the same in words
    read, write     from its text and to it
    unquote, quote  from its bytes and to them, where its text does not stand as it is
    """

    pattern: re.Pattern[bytes]
    words: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    unquote: Callable[[bytes], bytes] = bytes
    quote: Callable[[bytes], bytes] = bytes


class LinePart(NamedTuple):
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
    """One shape: the word that it begins with, its event, its parts, and fields that are always the same."""

    word: bytes
    event: type[Event]
    parts: tuple[LinePart, ...] = ()
    fixed: tuple[tuple[str, object], ...] = ()

    @property
    def required(self) -> frozenset[str]:
        """The fields that must be present."""
        return frozenset(part.field for part in self.parts if part.required)

    def says(self, event: Event) -> bool:
        """Whether this line can be that of the event."""
        return type(event) is self.event and all(getattr(event, name) == value for name, value in self.fixed)


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


def _unquote_gid(raw: bytes) -> bytes:
    text = raw[1 + raw.startswith(b"E") : -1].replace(b"''", b"'")
    return text.replace(b"\\\\", b"\\") if raw.startswith(b"E") else text


def _quote_gid(text: bytes) -> bytes:
    quoted = b"'" + text.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
    return b"E" + quoted if b"\\" in text else quoted


UNSIGNED = Value(re.compile(rb"[0-9]{1,20}"), "a number of 64 bits", *_integer(0, (1 << 64) - 1))
UNSIGNED_32 = Value(re.compile(rb"[0-9]{1,10}"), "a number of 32 bits", *_integer(0, (1 << 32) - 1))
SIGNED = Value(re.compile(rb"-?[0-9]{1,10}"), "a signed number of 32 bits", *_integer(-(1 << 31), (1 << 31) - 1))
LSN = Value(re.compile(rb"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}"), "an LSN, as 0/CFE5C80", lsn_value, lsn_text)
TEXT = Value(re.compile(rb""), "text", str, _text)
"""Ends at the last occurrence of what closes it, at the mark of a later part, or with the line."""

GID = Value(
    re.compile(rb"'[^'\\]*(?:''[^'\\]*)*'(?!')|E'[^'\\]*(?:(?:''|\\\\)[^'\\]*)*'(?!')"),
    "a name in single quotes, as 'a' or E'a\\\\b'",
    str,
    _text,
    _unquote_gid,
    _quote_gid,
)
"""An SQL literal that is safe under every setting: quotes doubled, and if it holds a backslash an E in front and all of
them doubled. Source: PostgreSQL's quote_literal_cstr."""

_TIME = LinePart(b" (at ", "commit_time", TEXT, b")")
_XID = LinePart(b" ", "xid", UNSIGNED)

PARALLEL = (
    Line(
        b"BEGIN",
        Begin,
        (
            LinePart(b" CSN: ", "csn", UNSIGNED, required=True),
            LinePart(b" first_lsn: ", "first_lsn", LSN, required=True, also=(b" commit_lsn: ",)),
            LinePart(b" xid: ", "xid", UNSIGNED),
            LinePart(b" commit_time: ", "commit_time", TEXT),
            LinePart(b" origin_id: ", "origin", SIGNED),
        ),
    ),
    Line(b"commit", Commit, (LinePart(b" xid: ", "xid", UNSIGNED), _TIME)),
)
"""gaussdb-json and gaussdb-text. `commit_lsn:` is release 3.0's word for the same number."""

_ENDS = (Line(b"ABORT", Abort, (_XID, _TIME)), Line(b"PREPARE", Prepare, (_XID, _TIME)))
_COMMIT = Line(b"COMMIT", Commit, (_XID, _TIME, LinePart(b" CSN ", "csn", UNSIGNED)))

MPPDB = (Line(b"BEGIN", Begin, (_XID, LinePart(b" ORIGIN_ID ", "origin", SIGNED))), _COMMIT, *_ENDS)
TEST_DECODING = (Line(b"BEGIN", Begin, (_XID,)), _COMMIT, *_ENDS)
SQL = (
    Line(b"BEGIN", Begin, (LinePart(b" ", "csn", UNSIGNED),)),
    Line(b"COMMIT", Commit, (_TIME, LinePart(b" ", "csn", UNSIGNED))),
    *_ENDS,
)

_XID_32 = LinePart(b" ", "xid", UNSIGNED_32)
_TXN = LinePart(b" TXN ", "xid", UNSIGNED_32)
_ONLY_XID = LinePart(b" ", "xid", UNSIGNED_32, required=True)
_GID = LinePart(b" ", "gid", GID, required=True)
_TXID = LinePart(b", txid ", "xid", UNSIGNED_32)
_ONLY_TXID = LinePart(b", txid ", "xid", UNSIGNED_32, required=True)
_PREPARED_AT = LinePart(b" (at ", "prepare_time", TEXT, b")")

POSTGRES = (
    Line(b"BEGIN", Begin, (_XID_32,)),
    Line(b"COMMIT PREPARED", CommitPrepared, (_GID, _TXID, _TIME)),
    Line(b"COMMIT", Commit, (_XID_32, _TIME)),
    Line(b"PREPARE TRANSACTION", Prepare, (_GID, _TXID, _PREPARED_AT)),
    Line(b"ROLLBACK PREPARED", RollbackPrepared, (_GID, _TXID, _TIME)),
    Line(b"opening a streamed block for transaction", StreamStart, (_TXN,)),
    Line(b"closing a streamed block for transaction", StreamStop, (_TXN,)),
    Line(b"streaming change for TXN", StreamChange, (_ONLY_XID,)),
    Line(b"streaming change for transaction", StreamChange),
    Line(b"streaming truncate for TXN", Truncate, (_ONLY_XID,), (("tables", ()),)),
    Line(b"streaming truncate for transaction", Truncate, (), (("tables", ()),)),
    Line(b"aborting streamed (sub)transaction", StreamAbort, (_TXN,)),
    Line(b"committing streamed transaction", StreamCommit, (_TXN, _TIME)),
    Line(b"preparing streamed transaction TXN", StreamPrepare, (_GID, _ONLY_TXID, _PREPARED_AT)),
    Line(b"preparing streamed transaction", StreamPrepare, (_GID, _PREPARED_AT)),
)
"""test-decoding. Of two lines for one event, the first has what the second has not; so it is with words."""

PREPARED_KINDS = ("PREPARE", "STREAM_PREPARE")
"""The kinds whose lines have the time of the PREPARE."""

POSTGRES_SCANNED = tuple(line for line in POSTGRES if not line.fixed)
"""The lines that a scan reads."""


def find_line(cursor: Cursor, lines: tuple[Line, ...]) -> Line | None:
    """Returns the first line whose word is at the cursor, with a blank or nothing after it, and steps over the word."""
    for line in lines:
        end = cursor.at + len(line.word)
        if end < cursor.stop and cursor.data[end] != _BLANK:
            continue
        if cursor.data[cursor.at : min(end, cursor.stop)].lower() == line.word.lower():
            if cursor.trace is not None:
                cursor.trace.note(cursor.at, end, "kind", repr(line.word.decode("ascii")), line.event.kind)
            cursor.at = end
            return line
    return None


def read_parts(cursor: Cursor, parts: tuple[LinePart, ...]) -> dict[str, Any]:
    """Returns the fields of a line, read from the cursor on; raises DecodeError if a required one is missing."""
    fields: dict[str, Any] = {}
    for index, part in enumerate(parts):
        mark = _mark(cursor, part)
        if mark is None:
            if part.required:
                cursor.fail(_expected(part), part.field)
            continue
        cursor.at += len(mark)
        start = cursor.at
        raw = _raw(cursor, part, parts[index + 1 :])
        text = cursor.text(part.value.unquote(raw), start, part.field)
        try:
            value = fields[part.field] = part.value.read(text)
        except ValueError:
            cursor.fail(part.value.words, part.field, at=start, kind=BadValue)
        if cursor.trace is not None:
            end = cursor.at - len(part.after)
            cursor.trace.note(start - len(mark), start, part.field, repr(mark.decode("ascii")))
            cursor.trace.note(start, end, part.field, part.value.words, value)
            cursor.trace.note(end, cursor.at, part.field, repr(part.after.decode("ascii")))
    return fields


def read_line(cursor: Cursor, line: Line) -> dict[str, Any]:
    """Returns the fields of a line up to its end; raises DecodeError."""
    fields = dict(line.fixed) | read_parts(cursor, line.parts)
    if not cursor.ended:
        left = [part for part in line.parts if part.field not in fields]
        expected = " or ".join([*map(_expected, left), "the end of the record"])
        cursor.fail(expected, left[0].field if left else "end")
    return fields


def write_parts(parts: tuple[LinePart, ...], fields: dict[str, Any], encoding: str) -> bytes:
    """Returns the parts of the line with these fields, in the order of the table; raises EncodeError."""
    written = []
    for part in parts:
        value = fields.get(part.field)
        if value is None and not part.required:
            continue
        try:
            text = part.value.write(value)
        except (TypeError, ValueError):
            raise EncodeError(f"{part.field}: expected {part.value.words}") from None
        written.append(part.before + part.value.quote(encoded(text, part.field, encoding)) + part.after)
    return b"".join(written)


def _mark(cursor: Cursor, part: LinePart) -> bytes | None:
    """Returns the mark of this part, if it follows with a value after it."""
    for mark in (part.before, *part.also):
        end = cursor.at + len(mark)
        follows = cursor.data[cursor.at : min(end, cursor.stop)].lower() == mark.lower()
        if follows and part.value.pattern.match(cursor.data, end, cursor.stop):
            return mark
    return None


def _raw(cursor: Cursor, part: LinePart, later: tuple[LinePart, ...]) -> bytes:
    """Returns the bytes of the value after the mark, and steps over them and what closes them."""
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
        end = min((at for at in found if at >= 0), default=cursor.stop)
    cursor.at = end + len(part.after)
    return cursor.data[start:end]


def _expected(part: LinePart) -> str:
    return f"{part.before.decode()!r} and {part.value.words}"
