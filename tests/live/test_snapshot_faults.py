"""Tables that change between the beginning of a snapshot and their copy, and disks that are full meanwhile."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.lake.lake import Lake
from wireformat.live import snapshot
from wireformat.live.connection import Connection
from wireformat.live.sink import Sink

from .databases import Database, changes_of
from .test_bad_days import fill, small_disk

SNAPSHOT: dict[str, Any] = {"create_slot": True, "snapshot": True}

ALTERED = {
    "drop": "drop table u",
    "rename": "alter table u rename to v",
    "rename_and_create": "alter table u rename to v; create table u (id int primary key); insert into u values (9)",
    "create_again": "drop table u; create table u (id int primary key); alter publication p add table u;"
    "insert into u values (9)",
    "new_type": "alter table u alter n type text",
    "drop_column": "alter table u drop n",
    "rename_column": "alter table u rename n to m",
    "move": "create schema other; alter table u set schema other",
    "truncate": "truncate u; insert into u values (9)",
    "partition_rewritten": "alter table parts alter n type text",
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_table_that_is_altered_before_it_is_copied(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It is copied as it is then, under a new snapshot. Rows of a rewritten one would be missing without a word."""
    db.execute(
        "insert into t values (1, 'a', 1)",
        "create table u (id int primary key, n int)",
        "insert into u select i, i from generate_series(1, 20) i",
        "create table parts (id int primary key, n int) partition by range (id)",
        "create table parts_1 partition of parts for values from (0) to (100)",
        "insert into parts select i, i from generate_series(1, 20) i",
        "alter publication p set (publish_via_partition_root = true)",
        "alter publication p add table u, parts",
    )
    published_tables, altered = snapshot.published_tables, []

    def late(*given: Any) -> Any:
        found = published_tables(*given)
        if not altered:
            altered.append(how)
            db.execute(ALTERED[how])
        return found

    monkeypatch.setattr(snapshot, "published_tables", late)
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    lake = tmp_path / "lake"
    db.follow(lake, **SNAPSHOT)
    check_lake(db, lake)


def check_lake(db: Database, lake: Path) -> None:
    """The lake has the rows of the published tables."""
    for schema, table in db.rows("select schemaname, tablename from pg_publication_tables where pubname = 'p'"):
        found = [
            tuple(value for name, value in row.items() if not name.startswith("_"))
            for row in changes_of(lake, f"{schema}.{table}").to_pylist()
        ]
        assert sorted(found) == sorted(db.rows(f"table {schema}.{table}")), table


