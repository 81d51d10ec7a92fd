"""Every capture of GaussDB's formats with keys in a lake as its tables stand at the end: it is what the truth says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.options.table_names import written
from wireformat.testing import Table as MadeTable
from wireformat.testing import stream
from wireformat.testing.server import COLUMNS

from ..golden_cases import CASES, Case, event_of, find_case
from .reading import Table, read_all, read_all_with_duckdb, values

pytest.importorskip("deltalake", reason="the extra delta is not installed")


def committed(case: Case) -> Iterator[wf.Event]:
    """The row changes of committed transactions, in order."""
    held: list[wf.Event] = []
    for event in (event_of(record, errors="replace") for record in case.truth):
        if isinstance(event, (wf.Begin, wf.Abort)):
            held = []
        elif isinstance(event, wf.Commit):
            yield from held
            held = []
        else:
            held.append(event)


@cache
def keys_of(name: str) -> dict[Table, list[str]]:
    """The columns that all old rows of a table have; [] if there are none."""
    found: dict[Table, list[str]] = {}
    for event in committed(find_case(name)):
        if isinstance(event, (wf.Insert, wf.Update, wf.Delete)):
            table = event.table_schema, event.table_name
            old = None if isinstance(event, wf.Insert) else event.old
            if old is not None:
                names = found.setdefault(table, list(old.names))
                found[table] = [one for one in names if one in old.names]
            else:
                found.setdefault(table, [])
    return {table: names for table, names in found.items() if names}


def rows_at_the_end(name: str, keys: dict[Table, list[str]]) -> dict[Table, int]:
    """How many rows each table has at the end, by the truth of the capture."""
    held: dict[Table, set[tuple[Any, ...]]] = {table: set() for table in keys}
    for event in committed(find_case(name)):
        if isinstance(event, wf.Truncate):
            for table in event.tables:
                held.get(table, set()).clear()
        elif isinstance(event, (wf.Insert, wf.Update, wf.Delete)) and (event.table_schema, event.table_name) in keys:
            table = event.table_schema, event.table_name
            new = None if isinstance(event, wf.Delete) else event.new
            old = None if isinstance(event, wf.Insert) else event.old or new
            for image, change in ((old, held[table].discard), (new, held[table].add)):
                if image is not None:
                    texts = dict(zip(image.names, image.values, strict=True))
                    change(tuple(texts[key] for key in keys[table]))
    return {table: len(rows) for table, rows in held.items()}


@lru_cache(maxsize=1)
def current(name: str) -> tuple[dict[str, list[str]], dict[Table, pa.Table] | wf.WireformatError]:
    """The keys of the tables that have some, and their rows, or the error that there is instead."""
    case = find_case(name)
    keys = {written(table): names for table, names in keys_of(name).items()}
    capture = wf.Capture(case.messages, case.format, **case.reading)
    try:
        return keys, {table: capture.latest(written(table), keys=names) for table, names in keys_of(name).items()}
    except wf.WireformatError as error:
        return keys, error


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("case", [case for case in CASES if keys_of(case.name)], ids=lambda case: case.name)
def test_tables_at_the_end(case: Case, format: str, tmp_path: Path) -> None:
    keys, wanted = current(case.name)
    capture = wf.Capture(case.messages, case.format, **case.reading)
    options: dict[str, Any] = {"format": format, "state": "latest", "tables": [*keys], "keys": keys}
    if isinstance(wanted, wf.WireformatError):
        with pytest.raises((wf.BadRows, wf.OrderError, wf.DecodeError)):
            capture.write(tmp_path, **options)
        assert [*tmp_path.iterdir()] == []
        return
    capture.write(tmp_path, **options)
    found = read_all(tmp_path)
    assert {*found} == {*wanted}
    assert {table: len(rows) for table, rows in found.items()} == rows_at_the_end(case.name, keys_of(case.name))
    for table, rows in read_all_with_duckdb(tmp_path).items():
        assert values(found[table]) == values(wanted[table].select(found[table].column_names)), table
        assert values(rows) == values(found[table].select(rows.column_names)), table


COLUMNS_WITHOUT_TEXT = tuple(column for column in COLUMNS if column.type not in ("text", "character varying"))
"""The server does not escape quotes in sql-decoding, so that texts with quotes cannot be read."""

OWN_FORMATS = [name for name in wf.FORMATS if name not in ("pgoutput", "test-decoding")]


def texts_of(rows: pa.Table) -> list[dict[str, str | None]]:
    """The columns of the table, as the server writes their values."""
    return [{name: _text(value) for name, value in row.items() if name[0] != "_"} for row in rows.to_pylist()]


def _text(value: Any) -> str | None:
    return None if value is None else "ft"[value] if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("name", OWN_FORMATS)
def test_a_consistent_history(name: str, format: str, tmp_path: Path) -> None:
    """Whose keys exist. A Delta lake gets it in two writes, of which the second is merged."""
    columns = COLUMNS_WITHOUT_TEXT if name == "sql-decoding" else COLUMNS
    tables = [MadeTable("shop", f"t{number}", columns, ("default", "full")[number % 2]) for number in range(4)]
    made = stream(tables, 150, seed=4, format=name, schema_changes=False)
    events = [*made]
    middle = [index for index, event in enumerate(events) if isinstance(event, wf.Commit)][60] + 1
    parts = [events] if format == "parquet" else [events[:middle], events[middle:]]
    keys = {written(table): ["id"] for table in made.tables}
    types = {column.name: column.type for column in columns}
    schemas = dict.fromkeys(keys, types) if name == "sql-decoding" else None
    options: dict[str, Any] = {"sending-batch": 1} if name.startswith("gaussdb") else {}
    after = None
    for part in parts:
        capture = wf.Capture([*wf.encode(part, name, options=options)], name, after=after)
        capture.write(tmp_path, format=format, state="latest", keys=keys, schemas=schemas)
        after = wf.lake.position(tmp_path)
    assert any(made.tables.values())
    for found in (read_all(tmp_path), read_all_with_duckdb(tmp_path)):
        for table, rows in made.tables.items():
            assert sorted(texts_of(found[table]), key=str) == sorted(rows, key=str), table
