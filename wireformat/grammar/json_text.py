"""Row changes of the JSON styles: one object a record, each value an SQL literal inside a JSON string.

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

from ..errors import BadLength, BadTag, BadText, BadValue, DecodeError, EncodeError
from ..events import Delete, Insert, RowChange, TupleData, Unchanged, Update
from .cursor import Cursor
from .literals import read_literal, write_literal
from .names import split_relation, unquoted, write_name, write_relation, write_type
from .tuple_text import write_cells

SIDES = {
    "new": ("columns_name", "columns_type", "columns_val"),
    "old": ("old_keys_name", "old_keys_type", "old_keys_val"),
}
"""The arrays of names, types and values of each row image."""

ARRAYS = (*SIDES["new"], *SIDES["old"])
KEYS = ("table_name", "op_type", *ARRAYS)
KINDS: dict[str, type[RowChange]] = {event.kind: event for event in (Insert, Update, Delete)}

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

JsonString = tuple[bytes, int]
"""The bytes of a string with its escapes undone, and where its content begins in the message."""

T = TypeVar("T")


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
        cursor.shows = False
        found: dict[str, Any] = {}
        cursor.expect(b"{", "record")
        self._skip_space()
        while not found or self._comma(b"}", "record"):
            key = self._key(found)
            self._starts[key] = cursor.at
            if key in ARRAYS:
                found[key] = self._array(key)
            elif key == "op_type":
                found[key] = self._within(*self._string(key), _kind)
            else:
                found[key] = self.table = self._within(*self._string(key), split_relation)
        missing = [name for name in KEYS if name not in found]
        if missing:
            where = cursor.where("key", cursor.at - 1)
            raise BadTag(f"',' and the key {missing[0]}", "the end of the object", **where)
        self._skip_space()
        cursor.expect_end("the end of the record", "end")
        return found

    def _key(self, found: dict[str, Any]) -> str:
        """The next key, with its colon."""
        start = self._cursor.at
        raw, _ = self._string("key")
        key = raw.decode("latin-1")
        if key not in KEYS or key in found:
            left = [name for name in KEYS if name not in found]
            expected = f"a key, one of {', '.join(left)}" if left else "the end of the object"
            got = "a key that was there before" if key in found else "another key"
            raise BadValue(expected, got, message_offset=start, path="key")
        self._skip_space()
        self._cursor.expect(b":", key)
        self._skip_space()
        return key

    def _array(self, key: str) -> list[JsonString]:
        cursor = self._cursor
        items: list[JsonString] = []
        cursor.expect(b"[", key)
        self._skip_space()
        if cursor.skip(b"]"):
            return items
        items.append(self._string(f"{key}[0]"))
        while self._comma(b"]", key):
            items.append(self._string(f"{key}[{len(items)}]"))
        return items

    def _comma(self, end: bytes, path: str) -> bool:
        """Step over a comma, or over what ends the list; whether it was a comma."""
        self._skip_space()
        if self._cursor.skip(b","):
            self._skip_space()
            return True
        if not self._cursor.skip(end):
            self._cursor.fail(f"',' or '{end.decode()}'", path)
        return False

    def _skip_space(self) -> None:
        match = _SPACE.match(self._cursor.data, self._cursor.at, self._cursor.stop)
        self._cursor.at = match.end() if match else self._cursor.at

    def _string(self, path: str) -> JsonString:
        cursor = self._cursor
        data = cursor.data
        cursor.expect(b'"', path)
        start = cursor.at
        end = data.find(b'"', start, cursor.stop)
        while end > start and data[end - 1] == 0x5C and _backslashes(data, start, end) % 2:
            end = data.find(b'"', end + 1, cursor.stop)
        if end < 0:
            cursor.fail("'\"' to close the string", path, at=cursor.stop)
        raw = data[start:end]
        control = _CONTROL.search(raw)
        if control:
            where = {"message_offset": start, "field_offset": control.start(), "path": path}
            raise BadValue("bytes below 0x20 written as escapes", f"0x{control[0][0]:02X}", **where)
        cursor.at = end + 1
        return (self._unescaped(raw, start, path) if b"\\" in raw else raw), start

    def _unescaped(self, raw: bytes, start: int, path: str) -> bytes:
        def undo(match: re.Match[bytes]) -> bytes:
            short, high, low, code = match.groups()
            if short:
                return _SHORT[short]
            if code:
                number = int(code, 16)
            elif high:
                number = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
            else:
                number = -1
            where = {"message_offset": start, "field_offset": match.start(), "path": path}
            if number < 0 or 0xD800 <= number < 0xE000:
                raise BadValue("an escape of JSON", "a backslash before something else", **where)
            try:
                return chr(number).encode(cursor_encoding)
            except UnicodeEncodeError:
                expected = f"characters of {cursor_encoding}"
                raise BadText(expected, "an escape for a character that it lacks", **where) from None

        cursor_encoding = self._cursor.encoding
        return _ESCAPE.sub(undo, raw)

    def _image(
        self, side: str, names: list[JsonString], types: list[JsonString], values: list[JsonString]
    ) -> TupleData | None:
        if not len(names) == len(types) == len(values):
            key, odd = (SIDES[side][1], types) if len(types) != len(names) else (SIDES[side][2], values)
            expected = f"{len(names)} items, as many as in {SIDES[side][0]}"
            raise BadLength(expected, str(len(odd)), message_offset=self._starts[key], path=key)
        if not names:
            return None
        cells = []
        for index, (name, type, value) in enumerate(zip(names, types, values, strict=True)):
            try:
                cells.append(
                    (
                        self._within(*name, unquoted),
                        self._within(*value, _literal_text),
                        self._within(*type, lambda inner: inner.rest("type")),
                    )
                )
            except DecodeError as error:
                raise error.add(path=f"{side}.cells[{index}].{error.path}") from None
        return TupleData(*zip(*cells, strict=True))

    def _within(self, raw: bytes, start: int, read: Callable[[Cursor], T]) -> T:
        """What a function reads of a string's content, all of it; errors say the place in the message."""
        inner = Cursor(raw, 0, len(raw), self._cursor.encoding, self._cursor.errors)
        inner.shows = False
        try:
            return read(inner)
        except DecodeError as error:
            inside = (error.message_offset or 0) + (error.field_offset or 0)
            raise error.add(message_offset=start, field_offset=inside) from None


