"""Rows of pgoutput that are written before the last message was read: what describes their tables is read before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.testing import stream

from .reading import names_of, read, values

MADE = stream(3, transactions=40, seed=3, format="pgoutput", schema_changes=True)
MESSAGES = [*wf.encode(MADE, "pgoutput")]


def write(folder: Path, memory: int, **options: Any) -> wf.Capture:
    capture = wf.Capture(MESSAGES, "pgoutput", memory_limit=memory, threads=1)
    capture.write(folder, **options)
    return capture


@pytest.mark.parametrize("options", [{}, {"tables": ["*.*"]}, {"format": "delta", "state": "latest"}])
def test_the_lake_is_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    """And the list of tables that the capture keeps counts the changes."""
    all_at_once, early = (write(tmp_path / str(memory), memory, **options) for memory in (1 << 30, 0))
    tables = early.tables()
    assert tables.equals(all_at_once.tables())
    assert tables.equals(wf.Capture(MESSAGES, "pgoutput").tables())
    assert sum(tables["changes"].to_pylist()) > 0
    for table in names_of(tables):
        left, right = (read(tmp_path / str(memory), table) for memory in (1 << 30, 0))
        assert left.schema.equals(right.schema), table
        assert values(left) == values(right), table


@pytest.mark.parametrize("options", [{}, {"tables": ["*.*"]}])
def test_only_what_describes_tables_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Of pgoutput, which describes each table before its first change."""

    def fail(*given: Any) -> Any:
        raise AssertionError("all changes are read again")

    monkeypatch.setattr(wf.Capture, "_read_list", fail)
    write(tmp_path, 0, **options)
    assert sum(wf.lake.tables(tmp_path)["rows"].to_pylist()) > 0
