"""What goes wrong with servers, disks and memory while a slot is read: nothing is lost without a word."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.live import Progress
from wireformat.live.connection import Connection
from wireformat.stream.capture_position import SlotPosition

from ..servers.installations import installations
from ..servers.server import Server, running
from .crashes import meanwhile
from .databases import PATIENCE_SECONDS, Database, database, told
from .test_slot_ranges import MESSAGES
from .walsender import SYSTEM, Session, Walsender, plays, serving

SMALL: dict[str, Any] = {"slot": "s", "publication": "p", "threads": 1, "once": True, "batch_seconds": 0.01}

ROOT = Path(__file__).parent.parent.parent


def once_streaming(*steps: Any) -> tuple[threading.Event, list[Progress], Any]:
    """What stops a run: each step is done at a report of progress while the stream is open and nothing is written.

    It ends when rows are written, or when nothing has come for a minute: a busy server takes its time.
    """
    stop, seen, left = threading.Event(), list[Progress](), deque(steps)
    deadline = time.monotonic() + PATIENCE_SECONDS

    def watch(progress: Progress) -> None:
        if progress.state == "streaming":
            seen.append(progress)
            if left and len(seen) % 2 == 0:
                left.popleft()()
        if progress.rows or time.monotonic() > deadline:
            stop.set()

    return stop, seen, watch


def test_messages_outside_of_transactions(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not say how far the stream is; a batch waits for what does, and what follows comes too."""
    monkeypatch.setattr("wireformat.live.follower.TICK_SECONDS", 0.1)
    lake, options = tmp_path / "lake", {"messages": "true"}
    db.follow(lake, create_slot=True, options=options)
    stop, seen, watch = once_streaming(
        lambda: db.execute("select pg_logical_emit_message(false, 'a', 'b')"),
        lambda: db.execute("insert into t values (1, 'a', 1)"),
    )
    db.follow(lake, once=False, batch_seconds=0.01, options=options, stop=stop, on_progress=watch)
    assert seen[-1].rows == 1
    assert told(lake) == [("insert", 1)]