def test_a_connection_that_is_lost_when_a_snapshot_begins(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes long to make a slot if there are long transactions."""
    query, lost = Connection.query, []

    def ended(self: Connection, sql: str) -> Any:
        if sql.startswith("CREATE_REPLICATION_SLOT") and not lost:
            lost.append(sql)
            query(self, "select pg_terminate_backend(pg_backend_pid())")
        return query(self, sql)

    monkeypatch.setattr(Connection, "query", ended)
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    db.execute("insert into t values (1, 'a', 1)")
    lake = tmp_path / "lake"
    db.follow(lake, **SNAPSHOT)
    assert lost
    check_lake(db, lake)


def test_a_conflict_with_the_log_of_a_standby(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is copied again, and the error says which settings of the standby prevent it."""
    copy, told = Connection.copy, list[str]()

    def canceled(self: Connection, sql: str) -> Any:
        if not told:
            self.query("do $$ begin raise exception using errcode = '40001', message = 'conflict'; end $$")
        return copy(self, sql)

    monkeypatch.setattr(Connection, "copy", canceled)
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    db.execute("insert into t values (1, 'a', 1)")
    lake = tmp_path / "lake"
    db.follow(lake, on_progress=lambda now: told.append(now.state) if "conflict" in now.state else None, **SNAPSHOT)
    assert "snapshot of public.t: conflict" in told[0].replace("ERROR: ", "")
    assert "hot_standby_feedback" in told[0]
    check_lake(db, lake)


@pytest.mark.parametrize("full", ["lake", "temporary files"])
def test_a_disk_that_is_full(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    """The snapshot waits until there is room."""
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.1,))
    db.execute("insert into t select i, md5(i::text), i from generate_series(1, 5000) i")
    waits = list[str]()
    with small_disk(tmp_path / "disk") as disk:
        lake, filler = (disk if full == "lake" else tmp_path) / "lake", disk / "filler"
        if full != "lake":
            monkeypatch.setattr("tempfile.tempdir", str(disk))

        def make_room(progress: wf.live.Progress) -> None:
            if progress.state.startswith("snapshot: public.t") and not waits:
                fill(filler)
            if progress.state.startswith("waiting: no space left"):
                waits.append(progress.state)
                if len(waits) == 3:
                    filler.unlink()

        db.follow(lake, on_progress=make_room, **SNAPSHOT)
        assert len(waits) == 3
        assert [*disk.glob("wireformat-*")] == []
        check_lake(db, lake)


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_disk_that_is_full_when_delta_tables_have_their_rows(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """The manifest is written again, and the rows stay: the logs of the tables say that they are there."""
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    commit, commits = Lake.commit, list[Any]()

    def full(self: Lake, position: Any) -> None:
        commits.append(position)
        if len(commits) == 2:  # after that of the position where the slot begins
            raise OSError(errno.ENOSPC, "No space left on device")
        commit(self, position)

    monkeypatch.setattr(Lake, "commit", full)
    db.execute("create table u (id int primary key)", "alter publication p add table u")
    db.execute("insert into t values (1, 'a', 1)", "insert into u values (1), (2)")
    db.follow(tmp_path, format="delta", state=state, **SNAPSHOT)
    assert len(commits) > 2
    assert [deltalake.DeltaTable(tmp_path / "public" / table).to_pyarrow_table().num_rows for table in ("t", "u")] == [
        1,
        2,
    ]
    db.execute("insert into t values (2, 'b', 1)", "insert into u values (3)")
    db.follow(tmp_path, format="delta", state=state)
    assert [deltalake.DeltaTable(tmp_path / "public" / table).to_pyarrow_table().num_rows for table in ("t", "u")] == [
        2,
        3,
    ]


def test_a_disk_that_is_full_when_a_transaction_waits_in_a_file(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was received is given up, and comes again."""
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.1,))
    lake, waits = tmp_path / "lake", list[str]()
    db.follow(lake, create_slot=True)
    db.execute("insert into t select i, md5(i::text), i from generate_series(1, 5000) i")
    with small_disk(tmp_path / "disk") as disk:
        fill(disk / "filler")
        monkeypatch.setattr("tempfile.tempdir", str(disk))

        def make_room(progress: wf.live.Progress) -> None:
            if progress.state.startswith("waiting: no space left"):
                waits.append(progress.state)
                if len(waits) == 3:
                    (disk / "filler").unlink()

        db.follow(lake, on_progress=make_room, memory_limit=0)
        assert len(waits) == 3
        check_lake(db, lake)


@pytest.mark.parametrize("code", [5, 28])
def test_an_error_of_the_disk_during_a_stop(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """It is not taken for the stop, during which it comes."""
    stop, discard = threading.Event(), Lake.discard
    db.execute("insert into t select i, md5(i::text), i from generate_series(1, 5000) i")

    def ends(self: Sink, *given: Any) -> None:
        stop.set()

    def fails(self: Lake) -> None:
        discard(self)
        raise OSError(code, "the disk")

    with monkeypatch.context() as patch:
        patch.setattr(Sink, "empty_unfinished", ends)
        patch.setattr(Lake, "discard", fails)
        with pytest.raises(OSError, match="the disk"):
            db.follow(tmp_path / "lake", stop=stop, **SNAPSHOT)
    db.follow(tmp_path / "lake")
    check_lake(db, tmp_path / "lake")
