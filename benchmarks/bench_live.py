"""wf.live.follow from a server's slot to a lake, against what else reads a slot: all changes are there before."""

from __future__ import annotations

import json
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg import pq

import wireformat as wf
from tests.servers.installations import installations
from tests.servers.server import Server, running

from .measure import Result, Say, interleaved

VERSION = 15
"""Debian's, with test_decoding and pg_recvlogical."""

THREADS = 2
ROWS_OF_A_TRANSACTION = 1000
SMALL_ROWS = 4
"""Rows of a transaction: of a bulk load, and of many small ones."""

FOLLOW_PARQUET, FOLLOW_DELTA = "live.follow, Parquet", "live.follow, Delta"
BARE, RECVLOGICAL = "a loop that receives and drops", "pg_recvlogical into a file"
BY_HAND, SUBSCRIPTION = "test_decoding by hand to JSON lines", "PostgreSQL's subscription"
NAMES = (FOLLOW_PARQUET, FOLLOW_DELTA, BARE, RECVLOGICAL, BY_HAND, SUBSCRIPTION)
SMALL = ", small transactions"
SMALL_NAMES = tuple(f"{name}{SMALL}" for name in (FOLLOW_PARQUET, BARE, SUBSCRIPTION))

TABLE = "create table t (id int primary key, name text, amount numeric(12, 2), at timestamptz, number int)"
ROWS = "insert into t select i, 'some text ' || i, i * 1.5, now(), i %% 100 from generate_series(%s::int, %s::int) i"
OPTIONS = {"proto_version": "1", "publication_names": "p"}

_CELL = re.compile(r"(\w+)\[[^]]+\]:('(?:[^']|'')*'|\S+)")


def measure(changes: int, rounds: int, folder: Path, say: Say) -> dict[str, Result]:
    """Results by name; empty if PostgreSQL 15 is not installed."""
    if VERSION not in installations() or not installations()[VERSION].has_test_decoding:
        say(f"live: PostgreSQL {VERSION} with test_decoding is not installed")
        return {}
    found: dict[str, Result] = {}
    for rows, names, suffix in (
        (ROWS_OF_A_TRANSACTION, NAMES, ""),
        (SMALL_ROWS, [name.removesuffix(SMALL) for name in SMALL_NAMES], SMALL),
    ):
        with running(installations()[VERSION]) as server, running(installations()[VERSION]) as other:
            say(f"live: {changes} changes in transactions of {rows}")
            source = _Source(server, other, folder, changes, rows)
            runs = {name: source.run(name) for name in names}
            size = source.stream_bytes()
            for name, seconds in interleaved(runs, rounds, say).items():
                full = f"{name}{suffix}"
                found[full] = Result(name=full, input_bytes=size, changes=changes, seconds=seconds)
    return found


