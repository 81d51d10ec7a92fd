"""Row changes of the TEXT styles: what follows the table.

    change   = ' INSERT:' new | ' UPDATE:' [ ' old-key:' columns ' new-tuple:' ] new | ' DELETE:' old
    new, old = ' (no-tuple-data)' | columns
    columns  = ( ' ' name '[' type ']:' value )*

No tuple is None, a tuple without columns is an empty one. Words like ` new-tuple:` are marks only outside of quotes: a
name that looks like one would be quoted. Source: PostgreSQL's and openGauss's test_decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import DecodeError, EncodeError
from ..events import ROW_CHANGES, Delete, Insert, RowChange, TupleData, Update
from ..identifiers import PLAIN_NAME
from .cursor import Cursor
from .dialects import OPENGAUSS, Dialect
from .literals import Value, read_literal, write_literal
from .names import read_name, read_type, write_name, write_type

NO_TUPLE = b" (no-tuple-data)"
OLD_KEY, NEW_TUPLE = b" old-key:", b" new-tuple:"

_HEAD = re.compile(rb" (" + PLAIN_NAME.encode() + rb")\[([a-z0-9_ ]+(?:\[\])?)\]:")
"""The beginning of nearly every column; others are read step by step."""

TABLE = b"table "
"""The beginning of a row change."""

CHANGE_OF_MARK: dict[bytes, type[RowChange]] = {b" %s:" % kind.encode(): event for kind, event in ROW_CHANGES.items()}
"""The marks after the table's name."""

MARK_OF_CHANGE = {event: mark for mark, event in CHANGE_OF_MARK.items()}

T = TypeVar("T")


def read_images(cursor: Cursor, event: type[RowChange]) -> dict[str, Any]:
    """The row images after the mark, to the end of the record; raises DecodeError."""
    if event is Delete:
        images: dict[str, Any] = {"old": _image(cursor, "old")}
    elif event is Update and cursor.skip(OLD_KEY):
        old = _columns(cursor, "old", NEW_TUPLE)
        cursor.expect(NEW_TUPLE, "old")
        images = {"new": _image(cursor, "new"), "old": old}
    else:
        images = {"new": _image(cursor, "new")}
    cursor.expect_end("a column, or the end of the record", "new" if "new" in images else "old")
    return images


def write_images(event: RowChange, encoding: str, dialect: Dialect = OPENGAUSS) -> bytes:
    """What follows the mark; raises EncodeError."""
    check_images(event)
    if isinstance(event, Delete):
        return _written(event.old, "old", encoding, dialect)
    before = b"" if event.old is None else OLD_KEY + _written(event.old, "old", encoding, dialect) + NEW_TUPLE
    return before + _written(event.new, "new", encoding, dialect)


def check_images(event: RowChange) -> None:
    """Raises EncodeError for an image for which statements and lines have no place."""
    for side, kind in (("old", Insert), ("new", Delete)):
        if isinstance(event, kind) and getattr(event, side) is not None:
            raise EncodeError(f"{side}: it has no place in {event.kind}")


def write_cells(image: TupleData, side: str, cell: Callable[[str, Value, str], T]) -> list[T]:
    """Each cell of an image by a function of name, value and type; raises EncodeError with the cell's path."""
    if not len(image.names) == len(image.values) == len(image.types):
        raise EncodeError(f"{side}: names, values and types must have the same length")
    written = []
    for index, parts in enumerate(zip(image.names, image.values, image.types, strict=True)):
        try:
            written.append(cell(*parts))
        except EncodeError as error:
            raise EncodeError(f"{side}.cells[{index}].{error}") from None
    return written


def _image(cursor: Cursor, side: str) -> TupleData | None:
    return None if cursor.skip(NO_TUPLE) else _columns(cursor, side, b"")


def _columns(cursor: Cursor, side: str, end: bytes) -> TupleData:
    names: list[str] = []
    types: list[str] = []
    values: list[Value] = []
    start = cursor.at
    try:
        while not cursor.ended and not (end and cursor.sees(end)):
            start = cursor.at
            match = _HEAD.match(cursor.data, start, cursor.stop)
            if match and cursor.trace is None:
                names.append(match[1].decode("ascii"))
                types.append(match[2].decode("ascii"))
                cursor.at = match.end()
            else:
                cursor.expect(b" ", "name")
                names.append(read_name(cursor, "name"))
                types.append(read_type(cursor))
                cursor.expect(b":", "type")
            values.append(read_literal(cursor)[0])
            if cursor.trace is not None:
                cursor.trace.within(start, f"{side}.cells[{len(values) - 1}]")
    except DecodeError as error:
        if cursor.trace is not None:
            cursor.trace.within(start, f"{side}.cells[{len(values)}]")
        raise error.add(path=f"{side}.cells[{len(values)}].{error.path}") from None
    return TupleData(tuple(names), tuple(values), tuple(types))


def _written(image: TupleData | None, side: str, encoding: str, dialect: Dialect) -> bytes:
    if image is None:
        return NO_TUPLE

    def cell(name: str, value: Value, type: str) -> bytes:
        head = b" " + write_name(name, "name", encoding, dialect) + b"[" + write_type(type, encoding, dialect) + b"]:"
        return head + write_literal(value, type, encoding, dialect.literals)

    return b"".join(write_cells(image, side, cell))