def test_a_publication_that_is_dropped_while_it_is_read(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL 18 goes on without it and only warns: the stream ends, and does not go on when it is there again."""
    monkeypatch.setattr("wireformat.live.follower.TICK_SECONDS", 0.1)
    lake = tmp_path / "lake"
    db.follow(lake, create_slot=True)
    stop, _, watch = once_streaming(lambda: db.execute("drop publication p", "insert into t values (1, 'a', 1)"))
    gap = r"the stream leaves changes out: .*\"p\".* new slot"
    with pytest.raises(wf.ServerError, match=gap) as raised:
        db.follow(lake, once=False, stop=stop, on_progress=watch)
    assert not raised.value.is_temporary
    before = db.confirmed()
    db.execute("create publication p for table t", "insert into t values (2, 'b', 1)")
    with pytest.raises(wf.ServerError, match=gap):
        db.follow(lake)
    assert (told(lake), db.confirmed()) == ([], before)


@pytest.mark.parametrize(("message", "passes"), [("could not open relation with OID 16507", True), ("broken", False)])
def test_a_table_that_is_dropped_while_the_published_ones_are_listed(db: Database, message: str, passes: bool) -> None:
    """The view of the server ends with an internal error. The next look succeeds."""
    raising = f"do $$ begin raise exception using errcode = 'XX000', message = '{message}'; end $$"
    with Connection(db.dsn) as connection, pytest.raises(wf.ServerError, match=message) as raised:
        connection.query(raising)
    assert raised.value.is_temporary == passes


def test_a_slot_that_is_moved_while_the_stream_begins(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the checks and START_REPLICATION: the server would begin later without a word."""
    lake, start = tmp_path / "lake", Connection.start
    db.follow(lake, create_slot=True)
    db.execute("insert into t values (1, 'a', 1)")

    def late(self: Connection, *given: Any) -> None:
        db.rows(f"select pg_replication_slot_advance('{db.slot}', pg_current_wal_flush_lsn())")
        start(self, *given)

    monkeypatch.setattr(Connection, "start", late)
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    with pytest.raises(wf.ServerError, match="it was advanced by another client"):
        db.follow(lake)
    assert told(lake) == []


def test_what_the_disk_does_not_take_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server hears a position after the lake is on the disk, and not when it is only in the system's memory."""

    def fail(file: int) -> None:
        position = wf.lake.position(tmp_path) if (tmp_path / "_wireformat.json").exists() else None
        if position is not None and position.slot is not None and position.slot.lsn > 1:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with serving(Walsender(plays(MESSAGES, end=400), end=400)) as server:
        with pytest.raises(OSError, match="Input/output error"):
            wf.live.follow(server.dsn, tmp_path, **SMALL)
        assert set(server.flushed) == {1}
        monkeypatch.undo()
        wf.live.follow(server.dsn, tmp_path, **SMALL)
        assert max(server.flushed) >= 400
    assert [id for _, id in told(tmp_path)] == [1, 2, 3, 4, 5, 6, 7]


def on_timeline(timeline: int, history: str = "") -> Walsender:
    """A server with the end of its log at 400, and with a history of timelines."""

    def system(query: str) -> list[dict[str, str]]:
        return [{"systemid": SYSTEM, "timeline": str(timeline), "xlogpos": wf.lsn_text(400), "dbname": "shop"}]

    def told_history(query: str) -> list[dict[str, str]]:
        assert query == f"TIMELINE_HISTORY {timeline}"
        return [{"filename": f"0000000{timeline}.history", "content": history}]

    answers = {"IDENTIFY_SYSTEM": system, "TIMELINE_HISTORY": told_history}
    return Walsender(plays(MESSAGES, end=400), end=400, answers=answers)


def test_a_promoted_standby(tmp_path: Path) -> None:
    """It goes on if it had all that the lake has; where it lacked the end, its log does not show it."""
    lake = tmp_path / "lake"
    with serving(on_timeline(1)) as server:
        assert wf.live.follow(server.dsn, lake, **SMALL).slot == SlotPosition(SYSTEM, "s", 400, 1)
    for history in ("1\t0/12C\tno recovery target specified\n", "3\t0/200\tof another branch\n"):
        with (
            serving(on_timeline(2, history)) as server,
            pytest.raises(wf.ServerError, match=r"0/190 of timeline 1, .* left at 0/(12C|0), for timeline 2"),
        ):
            wf.live.follow(server.dsn, lake, **SMALL)
        assert server.starts == []
    with serving(on_timeline(3, "1\t0/190\twhy\n2\t0/200\twhy\n")) as server:
        assert wf.live.follow(server.dsn, lake, **SMALL).slot == SlotPosition(SYSTEM, "s", 400, 3)
    with (
        serving(on_timeline(1)) as server,
        pytest.raises(wf.ServerError, match=r"0/190 of timeline 3, .* for timeline 1"),
    ):
        wf.live.follow(server.dsn, lake, **SMALL)


@pytest.mark.parametrize("is_standby", [True, False])
def test_a_server_that_is_behind_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_standby: bool
) -> None:
    """A standby that starts again has not replayed yet what it has sent: the run waits. A primary has lost it."""
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))
    seen: list[str] = []

    def play(session: Session, number: int) -> None:
        if number == 0:
            for lsn, payload in MESSAGES[:-3]:
                session.data(lsn, payload)
            while session.wait_for_status() < 300:
                pass
            server.end = 100
            session.cut()
        plays(MESSAGES, end=400)(session, number)

    def watch(progress: Progress) -> None:
        seen.append(progress.state)
        if sum("the standby's log ends at 0/64" in state for state in seen) == 2:
            server.end = 400

    standby = "t" if is_standby else "f"
    server = Walsender(play, end=400, answers={"pg_is_in_recovery": lambda _: [{"standby": standby}]})
    with serving(server):
        if is_standby:
            wf.live.follow(server.dsn, tmp_path, on_progress=watch, **SMALL)
            assert [id for _, id in told(tmp_path)] == [1, 2, 3, 4, 5, 6, 7]
        else:
            with pytest.raises(wf.ServerError, match="the server's log ends at 0/64: it was restored"):
                wf.live.follow(server.dsn, tmp_path, on_progress=watch, **SMALL)


