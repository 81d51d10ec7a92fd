"""The rows that tables have, and then their changes: together they are the tables."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

import wireformat as wf
from wireformat.lake.lake import Lake
from wireformat.live import Progress
from wireformat.live.connection import _TIMEOUTS, Connection
from wireformat.live.snapshot import published_tables
from wireformat.stream.capture_position import CapturePosition

from ..servers.installations import installations
from ..servers.server import running
from .databases import Database, changes_of, database, told

ODD = ("a\tb", "\\", "\\N", "line\nfeed", "\r\b\f\v", "", "é表", "\\\\t", "a\\", "\\\\\\")


def test_a_snapshot_and_the_changes_after_it(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.execute("insert into t select i, null, i from generate_series(1, 3000) i")
    db.follow(lake, create_slot=True, snapshot=True)
    db.execute("update t set name = 'x' where id = 7", "insert into t values (9999, 'after', 1)")
    db.follow(lake, snapshot=True)
    rows = changes_of(lake)
    assert rows["id"].to_pylist() == [*range(1, 3001), 7, 9999]
    assert rows["_xid"].to_pylist()[:3001].count(0) == 3000
    first = rows["_sequence"][0].as_py()["commit_lsn"]
    assert first < rows["_sequence"][3000].as_py()["commit_lsn"]


def test_what_the_slot_retains_is_told_meanwhile(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm must not wait until the tables have been copied."""
    monkeypatch.setattr("wireformat.live.progress.LOOK_SECONDS", 0)
    db.execute("insert into t select i, null, i from generate_series(1, 3) i")
    seen: dict[str, Progress] = {}

    def watch(progress: Progress) -> None:
        if progress.state.startswith("snapshot: public.") and progress.state not in seen:
            seen[progress.state] = progress
            db.execute("select pg_logical_emit_message(true, '', repeat('x', 1000000))")

    db.execute("create table u (id int primary key)", "insert into u values (1)", "alter publication p add table u")
    db.follow(tmp_path, create_slot=True, snapshot=True, on_progress=watch)
    first, second = seen.values()
    assert (second.retained_bytes or 0) > (first.retained_bytes or 0) + 900_000


def test_values_come_as_they_are(db: Database, tmp_path: Path) -> None:
    db.execute("create type mood as enum ('sad', 'glad')")
    db.execute("create table v (id int primary key, s text, b bool, c char(5), m mood, a int[], f float8, y bytea)")
    db.execute("alter publication p add table v")
    for number, text in enumerate(ODD):
        db.session.execute(
            "insert into v values (%s, %s, true, 'x', 'glad', '{1,null}', 0.1, '\\x00ff')", [number, text]
        )
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True, snapshot=True)
    db.execute("update v set id = id")
    db.follow(lake)
    values = [
        {name: value for name, value in row.items() if not name.startswith("_")}
        for row in changes_of(lake, "public.v").to_pylist()
    ]
    first, then = values[: len(ODD)], values[len(ODD) :]
    assert first == then
    assert [row["s"] for row in first] == list(ODD)


def test_filters_and_column_lists(db: Database, tmp_path: Path) -> None:
    db.execute("create table f (id int primary key, seen text, secret text)")
    db.execute("insert into f select i, 'seen', 'secret' from generate_series(1, 20) i")
    db.execute("create publication low for table f (id, seen) where (id <= 3)")
    db.execute("create publication high for table f (id, seen) where (id > 18)")
    db.follow(tmp_path / "lake", publication=["low", "high"], create_slot=True, snapshot=True)
    rows = changes_of(tmp_path / "lake", "public.f")
    assert sorted(rows["id"].to_pylist()) == [1, 2, 3, 19, 20]
    assert "secret" not in rows.column_names
    chosen = tmp_path / "chosen"
    db.follow(chosen, publication=["p", "low"], snapshot=True, tables=["public.f"])
    assert [row["table_name"] for row in wf.lake.tables(chosen).to_pylist()] == ["f"]


