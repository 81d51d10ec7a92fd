"""Tokens of JSON, and row changes of the JSON styles: an object a record, each value an SQL literal in a JSON string.

    {"table_name":"s.t","op_type":"UPDATE","columns_name":[…],"columns_type":[…],"columns_val":[…],
     "old_keys_name":[…],"old_keys_type":[…],"old_keys_val":[…]}

Three layers are undone in this order: JSON's escapes, on bytes; the literal; doubled quotes. An absent tuple and one
without columns are both empty arrays, and both read as absent. Servers write the keys in this order, without blanks,
and escape only `" \\ \\b \\f \\n \\r \\t` and other bytes below 0x20; any order and any JSON escape is read. Source:
GaussDB document "Logical Decoding Options"; openGauss's parallel decoding and its mppdb_decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import BadLength, BadTag, BadText, BadValue, DecodeError, EncodeError, counted
from ..events import ROW_CHANGES, RowChange, TupleData, Unchanged
from .cursor import Cursor, closing_quote
from .literals import Value, read_literal, write_literal
from .names import split_relation, unquoted, write_name, write_relation, write_type
from .tuple_text import write_cells

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


SIDES = {
    "new": ("columns_name", "columns_type", "columns_val"),
    "old": ("old_keys_name", "old_keys_type", "old_keys_val"),
}
"""The arrays of names, types and values of each row image."""

ARRAYS = (*SIDES["new"], *SIDES["old"])
KEYS = ("table_name", "op_type", *ARRAYS)


class JsonReader:
    """Reads one record; what it has found of the table's name is there for an error about the rest."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._starts: dict[str, int] = {}
        self.table: tuple[str, str] | None = None

    def read(self, lsn: int | None) -> RowChange:
        """The row change that the whole record is; raises DecodeError."""
        found = self._object()
        images = {side: self._image(side, *(found[key] for key in keys)) for side, keys in SIDES.items()}
        schema, table = found["table_name"]
        event: RowChange = found["op_type"](lsn=lsn, table_schema=schema, table_name=table, **images)
        return event

    def _object(self) -> dict[str, Any]:
        cursor = self._cursor
        found: dict[str, Any] = {}
        cursor.expect(b"{", "record")
        skip_space(self._cursor)
        while not found or read_comma(cursor, b"}", "record"):
            key = self._key(found)
            self._starts[key] = cursor.at
            if key in ARRAYS:
                found[key] = self._array(key)
            elif key == "op_type":
                found[key] = read_within(cursor, read_string(cursor, key), _kind)
            else:
                found[key] = self.table = read_within(cursor, read_string(cursor, key), split_relation)
        missing = [name for name in KEYS if name not in found]
        if missing:
            where = cursor.where("key", cursor.at - 1)
            raise BadTag(f"',' and the key {missing[0]}", "the end of the object", **where)
        skip_space(self._cursor)
        cursor.expect_end("the end of the record", "end")
        return found

    def _key(self, found: dict[str, Any]) -> str:
        """The next key, with its colon."""
        start = self._cursor.at
        raw, _ = read_string(self._cursor, "key")
        key = raw.decode("latin-1")
        if key not in KEYS or key in found:
            left = [name for name in KEYS if name not in found]
            expected = f"a key, one of {', '.join(left)}" if left else "the end of the object"
            got = "a key that was there before" if key in found else "another key"
            raise BadValue(expected, got, message_offset=start, path="key")
        skip_space(self._cursor)
        self._cursor.expect(b":", key)
        skip_space(self._cursor)
        return key

    def _array(self, key: str) -> list[JsonString]:
        cursor = self._cursor
        items: list[JsonString] = []
        cursor.expect(b"[", key)
        skip_space(self._cursor)
        if cursor.skip(b"]"):
            return items
        items.append(read_string(cursor, f"{key}[0]"))
        while read_comma(cursor, b"]", key):
            items.append(read_string(cursor, f"{key}[{len(items)}]"))
        return items

    def _image(
        self, side: str, names: list[JsonString], types: list[JsonString], values: list[JsonString]
    ) -> TupleData | None:
        if not len(names) == len(types) == len(values):
            key, odd = (SIDES[side][1], types) if len(types) != len(names) else (SIDES[side][2], values)
            expected = f"{counted(len(names), 'item')}, as many as in {SIDES[side][0]}"
            raise BadLength(expected, str(len(odd)), message_offset=self._starts[key], path=key)
        if not names:
            return None
        cells = []
        for index, (name, type, value) in enumerate(zip(names, types, values, strict=True)):
            try:
                cells.append(
                    (
                        read_within(self._cursor, name, unquoted),
                        read_within(self._cursor, value, _literal),
                        read_within(self._cursor, type, lambda inner: inner.rest("type")),
                    )
                )
            except DecodeError as error:
                raise error.add(path=f"{side}.cells[{index}].{error.path}") from None
        return TupleData(*zip(*cells, strict=True))


def _kind(cursor: Cursor) -> type[RowChange]:
    event = ROW_CHANGES.get(cursor.rest("op_type"))
    if event is None:
        cursor.fail("INSERT, UPDATE or DELETE", "op_type", at=0, kind=BadValue)
    return event


def _literal(cursor: Cursor) -> Value:
    value, _ = read_literal(cursor)
    cursor.expect_end("the end of the literal", "value")
    return value


def read_change(cursor: Cursor, lsn: int | None) -> RowChange:
    """The row change that the whole record is; raises DecodeError, with the table's name if it was read."""
    reader = JsonReader(cursor)
    try:
        return reader.read(lsn)
    except DecodeError as error:
        raise error.in_table(*reader.table) if reader.table else error from None


def write_change(event: RowChange, encoding: str) -> bytes:
    """The object of a row change as servers write it; raises EncodeError."""
    values: list[bytes] = [
        write_string(write_relation(event.table_schema, event.table_name, encoding)),
        write_string(event.kind.encode("ascii")),
    ]
    for side in SIDES:
        image: TupleData = getattr(event, side) or TupleData()
        if image is getattr(event, side) and not image.names:
            raise EncodeError(f"{side}: JSON does not tell a tuple without columns from none")

        def cell(name: str, value: Value, type: str) -> tuple[bytes, ...]:
            if isinstance(value, Unchanged):
                raise EncodeError("value: JSON has no word for a value that was not sent")
            parts = write_name(name, "name", encoding), write_type(type, encoding), write_literal(value, type, encoding)
            return tuple(map(write_string, parts))

        cells = write_cells(image, side, cell)
        values += [b"[" + b",".join(column) + b"]" for column in (zip(*cells, strict=True) if cells else ((),) * 3)]
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in zip(KEYS, values, strict=True)) + b"}"
