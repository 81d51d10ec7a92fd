"""From a slot of a real server to a lake."""

from __future__ import annotations

import errno
import json
import threading
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake.lake import Lake
from wireformat.lake.stored.store import Store
from wireformat.live import Progress
from wireformat.live.intake import SqlIntake

from ..servers.installations import installations
from ..servers.server import Server, running
from .databases import PATIENCE_SECONDS, Database, changes_of, database, is_ordered_and_unique, told

WRITES = (
    "insert into t values (1, 'a', 2.5), (2, null, null)",
    "update t set name = 'b' where id = 1",
    "delete from t where id = 2",
)


def test_changes_come_once_and_the_slot_moves(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    first = db.follow(lake, create_slot=True)
    assert first.slot.lsn == db.confirmed()
    db.execute(*WRITES)
    position = db.follow(lake)
    assert told(lake) == [("insert", 1), ("insert", 2), ("update", 1), ("delete", 2)]
    assert changes_of(lake)["price"].to_pylist()[:2] == [Decimal("2.50"), None]
    assert is_ordered_and_unique(changes_of(lake))
    assert db.confirmed() == position.slot.lsn > first.slot.lsn
    assert wf.lake.position(lake) == position
    db.follow(lake)
    assert changes_of(lake).num_rows == 4
    db.execute("insert into t values (3, 'c', 1)")
    db.follow(lake)
    assert told(lake)[4:] == [("insert", 3)]


def test_latest_in_delta_is_the_table(db: Database, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True, format="delta", state="latest")
    for _ in range(2):
        db.execute(*WRITES)
        db.follow(lake, format="delta", state="latest")
        db.execute("update t set id = id + 10")
        db.follow(lake, format="delta", state="latest")
    rows = deltalake.DeltaTable(lake / "public" / "t").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["name"], row["price"]) for row in rows) == db.rows("table t order by 1")


def test_an_idle_slot_moves(db: Database, tmp_path: Path) -> None:
    """The log grows by what is not published; the position that only keepalives bring is in the lake first."""
    lake, stop = tmp_path / "lake", threading.Event()
    db.execute("create table other (id int)")
    db.follow(lake, create_slot=True)
    before = db.confirmed()
    db.execute("insert into other select generate_series(1, 1000)")

    deadline = time.monotonic() + PATIENCE_SECONDS

    def watch(progress: Progress) -> None:
        if db.confirmed() > before:
            stop.set()
        assert time.monotonic() < deadline, "the slot does not move"

    position = db.follow(lake, once=False, idle_seconds=0.1, stop=stop, on_progress=watch)
    assert stop.is_set()
    assert before < db.confirmed() <= position.slot.lsn == wf.lake.position(lake).slot.lsn
    assert position.delivered.transactions == 0


