"""Corners of typed tables: old images that leave out their NULLs, arrays, few large values, times of old zones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import wireformat as wf

from .corner import Corner
from .corner_records import NAMES, POSTGRES_TEXT, TYPES, insert, lines, values

WIDE = 20
"""The columns of a table with many NULLs, beside its key."""

LONG = 100_000
"""About the bytes of a large value."""

COLUMNS = tuple(f"c{number}" for number in range(WIDE))
WIDE_COLUMNS = {"id": "integer", **dict.fromkeys(COLUMNS, "text")}


def update(row: int, *, leaves_out: bool) -> list[wf.Event]:
    """An UPDATE of a wide row under REPLICA IDENTITY FULL; half of the old values are NULL, or none."""
    kept = [name for number, name in enumerate(COLUMNS) if not leaves_out or row * 7919 >> number & 1]
    images = [
        wf.TupleData(
            ("id", *names), (str(row), *(f"value {row}" for _ in names)), ("integer", *("text" for _ in names))
        )
        for names in (COLUMNS, kept)
    ]
    new, old = images
    return [wf.Update(table_schema="public", table_name="orders", new=new, old=old)]


def delete(row: int, *, leaves_out: bool) -> list[wf.Event]:
    """A wide row that is deleted, and one that is inserted."""
    (event,) = update(row, leaves_out=leaves_out)
    assert isinstance(event, wf.Update)
    facts: dict[str, Any] = {"table_schema": "public", "table_name": "orders"}
    return [wf.Insert(new=event.new, **facts), wf.Delete(old=event.old, **facts)]


def with_value(row: int, value: str, type: str) -> list[wf.Event]:
    """A row that is inserted, with another value in the place of the note."""
    at = NAMES.index("note")
    texts, types = [*values(row)], [*TYPES]
    texts[at], types[at] = value, type
    return [replace(insert(row), new=wf.TupleData(NAMES, tuple(texts), tuple(types)))]


def a_note(row: int) -> str:
    """A text, of which each row has another."""
    return f"a note of some length about the order {row}"


def quoted(row: int) -> str:
    """A large array of texts in quotes."""
    return "{" + ",".join(f'"a, {row}"' for _ in range(LONG // 10)) + "}"


def old_time(row: int) -> str:
    """A time in a zone that had an offset of its own."""
    return f"1890-11-{row % 28 + 1:02} 01:02:03.5+00:53:28"


def of_value(name: str, type: str, value: Callable[[int], str], easy: str | None, every: int = 1) -> Corner:
    """Rows with a value of this type.

    every   there is one row in place of so many
    """
    make = lines(lambda row: with_value(row, value(row), type))
    columns = {**dict(zip(NAMES, TYPES, strict=True)), "note": type}
    return Corner(name, POSTGRES_TEXT, lambda rows: make(max(rows // every, 1)), easy, columns=columns)


def wide(change: Callable[..., list[wf.Event]], name: str, easy: str | None, *, leaves_out: bool) -> Corner:
    """Changes of wide rows."""
    return Corner(name, POSTGRES_TEXT, lines(partial(change, leaves_out=leaves_out)), easy, columns=WIDE_COLUMNS)


_TYPED = f"{POSTGRES_TEXT}, typed"
ROWS, UPDATES = f"{_TYPED}: rows", f"{_TYPED}: updates of {WIDE} columns"

TYPED: tuple[Corner, ...] = (
    of_value(ROWS, "text", a_note, None),
    wide(update, UPDATES, None, leaves_out=False),
    wide(update, f"{UPDATES}, NULLs left out of old images", UPDATES, leaves_out=True),
    wide(delete, f"{_TYPED}: deletes of {WIDE} columns, NULLs left out", UPDATES, leaves_out=True),
    of_value(f"{_TYPED}: arrays", "integer[]", lambda row: f"{{{row},7919,NULL,{row}}}", ROWS),
    of_value(f"{_TYPED}: arrays with bounds", "integer[]", lambda row: f"[0:2]={{{row},7919,{row}}}", ROWS),
    of_value(f"{_TYPED}: arrays of two dimensions", "integer[][]", lambda row: f"{{{{{row},1}},{{2,NULL}}}}", ROWS),
    of_value(f"{_TYPED}: large arrays of quoted texts", "text[]", quoted, ROWS, every=1000),
    of_value(
        f"{_TYPED}: large bytea in escapes", "bytea", lambda row: "abc\\000\\377" * (LONG // 11), ROWS, every=1000
    ),
    of_value(f"{_TYPED}: values that do not fit", "text", a_note, ROWS)._replace(
        options={"mode": "PERMISSIVE"}, columns={**dict(zip(NAMES, TYPES, strict=True)), "note": "integer"}
    ),
    of_value(f"{_TYPED}: offsets with seconds", "timestamp with time zone", old_time, ROWS),
)
