"""A column that is dropped and added again on a server: its values from before are not those of the rows any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wireformat as wf

from .databases import Database

deltalake = pytest.importorskip("deltalake")

DAY = (
    "insert into a values (1, 'old', 'x'), (2, 'old', 'x'), (3, 'old', 'x')",
    "alter table a drop b",
    "alter table a add b text default 'd'",
    "insert into a values (4, 'y', 'new')",
    "delete from a where id = 1",
    "update a set c = 'z' where id = 2",
)


def made(db: Database, identity: str) -> None:
    db.execute(
        "create table a (id int primary key, b text, c text)",
        f"alter table a replica identity {identity}",
        "alter publication p add table a",
    )


def rows_of(table: Any, default: str | None) -> list[tuple[int, str | None, str]]:
    rows = table.to_pylist()
    return sorted((row["id"], default if "b" in (row["_unchanged"] or ()) else row["b"], row["c"]) for row in rows)


@pytest.mark.parametrize("identity", ["default", "full"])
def test_rows_of_a_new_lake(db: Database, tmp_path: Path, identity: str) -> None:
    db.rows(f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')")
    made(db, identity)
    db.execute(*DAY)
    options = "'proto_version', '1', 'publication_names', 'p'"
    found = db.rows(f"select data from pg_logical_slot_peek_binary_changes('{db.slot}', null, null, {options})")
    capture = wf.Capture([bytes(data) for (data,) in found], "pgoutput")
    wanted = sorted(db.rows("select id, b, c from a"))
    for keys in (None, ["id"]):
        assert rows_of(capture.latest("public.a", keys=keys), "d") == wanted
    db.follow(tmp_path, format="delta", state="latest")
    assert rows_of(deltalake.DeltaTable(tmp_path / "public" / "a").to_pyarrow_table(), "d") == wanted


@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_lake_that_has_rows(db: Database, tmp_path: Path, identity: str) -> None:
    options: dict[str, Any] = {"format": "delta", "state": "latest"}
    made(db, identity)
    db.execute(DAY[0])
    position = db.follow(tmp_path, create_slot=True, snapshot=True, **options)
    db.execute(*DAY[1:])
    with pytest.raises(wf.BadRows, match="b, which was dropped and added again"):
        db.follow(tmp_path, **options)
    assert wf.lake.position(tmp_path) == position
    db.execute("truncate a", "insert into a values (5, 'z', 'v')")
    db.follow(tmp_path, **options)
    lake = deltalake.DeltaTable(tmp_path / "public" / "a").to_pyarrow_table()
    assert rows_of(lake, None) == [(5, "v", "z")] == sorted(db.rows("select id, b, c from a"))
