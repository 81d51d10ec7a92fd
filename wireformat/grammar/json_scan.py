"""The tokens of JSON, on bytes: strings with their escapes undone, commas, blanks; and what strings hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ..errors import BadText, BadValue, DecodeError
from .cursor import Cursor, closing_quote

_BACKSLASH = ord("\\")
_SPACE = re.compile(rb"[ \t\n\r]*")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(
    rb'\\(?:(["\\/bfnrt])|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|)'
)
_SHORT = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_WRITTEN = {bytes([byte]): b"\\u%04x" % byte for byte in range(0x20)} | {
    value: b"\\" + key for key, value in _SHORT.items() if key != b"/"
}
_TO_ESCAPE = re.compile(rb'["\\\x00-\x1f]')

FEW_BYTES = 1 << 16
"""Up to this many bytes of a string may be cut into objects, which is faster."""

JsonString = tuple[bytes, int]
"""The bytes of a string with its escapes undone, and where its content begins in the message."""

T = TypeVar("T")


def skip_space(cursor: Cursor) -> None:
    """Steps over blanks."""
    start = cursor.at
    match = _SPACE.match(cursor.data, start, cursor.stop)
    cursor.at = match.end() if match else start
    if cursor.trace is not None:
        cursor.note(start, "", "blanks")


def read_comma(cursor: Cursor, end: bytes, path: str) -> bool:
    """Steps over a comma or the end of the list; returns whether it was a comma. Raises DecodeError."""
    skip_space(cursor)
    if cursor.skip(b","):
        skip_space(cursor)
        return True
    if not cursor.skip(end):
        cursor.fail(f"',' or '{end.decode()}'", path)
    return False


def read_string(cursor: Cursor, path: str) -> JsonString:
    """Returns the string at the cursor; raises DecodeError.

    An escape for a character of 0x80 and up becomes its bytes in the encoding of the cursor.
    """
    data = cursor.data
    cursor.expect(b'"', path)
    start = cursor.at
    end = data.find(b'"', start, cursor.stop)
    if end > start and data[end - 1] == _BACKSLASH:
        end = closing_quote(data, b'"', b"\\", start, cursor.stop)
    if end < 0:
        cursor.fail('a closing "', path, at=cursor.stop)
    raw = data[start:end]
    control = _CONTROL.search(raw)
    if control:
        where = {"message_offset": start, "field_offset": control.start(), "path": path}
        raise BadValue("bytes below 0x20 written as escapes", f"0x{control[0][0]:02X}", **where)
    cursor.at = end + 1
    found = _unescaped(raw, start, path, cursor.encoding) if b"\\" in raw else raw
    if cursor.trace is not None:
        cursor.note(start - 1, path, "a string of JSON", found.decode(cursor.encoding, "replace"))
    return found, start


def read_within(cursor: Cursor, string: JsonString, read: Callable[[Cursor], T]) -> T:
    """Returns what a function reads from a string's content. Errors have the position in the message."""
    raw, start = string
    inner = Cursor(raw, 0, len(raw), cursor.encoding, cursor.errors, whole="string")
    inner.shows = cursor.shows
    try:
        found = read(inner)
    except DecodeError as error:
        inside = (error.message_offset or 0) + (error.field_offset or 0)
        raise error.add(message_offset=start, field_offset=inside) from None
    if cursor.trace is not None and not isinstance(found, type):
        cursor.trace.means(start, found)
    return found


def write_string(raw: bytes) -> bytes:
    """Returns bytes as a JSON string with the escapes that servers write."""
    return b'"' + _replaced(_TO_ESCAPE, lambda match: _WRITTEN[match[0]], raw) + b'"'


def _replaced(pattern: re.Pattern[bytes], replace: Callable[[re.Match[bytes]], bytes], raw: bytes) -> bytes:
    """What `pattern.sub` returns. For a long text that makes an object for each match and for what is between them,
    some fifty times as many bytes as the text has."""
    if len(raw) <= FEW_BYTES:
        return pattern.sub(replace, raw)
    found, done = bytearray(), 0
    for match in pattern.finditer(raw):
        found += raw[done : match.start()]
        found += replace(match)
        done = match.end()
    return bytes(found + raw[done:])


def _unescaped(raw: bytes, start: int, path: str, encoding: str) -> bytes:
    def undo(match: re.Match[bytes]) -> bytes:
        short, high, low, code = match.groups()
        if short:
            return _SHORT[short]
        number = int(code or b"d800", 16)
        if high:
            number = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
        where = {"message_offset": start, "field_offset": match.start(), "path": path}
        if 0xD800 <= number < 0xE000:
            raise BadValue("an escape of JSON", "a backslash before something else", **where)
        try:
            return chr(number).encode(encoding)
        except UnicodeEncodeError:
            expected = f"characters of {encoding}"
            raise BadText(expected, "an escape for a character that it lacks", **where) from None

    return _replaced(_ESCAPE, undo, raw)
