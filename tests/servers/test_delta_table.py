"""The example that keeps a Delta table current: from captures and from a slot that is read live."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from ..test_documentation import ROOT
from .captures import read_capture, read_tables
from .conftest import Runs
from .current_tables import keys_of, lines, quoted, typed_rows
from .replica import Replica, Table
from .tables import Row, all_tables

EXAMPLES = ROOT / "examples"
NOT_FOR_DELTA = ("every_type", "every_array")
"""Tables with values that fit no type of the lake: tests/servers/test_typed_captures.py is about those."""


@pytest.fixture(scope="module")
def example() -> ModuleType:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import keep_delta_table_current
    finally:
        sys.path.remove(str(EXAMPLES))
    return keep_delta_table_current


def check(example: ModuleType, changes: pa.Table, held: dict[Table, list[Row]], folder: Path, batch: int) -> None:
    """Every table with a key ends as the server has it; also if it was stopped, and has parts of it twice."""
    rows = wf.arrow.transactions(changes)
    listed = wf.arrow.tables(changes)
    checked = 0
    for number, table in enumerate(held):
        keys = keys_of(table)
        if keys and table[1] not in NOT_FOR_DELTA:
            typed = wf.arrow.typed(rows, quoted(table), schema=listed, complete=True)
            place = folder / str(number)
            half = wf.arrow.typed(rows.slice(0, len(rows) * 2 // 3), quoted(table), schema=listed, complete=True)
            complete = half["_sequence"].to_pylist()
            if complete:  # a capture ends with a transaction
                half = half.filter([one["commit_lsn"] < complete[-1]["commit_lsn"] for one in complete])
                example.keep_current(place, half, keys, batch)
            delta = example.keep_current(place, typed, keys, batch)
            names = list(held[table][0]) if held[table] else []
            wanted = lines(typed_rows(table, held[table], listed), names)
            assert lines(delta.to_pyarrow_table(), names) == wanted, table
            version = delta.version()
            assert example.keep_current(place, typed, keys, batch).version() == version
            checked += len(wanted)
    assert checked > 500


@pytest.mark.parametrize(
    ("name", "format"), [("18-pgoutput-4-two-phase", "pgoutput"), ("15-test-decoding-plain", "test-decoding")]
)
def test_captures(example: ModuleType, name: str, format: str, tmp_path: Path) -> None:
    changes = wf.arrow.changes(read_capture(name).messages, format)
    check(example, changes, read_tables(name.split("-")[0]), tmp_path, batch=40)


def test_a_slot_that_is_read_live(example: ModuleType, runs: Runs, tmp_path: Path) -> None:
    server, stream = runs(18)
    assert stream is not None
    with server.connect() as session:
        held = all_tables(session)
    check(example, wf.arrow.changes(stream.payloads, "pgoutput"), held, tmp_path, batch=1000)


@pytest.mark.slow
def test_sample_capture(example: ModuleType, tmp_path: Path) -> None:
    """Every table of it that has a key."""
    messages = pq.read_table(EXAMPLES / "sample_capture.parquet")["payload"]
    keys = {
        ("public", "orders"): ("order_id",),
        ("public", "order_lines"): ("order_id", "line_no"),
        ("Back Office", "Return"): ("Order No",),
        ("区域", "客户反馈"): ("编号",),
    }
    replica = Replica(keys)
    replica.apply(wf.decode(messages, "gaussdb-binary", tables=list(map(quoted, keys))))
    changes = wf.arrow.changes(messages, "gaussdb-binary")
    rows, listed = wf.arrow.transactions(changes), wf.arrow.tables(changes)
    for number, table in enumerate(keys):
        typed = wf.arrow.typed(rows, quoted(table), complete=True)
        delta = example.keep_current(tmp_path / str(number), typed, keys[table], 3000)
        names = list(replica.rows[table][0])
        assert lines(delta.to_pyarrow_table(), names) == lines(typed_rows(table, replica.rows[table], listed), names), (
            table
        )


def test_program(example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "orders")
    example.main([str(EXAMPLES / "sample_capture.parquet"), "gaussdb-binary", "public.orders", "order_id", folder])
    assert capsys.readouterr().out == f"{folder}: version 1, 1,631 rows\n"
    example.main([str(EXAMPLES / "sample_capture.parquet"), "gaussdb-binary", "public.orders", "order_id", folder])
    assert capsys.readouterr().out == f"{folder}: version 1, 1,631 rows\n"


@pytest.mark.parametrize(("table", "key"), [("public.orders", "id"), ("public.ordrs", "order_id")])
def test_wrong_names_leave_no_folder(example: ModuleType, tmp_path: Path, table: str, key: str) -> None:
    capture = str(EXAMPLES / "sample_capture.parquet")
    with pytest.raises(wf.WireformatError, match=r"order_id|public\.orders"):
        example.main([capture, "gaussdb-binary", table, key, str(tmp_path / "orders")])
    assert list(tmp_path.iterdir()) == []
