"""Tables of gaussdb-text, whose names are not quoted: where a schema ends, and where a table does.

    table my schema trail  UPDATE: a[integer]:1

A name may contain blanks, and even text that looks like a mark, so this is a guess. Marks are tried in order, and for
each mark the schemas from the shortest to the longest. The first pair among the known tables whose record can be read
is taken. Without one, it is the shortest schema before the first mark whose record can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from ..errors import DecodeError, EncodeError
from ..events import RowChange
from ..limits import NAME_BYTES
from .cursor import Cursor
from .literals import encoded
from .tuple_text import CHANGE_OF_MARK

_MARK = re.compile(b"|".join(CHANGE_OF_MARK))
_BLANK = re.compile(rb" ")
_NAME_WORDS = "a name without quotes, which ends where the rest can be read"

T = TypeVar("T")


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
