"""Row changes of the TEXT styles: what follows the table, and tables of gaussdb-text, whose names are not quoted.

    change   = ' INSERT:' new | ' UPDATE:' [ ' old-key:' columns ' new-tuple:' ] new | ' DELETE:' old
    new, old = ' (no-tuple-data)' | columns
    columns  = ( ' ' name '[' type ']:' value )*

No tuple is None, a tuple without columns is an empty one. Words like ` new-tuple:` are marks only outside of quotes: a
name that looks like one would be quoted. Source: PostgreSQL's and openGauss's test_decoding.

    table my schema trail  UPDATE: a[integer]:1

A name without quotes may contain blanks, and even text that looks like a mark, so where schema and table end is a
guess. Marks are tried in order, and for each mark the schemas from the shortest to the longest. The first pair among
the known tables whose record can be read is taken. Without one, it is the shortest schema before the first mark whose
record can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..errors import DecodeError, EncodeError, encoded
from ..events import ROW_CHANGES, Delete, Insert, RowChange, TupleData, Update
from ..identifiers import PLAIN_NAME
from ..limits import NAME_BYTES
from .cursor import Cursor
from .literals import Value, read_literal, write_literal
from .names import OPENGAUSS, Dialect, read_name, read_type, write_name, write_type

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


_MARK = re.compile(b"|".join(CHANGE_OF_MARK))
_BLANK = re.compile(rb" ")
_NAME_WORDS = "a name without quotes, which ends where the rest can be read"


def read_unquoted(
    cursor: Cursor,
    known: frozenset[tuple[str, str]],
    keeps: Callable[[tuple[str, str]], bool],
    read: Callable[[type[RowChange], str, str], T],
) -> T:
    """What `read` makes of the record after the table, called with event, schema and table; raises DecodeError.

    keeps   whether anybody asks for a table: where the record of another one cannot be read, that is the end of it

    The cursor is at the schema; before `read` is called it is after the mark.
    """
    start = cursor.at
    error: DecodeError | None = None
    for event, blank, mark, end in _candidates(cursor, known):
        names: tuple[str, str] | None = None
        try:
            schema = cursor.text(cursor.data[start:blank], start, "table_schema")
            names = schema, cursor.text(cursor.data[blank + 1 : mark], blank + 1, "table_name")
            if cursor.trace is not None:
                cursor.trace.note(start, blank, "table_schema", _NAME_WORDS, names[0])
                cursor.trace.note(blank, blank + 1, "", repr(" "))
                cursor.trace.note(blank + 1, mark, "table_name", _NAME_WORDS, names[1])
                cursor.trace.note(mark, end, "", repr(cursor.data[mark:end].decode("ascii")))
            cursor.at = end
            return read(event, *names)
        except DecodeError as found:
            error = error or (found.in_table(*names) if names else found)
            if names and not keeps(names):
                break
    if error is not None:
        raise error
    cursor.at = start
    cursor.fail("schema, table, and ' INSERT:', ' UPDATE:' or ' DELETE:'", "table_schema")


def write_unquoted(schema: str, table: str, encoding: str) -> bytes:
    """Schema and table as they are; raises EncodeError for an empty one, or one longer than NAME_BYTES."""
    written = []
    for path, name in (("table_schema", schema), ("table_name", table)):
        raw = encoded(name, path, encoding)
        if not 0 < len(raw) <= NAME_BYTES:
            raise EncodeError(f"{path}: expected a name of 1 to {NAME_BYTES} bytes, which is written without quotes")
        written.append(raw)
    return b" ".join(written)


def _candidates(cursor: Cursor, known: frozenset[tuple[str, str]]) -> Iterator[tuple[type[RowChange], int, int, int]]:
    """Event, the blank after the schema, the mark, and its end: first known tables, then a guess for each mark."""
    start = cursor.at
    stop = min(cursor.stop, start + 2 * NAME_BYTES + 1 + len(b" INSERT:"))
    marks = [
        (CHANGE_OF_MARK[match[0]], match.start(), match.end()) for match in _MARK.finditer(cursor.data, start, stop)
    ]
    if known:
        for event, mark, end in marks:
            for match in _BLANK.finditer(cursor.data, start + 1, mark - 1):
                blank = match.start()
                parts = cursor.data[start:blank], cursor.data[blank + 1 : mark]
                if tuple(part.decode(cursor.encoding, "replace") for part in parts) in known:
                    yield event, blank, mark, end
    for event, mark, end in marks:
        blank = cursor.data.find(b" ", start + 1, mark - 1)
        if blank > 0:
            yield event, blank, mark, end
