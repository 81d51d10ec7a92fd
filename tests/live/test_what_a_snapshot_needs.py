"""What keeps a snapshot from the rows of the published tables: it is said before a slot is created for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.live import snapshot

from .databases import Database, changes_of, told
from .test_snapshot_faults import check_lake

LACKS = {
    "rows": ["grant select on t to {role}"],
    "select": [],
    "usage": ["grant select on t to {role}", "alter table t set schema hidden"],
    "column": ["grant select (id, name) on t to {role}"],
}
SAID = {
    "rows": r"privileges: row-level security may hide rows of public\.t from the role: the snapshot .*BYPASSRLS",
    "select": r"privileges: the role may not read public\.t: the snapshot needs it; GRANT",
    "usage": r"privileges: the role may not read hidden\.t: ",
    "column": r"privileges: the role may not read public\.t: ",
}


@pytest.fixture
def role(db: Database) -> Iterator[str]:
    name = f"reader_{db.name}"
    db.execute(
        f"create role {name} login replication",
        "create schema hidden",
        "insert into t values (1, 'a', 1), (2, 'b', 1)",
        "alter table t enable row level security",
        "create policy part on t using (id = 1)",
    )
    yield name
    db.execute(f"drop owned by {name}", f"drop role {name}")


def follow(db: Database, role: str, lake: Path, **options: Any) -> None:
    usual = {"slot": db.slot, "publication": "p", "once": True, "threads": 1, "create_slot": True}
    wf.live.follow(db.dsn.replace("user=postgres", f"user={role}"), lake, **{**usual, **options})


def slots_of(db: Database) -> list[str]:
    return [name for (name,) in db.rows(f"select slot_name from pg_replication_slots where database = '{db.name}'")]


@pytest.mark.parametrize("lacks", LACKS)
def test_no_slot_is_created_for_a_snapshot_that_would_fail(db: Database, role: str, tmp_path: Path, lacks: str) -> None:
    """With row-level security, the server would leave rows out without a word."""
    db.execute(*(statement.format(role=role) for statement in LACKS[lacks]))
    lake = tmp_path / "lake"
    with pytest.raises(wf.ServerError, match=SAID[lacks]) as raised:
        follow(db, role, lake, snapshot=True)
    assert not raised.value.is_temporary
    assert slots_of(db) == []
    assert not lake.exists()
    db.execute(
        f"alter role {role} bypassrls",
        f"grant usage on schema hidden to {role}",
        f"grant select on {'hidden.t' if lacks == 'usage' else 't'} to {role}",
    )
    follow(db, role, lake, snapshot=True)
    check_lake(db, lake)


def test_privileges_on_what_is_copied_are_enough(db: Database, role: str, tmp_path: Path) -> None:
    """Those on the published columns, of tables that are wanted."""
    db.execute(
        "create table u (id int primary key, name text, secret text)",
        "insert into u values (1, 'a', 'x')",
        "alter publication p add table u (id, name)",
        f"grant select (id, name) on u to {role}",
    )
    follow(db, role, tmp_path / "lake", tables=["public.u"], snapshot=True)
    assert told(tmp_path / "lake", "public.u") == [("insert", 1)]


@pytest.mark.parametrize("has_all_rows", [False, True])
def test_columns_of_a_row_filter_are_read(db: Database, role: str, tmp_path: Path, has_all_rows: bool) -> None:
    """Unless another publication has all rows, since no filter then chooses any."""
    db.execute(
        "create table u (id int primary key, name text, secret int)",
        "insert into u values (1, 'a', 1), (2, 'b', -1)",
        "create publication filtered for table u (id, name) where (secret > 0)",
        "create publication whole for table u (id, name)",
        f"grant select (id, name) on u to {role}",
    )
    publications = ["filtered", "whole"] if has_all_rows else ["filtered"]
    if not has_all_rows:
        with pytest.raises(wf.ServerError, match=r"privileges: the role may not read public\.u: the snapshot needs it"):
            follow(db, role, tmp_path / "lake", publication=publications, snapshot=True)
        assert slots_of(db) == []
        db.execute(f"grant select (secret) on u to {role}")
    follow(db, role, tmp_path / "lake", publication=publications, snapshot=True)
    ids = [("insert", 1), ("insert", 2)] if has_all_rows else [("insert", 1)]
    assert told(tmp_path / "lake", "public.u") == ids


def test_partitions_are_not_read_whose_rows_are_sent_as_those_of_their_table(
    db: Database, role: str, tmp_path: Path
) -> None:
    """Neither a privilege on them is needed, nor do their policies matter."""
    db.execute(
        "create table parts (id int primary key) partition by range (id)",
        "create table parts_1 partition of parts for values from (0) to (10)",
        "insert into parts values (1)",
        "alter table parts_1 enable row level security",
        "create publication whole for table parts with (publish_via_partition_root)",
        "create publication leaves for table parts_1",
        f"grant select on parts to {role}",
    )
    follow(db, role, tmp_path / "lake", publication=["leaves", "whole"], snapshot=True)
    assert told(tmp_path / "lake", "public.parts") == [("insert", 1)]


def test_a_table_of_two_publications_is_named_once(db: Database, role: str) -> None:
    db.execute("alter table t drop constraint t_pkey", "create publication other for table t")
    found = wf.live.check(db.dsn.replace("user=postgres", f"user={role}"), slot="none", publication=["p", "other"])
    assert [one.text for one in found if one.check == "privileges"] == [
        "the role may not read public.t: only a snapshot needs it"
    ]
    (identity,) = [one.text for one in found if one.check == "replica identity"]
    assert identity.startswith("public.t has none")


def test_without_a_snapshot_no_privilege_is_needed(db: Database, role: str, tmp_path: Path) -> None:
    dsn = db.dsn.replace("user=postgres", f"user={role}")
    wf.live.create_slot(dsn, db.slot)
    found = wf.live.check(dsn, slot=db.slot, publication="p")
    (note,) = [one for one in found if one.check == "privileges"]
    assert (note.level, note.text) == ("note", "the role may not read public.t: only a snapshot needs it")
    db.execute("insert into t values (3, 'c', 1)")
    follow(db, role, tmp_path / "lake")
    assert told(tmp_path / "lake") == [("insert", 3)]


def test_no_slot_is_created_if_there_is_none_for_the_snapshot(db: Database, tmp_path: Path) -> None:
    """A snapshot needs one more for a while."""
    ((free,),) = db.rows(
        "select setting::int - (select count(*) from pg_replication_slots) from pg_settings "
        "where name = 'max_replication_slots'"
    )
    others = [f"other_{number}" for number in range(free - 1)]
    for name in others:
        db.execute(f"select pg_create_physical_replication_slot('{name}')")
    try:
        with pytest.raises(wf.ServerError, match="max_replication_slots: 1 slot free, the snapshot needs 2"):
            db.follow(tmp_path / "lake", create_slot=True, snapshot=True)
        assert slots_of(db) == []
        db.follow(tmp_path / "lake", create_slot=True)
    finally:
        for name in others:
            db.execute(f"select pg_drop_replication_slot('{name}')")


def test_a_privilege_that_is_revoked_meanwhile(
    db: Database, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_tables = snapshot.published_tables

    def late(*given: Any) -> Any:
        db.execute(f"revoke select on t from {role}")
        return published_tables(*given)

    db.execute(f"grant select on t to {role}", f"alter role {role} bypassrls")
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "published_tables", late)
        with pytest.raises(wf.ServerError, match=r"snapshot of public\.t: .* needs SELECT .* BYPASSRLS") as raised:
            follow(db, role, tmp_path / "lake", snapshot=True)
    assert not raised.value.is_temporary
    assert changes_of(tmp_path / "lake").num_rows == 0
    with pytest.raises(wf.ServerError, match="privileges: the role may not read"):
        follow(db, role, tmp_path / "lake")
    db.execute(f"grant select on t to {role}")
    follow(db, role, tmp_path / "lake")
    check_lake(db, tmp_path / "lake")
