"""Every capture in a lake: read back, it is what `typed` and `latest` return, and what the servers hold.

The stream is read once for all tables. tests/capture/test_verbs.py shows that a capture returns the same for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.options.table_names import written

from ..golden_cases import CASES, Case, find_case
from ..servers.captures import capture_names, read_capture, read_tables
from ..servers.current_tables import keys_of, typed_rows
from .reading import Table, names_of, read_all, read_all_with_duckdb, values

pytest.importorskip("deltalake", reason="the extra delta is not installed")

READINGS = [
    *capture_names("pgoutput"),
    *(name for name in capture_names("test-decoding") if not name.endswith(("-streaming", "-all"))),
]
FORMATS = ("parquet", "delta")


def check(capture: wf.Capture, folder: Path, format: str, wanted: dict[Table, list[str]]) -> int:
    """Writes all changes of a capture and compares them with the values of its tables; returns the number of tables."""
    result = capture.write(folder, format=format)
    of_tables = {(row["table_schema"], row["table_name"]): row for row in result.to_pylist() if row["table_name"]}
    found = read_all(folder)
    assert {*found} == {*of_tables} == {name for name, rows in wanted.items() if rows}
    for name, there in found.items():
        assert values(there) == wanted[name], name
        assert len(there) == of_tables[name]["rows"]
    check_duckdb(folder, found)
    assert wf.lake.position(folder).to_json() == capture.position.to_json()
    return len(of_tables)


def check_duckdb(folder: Path, found: dict[Table, pa.Table]) -> None:
    """DuckDB reads the same rows."""
    for name, there in read_all_with_duckdb(folder).items():
        wanted = found[name].select(there.column_names)
        assert there.equals(wanted) or values(there) == values(wanted), name  # NaN does not equal itself


def typed_tables(capture: wf.Capture) -> dict[Table, pa.Table]:
    """The changes of each table."""
    rows, listed = capture.committed().read_all(), capture.tables()
    names = names_of(listed)
    return {name: wf.arrow.typed(rows, written(name), schema=listed, mode="PERMISSIVE") for name in names}


def typed_values(capture: wf.Capture) -> dict[Table, list[str]]:
    return {name: values(rows) for name, rows in typed_tables(capture).items()}


def capture_of(name: str) -> wf.Capture:
    return wf.Capture(read_capture(name).messages, _format_of(name), mode="PERMISSIVE")


# What a lake has to hold is the same in both formats, whose tests of a capture follow each other.
once = lru_cache(maxsize=1)


@once
def changes_of_server(name: str) -> dict[Table, list[str]]:
    return typed_values(capture_of(name))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", READINGS)
def test_changes_of_servers(name: str, format: str, tmp_path: Path) -> None:
    assert check(capture_of(name), tmp_path, format, changes_of_server(name)) > 25


@once
def current_rows_of_server(name: str) -> tuple[pa.Table, dict[str, Any], dict[Table, pa.Table]]:
    """The list of tables, their keys, and the rows of each."""
    capture = capture_of(name)
    typed = typed_tables(capture)
    keys = {written(table): keys_of(table) for table in typed}
    current = {table: wf.arrow.latest(rows, keys[written(table)]) for table, rows in typed.items()}
    return capture.tables(), keys, current


@once
def held_by_server(name: str) -> dict[Table, int]:
    """How many rows each table of the server holds, with the types that the stream has for them."""
    listed, _, current = current_rows_of_server(name)
    found = {}
    for table, rows in read_tables(name.split("-")[0]).items():
        columns = pa.schema([field for field in current[table].schema if field.name not in ("_sequence", "_unchanged")])
        found[table] = len(typed_rows(table, rows, listed, columns))
    return found


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", READINGS)
def test_current_rows_of_servers(name: str, format: str, tmp_path: Path) -> None:
    """Also in two writes, of which the second is merged into Delta tables."""
    messages = read_capture(name).messages
    _, keys, current = current_rows_of_server(name)
    if format == "delta" and _format_of(name) == "pgoutput":
        half = wf.Capture(messages[: len(messages) * 2 // 3], _format_of(name), mode="PERMISSIVE")
        known = {written(table) for table in names_of(half.tables())}
        half.write(tmp_path, format=format, state="latest", keys={name: keys[name] for name in known})
    capture_of(name).write(tmp_path, format=format, state="latest", keys=keys)
    found = read_all(tmp_path)
    for table, rows in found.items():
        assert values(rows) == values(current[table]), table
    check_duckdb(tmp_path, found)
    held = held_by_server(name)
    assert {table: len(found[table]) for table in held} == held


def _format_of(name: str) -> str:
    return "pgoutput" if "pgoutput" in name else "test-decoding"


@once
def changes_of_gaussdb(name: str) -> tuple[Callable[[], wf.Capture], dict[Table, list[str]] | wf.WireformatError]:
    """How a capture is opened, and its changes, or the error that there is instead."""
    case = find_case(name)
    reading = {**case.reading, "mode": "PERMISSIVE"}

    def opened() -> wf.Capture:
        return wf.Capture(case.messages, case.format, **reading)

    capture = opened()
    try:
        capture.committed().read_all()
        for table in names_of(capture.tables()):
            capture.typed(written(table))
    except wf.WireformatError as error:
        return opened, error
    return opened, typed_values(capture)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_captures_of_gaussdb(case: Case, format: str, tmp_path: Path) -> None:
    opened, wanted = changes_of_gaussdb(case.name)
    if isinstance(wanted, wf.WireformatError):
        with pytest.raises(type(wanted)):
            opened().write(tmp_path, format=format)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
        return
    check(opened(), tmp_path, format, wanted)
