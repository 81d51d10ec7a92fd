"""What progress says while the server lets a slot, a snapshot or a copy wait, and while many rows are written."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import wireformat as wf
from wireformat.cli import follow as command
from wireformat.live import Progress, messages
from wireformat.live import snapshot as snapshot_of_tables
from wireformat.live.connection import Connection
from wireformat.live.slots import find_system

from ..cli.commands import start
from .databases import PATIENCE_SECONDS, Database, changes_of
from .walsender import Walsender, plays, serving

ROWS = "insert into t select i, repeat('x', 100), i from generate_series(1, 5000) i"


class Ends:
    """Notes the progress, and ends what the server waits for when it is told what that is."""

    def __init__(self, end: Callable[[], Any]) -> None:
        self.seen: list[Progress] = []
        self._end: Callable[[], Any] | None = end
        self._deadline = time.monotonic() + PATIENCE_SECONDS

    def __call__(self, progress: Progress) -> None:
        self.seen.append(progress)
        assert time.monotonic() < self._deadline, "it does not say what the server waits for"
        if progress.blocked_by is not None and self._end is not None:
            self._end()
            self._end = None

    @property
    def blocked(self) -> Progress:
        """The first progress that says what the server waits for."""
        return next(progress for progress in self.seen if progress.blocked_by is not None)


def open_transaction(db: Database, statement: str) -> psycopg.Connection[Any]:
    session = db.server.connect(db.name, application_name="importer")
    session.execute("begin")
    session.execute(statement)
    return session


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_slot_waits_for_a_transaction(db: Database, tmp_path: Path, snapshot: bool) -> None:
    """A new slot begins when all transactions that are open have ended, which may take hours."""
    if snapshot:
        db.follow(tmp_path / "other", create_slot=True)
    with open_transaction(db, "insert into t values (1, 'a', 1)") as session:
        process = session.info.backend_pid
        ends = Ends(session.commit)
        db.follow(tmp_path / "lake", create_slot=not snapshot, snapshot=snapshot, on_progress=ends)
    found = ends.blocked
    doing = "snapshot" if snapshot else "creating the slot"
    assert found.state == f"{doing}: waits for transactions that are open"
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    facts = rf"the transaction of process {process} \(user postgres, importer, idle in transaction\), open since {time}"
    assert re.fullmatch(facts, found.blocked_by or "")
    assert found.server_lsn is not None
    assert ends.seen[-1].blocked_by is None
    assert changes_of(tmp_path / "lake").num_rows == snapshot


def test_what_progress_raises_ends_the_wait(db: Database, tmp_path: Path) -> None:
    """The server gives the new slot up: nobody would read it."""

    def fails(progress: Progress) -> None:
        if progress.blocked_by is not None:
            raise KeyError("of the caller")

    with open_transaction(db, "insert into t values (1, 'a', 1)"):
        with pytest.raises(KeyError, match="of the caller"):
            db.follow(tmp_path / "lake", create_slot=True, on_progress=fails)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while db.rows("select from pg_replication_slots where database = current_database()"):
            assert time.monotonic() < deadline, "the server still waits"
            time.sleep(0.02)


@pytest.mark.parametrize("via", ["streaming", "sql"])
def test_the_creation_of_a_slot_says_what_it_waits_for(db: Database, via: str) -> None:
    told = list[str]()
    with open_transaction(db, "insert into t values (1, 'a', 1)") as session:

        def tell(text: str) -> None:
            told.append(text)
            if "blocked by" in text:
                session.commit()

        wf.live.create_slot(db.dsn, db.slot, via=via, on_wait=tell)
        process = session.info.backend_pid
    waits = "waits for transactions that are open; blocked by the transaction of process"
    assert any(text.startswith(f"{waits} {process} (user postgres, importer") for text in told)


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_of_the_command(db: Database) -> None:
    """The server gives the new slot up, as it would keep its log for nobody."""
    with open_transaction(db, "insert into t values (1, 'a', 1)"):
        process = start("check", db.dsn, "--slot", db.slot, "--create-slot")
        assert process.stderr is not None
        line = next(line for line in process.stderr if b"blocked by" in line or b"creating" not in line)
        assert line.startswith(
            b"creating the slot: waits for transactions that are open; blocked by the transaction of"
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 130
        deadline = time.monotonic() + PATIENCE_SECONDS
        while db.rows("select from pg_replication_slots where database = current_database()"):
            assert time.monotonic() < deadline, "the server still waits"
            time.sleep(0.02)


def test_a_role_that_does_not_see_the_sessions_of_others(db: Database, tmp_path: Path) -> None:
    role = f"reader_{db.name}"
    db.execute(f"create role {role} login replication")
    try:
        with open_transaction(db, "insert into t values (1, 'a', 1)") as session:
            ends = Ends(session.commit)
            wf.live.follow(
                db.dsn.replace("user=postgres", f"user={role}"),
                tmp_path / "lake",
                slot=db.slot,
                publication="p",
                create_slot=True,
                once=True,
                on_progress=ends,
            )
            assert f"the transaction of process {session.info.backend_pid}" in (ends.blocked.blocked_by or "")
            assert "open since" not in (ends.blocked.blocked_by or "")
    finally:
        db.execute(f"drop owned by {role}", f"drop role {role}")


def test_a_slot_waits_for_a_prepared_transaction(db: Database, tmp_path: Path) -> None:
    """No session has it, and it may have been forgotten for months."""
    db.execute("begin", "insert into t values (1, 'a', 1)", f"prepare transaction 'forgotten {db.name}'")
    ends = Ends(lambda: db.execute(f"rollback prepared 'forgotten {db.name}'"))
    db.follow(tmp_path / "lake", create_slot=True, on_progress=ends)
    assert (ends.blocked.blocked_by or "").startswith(f"the prepared transaction 'forgotten {db.name}', open since 20")


def test_a_copy_waits_for_a_lock(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute("insert into t values (1, 'a', 1)")
    published_tables, sessions = snapshot_of_tables.published_tables, []

    def late(*given: Any) -> Any:
        found = published_tables(*given)
        sessions.append(open_transaction(db, "lock table t"))
        return found

    monkeypatch.setattr(snapshot_of_tables, "published_tables", late)
    ends = Ends(lambda: sessions[0].close())
    db.follow(tmp_path / "lake", create_slot=True, snapshot=True, on_progress=ends)
    assert ends.blocked.state == "snapshot: public.t"
    assert "(user postgres, importer, idle in transaction)" in (ends.blocked.blocked_by or "")
    assert changes_of(tmp_path / "lake").num_rows == 1


def test_a_look_that_takes_long(tmp_path: Path) -> None:
    """By SQL functions, the server may take minutes for an answer."""
    told, states = threading.Semaphore(0), list[str]()

    def peek(query: str) -> list[dict[str, str]]:
        while told.acquire(blocking=False):
            pass
        states.clear()
        for _ in range(2):
            assert told.acquire(timeout=PATIENCE_SECONDS)
        assert states[:2] == ["streaming", "streaming"]
        return []

    def tell(progress: Progress) -> None:
        states.append(progress.state)
        told.release()

    with serving(Walsender(plays([]), end=1, answers={"peek_binary_changes": peek})) as server:
        wf.live.follow(server.dsn, tmp_path, slot="s", publication="p", via="sql", once=True, on_progress=tell)


@pytest.mark.parametrize("state", ["snapshot: writes 5000 rows", "streaming: writes a large batch"])
def test_rows_that_are_written_are_counted(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """Also what the slot retains is told meanwhile."""
    monkeypatch.setattr(messages, "_SLICE_BYTES", 100_000)
    monkeypatch.setattr("wireformat.live.progress.LOOK_SECONDS", 0)
    is_snapshot = state.startswith("snapshot")
    seen = list[Progress]()

    def watch(progress: Progress) -> None:
        if progress.state == state:
            seen.append(progress)
            db.execute("select pg_logical_emit_message(true, '', repeat('x', 1000000))")

    if not is_snapshot:
        db.follow(tmp_path / "lake", create_slot=True)
    db.execute(ROWS)
    options = {"create_slot": True, "snapshot": True} if is_snapshot else {"memory_limit": 0}
    db.follow(tmp_path / "lake", on_progress=watch, **options)
    counts = [progress.rows_so_far for progress in seen]
    assert counts[0] == 0 < counts[1] < counts[2]
    assert 4000 < max(counts) <= 5000 + 4
    assert (seen[-1].retained_bytes or 0) > (seen[0].retained_bytes or 0) + 900_000
    assert changes_of(tmp_path / "lake").num_rows == 5000


def test_a_batch_is_finished_though_the_server_is_slow(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is stopped while a large batch is written, and the server takes long to say how far it is."""
    monkeypatch.setattr(messages, "_SLICE_BYTES", 100_000)
    monkeypatch.setattr("wireformat.live.progress.LOOK_SECONDS", 0)
    stop, slow = threading.Event(), list[Connection]()

    def find(connection: Connection) -> Any:
        if stop.is_set():
            slow.append(connection)
            connection.query("select pg_sleep(100)")
        return find_system(connection)

    def stops(progress: Progress) -> None:
        if "writes" in progress.state and progress.rows_so_far:
            stop.set()

    monkeypatch.setattr("wireformat.live.progress.find_system", find)
    db.follow(tmp_path, create_slot=True)
    db.execute(ROWS)
    db.follow(tmp_path, on_progress=stops, stop=stop, memory_limit=0)
    assert slow
    assert changes_of(tmp_path).num_rows == 5000


