"""A name whose OID changes is another table; each stream has tables of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.typed_tables.latest import earlier_tables

from ....typed_histories import (
    KEYS,
    Row,
    typed_table,
    with_own_relation_id,
)
from .changes import cut, placed, row


def numbered(rows: list[tuple[Row, int | None]]) -> pa.Table:
    """Changes with the OID of their table, in their order."""
    changes = [replace(row, sequence=(1000 + place, 0)) for place, (row, _) in enumerate(rows)]
    return typed_table(changes).append_column("_relation_id", pa.array([oid for _, oid in rows], pa.int64()))


def inserted(id: int, text: str) -> Row:
    return Row("insert", row(id, text))


DROPPED = [(inserted(1, "old"), 16385), (inserted(2, "old"), 16385), (inserted(1, "new"), 16400)]
COPIED = [(inserted(1, "copied"), None), (Row("delete", {}, row(1, "copied")), 5), (inserted(2, "new"), 6)]
OTHER_NAMES = [
    (inserted(3, "copied"), None),
    (inserted(1, "first"), 16385),
    (inserted(1, "while renamed"), 16400),
    (Row("truncate", {}), 16400),
    (inserted(2, "first again"), 16385),
]
"""A table that had another name for a while, when another table had its name; it begins with a row of a copy."""

NO_OIDS = [(inserted(1, "old"), None), (inserted(2, "old"), None)]


@pytest.mark.parametrize("keys", [KEYS, ()], ids=["by key", "by row"])
@pytest.mark.parametrize("step", [1, 100], ids=["one by one", "whole"])
@pytest.mark.parametrize(
    ("changes", "wanted", "oids"),
    [
        (DROPPED, ["new"], "16385, 16400"),
        (OTHER_NAMES, ["copied", "first", "first again"], "16385, 16400"),
        (DROPPED[:2], ["old", "old"], None),
        (COPIED, ["new"], "5, 6"),
        (NO_OIDS, ["old", "old"], None),
    ],
    ids=["dropped", "renamed", "one table", "copied", "no OIDs"],
)
def test_another_oid_is_another_table(
    changes: Any, wanted: list[str], oids: str | None, step: int, keys: Sequence[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "wireformat"):
        rows = wf.arrow.latest(cut(numbered(changes), range(0, 100, step)), keys)
    assert rows["step_0"].to_pylist() == wanted
    assert "_relation_id" not in rows.column_names
    assert [f"the OIDs {oids}, as after" in record.getMessage() for record in caplog.records] == [True] * (
        oids is not None
    )


def test_a_table_with_a_column_like_that_of_oids() -> None:
    changes = placed([Row("insert", row(1, "a")), Row("insert", row(2, "b")), Row("update", row(2, "c"), row(2, "b"))])
    typed = with_own_relation_id(typed_table(changes))
    assert wf.arrow.latest(typed, KEYS)["_relation_id"].to_pylist() == ["a", "c"]
    assert wf.arrow.latest(typed, [])["_relation_id"].to_pylist() == ["a", "c"]


def test_oids_as_streams() -> None:
    rows = wf.arrow.latest(numbered(DROPPED), KEYS, stream_by=["_relation_id"])
    assert rows.select(["_relation_id", "step_0"]).to_pylist() == [
        {"_relation_id": oid, "step_0": text} for oid, text in ((16385, "old"), (16385, "old"), (16400, "new"))
    ]


def test_changes_of_an_earlier_table() -> None:
    """Those that nobody can order are found, those that only that table could not take are not."""
    later = (inserted(2, "new"), 16400)
    with pytest.raises(wf.BadRows, match="1 change that has a _change_type other than"):
        wf.arrow.latest(numbered([(replace(inserted(1, "old"), change="upsert"), 16385), later]), KEYS)
    no_key = (Row("insert", {**row(1), "id": None}), 16385)
    assert len(wf.arrow.latest(numbered([no_key, later]), KEYS)) == 1
    with pytest.raises(wf.BadRows, match="2 changes that have no value in a column of keys"):
        wf.arrow.latest(numbered([no_key, later, no_key]), KEYS)


def test_the_warning_names_some_of_many_tables() -> None:
    assert "the OIDs 1, 2, as after" in earlier_tables({2, 1})
    assert "the OIDs 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, … (2000), as after" in earlier_tables(range(1, 2001))
