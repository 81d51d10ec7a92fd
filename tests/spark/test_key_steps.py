"""The steps of keys that workers find in typed changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from spark_udfs.tables.key_steps import steps_of, steps_schema

ROW = [("id", pa.float64()), ("name", pa.string())]
SEQUENCE = pa.struct([pa.field("commit_lsn", pa.int64(), False), pa.field("ordinal", pa.int64(), False)])
TYPED = pa.schema([*ROW, ("_change_type", pa.string()), ("_sequence", SEQUENCE), ("_old", pa.struct(ROW))])
NAN = float("nan")
COMES, SETS, GOES = 1, 0, -1


def change(kind: str, lsn: int, new: dict[str, Any] | None, old: dict[str, Any] | None = None) -> dict[str, Any]:
    return {**(new or {}), "_change_type": kind, "_sequence": {"commit_lsn": lsn, "ordinal": 0}, "_old": old}


def steps(*changes: dict[str, Any]) -> list[tuple[str, int, int, str | None]]:
    found = steps_of(pa.RecordBatch.from_pylist([*changes], TYPED), ["id"])
    assert found.schema == steps_schema(TYPED, ["id"])
    rows = (row and row["1"] for row in found["row"].to_pylist())
    columns = (found[name].to_pylist() for name in ("id", "lsn", "role"))
    return [(str(key), lsn, role, row) for key, lsn, role, row in zip(*columns, rows, strict=True)]


def row(key: float | None, name: str | None = None) -> dict[str, Any]:
    return {"id": key, "name": name}


def test_only_the_last_step_of_a_key_has_its_row() -> None:
    found = steps(
        change("insert", 1, row(1, "a")),
        change("update", 3, row(1, "c")),
        change("update", 2, row(1, "b")),
        change("insert", 2, row(2, "d")),
        change("delete", 4, None, row(2)),
        change("truncate", 5, None),
    )
    first = -(2**63)
    assert found == [
        ("1.0", first + 1, COMES, None),
        ("1.0", first + 3, SETS, "c"),
        ("1.0", first + 2, SETS, None),
        ("2.0", first + 2, COMES, "d"),
        ("2.0", first + 4, GOES, None),
    ]


def test_rows_that_move_and_keys_that_only_look_different() -> None:
    found = steps(
        change("update", -1, row(2, "a"), row(1)),  # the largest LSN
        change("update", 1, row(NAN, "b"), row(NAN)),
        change("update", 1, row(0.0, "c"), row(-0.0)),
        change("update", 1, row(5, "d"), row(None)),
    )
    last, one = 2**63 - 1, -(2**63) + 1
    assert found == [
        ("2.0", last, COMES, "a"),
        ("nan", one, SETS, "b"),
        ("0.0", one, SETS, "c"),
        ("5.0", one, SETS, "d"),
        ("1.0", last, GOES, None),
    ]


def test_rows_without_a_key_are_not_counted() -> None:
    """A worker sees some of them only."""
    for count in (1, 3):
        without = [change("update", 1, row(None)) for _ in range(count)]
        with pytest.raises(wf.BadRows, match="got changes that have no value in a column of keys: id"):
            steps(change("insert", 1, row(1)), *without)


def test_no_changes() -> None:
    assert steps() == []
