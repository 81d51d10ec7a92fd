"""Changes that are merged into a Delta table: what of it they need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.events import UNCHANGED, Unchanged
from wireformat.lake import write as write_module

from .reading import read

RELATION = wf.Relation(
    relation_id=16400,
    table_schema="public",
    table_name="t",
    replica_identity="default",
    columns=("id", "small", "large"),
    type_oids=(23, 25, 25),
    typmods=(-1, -1, -1),
    key_columns=("id",),
)


def update(lsn: int, id: int, small: str, large: str | Unchanged) -> list[wf.Event]:
    """A transaction."""
    begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time="2026-01-01 00:00:00+00")
    new = wf.TupleData(RELATION.columns, (str(id), small, large), ("integer", "text", "text"))
    change = wf.Update(table_schema="public", table_name="t", relation_id=16400, new=new)
    commit = wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time="2026-01-01 00:00:00+00")
    return [begin, RELATION, change, commit]


def test_only_values_that_were_not_sent_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table may be large, and the changes few."""
    reads, rows_there = [], write_module.rows_there

    def read_rows(*given: Any) -> Any:
        reads.append(given)
        return rows_there(*given)

    monkeypatch.setattr(write_module, "rows_there", read_rows)
    for transaction, count in (
        (update(100, 1, "a", "A"), 0),
        (update(200, 2, "b", "B"), 0),
        (update(300, 1, "c", "C"), 0),
        (update(400, 2, "d", UNCHANGED), 1),
    ):
        capture = wf.Capture([*wf.encode(transaction, "pgoutput")], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest")
        assert len(reads) == count
    rows = read(tmp_path, ("public", "t")).select(["id", "small", "large"]).to_pylist()
    assert rows == [{"id": 1, "small": "c", "large": "C"}, {"id": 2, "small": "d", "large": "B"}]


def added(lsn: int, *rows: str, removed: str | None = None) -> list[wf.Event]:
    """A transaction on a table without a key."""
    relation = replace(RELATION, replica_identity="full", key_columns=RELATION.columns)
    table: dict[str, Any] = {"table_schema": "public", "table_name": "t", "relation_id": 16400}

    def row(text: str) -> wf.TupleData:
        return wf.TupleData(RELATION.columns, ("1", text, text), ("integer", "text", "text"))

    begin, _, _, commit = update(lsn, 1, "a", "A")
    changes: list[wf.Event] = [wf.Insert(**table, new=row(text)) for text in rows]
    if removed is not None:
        changes.append(wf.Delete(**table, old=row(removed), old_kind="full"))
    return [begin, relation, *changes, commit]


def test_rows_are_added_to_a_table_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at those that are there, until one is deleted."""
    reads, rows_there = [], write_module.rows_there
    monkeypatch.setattr(write_module, "rows_there", lambda *given: reads.append(given) or rows_there(*given))
    for transaction, count in (
        (added(100, "a", "b"), 0),
        (added(200, "a", "a"), 0),
        (added(300, "c"), 0),
        (added(400, "d", removed="a"), 1),
    ):
        capture = wf.Capture([*wf.encode(transaction, "pgoutput")], "pgoutput")
        capture.write(tmp_path, format="delta", state="latest")
        assert len(reads) == count
    assert sorted(read(tmp_path, ("public", "t"))["small"].to_pylist()) == ["a", "a", "b", "c", "d"]
