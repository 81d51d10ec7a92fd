"""How records of `fixed-width` are read and written.

    INSERT public          orders          +id              integer                 =1…

Kind and a blank; schema; table; then the columns, each with side (+ new, - old), name, type, state (= value, ~ NULL)
and value. Texts are padded with blanks.
"""

from __future__ import annotations

from wireformat.errors import BadLength, EncodeError
from wireformat.events import Delete, Event, Insert, RowChange, TupleData, Update
from wireformat.formats.text_format import TextFormat
from wireformat.grammar.cursor import Cursor
from wireformat.grammar.lines import TEST_DECODING
from wireformat.options import ReadOptions

from . import ROW

NAME_BYTES, TYPE_BYTES, VALUE_BYTES = 16, 24, 30
HEAD_BYTES = 7 + 2 * NAME_BYTES
COLUMN_BYTES = 1 + NAME_BYTES + TYPE_BYTES + 1 + VALUE_BYTES
KINDS = {b"INSERT ": Insert, b"UPDATE ": Update, b"DELETE ": Delete}
SIDES = {"new": b"+", "old": b"-"}


def read_change(cursor: Cursor, lsn: int | None, options: ReadOptions) -> Event:
    """A row change; raises DecodeError."""
    size = cursor.stop - cursor.at
    if size < HEAD_BYTES or (size - HEAD_BYTES) % COLUMN_BYTES:
        expected = f"{HEAD_BYTES} bytes and {COLUMN_BYTES} for each column"
        raise BadLength(expected, f"{size} bytes", **cursor.where("record"))
    event = KINDS[_take(cursor, 7)]
    names = {name: _name(cursor, NAME_BYTES, name) for name in ("table_schema", "table_name")}
    images: dict[bytes, list[tuple[str, str | None, str]]] = {b"+": [], b"-": []}
    while not cursor.ended:
        side = _take(cursor, 1)
        if side not in images:
            cursor.fail("+ or -", "side", at=cursor.at - 1)
        name, type = _name(cursor, NAME_BYTES, "name"), _name(cursor, TYPE_BYTES, "type")
        state, at = _take(cursor, 1), cursor.at
        value = cursor.text(_take(cursor, VALUE_BYTES).rstrip(b" "), at, "value")
        if state != b"=" and (state != b"~" or value):
            cursor.fail("= and a value, or ~ and blanks", "value", at=at - 1)
        images[side].append((name, value if state == b"=" else None, type))
    tuples = {name: TupleData(*zip(*images[side], strict=True)) for name, side in SIDES.items() if images[side]}
    return event(lsn=lsn, **names, **tuples)


def write_change(event: RowChange, encoding: str) -> bytes:
    """A row change; raises EncodeError for a text that does not fit."""
    kind = next(kind for kind, written in KINDS.items() if written is type(event))
    parts = [kind, *(_pad(name, NAME_BYTES, encoding) for name in (event.table_schema, event.table_name))]
    for side, mark in SIDES.items():
        image = getattr(event, side)
        if image is not None and not image.names:
            raise EncodeError(f"{side}: a tuple without columns")
        for name, value, type_name in zip(image.names, image.values, image.types, strict=True) if image else ():
            parts += [mark, _pad(name, NAME_BYTES, encoding), _pad(type_name, TYPE_BYTES, encoding)]
            parts += [b"~" if value is None else b"="]
            parts += [_pad("" if value is None else value, VALUE_BYTES, encoding, least=0)]
    return b"".join(parts)


def _take(cursor: Cursor, width: int) -> bytes:
    cursor.at += width
    return cursor.data[cursor.at - width : cursor.at]


def _name(cursor: Cursor, width: int, path: str) -> str:
    at = cursor.at
    name = cursor.text(_take(cursor, width).rstrip(b" "), at, path)
    if not name:
        cursor.fail("a name", path, at=at)
    return name


def _pad(text: object, width: int, encoding: str, least: int = 1) -> bytes:
    if not isinstance(text, str):
        raise EncodeError("expected a text for every name, type and value")
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        raise EncodeError(f"a text cannot be written in {encoding}") from None
    if not least <= len(data) <= width or data.endswith(b" "):
        raise EncodeError(f"expected a text of {least} to {width} bytes that does not end in a blank")
    return data.ljust(width)


FIXED_WIDTH = TextFormat(
    row=ROW,
    lines=TEST_DECODING,
    records=tuple((kind, read_change) for kind in KINDS),
    writers=dict.fromkeys(KINDS.values(), write_change),
)
