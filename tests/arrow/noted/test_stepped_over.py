"""Row changes of other tables are stepped over, and all that is said of the others stays as it is without a filter."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.engine.scanner import BatchScan
from wireformat.options.table_names import written

from ...golden_cases import CASES, Case
from ...handmade import begin, cell, change, message, new, u16
from ...servers.captures import capture_names, read_capture
from ..scan.small_limits import shrink

SERVER_CAPTURES = [name for name in capture_names() if "test-decoding" not in name or "streaming" not in name]


def read_of(messages: list[bytes], format: str, tables: list[str] | None, **options: Any) -> tuple[Any, ...]:
    """The committed rows of tables, and all else that the capture says when they have been read."""
    capture = wf.Capture(messages, format, **options)
    return capture.committed(tables=tables).read_all(), capture.position, capture.unknown_prepared


def check(messages: list[bytes], format: str, **options: Any) -> None:
    """Compares the rows of a table, and of none, with those among all rows."""
    try:
        whole, *state = read_of(messages, format, None, **options)
    except wf.WireformatError:  # a filter may find less that is wrong
        return
    names = [*zip(whole["table_schema"].to_pylist(), whole["table_name"].to_pylist(), strict=True)]
    tables = sorted({name for name in names if None not in name})
    for wanted in [*tables[len(tables) // 2 :][:1], None]:
        asked = [] if wanted is None else [written(wanted)]
        found, *state_found = read_of(messages, format, asked, **options)
        assert found == whole.filter(pa.array([name in (wanted, (None, None)) for name in names], pa.bool_()))
        assert state_found == state


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that transactions go on in other message batches."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=10_000, MESSAGE_BATCH_ROWS=100)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("case", [case for case in CASES if len(case.messages) < 5000], ids=lambda case: case.name)
def test_captures_of_gaussdb(case: Case) -> None:
    check(case.messages, case.format, **{"threads": 1, **case.reading})


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("name", SERVER_CAPTURES)
def test_captures_of_servers(name: str) -> None:
    format = "pgoutput" if "pgoutput" in name else "test-decoding"
    check(read_capture(name).messages, format, threads=2)


ROW = "table public.{}: INSERT: id[integer]:1"
BEGIN, COMMIT = "BEGIN 7", "COMMIT 7"


@pytest.mark.parametrize("before", [[], [BEGIN, "a", COMMIT], [BEGIN, "b", COMMIT], [BEGIN, "a", "b", COMMIT]])
@pytest.mark.parametrize("outside", [["b"], ["b", "b", "a"], ["a", "b"], ["b", BEGIN, "a", COMMIT], ["b", "bad"]])
@pytest.mark.parametrize("batch_bytes", [1, 1000])
def test_rows_outside_of_a_transaction(
    before: list[str], outside: list[str], batch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the first of them, whether it was stepped over or not."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=batch_bytes)
    records = [*before, *outside]
    messages = [(record if record in (BEGIN, COMMIT) else ROW.format(record)).encode() for record in records]
    errors = []
    for tables in (None, ["public.a"], []):
        with pytest.raises(wf.OrderError, match="rows outside a transaction") as error:
            wf.Capture(messages, "test-decoding").committed(tables=tables).read_all()
        errors.append(str(error.value))
    assert f"message {len(before)}" in errors[0]
    assert {*errors} == {errors[0]}


def test_bad_cells_of_other_tables_are_not_found() -> None:
    """By neither engine; the row counts all the same."""
    good, bad = ROW.format("a"), ROW.format("b") + " name[text]:'no end"
    messages = [line.encode() for line in (BEGIN, good, bad, good, COMMIT)]
    for engine in ("scan", "declaration"):
        capture = wf.Capture(messages, "test-decoding", engine=engine)
        with pytest.raises(wf.DecodeError):
            capture.committed().read_all()
        found = capture.committed(tables=["public.a"]).read_all()
        assert [row["ordinal"] for row in found["sequence"].to_pylist()] == [0, 2]
        with pytest.raises(wf.DecodeError):
            capture.committed(tables=["public.b"]).read_all()


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("end", [b"", b"?", b"P", b"P\0\0", b"P\0\0\0\0F", b"F" * 2, b"P" + bytes(12)])
@pytest.mark.parametrize(
    "cells", [cell(b"id", 23, b"1"), cell(b"id", 23, b"\xff"), b"\0\1"], ids=["good", "text", "cut"]
)
def test_framing_that_is_broken_after_another_table(cells: bytes, end: bytes, mode: str) -> None:
    """The record before it is stepped over, where its framing is good; else both engines say the same of it."""
    body = change(b"I", b"public", b"b", b"N" + u16(1) + cells)
    kept = change(b"I", b"public", b"a", new(cell(b"id", 23, b"1")))
    messages = [message(begin(1, 2), kept, body), message(body, kept, end=end), message(kept, body, body, end=end)]
    found = []
    for engine in ("scan", "declaration"):
        try:
            rows: Any = wf.arrow.changes(
                messages, "gaussdb-binary", mode=mode, tables=["public.a"], engine=engine
            ).to_pylist()
        except wf.DecodeError as error:
            rows = str(error)
        found.append(rows)
    assert found[0] == found[1]


def test_a_scan_notes_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [line.encode() for line in [BEGIN, *[ROW.format("a")] * 3, *[ROW.format("b")] * 500, COMMIT] * 2]
    counts: list[int] = []
    step = BatchScan.step

    def counted(scan: BatchScan) -> int:
        counts.append(step(scan))
        return counts[-1]

    monkeypatch.setattr(BatchScan, "step", counted)
    found = wf.Capture(messages, "test-decoding", threads=1).committed(tables=["public.a"]).read_all()
    assert [row["ordinal"] for row in found["sequence"].to_pylist()] == [0, 1, 2] * 2
    assert sum(counts) == 2 * (1 + 3 + 1)
    typed = wf.Capture(messages, "test-decoding", threads=1).typed("public.a", schema={"id": "integer"}).read_all()
    assert sum(counts) == 4 * (1 + 3 + 1)
    assert typed.num_rows == 6


def test_a_table_is_listed_alone() -> None:
    """To find its columns no other rows are read; with the list of all tables the result is the same."""
    case = next(case for case in CASES if case.name == "b_many_batch")
    whole = wf.Capture(case.messages, case.format)
    listed = whole.tables()
    for schema, table in zip(*(listed[name].to_pylist() for name in ("table_schema", "table_name")), strict=True):
        name = written((schema, table))
        alone = wf.Capture(case.messages, case.format)
        assert alone.typed(name).read_all() == whole.typed(name).read_all()
        assert alone.tables() == listed
    with pytest.raises(wf.BadRows, match="no changes of"):
        wf.Capture(case.messages, case.format).typed("public.no_such_table")
