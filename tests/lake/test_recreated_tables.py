"""A table that was dropped and created again, or whose name another one got: its lake goes on with the new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from .reading import read

TABLE: dict[str, Any] = {"table_schema": "public", "table_name": "t"}


def relation(number: int, columns: tuple[str, ...], keys: tuple[str, ...], identity: str = "default") -> wf.Relation:
    facts = {"type_oids": (25,) * len(columns), "typmods": (-1,) * len(columns)}
    return wf.Relation(
        **TABLE, **facts, relation_id=number, replica_identity=identity, columns=columns, key_columns=keys
    )


def image(columns: tuple[str, ...], *values: str | None) -> wf.TupleData:
    return wf.TupleData(columns, values, ("text",) * len(columns))


def transaction(lsn: int, *events: wf.Event) -> list[wf.Event]:
    time = "2026-01-01 00:00:00+00"
    begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=time)
    return [begin, *events, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=time)]


ID_A, A_ID = ("id", "a"), ("a", "id")
OLD_KEY, NEW_KEY = ("id",), ("a",)
CASES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...], wf.TupleData, wf.Event, list[dict[str, str]]]] = {
    "another key": (
        (ID_A, OLD_KEY),
        (ID_A, NEW_KEY),
        image(ID_A, "5", "q"),
        wf.Update(**TABLE, old=image(("a",), "q"), old_kind="key", new=image(ID_A, "6", "r")),
        [{"id": "6", "a": "r"}],
    ),
    "a key for the whole row": (
        (ID_A, ID_A, "full"),
        (ID_A, OLD_KEY),
        image(ID_A, "5", "q"),
        wf.Delete(**TABLE, old=image(("id",), "5"), old_kind="key"),
        [],
    ),
    "columns in another order": (
        (ID_A, OLD_KEY),
        (A_ID, OLD_KEY),
        image(A_ID, "q", "5"),
        wf.Insert(**TABLE, new=image(A_ID, "z", "8")),
        [{"id": "5", "a": "q"}, {"id": "8", "a": "z"}],
    ),
}


@pytest.mark.parametrize("numbers", [(10, 20), (20, 10)])
@pytest.mark.parametrize("case", CASES)
def test_current_rows(case: str, numbers: tuple[int, int], tmp_path: Path) -> None:
    """Whatever number the server gives to the new table: after a while they begin anew."""
    old, new, first, last, wanted = CASES[case]
    before, after = relation(numbers[0], *old), relation(numbers[1], *new)
    encoded = [
        [*wf.encode(events, "pgoutput")]
        for events in (
            [
                *transaction(100, before, wf.Insert(**TABLE, new=image(ID_A, "1", "x"))),
                *transaction(300, before, wf.Truncate(tables=(("public", "t"),))),
                *transaction(400, after, wf.Insert(**TABLE, new=first)),
            ],
            [*transaction(700, after, last)],
        )
    ]
    messages = [encoded[0], [one for one in encoded[1] if one[:1] != b"R"]]

    def rows(folder: Path) -> list[dict[str, str]]:
        found = read(folder, ("public", "t")).select(ID_A)
        return sorted(found.to_pylist(), key=lambda row: row["id"])

    wf.Capture([*messages[0], *messages[1]], "pgoutput").write(tmp_path / "at once", state="latest", format="delta")
    for part in messages:
        position = wf.lake.position(tmp_path / "in parts") if part is messages[1] else None
        wf.Capture(part, "pgoutput", after=position).write(tmp_path / "in parts", state="latest", format="delta")
    assert rows(tmp_path / "at once") == rows(tmp_path / "in parts") == wanted

    listed = wf.Capture(messages[1], "pgoutput", after=position).tables()
    assert isinstance(listed, pa.Table)
    assert listed["key_columns"].to_pylist() == [list(new[1])]