def test_batches_by_size_and_time(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit of the lake holds whole transactions."""
    monkeypatch.setattr("wireformat.live.intake.PIECE_BYTES", 1 << 15)
    lake, seen = tmp_path / "lake", list[Progress]()
    db.follow(lake, create_slot=True)
    for first in range(0, 5000, 1000):
        db.execute(f"insert into t select i, 'name', i from generate_series({first}, {first + 999}) i")
    db.follow(lake, batch_bytes=100_000, on_progress=seen.append)
    assert seen[-1].rows == 5000
    assert 1 < seen[-1].batches <= 5
    assert {progress.rows % 1000 for progress in seen} == {0}
    assert told(lake) == [("insert", number) for number in range(5000)]


def test_a_transaction_larger_than_memory(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.live.intake.PIECE_BYTES", 1 << 15)
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    db.execute("insert into t values (-1, '', 0)")
    db.execute("insert into t select i, repeat('x', 20), i from generate_series(0, 19999) i")
    db.execute("insert into t values (-2, '', 0)")
    db.follow(lake, batch_bytes=1 << 15, memory_limit=1 << 17)
    assert [id for _, id in told(lake)] == [-1, *range(20000), -2]
    assert is_ordered_and_unique(changes_of(lake))


def test_a_table_that_is_altered_renamed_and_made_again(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    db.execute(
        "insert into t values (1, 'a', 1)",
        "alter table t add column more text default 'x'",
        "insert into t values (2, 'b', 2)",
        "alter table t drop column name",
        "alter table t alter column price type numeric(12, 2)",
        "insert into t values (3, 3.5)",
    )
    db.follow(lake)
    db.execute("alter table t rename to u", "insert into u values (4, 4)", "drop table u")
    db.execute("create table t (id int primary key, name text)", "alter publication p add table t")
    db.execute("insert into t values (5, 'new')")
    db.follow(lake)
    assert [id for _, id in told(lake)] == [1, 2, 3, 5]
    assert told(lake, "public.u") == [("insert", 4)]
    rows = changes_of(lake).select(["id", "name", "more"]).to_pylist()
    assert rows[1] == {"id": 2, "name": "b", "more": "x"}
    assert rows[3] == {"id": 5, "name": "new", "more": None}


@pytest.mark.parametrize("publication", ["for table a", "for all tables"])
def test_changes_have_the_columns_that_their_table_had(db: Database, tmp_path: Path, publication: str) -> None:
    """The server decodes them later: what it has looked at in the same session would be as it is now."""
    db.execute(
        "create table a (id int primary key, n int)", "drop publication p", f"create publication p {publication}"
    )
    db.follow(tmp_path, create_slot=True)
    db.execute("begin; insert into a values (1, 1); alter table a rename n to m; insert into a values (2, 2); commit")
    db.follow(tmp_path)
    rows = changes_of(tmp_path, "public.a").select(["id", "n", "m"]).to_pylist()
    assert rows == [{"id": 1, "n": 1, "m": None}, {"id": 2, "n": None, "m": 2}]


def test_publications_with_filters_columns_and_origin(db: Database, tmp_path: Path) -> None:
    db.execute('create table "odd "" name" (id int primary key, seen text, secret text)')
    db.execute('create publication "it\'s, ""odd" for table "odd "" name" (id, seen) where (id > 10)')
    names = ["p", "it's, \"odd"]
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True, publication=names, options={"origin": "none"})
    db.execute("insert into t values (1, 'a', 1)")
    db.execute("""insert into "odd "" name" values (5, 'a', 'x'), (50, 'b', 'y')""")
    db.execute(
        f"select pg_replication_origin_create('o{db.name}')",
        f"select pg_replication_origin_session_setup('o{db.name}')",
        "insert into t values (2, 'from elsewhere', 1)",
        "select pg_replication_origin_session_reset()",
    )
    db.follow(lake, publication=names, options={"origin": "none"})
    assert told(lake) == [("insert", 1)]
    (row,) = changes_of(lake, 'public.odd " name').to_pylist()
    assert (row["id"], row["seen"], "secret" in row) == (50, "b", False)
    db.execute(f"select pg_replication_origin_drop('o{db.name}')")


def test_a_publication_that_is_gone_is_an_error(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    db.execute("drop publication p")
    with pytest.raises(wf.ServerError, match=r"publication: p does not exist; CREATE PUBLICATION \"p\""):
        db.follow(lake)


def test_a_lake_keeps_its_tables(db: Database, tmp_path: Path) -> None:
    """The slot does not send the earlier changes of another table again."""
    lake = tmp_path / "lake"
    db.execute("create table u (id int primary key)", "alter publication p add table u")
    db.follow(lake, create_slot=True, snapshot=True, tables=["public.t"])
    db.execute("insert into t values (1, 'a', 1)", "insert into u values (1)")
    with pytest.raises(wf.OptionError, match=r"option tables: .*\['public\.t'\], got None"):
        db.follow(lake)
    db.follow(lake, tables=["public.t"])
    assert told(lake) == [("insert", 1)]


@pytest.mark.server
def test_test_decoding(tmp_path: Path) -> None:
    """A format without LSNs: the slot's are those of the lake."""
    if 15 not in installations() or not installations()[15].has_test_decoding:
        pytest.skip("PostgreSQL with test_decoding is missing")
    with running(installations()[15]) as server, database(server, "lines") as db:
        lake = tmp_path / "lake"
        options: dict[str, Any] = {"publication": None, "plugin": "test_decoding"}
        db.follow(lake, create_slot=True, **options)
        for via in ("streaming", "sql"):
            db.execute(*WRITES, "delete from t")
            db.follow(lake, via=via, **options)
        once = [("insert", 1), ("insert", 2), ("update", 1), ("delete", 2), ("delete", 1)]
        assert told(lake) == once * 2
        assert db.confirmed() == wf.lake.position(lake).slot.lsn  # type: ignore[union-attr]


TEST_DECODING: dict[str, Any] = {"publication": None, "plugin": "test_decoding"}


@pytest.mark.server
@pytest.mark.parametrize("options", [TEST_DECODING, {**TEST_DECODING, "via": "sql"}, {}, {"via": "sql"}])
def test_texts_of_a_server_that_converts_none(tmp_path: Path, options: dict[str, Any]) -> None:
    """They are in the encoding that the option names; without it, the error does not have them."""
    if 15 not in installations() or not installations()[15].has_test_decoding:
        pytest.skip("PostgreSQL with test_decoding is missing")
    with running(installations()[15]) as server, database(server, "texts", "SQL_ASCII") as db:
        expected = ["März"]
        if not options:
            db.execute(r"insert into t values (0, E'Jul\xe4', 1)")
            expected = ["Julä", "März"]
        db.follow(tmp_path, create_slot=True, snapshot=not options, encoding="latin-1", **options)
        db.execute(r"insert into t values (1, E'M\xe4rz', 1)")
        with pytest.raises(wf.DecodeError, match="expected text in utf-8, got 1 invalid byte") as raised:
            db.follow(tmp_path, **options)
        assert "rz" not in str(raised.value)
        db.wait_until_free()
        db.follow(tmp_path, encoding="latin-1", **options)
        assert changes_of(tmp_path)["name"].to_pylist() == expected


def test_a_stopped_run_finishes_its_batch(db: Database, tmp_path: Path) -> None:
    lake, stop = tmp_path / "lake", threading.Event()
    db.follow(lake, create_slot=True)
    db.execute(*WRITES)

    def stop_after_a_batch(progress: Progress) -> None:
        if progress.batches:
            stop.set()

    position = db.follow(lake, once=False, batch_seconds=0.05, stop=stop, on_progress=stop_after_a_batch)
    assert db.confirmed() == position.slot.lsn
    assert changes_of(lake).num_rows == 4


def test_progress_tells_rate_and_lag(db: Database, tmp_path: Path) -> None:
    lake, seen = tmp_path / "lake", list[Progress]()
    db.follow(lake, create_slot=True)
    db.execute(*WRITES)
    db.follow(lake, on_progress=seen.append, retained_alarm=1)
    last = seen[-1]
    assert (last.rows, last.tables, last.batches, last.transactions) == (4, {"public.t": 4}, 1, 3)
    assert 0 < last.lag_seconds < 600
    assert last.retained_bytes is not None
    assert last.retained_bytes > 0
    assert last.is_alarming
    assert last.rows_per_second > 0


def test_two_servers_are_told_apart(live_server: Server, db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    with running(installations()[live_server.version]) as other, database(other, db.name) as copy:
        with pytest.raises(wf.ServerError, match="the lake was read from system"):
            copy.follow(lake)
        copy.follow(tmp_path / "its own", create_slot=True)


def test_keys_of_a_table_without_changes(db: Database, tmp_path: Path) -> None:
    """They are given once, for all batches: a batch, or a run, may have no changes of the table."""
    options: dict[str, Any] = {"format": "delta", "state": "latest", "keys": {"public.u": ["id"]}}
    db.execute("create table u (id int primary key)", "alter publication p add table u")
    db.follow(tmp_path, create_slot=True, **options)
    for table in ("t", "u", "t"):
        db.execute(f"insert into {table} values ((select count(*) from {table}))")
        db.follow(tmp_path, **options)
    rows = {name: deltalake.DeltaTable(tmp_path / "public" / name).to_pyarrow_table() for name in ("t", "u")}
    assert {name: sorted(table["id"].to_pylist()) for name, table in rows.items()} == {"t": [0, 1], "u": [0]}


def test_times_are_those_of_the_server(db: Database, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    db.execute(WRITES[0])
    db.follow(lake)
    (now,) = db.rows("select now()")[0]
    assert timedelta(0) <= now - changes_of(lake)["_commit_time"][0].as_py() < timedelta(minutes=10)


def test_a_disk_that_is_full_for_a_while(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch waits, and is written when there is room; nothing of the failed attempts is left."""
    lake, seen, real = tmp_path / "lake", list[str](), Store.append
    db.follow(lake, create_slot=True)
    db.execute(*WRITES)
    failures = iter(range(3))

    def append(self: Store, path: str, data: bytes, size: int = 0) -> None:
        if next(failures, None) is not None:
            real(self, path, data[: len(data) // 2], size)
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, path, data, size)

    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    monkeypatch.setattr(Store, "append", append)
    db.follow(lake, on_progress=lambda progress: seen.append(progress.state))
    assert seen.count("waiting: no space left on the lake's disk, or on that of temporary files") == 3
    assert told(lake) == [("insert", 1), ("insert", 2), ("update", 1), ("delete", 2)]
    files = {str(path) for path in lake.rglob("*") if path.is_file()}
    (table,) = wf.lake.tables(lake).to_pylist()
    assert files == {str(lake / "_wireformat.json"), *table["files"]}
    assert len(table["files"]) == 1


def test_values_that_do_not_fit(db: Database, tmp_path: Path) -> None:
    """FAILFAST stops before the batch, and the slot stays; another mode goes on, and keeps them in a file."""
    lake = tmp_path / "lake"
    db.execute("create table times (id int primary key, at time)", "alter publication p add table times")
    db.follow(lake, create_slot=True)
    before = db.confirmed()
    db.execute("insert into times values (1, '24:00'), (2, '23:00')")
    with pytest.raises(wf.BadCell, match="the end of the day"):
        db.follow(lake)
    assert db.confirmed() == before
    position = db.follow(lake, mode="DROPMALFORMED", rejects=str(tmp_path / "rejects"))
    assert told(lake, "public.times") == [("insert", 2)]
    assert db.confirmed() == position.slot.lsn
    (file,) = (tmp_path / "rejects").iterdir()
    assert pq.read_table(file).num_rows == 1


def test_rejects_of_a_batch_that_comes_again(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ended between the rejects and the manifest; the batch is longer now, and has the same file."""
    lake, rejects = tmp_path / "lake", tmp_path / "rejects"
    options: dict[str, Any] = {"mode": "PERMISSIVE", "rejects": str(rejects), "schemas": {"public.t": {"name": "int"}}}
    db.follow(lake, create_slot=True, **options)

    def ends(self: Lake, position: Any) -> None:
        raise KeyboardInterrupt

    db.execute("insert into t values (1, 'a', 1)")
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "commit", ends)
        with pytest.raises(KeyboardInterrupt):
            db.follow(lake, **options)
    db.wait_until_free()
    assert len([*rejects.iterdir()]) == 1
    db.execute("insert into t values (2, 'b', 1)")
    db.follow(lake, **options)
    (file,) = rejects.iterdir()
    assert [dict(row)["id"] for row in pq.read_table(file)["new"].to_pylist()] == ["1", "2"]


def test_messages_outside_of_transactions_by_sql_functions(db: Database, tmp_path: Path) -> None:
    """No end of a transaction says how far a look goes that has nothing else."""
    lake, stop = tmp_path / "lake", threading.Event()
    options: dict[str, Any] = {"via": "sql", "options": {"messages": "true"}, "stop": stop}
    db.follow(lake, create_slot=True, **options)
    timer = threading.Timer(2 * PATIENCE_SECONDS, stop.set)
    timer.start()
    for number in range(3):
        db.execute("select pg_logical_emit_message(false, 'a', 'b')")
        position = db.follow(lake, **options)
        assert db.rows(f"select '{wf.lsn_text(position.slot.lsn)}' <= pg_current_wal_flush_lsn()") == [(True,)]
        db.execute(f"insert into t values ({number}, 'a', 1)", "select pg_logical_emit_message(false, 'a', 'b')")
        db.follow(lake, **options)
    timer.cancel()
    assert not stop.is_set(), "it hangs"
    assert told(lake) == [("insert", number) for number in range(3)]


def test_by_sql_functions(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no replication connection can be had: several looks, each a commit, and the slot is advanced after it."""
    monkeypatch.setattr("wireformat.live.intake.MOST_CHANGES", 50)
    lake, seen = tmp_path / "lake", list[Progress]()
    options: dict[str, Any] = {"via": "sql"}
    db.follow(lake, create_slot=True, **options)
    for first in range(0, 100, 10):
        db.execute(f"insert into t select i, 'name', i from generate_series({first}, {first + 9}) i")
    position = db.follow(lake, on_progress=seen.append, **options)
    assert told(lake) == [("insert", number) for number in range(100)]
    assert seen[-1].batches > 1
    assert db.confirmed() == position.slot.lsn
    assert db.rows("select count(*) from pg_stat_replication") == [(0,)]
    stays = json.loads((lake / "_wireformat.json").read_text())
    db.execute("delete from t where id = 5")

    def ends(self: SqlIntake, lsn: int) -> None:
        if self.received:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SqlIntake, "confirm", ends)
        with pytest.raises(KeyboardInterrupt):
            db.follow(lake, **options)
    assert db.confirmed() < wf.lake.position(lake).slot.lsn  # type: ignore[union-attr]
    db.follow(lake, **options)
    assert told(lake)[100:] == [("delete", 5)]
    assert stays["position"]["slot"]["system"] == position.slot.system
