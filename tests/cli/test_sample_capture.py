"""The sample capture: it is what its program makes, and holds what a reader wants to see; the demo shows its counts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

ROOT = Path(__file__).parent.parent.parent
CAPTURE = ROOT / "examples" / "sample_capture.parquet"
FORMAT = "gaussdb-binary"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """tools/make_sample_capture.py."""
    spec = spec_from_file_location("make_sample_capture", ROOT / "tools" / "make_sample_capture.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def messages() -> pa.ChunkedArray:
    return pq.read_table(CAPTURE)["payload"]


@pytest.fixture(scope="module")
def changes(messages: pa.ChunkedArray) -> pa.Table:
    return wf.arrow.changes(messages, FORMAT)


@pytest.mark.slow
def test_it_is_what_the_program_makes(program: ModuleType, messages: pa.ChunkedArray) -> None:
    for found, made in zip(wf.decode(messages, FORMAT), program.events(), strict=True):
        assert found == made


@pytest.mark.slow
def test_its_batches_are_those_of_the_encoder(program: ModuleType, messages: pa.ChunkedArray) -> None:
    encoded = wf.encode(program.events(), FORMAT, options=program.OPTIONS)
    assert list(islice(encoded, 3)) == messages.slice(0, 3).to_pylist()


def test_columns_and_size() -> None:
    assert pq.read_schema(CAPTURE).equals(pa.schema({"seq": pa.int64(), "payload": pa.binary()}))
    assert 2 << 20 < CAPTURE.stat().st_size < 5 << 20


def test_it_holds_every_kind_of_message(messages: pa.ChunkedArray) -> None:
    ends = Counter(
        "heartbeat" if message[:1] == b"h" else "size" if message.endswith(b"F") else "timeout"
        for message in messages.to_pylist()
    )
    assert ends["heartbeat"] >= 3
    assert ends["timeout"] >= 3
    assert ends["size"] - ends["heartbeat"] >= 3


def test_its_numbers_grow(changes: pa.Table) -> None:
    for column in ("csn", "xid", "commit_time"):
        values = changes.filter(changes["kind"].is_valid())[column].drop_null().to_pylist()
        assert values == sorted(values)
        assert len(set(values)) >= 600
    lsns = changes["lsn"].drop_null().to_pylist()
    assert lsns == sorted(lsns)


@pytest.mark.slow
def test_updates_and_deletes_tell_old_rows_that_were_there(changes: pa.Table) -> None:
    rows = changes.filter(changes["table_name"].is_valid()).select(["table_schema", "table_name", "new", "old"])
    identities = {
        (row["table_schema"], row["table_name"]): _names(row["old"]) for row in rows.to_pylist() if row["old"]
    }
    there: set[tuple[object, ...]] = set()
    for row in rows.to_pylist():
        table = row["table_schema"], row["table_name"]
        if row["old"] is not None:
            assert _names(row["old"]) == identities[table]
            there.remove((table, *row["old"]))
        if row["new"] is not None:
            there.add((table, *(cell for cell in row["new"] if cell[0] in identities[table])))
    assert len(identities) == 6


@pytest.mark.slow
@pytest.mark.spark
def test_the_demo_counts_what_is_there(changes: pa.Table, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    shown = {cells[0]: [int(cell) for cell in cells[1:]] for cells in _table(done.stdout, "Rows by table and kind")[1:]}
    counts: dict[str, Counter[str]] = {}
    for row in changes.select(["table_schema", "table_name", "kind"]).to_pylist():
        table = f"{row['table_schema']}.{row['table_name']}" if row["table_schema"] else "(no table)"
        counts.setdefault(table, Counter())[row["kind"]] += 1
    kinds = _table(done.stdout, "Rows by table and kind")[0][1:]
    assert shown == {table: [count[kind] for kind in kinds] for table, count in counts.items()}
    assert sum(map(sum, shown.values())) == changes.num_rows
    assert len(_table(done.stdout, "The row-change table")) > 15
    assert sum(int(cells[1]) for cells in _table(done.stdout, "In SQL")[1:]) == shown["public.orders"][0]
    written = pq.read_table(tmp_path / "changes")
    assert written.num_rows == changes.num_rows
    assert written["lsn"].to_pylist() == changes["lsn"].to_pylist()
    assert f"The row changes are in {tmp_path / 'changes'}" in done.stdout
    assert len(re.findall(r"^   \d+\.\d s$", done.stdout, re.MULTILINE)) == 5


def _names(cells: list[tuple[str, str | None]]) -> list[str]:
    return [name for name, _ in cells]


def _table(output: str, heading: str) -> list[list[str]]:
    """The cells of the table that Spark prints below a heading."""
    section = output.split(f"== {heading}")[1].split("\n== ")[0]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in section.splitlines() if line.startswith("|")]
