"""SQL literals: the values of the text formats, read by their first byte and written by the name of their type.

    null   true   false   unchanged-toast-datum   -12.5e+3   NaN   -Infinity   B'101'   'it''s'

The value is what the type's output function gives: booleans `t` and `f`, bits bare, quotes undone. Source: PostgreSQL's
and openGauss's test_decoding; openGauss's captures, which write `tinyint` as a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..errors import BadValue, EncodeError, encoded
from ..events import LITERAL_TYPES, UNCHANGED, Unchanged
from .cursor import Cursor

Value = str | Unchanged | None
LiteralWriter = Callable[[bytes, str], bytes]
"""The value's bytes and the name of its type to a literal; raises EncodeError."""

_NUMBER = re.compile(rb"(?:-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity)\Z")
_WORD = re.compile(rb"[0-9A-Za-z+.-]*")
_BITS = re.compile(rb"[01]*\Z")

_WORDS: dict[bytes, tuple[Value, str]] = {
    b"null": (None, "null"),
    b"true": ("t", "boolean"),
    b"false": ("f", "boolean"),
    b"unchanged-toast-datum": (UNCHANGED, "unchanged"),
}


def read_literal(cursor: Cursor) -> tuple[Value, str]:
    """The value of the literal at the cursor, and its form: null, boolean, number, bits, string or unchanged.

    Raises DecodeError with the path `value`, without bytes.
    """
    start = cursor.at
    value, form = _literal(cursor, start)
    if cursor.trace is not None:
        cursor.note(start, "value", f"a literal: {form}", value)
    return value, form


def _literal(cursor: Cursor, start: int) -> tuple[Value, str]:
    if cursor.sees(b"'"):
        return cursor.text(cursor.quoted(b"'", "value"), start + 1, "value"), "string"
    if cursor.sees(b"B'"):
        cursor.at += 1
        bits = cursor.quoted(b"'", "value")
        if not _BITS.match(bits):
            raise BadValue("bits, as B'101'", "other characters", message_offset=start, path="value")
        return bits.decode("ascii"), "bits"
    match = _WORD.match(cursor.data, start, cursor.stop)
    word = match[0] if match else b""
    cursor.at += len(word)
    if word in _WORDS:
        return _WORDS[word]
    if not _NUMBER.match(word):
        cursor.fail("a literal: in quotes, a number, null, true or false", "value", at=start, kind=BadValue)
    return word.decode("ascii"), "number"


def _number(value: bytes, type: str) -> bytes:
    return value if _NUMBER.match(value) else _none(type, "a number")


def _boolean(value: bytes, type: str) -> bytes:
    return {b"t": b"true", b"f": b"false"}.get(value) or _none(type, "t or f")


def _bits(value: bytes, type: str) -> bytes:
    return b"B'" + value + b"'" if _BITS.match(value) else _none(type, "zeros and ones")


def _string(value: bytes, type: str) -> bytes:
    return b"'" + value.replace(b"'", b"''") + b"'"


def _none(type: str, expected: str) -> bytes:
    raise EncodeError(f"value: expected {expected}, which is how {type} is written")


WRITERS: dict[str, LiteralWriter] = {
    **dict.fromkeys(
        ("tinyint", "smallint", "integer", "bigint", "oid", "real", "double precision", "numeric"), _number
    ),
    "boolean": _boolean,
    "bit": _bits,
    "bit varying": _bits,
    LITERAL_TYPES + "number": _number,
    LITERAL_TYPES + "boolean": _boolean,
    LITERAL_TYPES + "bits": _bits,
}
"""Writers of values, by the exact name of the type. Values of other types, also of domains over these, are strings."""


def write_literal(value: Value, type: str, encoding: str, writers: Mapping[str, LiteralWriter] = WRITERS) -> bytes:
    """A value as its type's literal; raises EncodeError if it is none, or has no bytes in the encoding.

    writers     by the name of the type, all others are strings
    """
    if value is None:
        return b"null"
    if isinstance(value, Unchanged):
        return b"unchanged-toast-datum"
    return writers.get(type, _string)(encoded(value, "value", encoding), type)