def test_partitions(db: Database, tmp_path: Path) -> None:
    db.execute("create table parts (id int primary key) partition by range (id)")
    db.execute("create table parts_1 partition of parts for values from (0) to (10)")
    db.execute("insert into parts values (1), (2)")
    db.execute("create publication whole for table parts with (publish_via_partition_root)")
    db.execute("create publication leaves for table parts")
    for name, table in (("whole", "public.parts"), ("leaves", "public.parts_1")):
        lake = tmp_path / name
        db.follow(lake, publication=name, slot=db.slot + name, create_slot=True, snapshot=True)
        db.execute("update parts set id = id where id = 1")
        db.follow(lake, publication=name, slot=db.slot + name)
        assert sorted(told(lake, table)) == [("insert", 1), ("insert", 2), ("update", 1)]


@pytest.mark.parametrize("other", ["parts", "parts_2", "parts_2a"])
def test_partitions_of_a_table_that_another_publication_has(db: Database, tmp_path: Path, other: str) -> None:
    """The server sends their rows as those of the table, so they are copied once, into the table."""
    db.execute("create table parts (id int primary key) partition by range (id)")
    db.execute("create table parts_1 partition of parts for values from (0) to (10)")
    db.execute("create table parts_2 partition of parts for values from (10) to (20) partition by range (id)")
    db.execute("create table parts_2a partition of parts_2 for values from (10) to (15)")
    db.execute("insert into parts values (1), (11)")
    db.execute("create publication whole for table parts with (publish_via_partition_root)")
    db.execute(f"create publication leaves for table {other}")
    db.follow(tmp_path, publication=["leaves", "whole"], create_slot=True, snapshot=True)
    db.execute("update parts set id = id")
    db.follow(tmp_path, publication=["leaves", "whole"])
    assert sorted(told(tmp_path, "public.parts")) == [("insert", 1), ("insert", 11), ("update", 1), ("update", 11)]
    assert len(wf.lake.tables(tmp_path)) == 1


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_snapshot_that_was_stopped_begins_again(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, state: str
) -> None:
    """Between the commits of its tables and that of the lake: then rows are deleted before it begins again."""
    if (format, state) == ("parquet", "latest"):
        with pytest.raises(wf.OptionError, match="needs format='delta'"):
            db.follow(tmp_path, format=format, state=state)
        return
    lake = tmp_path / "lake"
    db.execute("insert into t select i, 'a', i from generate_series(1, 100) i")

    commit = Lake.commit

    def fails(self: Lake, position: CapturePosition) -> None:
        if self.manifest.writes:
            raise KeyboardInterrupt
        commit(self, position)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "commit", fails)
        with pytest.raises(KeyboardInterrupt):
            db.follow(lake, format=format, state=state, create_slot=True, snapshot=True)
    db.execute("delete from t where id > 50", "update t set name = 'b'")
    db.follow(lake, format=format, state=state, snapshot=True)
    db.execute("update t set name = 'c' where id = 1")
    db.follow(lake, format=format, state=state)
    if format == "parquet":
        found = changes_of(lake).to_pylist()
    else:
        found = pytest.importorskip("deltalake").DeltaTable(lake / "public" / "t").to_pyarrow_table().to_pylist()
    names = sorted((row["id"], row["name"]) for row in found)
    changes = [(1, "c")] + ([(1, "b")] if state == "changes" else [])
    assert names == sorted(changes + [(number, "b") for number in range(2, 51)])


def test_rows_that_change_while_they_are_copied(db: Database, tmp_path: Path) -> None:
    """Two sessions write before, during and after the snapshot; none of their rows is missing, none comes twice."""
    lake, stop = tmp_path / "lake", threading.Event()

    def write(first: int) -> None:
        with db.server.connect(db.name) as session:
            number = first
            while not stop.is_set():
                session.execute("insert into t values (%s, 'x', 1)", [number])
                number += 2

    writers = [threading.Thread(target=write, args=[first]) for first in (1, 2)]
    for writer in writers:
        writer.start()
    try:
        db.follow(lake, create_slot=True, snapshot=True)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    db.follow(lake)
    assert sorted(changes_of(lake)["id"].to_pylist()) == [id for (id,) in db.rows("select id from t order by 1")]