@contextmanager
def standby_of(primary: Server) -> Iterator[Server]:
    """A standby of a server, which is stopped in between."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    owner = primary.folder.stat()
    user = {} if os.geteuid() else {"user": owner.st_uid, "group": owner.st_gid}
    try:
        if user:
            shutil.chown(folder, **user)
        with primary.connect() as session:
            session.execute("select pg_create_physical_replication_slot('standby', true)")
        primary.stop()
        subprocess.run(["cp", "-a", primary.folder / "data", folder], check=True)
        (folder / "data" / "standby.signal").touch()
        settings = {
            "primary_conninfo": f"host={primary.folder} user=postgres dbname=postgres",
            "primary_slot_name": "standby",
            "hot_standby_feedback": "on",
        }
        with (folder / "data" / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        primary.restart()
        standby = Server(primary.installation, folder, user)
        try:
            standby.wait()
            yield standby
        finally:
            standby.stop()
    finally:
        shutil.rmtree(folder)


def wait_until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


@pytest.mark.server
@pytest.mark.slow
def test_a_standby_that_is_promoted(tmp_path: Path) -> None:
    """A real one, to which the slot was copied: a lake goes on there, and one that is ahead of it is refused."""
    lake, ahead = tmp_path / "lake", tmp_path / "ahead"
    with running(installations()[18]) as primary, standby_of(primary) as standby, database(primary, "shop") as db:
        wf.live.create_slot(db.dsn, db.slot, failover=True)
        db.execute("insert into t values (1, 'a', 1)")
        db.follow(lake)
        session = standby.connect()

        def is_copied() -> bool:
            db.execute("select pg_log_standby_snapshot()")
            db.follow(lake)
            session.execute("select pg_sync_replication_slots()")
            (end,) = db.rows("select pg_current_wal_flush_lsn()")[0]
            found = session.execute(
                "select 1 from pg_replication_slots where slot_name = %s and not temporary "
                "and pg_last_wal_replay_lsn() >= %s",
                [db.slot, end],
            ).fetchall()
            return bool(found)

        wait_until(is_copied)
        session.execute("alter system set primary_conninfo = ''")
        session.execute("select pg_reload_conf()")
        wait_until(lambda: not session.execute("select 1 from pg_stat_wal_receiver").fetchall())
        shutil.copytree(lake, ahead)
        db.execute("insert into t values (2, 'lost', 1)")
        db.follow(ahead)
        assert [id for _, id in told(ahead)] == [1, 2]
        session.execute("select pg_promote()")
        promoted = Database(standby, db.name)
        promoted.execute("insert into t select i, 'there', 1 from generate_series(3, 1000) i")
        with pytest.raises(wf.ServerError, match=r"of timeline 1, which the server's log has left at"):
            promoted.follow(ahead)
        position = promoted.follow(lake)
        assert position.slot.timeline == 2
        assert [(id,) for _, id in told(lake)] == promoted.rows("select id from t order by id")
        promoted.session.close()
        session.close()


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("via", ["streaming", "sql"])
def test_a_standby_is_read(tmp_path: Path, via: str) -> None:
    """A real one, also after it was killed and started again."""
    lake = tmp_path / "lake"
    with running(installations()[18]) as primary, standby_of(primary) as standby, database(primary, "shop") as db:
        db.execute("insert into t values (0, 'a', 1)")
        (end,) = db.rows("select pg_current_wal_flush_lsn()::text")[0]
        with standby.connect() as session:
            wait_until(lambda: session.execute("select pg_last_wal_replay_lsn() >= %s", [end]).fetchall() == [(True,)])
        copy = Database(standby, db.name)

        def helps(stop: threading.Event) -> None:
            with primary.connect() as session:
                while not stop.wait(0.1):
                    session.execute("select pg_log_standby_snapshot()")  # a new slot waits for it

        with meanwhile(helps):
            copy.follow(lake, create_slot=True, via=via)
        steps, stop = list[str](), threading.Event()

        def play(progress: Progress) -> None:
            if not progress.rows and "before" not in steps:
                steps.append("before")
                db.execute("insert into t values (1, 'a', 1)")
            elif progress.rows == 1 and "killed" not in steps:
                steps.append("killed")
                standby.restart(signal.SIGKILL)
                db.execute("insert into t values (2, 'a', 1)")
            elif progress.rows == 2:
                stop.set()

        wf.live.follow(
            copy.dsn, lake, slot=copy.slot, publication="p", via=via, stop=stop, on_progress=play, batch_seconds=0.01
        )
        assert [id for _, id in told(lake)] == [1, 2]
        copy.session.close()


@pytest.mark.parametrize(("format", "state"), [("parquet", "changes"), ("delta", "changes"), ("delta", "latest")])
def test_a_disk_that_is_full(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, state: str
) -> None:
    """A real one, of a few megabytes: the batch waits, and is written when there is room."""
    if format == "delta":
        pytest.importorskip("deltalake")
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.1,))
    waits, kept = list[str](), {"format": format, "state": state}
    with small_disk(tmp_path / "disk") as disk:
        lake, filler = disk / "lake", disk / "filler"
        db.execute("insert into t values (0, 'a', 1)")
        db.follow(lake, create_slot=True, **kept)
        db.execute("insert into t values (-1, 'a', 1)")
        db.follow(lake, **kept)
        fill(filler)

        def make_room(progress: Progress) -> None:
            if progress.state.startswith("waiting: no space left"):
                waits.append(progress.state)
                if len(waits) == 3:
                    filler.unlink()

        db.execute("insert into t select i, md5(i::text), i from generate_series(1, 5000) i")
        db.follow(lake, on_progress=make_room, **kept)
        db.execute("update t set name = 'b' where id = 1")
        db.follow(lake, **kept)
        assert len(waits) == 3
        if format == "parquet":
            found = [id for _, id in told(lake)]
            assert found == [-1, *range(1, 5001), 1]
            assert not [*lake.rglob(".wireformat-*")]
            return
        rows = pytest.importorskip("deltalake").DeltaTable(lake / "public" / "t").to_pyarrow_table()
        again = [1] if state == "changes" else []
        assert sorted(rows["id"].to_pylist()) == sorted([-1, *range(1, 5001), *again])


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 4 MB; skips the test where none can be mounted."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


MOST_MEGABYTES = 256
"""Above what the process has when it is idle."""

_LARGE = """
import re, sys
from pathlib import Path
import wireformat as wf

def megabytes(name):
    return int(re.search(rf"{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

dsn, slot, lake = sys.argv[1:]
wf.live.follow(dsn, lake, slot=slot, publication="p", once=True)
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
idle = megabytes("VmRSS")
print("idle", flush=True)
input()
wf.live.follow(dsn, lake, slot=slot, publication="p", once=True)
print(megabytes("VmHWM") - idle)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is read from /proc")
def test_a_transaction_of_two_million_rows(db: Database, tmp_path: Path) -> None:
    """It waits in a file for its end."""
    count, lake = 2_000_000, tmp_path / "lake"
    wf.live.create_slot(db.dsn, db.slot)
    db.execute("insert into t values (-1, 'the first one', 1)")
    command = [sys.executable, "-c", _LARGE, db.dsn, db.slot, str(lake)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "idle\n"
        db.execute(f"insert into t select i, 'name ' || i, i from generate_series(1, {count}) i")
        said, _ = process.communicate("\n")
    (table,) = wf.lake.tables(lake).to_pylist()
    assert sum(pq.read_metadata(file).num_rows for file in table["files"]) == 1 + count
    assert float(said) < MOST_MEGABYTES, said