def _kind(cursor: Cursor) -> type[RowChange]:
    event = KINDS.get(cursor.rest("op_type"))
    if event is None:
        cursor.fail("INSERT, UPDATE or DELETE", "op_type", at=0, kind=BadValue)
    return event


def _literal_text(cursor: Cursor) -> str | Unchanged | None:
    value, _, start = read_literal(cursor)
    cursor.expect_end("the end of the literal", "value")
    return cursor.text(value, start, "value") if isinstance(value, bytes) else value


def read_change(cursor: Cursor, lsn: int | None) -> RowChange:
    """The row change that the whole record is; raises DecodeError, with the table's name if it was read."""
    reader = JsonReader(cursor)
    try:
        return reader.read(lsn)
    except DecodeError as error:
        raise error.add(table=".".join(reader.table) if reader.table else None) from None


def write_change(event: RowChange, encoding: str) -> bytes:
    """The object of a row change as servers write it; raises EncodeError."""
    values: list[bytes] = [
        _string(write_relation(event.table_schema, event.table_name, encoding)),
        _string(event.kind.encode("ascii")),
    ]
    for side in SIDES:
        image: TupleData = getattr(event, side) or TupleData()

        def cell(name: str, value: str | Unchanged | None, type: str) -> tuple[bytes, ...]:
            if isinstance(value, Unchanged):
                raise EncodeError("value: JSON has no word for a value that was not sent")
            parts = write_name(name, "name", encoding), write_type(type, encoding), write_literal(value, type, encoding)
            return tuple(map(_string, parts))

        cells = write_cells(image, side, cell)
        values += [b"[" + b",".join(column) + b"]" for column in (zip(*cells, strict=True) if cells else ((),) * 3)]
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in zip(KEYS, values, strict=True)) + b"}"


def _string(raw: bytes) -> bytes:
    return b'"' + _TO_ESCAPE.sub(lambda match: _WRITTEN[match[0]], raw) + b'"'


def _backslashes(data: bytes, start: int, end: int) -> int:
    """How many backslashes stand in a row before `end`."""
    at = end
    while at > start and data[at - 1] == 0x5C:
        at -= 1
    return end - at
