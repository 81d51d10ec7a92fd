"""A table that was dropped and created again, or whose name another one got: its lake goes on with the new one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf

from ..capture.streams import committed, insert, relation
from .reading import read

TABLE: dict[str, Any] = {"table_schema": "public", "table_name": "t"}
ID_A, A_ID = ("id", "a"), ("a", "id")
BY_ID, BY_A = (relation(*ID_A, keys=(key,), identity="default") for key in ID_A)

CASES: dict[str, tuple[wf.Relation, wf.Relation, wf.Insert, wf.Event, list[dict[str, str]]]] = {
    "another key": (
        BY_ID,
        BY_A,
        insert(*ID_A, values=("5", "q")),
        wf.Update(
            **TABLE,
            old=wf.TupleData(("a",), ("q",), ("text",)),
            old_kind="key",
            new=insert(*ID_A, values=("6", "r")).new,
        ),
        [{"id": "6", "a": "r"}],
    ),
    "a key for the whole row": (
        relation(*ID_A, keys=ID_A, identity="full"),
        BY_ID,
        insert(*ID_A, values=("5", "q")),
        wf.Delete(**TABLE, old=wf.TupleData(("id",), ("5",), ("text",)), old_kind="key"),
        [],
    ),
    "columns in another order": (
        BY_ID,
        relation(*A_ID, keys=("id",), identity="default"),
        insert(*A_ID, values=("q", "5")),
        insert(*A_ID, values=("z", "8")),
        [{"id": "5", "a": "q"}, {"id": "8", "a": "z"}],
    ),
}
"""The table before and after, the first and the last change of the new one, and the rows at the end."""


@pytest.mark.parametrize("numbers", [(10, 20), (20, 10)])
@pytest.mark.parametrize("case", CASES)
def test_current_rows(case: str, numbers: tuple[int, int], tmp_path: Path) -> None:
    """Whatever number the server gives to the new table: after a while they begin anew."""
    *tables, first, last, wanted = CASES[case]
    old, new = (replace(table, relation_id=number) for table, number in zip(tables, numbers, strict=True))
    events = [
        *committed(100, old, insert(*ID_A, values=("1", "x"))),
        *committed(300, wf.Truncate(tables=(("public", "t"),))),
        *committed(400, new, first),
    ]
    before = [*wf.encode(events, "pgoutput")]
    after = [*wf.encode([*events, *committed(700, last)], "pgoutput")][len(before) :]

    def write(messages: list[bytes], folder: Path, position: wf.CapturePosition | None = None) -> None:
        wf.Capture(messages, "pgoutput", after=position).write(folder, state="latest", format="delta")

    def rows(folder: Path) -> list[dict[str, str]]:
        found = read(folder, ("public", "t")).select(ID_A)
        return sorted(found.to_pylist(), key=lambda row: row["id"])

    at_once, in_parts = tmp_path / "at once", tmp_path / "in parts"
    write([*before, *after], at_once)
    write(before, in_parts)
    position = wf.lake.position(in_parts)
    write(after, in_parts, position)
    assert rows(at_once) == rows(in_parts) == wanted
    listed = wf.Capture(after, "pgoutput", after=position).tables()
    assert listed["key_columns"].to_pylist() == [list(new.key_columns)]
