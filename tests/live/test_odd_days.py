"""What happens to tables while they are followed: at the end the lake has the rows of the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wireformat.lake.stored.names import folder_of

from ..servers.server import Server
from .databases import Database, database


class Day(NamedTuple):
    """Statements before the snapshot, and after it. All tables are published."""

    before: tuple[str, ...]
    after: tuple[str, ...]


TABLE = "create table a (id int primary key, n int)"
IN_PARTS = "create table a (id int primary key, n int) partition by range (id)"

DAYS = {
    "renamed_and_created_again": Day(
        (TABLE, "insert into a values (1, 1)"),
        (
            """begin; alter table a rename to b; create table a (id int primary key, m text);
            insert into a values (1, 'new'); insert into b values (2, 2); commit""",
            "insert into a values (5, 'five'); delete from b where id = 1; delete from a where id = 1",
        ),
    ),
    "no_truncate_published": Day(
        (TABLE, "insert into a values (1, 1), (2, 2)", "alter publication p set (publish = 'insert, update, delete')"),
        ("insert into a values (3, 3)", "delete from a where id = 1"),
    ),
    "truncated": Day(
        (TABLE, "create table b (id int primary key references a)", "insert into a values (1, 1)"),
        (
            "insert into b values (1)",
            "begin; truncate a, b; insert into a values (1, 2), (7, 7); insert into b values (7); commit",
            "begin; insert into a values (8, 8); truncate a cascade; insert into a values (9, 9); commit",
        ),
    ),
    "through_the_root": Day(
        (
            IN_PARTS,
            "create table a1 partition of a for values from (0) to (10)",
            "create table a2 partition of a for values from (10) to (20)",
            "alter publication p set (publish_via_partition_root = true)",
            "insert into a values (1, 1), (11, 1)",
        ),
        (
            "update a set id = 12 where id = 1",
            "create table a3 partition of a for values from (20) to (30)",
            "insert into a values (25, 1)",
            "update a set n = 4 where id = 25; delete from a where id = 11",
        ),
    ),
    "subtransactions": Day(
        (TABLE,),
        (
            """begin; insert into a values (1); savepoint s; insert into a values (2); rollback to s; savepoint t;
            insert into a values (3); release t; savepoint u; insert into a values (4); savepoint v;
            delete from a where id = 1; rollback to u; insert into a values (5); commit""",
        ),
    ),
    "prepared": Day(
        (TABLE,),
        (
            "begin; insert into a values (1); prepare transaction 'one'",
            "begin; insert into a values (3); prepare transaction 'two'",
            "commit prepared 'one'",
            "rollback prepared 'two'",
        ),
    ),
    "large_values": Day(
        (
            "create table a (id int primary key, v text, n int)",
            "alter table a alter v set storage external",
            "insert into a values (1, repeat('x', 10000), 0)",
        ),
        (
            "update a set n = 1",
            "insert into a values (2, repeat('é', 3000000), 0)",
            "update a set n = 2",
            "update a set id = id + 10",
        ),
    ),
    "names": Day(
        (
            'create schema "a.b ""q"',
            'create table "a.b ""q"."é/表 \'x"" ." ("id ""x" int primary key, "a,b" text)',
            'insert into "a.b ""q"."é/表 \'x"" ." values (1, \'a\')',
        ),
        (
            'insert into "a.b ""q"."é/表 \'x"" ." values (2, \'b\')',
            'create table "A" (id int primary key); create table "a " (id int primary key)',
            'create table "*?" (id int primary key); create table "a*" (id int primary key)',
            'insert into "A" values (1); insert into "a " values (2)',
            'insert into "*?" values (3); insert into "a*" values (4)',
        ),
    ),
    "identity_full_and_back": Day(
        (TABLE, "insert into a select i, i from generate_series(1, 9) i"),
        (
            "alter table a replica identity full",
            "update a set n = n + 100 where id = 2; delete from a where id = 3",
            "alter table a replica identity nothing",
            "insert into a values (50, 50)",
            "alter table a replica identity default",
            "update a set id = 60 where id = 6; delete from a where id = 50",
        ),
    ),
}


@pytest.mark.parametrize("name", DAYS)
def test_the_lake_has_the_tables(db: Database, tmp_path: Path, name: str) -> None:
    """One run reads all that has happened. Columns of a table that has gone stay in the lake."""
    deltalake = pytest.importorskip("deltalake")
    lake, day = tmp_path / "lake", DAYS[name]
    options: dict[str, Any] = {"format": "delta", "state": "latest"}
    db.execute("drop publication p", "create publication p for all tables", *day.before)
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute(*day.after)
    db.follow(lake, **options)
    tables = db.rows("select schemaname, tablename from pg_publication_tables where tablename <> 't'")
    assert tables
    for schema, table in tables:
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
        read = db.session.execute(f"table {quoted}")
        columns = [column.name for column in read.description or ()]
        found = deltalake.DeltaTable(lake / folder_of((schema, table))).to_pyarrow_table().to_pylist()
        assert sorted(tuple(row[name] for name in columns) for row in found) == sorted(read.fetchall()), table


@pytest.mark.parametrize(("piece_bytes", "memory"), [(4 << 20, 96 << 20), (1, 96 << 20), (1, 0)])
def test_a_replica_identity_that_is_switched_and_back(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int, memory: int
) -> None:
    """In one run, deleted rows have other keys than the table before and after it; also where pieces are small, and
    wait in a file."""
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.setattr("wireformat.live.intake.PIECE_BYTES", piece_bytes)
    lake, options = tmp_path / "lake", {"format": "delta", "state": "latest", "memory_limit": memory}
    db.execute("create table a (id int primary key, n int not null unique)", "alter publication p add table a")
    db.execute("insert into a select i, i from generate_series(1, 9) i")
    db.follow(lake, create_slot=True, snapshot=True, **options)
    db.execute("delete from a where id = 9", "insert into t values (1, 'a', 1)")
    db.execute("alter table a replica identity using index a_n_key", "delete from a where id = 5")
    db.execute("begin; insert into a values (11, 11); update a set n = 70 where id = 7; commit")
    db.execute("alter table a replica identity full", "delete from a where id = 6")
    db.execute("alter table a replica identity default", "update a set id = 10 where id = 1; delete from a where n = 2")
    db.follow(lake, **options)
    rows = deltalake.DeltaTable(lake / "public" / "a").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == sorted(db.rows("table a"))


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_database_in_latin_1(live_server: Server, tmp_path: Path, state: str) -> None:
    """The server converts values and names to UTF-8."""
    deltalake = pytest.importorskip("deltalake")
    with database(live_server, f"latin_{state}", "LATIN1") as db:
        db.execute('create table a (id int primary key, "é" text)', "alter publication p add table a")
        db.execute("insert into a values (1, 'ñé')")
        db.follow(tmp_path, create_slot=True, snapshot=True, format="delta", state=state)
        db.execute("insert into a values (2, 'üé')")
        db.follow(tmp_path, format="delta", state=state)
        rows = deltalake.DeltaTable(tmp_path / "public" / "a").to_pyarrow_table().to_pylist()
        assert sorted((row["id"], row["é"]) for row in rows) == db.rows("table a") == [(1, "ñé"), (2, "üé")]