KEYS = {
    "a key": "id int primary key, note text",
    "a key with another column": "id int, note text, primary key (id) include (note)",
    "a key that is deferrable": "id int primary key deferrable, note text",
    "no key": "id int, note text",
    "an index with another column": "id int not null, note text, constraint i unique (id) include (note)",
    "an index of a column": "id int primary key, note text not null constraint i unique",
    "the whole row": "id int primary key, note text",
    "nothing": "id int primary key, note text",
}
IDENTITIES = {
    "an index with another column": "using index i",
    "an index of a column": "using index i",
    "the whole row": "full",
    "nothing": "nothing",
}


@pytest.mark.parametrize("key", KEYS)
def test_tables_are_described_as_the_stream_describes_them(db: Database, key: str) -> None:
    db.execute(
        f"create table k ({KEYS[key]})",
        f"alter table k replica identity {IDENTITIES.get(key, 'default')}",
        "create publication of_k for table k",
        f"select pg_create_logical_replication_slot('{db.slot}', 'pgoutput')",
        "insert into k values (1, 'a')",
    )
    sent = db.rows(
        f"select data from pg_logical_slot_get_binary_changes('{db.slot}', null, null, "
        "'proto_version', '1', 'publication_names', 'of_k')"
    )
    (streamed,) = [one for one in wf.decode([data for (data,) in sent], "pgoutput") if isinstance(one, wf.Relation)]
    with Connection(db.dsn) as connection:
        (found,) = published_tables(connection, ["of_k"])
    names = ("relation_id", "replica_identity", "columns", "key_columns", "type_oids", "typmods")
    assert {name: getattr(found.relation, name) for name in names} == {name: getattr(streamed, name) for name in names}


@pytest.mark.server
@pytest.mark.parametrize("installed", sorted(installations()))
def test_generated_columns_are_copied_where_they_are_sent(tmp_path: Path, installed: int) -> None:
    """PostgreSQL 15 lists them as published, and does not send them: what was copied would never change."""
    with running(installations()[installed]) as server, database(server, "generated") as db:
        db.execute("create table g (id int primary key, twice int generated always as (id * 2) stored)")
        db.execute("insert into g values (1)", "create publication of_g for table g")
        if installed >= 18:
            db.execute("alter publication of_g set (publish_generated_columns = stored)")
        db.follow(tmp_path, publication="of_g", create_slot=True, snapshot=True)
        db.execute("update g set id = 2")
        db.follow(tmp_path, publication="of_g")
        rows = changes_of(tmp_path, "public.g")
    assert rows["id"].to_pylist() == [1, 2]
    assert (rows["twice"].to_pylist() if "twice" in rows.column_names else None) == (
        [2, 4] if installed >= 18 else None
    )


@pytest.mark.server
@pytest.mark.parametrize("installed", sorted(installations()))
def test_time_limits_of_the_database_do_not_end_a_snapshot(tmp_path: Path, installed: int) -> None:
    """The slot and then the copy wait for a transaction, longer than a statement may take."""
    with running(installations()[installed]) as server, database(server, "limited") as db:
        db.execute("insert into t values (1, 'a', 1)")
        with closing(server.connect("limited")) as other:
            other.execute("begin; lock table t")
            for name in _TIMEOUTS:
                if db.rows(f"select 1 from pg_settings where name = '{name}'"):
                    db.execute(f"alter database limited set {name} = '500ms'")
            threading.Timer(2, other.close).start()
            db.follow(tmp_path, create_slot=True, snapshot=True)
        db.execute("insert into t values (2, 'b', 1)")
        db.follow(tmp_path)
        assert told(tmp_path) == [("insert", 1), ("insert", 2)]
