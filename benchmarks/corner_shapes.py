"""Corners of values and tables: texts of quotes and escapes, TRUNCATE of several tables, new tables, many names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import wireformat as wf

from .corner import Corner
from .corner_corrupt import ROWS
from .corner_records import (
    FIRST_OID,
    NAMES,
    POSTGRES_TEXT,
    ROWS_PER_TRANSACTION,
    SERIAL_JSON,
    SERIAL_TEXT,
    TD,
    TIME,
    TYPES,
    Change,
    P,
    batched,
    described,
    insert,
    lines,
    postgres,
    relation,
    row_of,
    transactions,
    values,
)
from .generate import BINARY, JSON, PGOUTPUT, TEXT

GAUSS = (BINARY, JSON, TEXT)

TRUNCATED = 3
"""The tables of a TRUNCATE."""

THOUSAND = [f"public.other_{number}" for number in range(999)]

MEGABYTE = 1 << 20

TEXTS = {
    "apostrophes": "'",
    "quotes": '"',
    "backslashes": "\\",
    "line feeds": "\n",
    "Chinese and quotes": "表'格\"",
    "objects of JSON": """{"it's": "a\\n"}""",
}
"""What texts consist of."""


WIDE = 400
"""The columns of a wide table."""

WIDE_NAMES = tuple(f"column_{number}" for number in range(WIDE))
DIGITS = f"{PGOUTPUT}: rows of {WIDE} columns"

ODD_NAMES = (
    ("quotes", 'say "hi"', "utf-8"),
    *(("Chinese", "表", encoding) for encoding in ("utf-8", "gbk", "gb18030")),
    ("French", "é", "latin-1"),
)
"""Names of columns: what they are, what they begin with, and their encodings."""


def rows(format: str, change: Change) -> Callable[[int], Any]:
    """Messages of a format with the row changes of `change`, in transactions."""
    if format == PGOUTPUT:
        return postgres(change)
    if format not in GAUSS:
        return lines(change, format)

    def make(count: int) -> list[bytes]:
        events = transactions(
            count,
            ROWS_PER_TRANSACTION,
            lambda row: wf.Begin(lsn=row + 1, csn=row + 1, first_lsn=row + 1, commit_time=TIME, xid=row + 1),
            lambda row: (replace(event, lsn=row + 1) for event in change(row)),
            lambda row: wf.Commit(lsn=row + 1, xid=row + 1),
        )
        return batched(events, format)

    return make


def few(make: Callable[[int], Any], count: int) -> Any:
    """The messages of few row changes, where many are asked for."""
    return make(count // 5000 + 1)


def with_note(text: str) -> Change:
    """A row whose note is this text."""

    def change(row: int) -> list[wf.Event]:
        noted = tuple(text if name == "note" else value for name, value in zip(NAMES, values(row), strict=True))
        return [replace(row_of(row), new=wf.TupleData(NAMES, noted, TYPES))]

    return change


def truncated(row: int) -> list[wf.Event]:
    """TRUNCATE of some tables."""
    tables = tuple(("public", f"orders_{number}") for number in range(TRUNCATED))
    return [wf.Truncate(tables=tables, relation_ids=tuple(range(FIRST_OID, FIRST_OID + TRUNCATED)))]


def of_new_table(row: int) -> list[wf.Event]:
    """A row of a table of its own."""
    return [insert(row, table_name=f"orders_{row}")]


def of_new_columns(row: int, every: int = 1, mark: str = "") -> Iterator[wf.Event]:
    """A row of a table whose columns have names of their own, after its Relation message; each has so many rows.

    mark   what the names begin with
    """
    table = row // every
    names = tuple(f"{mark}{name}_{table}" for name in NAMES)
    if row % every == 0:
        yield replace(relation(table), columns=names, key_columns=names[:1])
    yield row_of(row, table, new=wf.TupleData(names, values(row), TYPES))


def of_wide_table(row: int, kind: type[wf.Insert | wf.Update], value: Any) -> Iterator[wf.Event]:
    """A row of a table of many columns, which all have this value; its Relation message comes before the first row."""
    if row == 0:
        facts: dict[str, Any] = {"type_oids": (25,) * WIDE, "typmods": (-1,) * WIDE}
        yield replace(relation(0), columns=WIDE_NAMES, key_columns=WIDE_NAMES[:1], **facts)
    new = wf.TupleData(WIDE_NAMES, (str(row), *[value] * (WIDE - 1)), ("text",) * WIDE)
    yield kind(table_schema="public", table_name="orders_0", relation_id=FIRST_OID, new=new)


def wide(kind: type[wf.Insert | wf.Update], value: Any) -> Callable[[int], Any]:
    """Messages with rows of many columns, and about as many values as all other corners have."""
    return lambda count: postgres(partial(of_wide_table, kind=kind, value=value))(len(NAMES) * count // WIDE + 1)


def _without_relations(change: Change, row: int) -> Iterator[wf.Event]:
    """The events that formats other than pgoutput have."""
    return (event for event in change(row) if not isinstance(event, wf.Relation))


def _corners() -> Iterator[Corner]:
    for name, text in TEXTS.items():
        for format in (JSON, TEXT, POSTGRES_TEXT, PGOUTPUT):
            easy, _ = ROWS[format]
            yield Corner(f"{format}: texts of {name}", format, rows(format, with_note(100 * text)), easy)
            large = partial(few, rows(format, with_note(text * (MEGABYTE // len(text)))))
            yield Corner(f"{format}: a megabyte of {name}", format, large, easy)
    several = postgres(truncated, tables=TRUNCATED)
    yield Corner(f"{PGOUTPUT}: TRUNCATE of {TRUNCATED} tables", PGOUTPUT, several, P, per_row=True)
    for format in (POSTGRES_TEXT, SERIAL_JSON, SERIAL_TEXT):
        name = f"{format}: TRUNCATE of {TRUNCATED} tables"
        yield Corner(name, format, lines(truncated, format), TD, per_row=True)
    for format in (*GAUSS, POSTGRES_TEXT):
        yield Corner(f"{format}: a new table in each row", format, rows(format, of_new_table), ROWS[format][0])
        without = partial(_without_relations, of_new_columns)
        yield Corner(f"{format}: new columns in each row", format, rows(format, without), ROWS[format][0])
    yield Corner(f"{PGOUTPUT}: a new table in each row", PGOUTPUT, lambda count: described(count, 1)(count), P)
    yield Corner(f"{PGOUTPUT}: new columns in each row", PGOUTPUT, postgres(of_new_columns), P)
    yield Corner(DIGITS, PGOUTPUT, wide(wf.Insert, "1"), P)
    yield Corner(f"{DIGITS}, NULL", PGOUTPUT, wide(wf.Insert, None), DIGITS, per_row=True)
    yield Corner(f"{DIGITS}, not sent", PGOUTPUT, wide(wf.Update, wf.UNCHANGED), DIGITS, per_row=True)
    for every, rows_of in ((1, "each row"), (10, "ten rows")):
        for names, mark, encoding in ODD_NAMES:
            change = partial(of_new_columns, every=every, mark=mark)
            name = f"{PGOUTPUT}: new columns in {rows_of}, {names}, {encoding}"
            yield Corner(name, PGOUTPUT, postgres(change, encoding=encoding), P, {"encoding": encoding})
    for format, (easy, make) in ROWS.items():
        tables = {"tables": [*THOUSAND, "public.orders", "public.orders_0"]}
        yield Corner(f"{format}: a thousand names", format, make, easy, tables)
    tables = {"tables": [*THOUSAND, *(f"public.orders_{number}" for number in range(600))]}
    yield Corner(f"{PGOUTPUT}: many names, RELATION before each row", PGOUTPUT, described(600, 1), P, tables)


SHAPES: tuple[Corner, ...] = tuple(_corners())
