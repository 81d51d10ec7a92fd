"""Typed tables out of captures of real servers: every cell, and the tables at the end, as psycopg reads their texts."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.formats.registry import find_row
from wireformat.pgtypes import type_oid
from wireformat.pgtypes.columns import column_type
from wireformat.pgtypes.sql_types import with_typmod

from .captures import capture_names, read_capture, read_tables

psycopg = pytest.importorskip("psycopg")
from psycopg.types.array import _load_text  # noqa: E402 - psycopg may not be there

PSYCOPG_READS = {
    *("boolean", "smallint", "integer", "bigint", "oid", "real", "double precision", "numeric", "bytea"),
    *("date", "time without time zone", "timestamp without time zone", "timestamp with time zone"),
}
"""Types whose text psycopg turns into the Python value that Arrow gives."""
INTEGERS = {"xid", "cid"}

Row = dict[str, Any]
Table = tuple[str, str]


def expected(text: str | None, name: str, typmod: int | None, format: str) -> Any:
    """The value of a text, by psycopg and not by this package; Misfit where the table of types has no place for it."""
    column = column_type(with_typmod(name, typmod, find_row(format).types))
    if text is None:
        return None
    if column.reading == "integer vector":
        return [int(number) for number in text.split()]
    if column.dimensions:
        element = name.removesuffix("[]")
        delimiter = ";" if element == "box" else ","
        try:
            array = _load_text(text.encode(), _Plain(), delimiter.encode())
        except psycopg.DataError:  # an array in binary form, which is \\x and hex digits
            return MISFIT
        if any(isinstance(item, list) for item in array):
            return MISFIT
        items = [expected(item, element, typmod, format) for item in array]
        return MISFIT if MISFIT in items else items
    return text if column.arrow == "string" else scalar(text, name)


class _Plain:
    """An element of an array, as text."""

    def load(self, data: Any) -> str:
        return bytes(data).decode()


MISFIT = "does not fit"


def scalar(text: str, name: str) -> Any:
    if name in INTEGERS:
        return int(text)
    assert name in PSYCOPG_READS
    loader = psycopg.adapt.Transformer().get_loader(type_oid(name), psycopg.pq.Format.TEXT)
    try:
        value = loader.load(text.encode())
    except psycopg.DataError:
        return MISFIT
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.timezone.utc)
    if name == "real":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return value


def comparable(value: Any) -> Any:
    """A value that is equal to itself, and other than a value of another sign."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.datetime) else value


def pattern(table: Table) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in table)


@cache
def changes_of(name: str) -> pa.Table:
    return wf.arrow.changes(read_capture(name).messages, format_of(name))


def format_of(name: str) -> str:
    return "pgoutput" if "pgoutput" in name else "test-decoding"


@cache
def listed(name: str) -> list[Row]:
    return wf.arrow.tables(changes_of(name)).to_pylist()


def column_types(name: str) -> dict[Table, dict[int, dict[str, tuple[str, int | None]]]]:
    """By table and version: column to type and typmod."""
    found: dict[Table, dict[int, dict[str, tuple[str, int | None]]]] = {}
    for row in listed(name):
        typmods = row["typmods"] or [None] * len(row["columns"])
        columns = dict(zip(row["columns"], zip(row["types"], typmods, strict=True), strict=True))
        found.setdefault((row["table_schema"], row["table_name"]), {})[row["version"]] = columns
    return found


Place = tuple[int, int]


def row_changes(name: str) -> Iterator[tuple[Place, Table, wf.RowChange | None]]:
    """Every change of a table, in order, out of the events; with its place: in these formats a message is a record."""
    for message, event in enumerate(wf.decode(read_capture(name).messages, format_of(name))):
        if isinstance(event, wf.RowChange):
            yield (message, 0), (event.table_schema, event.table_name), event
        elif isinstance(event, wf.Truncate):
            yield from (((message, 0), table, None) for table in event.tables)


def version_at(name: str, table: Table, place: Place) -> int:
    """The version of the table whose changes lie around this place."""
    return next(
        row["version"]
        for row in listed(name)
        if (row["table_schema"], row["table_name"]) == table
        and row["changes"]
        and tuple(row["first"].values()) <= place <= tuple(row["last"].values())
    )


def cells(image: wf.TupleData | None, columns: dict[str, tuple[str, int | None]], format: str) -> Row | None:
    if image is None:
        return None
    given = image.as_dict()
    texts = {name: None if isinstance(given.get(name), wf.Unchanged) else given.get(name) for name in columns}
    found = {name: expected(text, *columns[name], format) for name, text in texts.items()}  # type: ignore[arg-type]
    return {name: comparable(None if value is MISFIT else value) for name, value in found.items()}


