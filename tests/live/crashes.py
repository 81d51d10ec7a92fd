"""Readers and servers that are killed at random moments, while sessions write; and what the lake must then hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pyarrow as pa

from .databases import LOG, Database, is_ordered_and_unique

ROOT = Path(__file__).parent.parent.parent
MOST_IDS = 200
WAIT_SECONDS = 300
"""How long a busy machine may take to start a reader, or to end one."""


class Reader:
    """`wireformat follow` as a process."""

    def __init__(self, db: Database, lake: Path, metrics: Path, *options: str) -> None:
        self.metrics = metrics
        seen = metrics.stat().st_size if metrics.exists() else 0
        command = [
            *(sys.executable, "-m", "wireformat.cli", "follow", db.dsn, "--slot", db.slot, "--publication", "p"),
            *("--to", lake, "--batch-seconds", "0.05", "--threads", "1", "--metrics", metrics, *options),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [*map(str, command)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._wait_for_metrics(seen)

    def _wait_for_metrics(self, seen: int) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not self.metrics.exists() or self.metrics.stat().st_size == seen:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the reader does not begin: {self.end()}")
            time.sleep(0.01)

    def end(self, how: signal.Signals = signal.SIGKILL) -> tuple[int, str]:
        """Ends it; returns its exit code and what it said."""
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, said.decode()


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs the work in a thread, which ends when the event is set; fails at the end if the work has failed."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work(stop)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert errors == []


@contextmanager
def writing(db: Database, random: Random, pauses: Sequence[float] = (0, 0, 0.002)) -> Iterator[None]:
    """A session changes the table `t` all the time, and a trigger remembers what it did. The server may go and come.

    pauses   seconds after a transaction, of which one is chosen
    """

    def write(stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with db.server.connect(db.name) as session:
                    while not stop.is_set():
                        with session.transaction():
                            for _ in range(random.randrange(1, 8)):
                                session.execute(*statement(random))
                        time.sleep(random.choice(pauses))
            except psycopg.OperationalError:
                time.sleep(0.05)

    with meanwhile(write):
        yield


def statement(random: Random) -> tuple[str, list[Any]]:
    id = random.randrange(MOST_IDS)
    kind = random.randrange(4)
    if kind == 0:
        return "delete from t where id = %s", [id]
    return (
        "insert into t values (%s, %s, %s) on conflict (id) do update set name = excluded.name, price = excluded.price",
        [id, f"name {random.random()}", id],
    )


def prepare(db: Database) -> None:
    db.execute(LOG)


def check_changes(db: Database, changes: pa.Table) -> None:
    """Each change that the trigger saw is there once, in its transaction and order; together they are the table."""
    assert is_ordered_and_unique(changes.select(["_sequence"]))
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    rows: dict[int, tuple[Any, ...]] = {}
    for row in changes.to_pylist():
        found[row["_xid"]].append((row["_change_type"], row["id"]))
        if row["_change_type"] == "delete":
            del rows[row["id"]]
        else:
            rows[row["id"]] = (row["id"], row["name"], row["price"])
    expected: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for xid, operation, id in db.rows("select xid::text::bigint, lower(operation), id from log order by ordinal"):
        expected[xid % (1 << 32)].append((operation, id))
    assert found == expected
    assert sorted(rows.values()) == db.rows("table t order by id")
