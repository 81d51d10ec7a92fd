"""Every capture in a lake: read back, it is what `typed` and `latest` return, and what the servers hold."""

from __future__ import annotations

from pathlib import Path

import pytest

import wireformat as wf
from wireformat.options.table_names import written

from ..golden_cases import CASES, Case
from ..servers.captures import capture_names, read_capture, read_tables
from ..servers.current_tables import keys_of, lines, typed_rows
from .reading import names_of, read, tables_of, values

pytest.importorskip("deltalake", reason="the extra delta is not installed")

READINGS = [
    *capture_names("pgoutput"),
    *(name for name in capture_names("test-decoding") if not name.endswith(("-streaming", "-all"))),
]
FORMATS = ("parquet", "delta")


def check(capture: wf.Capture, folder: Path, format: str) -> int:
    """Writes all changes of a capture and compares them; returns the number of tables."""
    result = capture.write(folder, format=format)
    of_tables = {(row["table_schema"], row["table_name"]): row for row in result.to_pylist() if row["table_name"]}
    found = tables_of(folder)
    assert {*found} == {*of_tables}
    for name in names_of(capture.tables()):
        expected = capture.typed(written(name)).read_all()
        if not len(expected):
            assert name not in found
            continue
        there = read(folder, name)
        assert values(there) == values(expected), name
        assert len(there) == of_tables[name]["rows"]
    assert wf.lake.position(folder).to_json() == capture.position.to_json()
    return len(found)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", READINGS)
def test_changes_of_servers(name: str, format: str, tmp_path: Path) -> None:
    capture = wf.Capture(read_capture(name).messages, _format_of(name), mode="PERMISSIVE")
    assert check(capture, tmp_path, format) > 25


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", READINGS)
def test_current_rows_of_servers(name: str, format: str, tmp_path: Path) -> None:
    """Also in two writes, of which the second is merged into Delta tables."""
    messages = read_capture(name).messages
    held = read_tables(name.split("-")[0])
    capture = wf.Capture(messages, _format_of(name), mode="PERMISSIVE")
    listed = capture.tables()
    keys = {written(table): keys_of(table) for table in names_of(listed)}
    if format == "delta" and _format_of(name) == "pgoutput":
        half = wf.Capture(messages[: len(messages) * 2 // 3], _format_of(name), mode="PERMISSIVE")
        known = {written(table) for table in names_of(half.tables())}
        half.write(tmp_path, format=format, state="latest", keys={name: keys[name] for name in known})
    capture.write(tmp_path, format=format, state="latest", keys=keys)
    for table in tables_of(tmp_path):
        found = read(tmp_path, table)
        expected = capture.latest(written(table), keys=keys[written(table)])
        assert values(found) == values(expected), table
    for table, rows in held.items():
        if rows:
            found = read(tmp_path, table)
            expected = capture.latest(written(table), keys=keys[written(table)])
            columns = expected.schema.remove(expected.schema.get_field_index("_sequence"))
            columns = columns.remove(columns.get_field_index("_unchanged"))
            wanted = typed_rows(table, rows, listed, columns)
            assert len(found) == len(wanted) == len(lines(wanted, []))


def _format_of(name: str) -> str:
    return "pgoutput" if "pgoutput" in name else "test-decoding"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_captures_of_gaussdb(case: Case, format: str, tmp_path: Path) -> None:
    reading = {**case.reading, "mode": "PERMISSIVE"}
    capture = wf.Capture(case.messages, case.format, **reading)
    try:
        capture.committed().read_all()
        for name in names_of(capture.tables()):
            capture.typed(written(name))
    except wf.WireformatError as error:
        with pytest.raises(type(error)):
            capture.write(tmp_path, format=format)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
        return
    check(capture, tmp_path, format)