CELLS = [
    name
    for name in capture_names()
    if not name.endswith(("test-decoding-streaming", "test-decoding-all")) and (name[0:2] != "18" or "-4" in name)
]


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_what_psycopg_reads(name: str) -> None:
    """In each version of each table, of new and old images; and misfits are named."""
    changes = changes_of(name)
    types = column_types(name)
    left: dict[Table, list[tuple[Place, wf.RowChange | None]]] = {}
    for place, table, change in row_changes(name):
        left.setdefault(table, []).append((place, change))
    misfits = 0
    for table, events in left.items():
        by_version = wf.arrow.typed(changes, pattern(table), mode="PERMISSIVE", evolution="versions")
        assert sum(part.num_rows for part in by_version.values()) == len(events)
        for version, part in by_version.items():
            columns = types[table][version]
            assert part.schema.names[: len(columns)] == list(columns)
        waiting = {version: iter(part.to_pylist()) for version, part in by_version.items()}
        for place, event in events:
            version = version_at(name, table, place)
            row, columns = next(waiting[version]), types[table][version]
            got = {column: comparable(row[column]) for column in columns}
            if event is None:
                assert row["_change_type"] == "truncate"
                continue
            assert row["_change_type"] == event.kind.lower()
            new, old = (cells(image, columns, format_of(name)) for image in (event.new, event.old))
            assert got == (old if event.new is None else new) or (not columns and new is None)
            before = row["_old"] and {column: comparable(value) for column, value in row["_old"].items()}
            assert before == old
            unsent = [
                column for column, value in (event.new or wf.TupleData()).as_dict().items() if value is wf.UNCHANGED
            ]
            listed = row["_unchanged"] or []
            there = (event.new or wf.TupleData()).names
            assert [column for column in listed if column in there] == unsent
            # test_decoding does not say that a column was dropped or has another name
            assert set(listed) - set(there) <= ({"gone", "more", "more:"} if "test-decoding" in name else set())
            named = [c for c, (type, mod) in columns.items() if is_misfit(event, c, type, mod, format_of(name))]
            misfits += len(named)
            assert all(f"column {column}, type " in row["_error"] for column in named)
            assert bool(named) == (row["_error"] is not None)
    assert misfits > 10


def is_misfit(event: wf.RowChange, column: str, type: str, typmod: int | None, format: str) -> bool:
    values = [image.as_dict().get(column) for image in (event.new, event.old) if image is not None]
    return any(isinstance(value, str) and expected(value, type, typmod, format) is MISFIT for value in values)


REPLAYED = ["15-test-decoding-plain", "15-test-decoding-timestamps", "18-pgoutput-1"]


def expected_rows(name: str, table: Table, rows: Sequence[dict[str, str | None]]) -> list[Row]:
    """The rows that the server's table holds, with the values that its texts mean."""
    columns: dict[str, tuple[str, int | None]] = {}
    for version in column_types(name)[table].values():
        columns |= version
    wanted = []
    for row in rows:
        values = {column: expected(text, *columns[column], format_of(name)) for column, text in row.items()}
        wanted.append({column: comparable(None if value is MISFIT else value) for column, value in values.items()})
    return wanted


@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.parametrize("complete", [False, True])
def test_the_changes_lead_to_the_tables_of_the_server(name: str, complete: bool) -> None:
    changes = changes_of(name)
    types = column_types(name)
    keys = keys_of("18-pgoutput-1")
    tables: dict[Table, list[Row]] = {table: [] for table in types}
    for table in tables:
        typed = wf.arrow.typed(changes, pattern(table), mode="PERMISSIVE", complete=complete)
        for row in typed.to_pylist():
            apply(tables[table], {column: comparable(value) for column, value in row.items()}, keys.get(table, ()))
    final = read_tables(name.split("-")[0])
    assert {table for table, rows in tables.items() if rows} == final.keys()
    for table, rows in final.items():
        wanted = expected_rows(name, table, rows)
        got = [{column: row[column] for column in wanted[0]} for row in tables[table]]
        assert sorted(map(repr, got)) == sorted(map(repr, wanted)), table


@pytest.mark.parametrize("name", [name for name in REPLAYED if "pgoutput" in name])
def test_the_latest_rows_of_a_capture_are_the_tables_of_the_server(name: str) -> None:
    """With the replica identity that the stream states."""
    capture = wf.Capture(read_capture(name).messages, "pgoutput", mode="PERMISSIVE")
    whole: dict[Table, set[bool]] = {}
    for row in capture.tables().to_pylist():
        is_whole = len(row["key_columns"]) in (0, len(row["columns"]))
        whole.setdefault((row["table_schema"], row["table_name"]), set()).add(is_whole)
    changed = [table for table, found in whole.items() if len(found) > 1]
    assert changed
    for table, rows in read_tables(name.split("-")[0]).items():
        wanted = expected_rows(name, table, rows)
        for keys in (None, keys_of(name)[table]) if table in changed else (None,):
            latest = capture.latest(pattern(table), keys=keys).to_pylist()
            got = [{column: comparable(row[column]) for column in wanted[0]} for row in latest]
            assert sorted(map(repr, got)) == sorted(map(repr, wanted)), table


def keys_of(name: str) -> dict[Table, Sequence[str]]:
    """Of each table the shortest one: identities become full later on."""
    rows = sorted(listed(name), key=lambda row: -len(row["key_columns"]))
    return {(row["table_schema"], row["table_name"]): row["key_columns"] for row in rows}


def apply(rows: list[Row], change: Row, keys: Sequence[str]) -> None:
    """A change of a typed table, to a table in memory."""
    values = {column: value for column, value in change.items() if not column.startswith("_")}
    kind = change["_change_type"]
    if kind == "truncate":
        rows.clear()
    if kind in ("update", "delete"):
        old = change["_old"] or {column: values[column] for column in keys}
        looked_for = {column: comparable(value) for column, value in old.items() if value is not None}
        places = [
            place for place, row in enumerate(rows) if all(row[column] == value for column, value in looked_for.items())
        ]
        alike = [
            place for place in places if all(v is None for column, v in rows[place].items() if column not in looked_for)
        ]
        before = rows.pop((alike or places)[0])
        values |= {column: before[column] for column in change["_unchanged"] or ()}
    if kind in ("insert", "update"):
        rows.append(values)


def test_changes_of_which_nothing_is_known_are_refused() -> None:
    """test_decoding without stream-changes says of a change in a streamed block that there was one."""
    with pytest.raises(wf.BadRows, match="STREAM_CHANGE"):
        wf.arrow.typed(changes_of("15-test-decoding-streaming"), "public.big")