class _Source:
    """A server with changes, and slots before them."""

    def __init__(self, server: Server, other: Server, folder: Path, changes: int, rows: int) -> None:
        self._server, self._other, self._folder, self._changes = server, other, folder, changes
        self._session, self._target = server.connect(), other.connect()
        self._number = 0
        for session in (self._session, self._target):
            session.execute(TABLE)
        self._session.execute("create publication p for table t")
        for plugin in ("pgoutput", "test_decoding"):
            self._session.execute("select pg_create_logical_replication_slot(%s, %s)", [plugin, plugin])
        for first in range(0, changes, rows):
            self._session.execute(ROWS, [first, min(first + rows, changes) - 1])
        self._end = self._session.execute("select pg_current_wal_flush_lsn()::text").fetchone()[0]  # type: ignore[index]

    @property
    def dsn(self) -> str:
        return f"host={self._server.folder} user=postgres dbname=postgres"

    def run(self, name: str) -> Callable[[], float]:
        """Returns what runs a contestant once, over a slot of its own, and gives its seconds."""
        work = {
            FOLLOW_PARQUET: lambda slot: self._follow(slot, "parquet"),
            FOLLOW_DELTA: lambda slot: self._follow(slot, "delta"),
            BARE: self._bare,
            RECVLOGICAL: self._recvlogical,
            BY_HAND: self._by_hand,
            SUBSCRIPTION: self._subscription,
        }[name]

        def once() -> float:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            with self._slot("test_decoding" if name == BY_HAND else "pgoutput") as slot:
                begun = time.perf_counter()
                rows = work(slot)
                seconds = time.perf_counter() - begun
            if rows != self._changes:
                raise AssertionError(f"{name}: {rows} changes came, there are {self._changes}")
            return seconds

        return once

    def stream_bytes(self) -> int:
        """Returns the size of all messages."""
        with self._slot("pgoutput") as slot:
            return sum(map(len, self._messages(slot)))

    @contextmanager
    def _slot(self, plugin: str) -> Iterator[str]:
        self._number += 1
        name = f"run_{self._number}"
        self._session.execute("select pg_copy_logical_replication_slot(%s, %s)", [plugin, name])
        try:
            yield name
        finally:
            self._session.execute(
                "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s and active",
                [name],
            )
            while self._session.execute(
                "select active from pg_replication_slots where slot_name = %s", [name]
            ).fetchone() == (True,):
                time.sleep(0.01)
            self._session.execute("select pg_drop_replication_slot(%s)", [name])

    def _follow(self, slot: str, format: str) -> int:
        lake = self._folder / "lake"
        position = wf.live.follow(self.dsn, lake, slot=slot, publication="p", format=format, once=True, threads=THREADS)
        assert position.slot is not None
        if format == "parquet":
            return sum(wf.lake.tables(lake)["rows"].to_pylist())
        import deltalake

        return deltalake.DeltaTable(lake / "public" / "t").to_pyarrow_dataset().count_rows()

    def _messages(self, slot: str) -> Iterator[bytes]:
        """Yields the messages of a slot, as a plain loop receives them."""
        connection = pq.PGconn.connect(f"{self.dsn} replication=database".encode())
        options = ", ".join(f"\"{name}\" '{value}'" for name, value in OPTIONS.items())
        connection.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0 ({options})'.encode())
        commits, last = 0, wf.lsn_value(self._end)
        try:
            while True:
                size, data = connection.get_copy_data(1)
                if size > 0:
                    yield data  # type: ignore[misc]
                    if data[0] == ord("w") and data[25] == ord("C"):
                        commits += 1
                        if int.from_bytes(data[35:43], "big") >= last:
                            return
                else:
                    select.select([connection.socket], [], [])
                    connection.consume_input()
        finally:
            connection.finish()

    def _bare(self, slot: str) -> int:
        return sum(len(one) > 25 and one[25] == ord("I") for one in self._messages(slot))

    def _recvlogical(self, slot: str) -> int:
        file = self._folder / "messages"
        program = self._server.installation.bin / "pg_recvlogical"
        options = [part for name, value in OPTIONS.items() for part in ("-o", f"{name}={value}")]
        subprocess.run(
            [program, "-d", self.dsn, "--slot", slot, "--start", "--endpos", self._end, "-f", file, *options],
            check=True,
        )
        return self._changes if file.stat().st_size > self._changes else 0

    def _by_hand(self, slot: str) -> int:
        count = 0
        with (self._folder / "changes.jsonl").open("w") as file, self._server.connect() as session:
            while True:
                rows = session.execute(
                    "select lsn, xid, data from pg_logical_slot_get_changes(%s, null, 10000)", [slot]
                ).fetchall()
                if not rows:
                    return count
                for lsn, xid, data in rows:
                    if data.startswith("table "):
                        _, table, kind, cells = data.split(" ", 3)
                        values = {name: value.strip("'") for name, value in _CELL.findall(cells)}
                        file.write(json.dumps({"lsn": lsn, "xid": xid, "table": table, "kind": kind, **values}) + "\n")
                        count += 1

    def _subscription(self, slot: str) -> int:
        self._target.execute("truncate t")
        self._target.execute(
            f"create subscription s connection '{self.dsn}' publication p "
            f"with (create_slot = false, slot_name = '{slot}', copy_data = false)"
        )
        while True:
            (count,) = self._target.execute("select count(*) from t").fetchone()  # type: ignore[misc]
            if count == self._changes:
                break
            time.sleep(0.02)
        self._target.execute("alter subscription s disable")
        self._target.execute("alter subscription s set (slot_name = none)")
        self._target.execute("drop subscription s")
        return int(count)
