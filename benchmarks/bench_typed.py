"""Typed tables on one core: wf.arrow.typed for all tables one after the other, beside Python's own types by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

import wireformat as wf

from .contestants import Contestant
from .generate import BINARY, SHAPES, TABLES
from .measure import Result

COLUMNS = len(next(iter(SHAPES.values())))
"""Of each table."""

DECIMAL = "numeric(10,2)"
TYPES = {
    f"{schema}.{name}": {column.name: DECIMAL if column.type == "numeric" else column.type for column in columns}
    for schema, name, columns in TABLES
}


def as_changes(payloads: pa.ChunkedArray) -> pa.Table:
    """The row-change table, which is decoded before the clock runs."""
    return wf.arrow.changes(payloads, BINARY, threads=1)


def typed(changes: pa.Table, *, given: bool) -> int:
    """All tables, with the types as they are given or as the rows say them; how many rows they have."""
    names = TYPES if given else _tables(changes)
    return sum(wf.arrow.typed(changes, name, schema=TYPES[name] if given else None).num_rows for name in names)


def _tables(changes: pa.Table) -> list[str]:
    listed = wf.arrow.tables(changes)
    return [f"{schema}.{name}" for schema, name in zip(*(listed[part].to_pylist() for part in PARTS), strict=True)]


PARTS = ("table_schema", "table_name")

READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("bigint", "integer", "smallint"), int),
    **dict.fromkeys(("character varying", "character", "text"), str),
    "boolean": lambda text: text == "t",
    "numeric": Decimal,
    "date": date.fromisoformat,
    "timestamp without time zone": datetime.fromisoformat,
}


def by_hand(changes: pa.Table) -> int:
    """A dict of Python values for each row image."""
    count = 0
    for row in changes.select(["new", "old", "types"]).to_pylist():
        if row["types"] is None:
            continue
        count += 1
        types: dict[str, str] = {}
        for image in (row["new"], row["old"]):
            if image is not None:
                types = types or {name: type for (name, _), type in zip(image, row["types"], strict=True)}
                values = {name: text if text is None else READERS[types[name]](text) for name, text in image}
                assert len(values) == len(image)
    return count


GIVEN = "wf.arrow.typed, types given"
FOUND = "wf.arrow.tables and typed, types of the rows"
BY_HAND = "Python's types by hand"


def values_per_second(results: Mapping[str, Result]) -> float:
    """Millions of values of the rows, a second; those of old images are not counted."""
    return results[GIVEN].changes_per_second * COLUMNS / 1e6


CONTESTANTS = (
    Contestant(GIVEN, partial(typed, given=True), columns=COLUMNS, takes=as_changes, delivers="changes"),
    Contestant(FOUND, partial(typed, given=False), columns=COLUMNS, takes=as_changes, delivers="changes"),
    Contestant(BY_HAND, by_hand, columns=COLUMNS, takes=as_changes, delivers="changes", share=0.1),
)
