"""A snapshot that is stopped: tables that were copied stay, the others begin again, and no change is lost."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import wireformat as wf

from .crashes import WAIT_SECONDS, Reader, meanwhile
from .databases import Database, changes_of, is_ordered_and_unique

TABLES = ("a", "b", "c")
EACH_ALONE: dict[str, Any] = {"create_slot": True, "snapshot": True, "batch_bytes": 1}


@contextmanager
def counted_up(db: Database, rows: int) -> Iterator[None]:
    """Three tables, of which the second has so many rows; a session counts up rows of all of them, and adds some."""
    for table in TABLES:
        db.execute(f"create table {table} (id int primary key, n int not null, filler text)")
        db.execute(f"alter publication p add table {table}")
        count = rows if table == "b" else 20
        db.execute(f"insert into {table} select i, 0, repeat('x', 200) from generate_series(1, {count}) i")
    random = Random(1)

    def write(stop: threading.Event) -> None:
        number = rows
        with db.server.connect(db.name) as session:
            while not stop.is_set():
                number += 1
                with session.transaction():
                    for table in TABLES:
                        session.execute(f"insert into {table} values (%s, 0, '')", [number])
                        session.execute(f"update {table} set n = n + 1 where id = %s", [random.randint(1, 20)])

    with meanwhile(write):
        yield


def check_counts(db: Database, lake: Path, format: str) -> None:
    """Each row was counted up by one from each of its versions to the next, and ends as it is in the table."""
    for table in TABLES:
        if format == "delta":
            deltalake = pytest.importorskip("deltalake")
            rows = deltalake.DeltaTable(lake / "public" / table).to_pyarrow_table().to_pylist()
            rows.sort(key=lambda row: (row["_sequence"]["commit_lsn"], row["_sequence"]["ordinal"]))
            keys = [tuple(row["_sequence"].values()) for row in rows]
            assert len(set(keys)) == len(keys)
        else:
            found = changes_of(lake, f"public.{table}")
            assert is_ordered_and_unique(found)
            rows = found.to_pylist()
        versions: dict[int, list[int]] = {}
        for row in rows:
            versions.setdefault(row["id"], []).append(row["n"])
        assert all(then == before + 1 for counts in versions.values() for before, then in pairwise(counts))
        assert sorted((id, counts[-1]) for id, counts in versions.items()) == db.rows(
            f"select id, n from {table} order by id"
        )


def copied(lake: Path) -> tuple[tuple[str, str], ...] | None:
    """The tables that the lake has of an unfinished snapshot."""
    position = wf.lake.position(lake)
    assert position is not None
    assert position.slot is not None
    return position.slot.copied


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_tables_that_were_copied_stay(db: Database, tmp_path: Path, format: str) -> None:
    """Each run is ended between two tables; the last one copies what is left, without being asked for a snapshot."""
    lake, told = tmp_path / "lake", []

    def ends(progress: wf.live.Progress) -> None:
        told.append(progress.state)
        if progress.state == "snapshot" and any(progress.tables.values()):
            raise KeyboardInterrupt

    with counted_up(db, 20):
        for expected in ((("public", "a"),), (("public", "a"), ("public", "b"))):
            with pytest.raises(KeyboardInterrupt):
                db.follow(lake, format=format, on_progress=ends, **EACH_ALONE)
            assert copied(lake) == expected
        told.clear()
        db.follow(lake, format=format, on_progress=lambda progress: told.append(progress.state))
        assert not any("public.a" in state or "public.b" in state for state in told)
        assert any("public.c" in state for state in told)
    db.follow(lake, format=format)
    assert copied(lake) is None
    check_counts(db, lake, format)


@pytest.mark.slow
def test_a_large_table_does_not_delay_the_end(db: Database, tmp_path: Path) -> None:
    """SIGTERM while a table is copied, and while its rows are written; then kill -9 at the same moments."""
    lake, metrics = tmp_path / "lake", tmp_path / "metrics"
    with counted_up(db, 150_000):
        for how, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
            options = ("--snapshot", "--create-slot", "--batch-mb", "0.000001")
            reader = Reader(db, lake, metrics, *options)
            wait_for(metrics, lambda line: "public.b" in line["state"])
            ended, said = reader.end(how)
            assert ended == code
            assert ("some tables are not copied" in said) == (how == signal.SIGTERM)
            assert copied(lake) == (("public", "a"),)
            metrics.unlink()
            db.wait_until_free()
        follow(db, lake)
    follow(db, lake)
    assert copied(lake) is None
    check_counts(db, lake, "parquet")


def follow(db: Database, lake: Path) -> None:
    """Reads what there is, as soon as the server has noticed that the reader is gone."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            db.follow(lake)
            return
        except wf.ServerError as error:
            if not error.is_temporary or time.monotonic() > end:
                raise
            time.sleep(0.1)


def wait_for(metrics: Path, is_it: Callable[[dict[str, Any]], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not any(
        is_it(json.loads(line)) for line in metrics.read_text().splitlines(keepends=True) if line[-1] == "\n"
    ):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_rows_that_wait_to_be_written_do_not_delay_the_end(db: Database, tmp_path: Path) -> None:
    """All rows have been copied when the event is set; the lake has none of them."""
    lake, stop = tmp_path / "lake", threading.Event()

    def ends(progress: wf.live.Progress) -> None:
        if progress.rows_so_far == 20_000:
            stop.set()

    with counted_up(db, 20_000):
        pass
    db.execute("delete from b where id > 20000")
    db.follow(lake, on_progress=ends, stop=stop, **EACH_ALONE)
    assert copied(lake) == (("public", "a"),)
    db.follow(lake)
    check_counts(db, lake, "parquet")


def test_a_slot_that_waits_does_not_delay_the_end(db: Database, tmp_path: Path) -> None:
    """A new slot waits for transactions that are open, for as long as they are."""
    lake, stop = tmp_path / "lake", threading.Event()
    with db.server.connect(db.name) as session, session.transaction():
        session.execute("insert into t values (1, '', 1)")
        threading.Timer(1, stop.set).start()
        with pytest.raises(wf.ServerError, match="stopped before anything was written"):
            db.follow(lake, stop=stop, **EACH_ALONE)
        end = time.monotonic() + WAIT_SECONDS
        while db.rows("select from pg_replication_slots where database = current_database()"):
            assert time.monotonic() < end, "the server still waits"
            time.sleep(0.02)
    assert not lake.exists()


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_claim_that_is_lost(db: Database, tmp_path: Path, format: str) -> None:
    """The session that keeps others from the slot has ended, and another run copies the tables: its rows stay alone."""
    lake, others = tmp_path / "lake", list[Any]()
    if format == "delta":
        pytest.importorskip("deltalake")
    given: dict[str, Any] = {"slot": db.slot, "publication": "p", "once": True, "threads": 1, "format": format}

    def ends(progress: wf.live.Progress) -> None:
        if progress.state == "snapshot: public.a" and not others:
            others.append(db.rows("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'"))
            others.append(wf.live.follow(db.dsn, lake, **given))

    with counted_up(db, 20):
        with pytest.raises(wf.LakeConflict, match="another run has written to it"):
            wf.live.follow(db.dsn, lake, on_progress=ends, **given, **EACH_ALONE)
        assert others[0] == [(True,)]
    db.wait_until_free()
    db.follow(lake, format=format)
    assert copied(lake) is None
    check_counts(db, lake, format)