@pytest.mark.parametrize("is_snapshot", [True, False])
def test_what_progress_raises_meanwhile_is_raised_as_it_is(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_snapshot: bool
) -> None:
    """And the next run begins again with these rows."""
    monkeypatch.setattr(messages, "_SLICE_BYTES", 100_000)

    def fails(progress: Progress) -> None:
        if "writes" in progress.state and progress.rows_so_far:
            raise KeyError("of the caller")

    if not is_snapshot:
        db.follow(tmp_path / "lake", create_slot=True)
    db.execute(ROWS)
    options = {"create_slot": True, "snapshot": True} if is_snapshot else {"memory_limit": 0}
    with pytest.raises(KeyError, match="of the caller"):
        db.follow(tmp_path / "lake", on_progress=fails, **options)
    assert changes_of(tmp_path / "lake").num_rows == 0
    db.follow(tmp_path / "lake")
    assert changes_of(tmp_path / "lake").num_rows == 5000


def test_lines_go_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a log of lines: at once what is new, and now and then that it goes on."""
    now = [1000.0]
    monkeypatch.setattr("wireformat.cli.follow.time", SimpleNamespace(monotonic=lambda: now[0]))
    lines = command._Lines()

    def told(seconds: float, **facts: Any) -> str:
        now[0] += seconds
        lines.show(Progress(**facts))
        return capsys.readouterr().err.removesuffix("\n")

    waits = "snapshot: waits for transactions that are open"
    assert told(0, state=waits) == waits
    assert told(1, state=waits) == ""
    assert told(1, state=waits, blocked_by="the transaction of process 7") == (
        f"{waits}; blocked by the transaction of process 7"
    )
    assert told(1, state="snapshot: public.t", rows_so_far=1000) == "snapshot: public.t, 1000 rows"
    assert told(1, state="snapshot: public.t", rows_so_far=2000) == ""
    assert told(40, state="snapshot: public.t", rows_so_far=3000) == "snapshot: public.t, 3000 rows"
    assert told(1, state="streaming") == "streaming"
    assert told(99, state="streaming") == ""
