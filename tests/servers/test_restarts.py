"""Servers under random workloads, read whole and over connections that break: what is committed gives their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import pytest

import wireformat as wf

from .breaks import read_with_breaks
from .installations import MISSING, installations
from .random_workload import SESSIONS, RandomWorkload, random_setup
from .readings import LIVE, READINGS, Reading, create_slots, peek, readings_of
from .replica import Replica, Table, difference
from .seeds import run_seed, tell_seed
from .server import Server, running
from .tables import Row, all_tables
from .workload import PUBLICATION

pytestmark = pytest.mark.server

FORMATS = {"pgoutput": "pgoutput", "test_decoding": "test-decoding"}
KEYS = {("public", f"r_{name}"): ("id",) for name in SESSIONS}
NOT_READ = ("public", "unpublished")

SKIP_EMPTY = replace(
    next(one for one in READINGS if one.name == "test-decoding-two-phase"),
    name="test-decoding-two-phase-skip-empty",
    options={"skip-empty-xacts": "on"},
)
ALL = (*READINGS, SKIP_EMPTY)
WHOLE = [
    pytest.param(version, one, id=f"{version}-{one.name}")
    for version in MISSING
    for one in ALL
    if version >= one.since and (version == 15 or one.plugin == "pgoutput")
]
BROKEN = [
    pytest.param(version, one, id=f"{version}-{one.name}")
    for version in MISSING
    for one in READINGS
    if "streaming" in one.options and version >= one.since and one.options["binary"] == "false"
]
"""Versions of the protocol with streamed blocks."""

BREAKS = 5


class Done(NamedTuple):
    """A server that has done a random workload."""

    server: Server
    tables: dict[Table, list[Row]]
    locked: set[str]


@pytest.fixture(scope="module")
def servers_done() -> Iterator[Callable[[int], Done]]:
    """Gives a server by version; skips the test where that version is not installed."""
    with ExitStack() as stack:

        @cache
        def start(version: int) -> Done:
            server = stack.enter_context(running(installations()[version]))
            sessions = {name: stack.enter_context(server.connect()) for name in SESSIONS}
            for sql in random_setup():
                sessions["a"].execute(sql)
            given = readings_of(version, test_decoding=server.installation.has_test_decoding)
            create_slots(sessions["a"], [one for one in given if one is not LIVE])
            workload = RandomWorkload(Random(f"{run_seed()} {version}"))
            for step in workload.steps():
                sessions[step.session].execute(step.sql)
            sessions["a"].execute("checkpoint")  # all that was undone is in the flushed log, too
            found = all_tables(sessions["a"])
            return Done(server, {table: rows for table, rows in found.items() if table != NOT_READ}, workload.locked)

        def give(version: int) -> Done:
            if version not in installations():
                pytest.skip(MISSING[version])
            return start(version)

        yield give


@pytest.fixture(autouse=True)
def seed() -> None:
    tell_seed()


def deliver(events: list[wf.Event], *, apply: bool = True) -> tuple[Replica, tuple[str, ...], list[Any]]:
    """A replica with the committed changes, if they are to be applied; the gids that were not prepared; what came."""
    replica = Replica(dict(KEYS))
    changes = wf.transactions(events)
    told = []
    for change in changes:
        event = change.event
        is_known = not isinstance(event, wf.RowChange) or (event.table_schema, event.table_name) != NOT_READ
        if apply and is_known:
            replica.take(event)
        told.append((*change.sequence, change.xid, event.kind))
    return replica, changes.unknown_prepared, told


def in_arrow(messages: list[bytes], format: str) -> tuple[list[Any], tuple[str, ...]]:
    """What came by Arrow, to compare; the gids that were not prepared."""
    rows = wf.arrow.changes(messages, format)
    with wf.arrow.Transactions() as transactions:
        batches = [batch for part in rows.to_batches(max_chunksize=1000) for batch in transactions.take(part)]
        unknown = transactions.unknown_prepared
    told = [
        (row["sequence"]["commit_lsn"], row["sequence"]["ordinal"], row["xid"], row["kind"])
        for batch in batches
        for row in batch.select(["sequence", "xid", "kind"]).to_pylist()
    ]
    return told, unknown


@pytest.mark.parametrize(("version", "reading"), WHOLE)
def test_in_one_piece(servers_done: Callable[[int], Done], version: int, reading: Reading) -> None:
    """In order, and with the rows of the tables; transactions that only locked deliver nothing and disturb nothing."""
    server, tables, locked = servers_done(version)
    format = FORMATS[reading.plugin]
    with server.connect() as session:
        messages = [one.data for one in peek(session, reading)]
    events = list(wf.decode(messages, format, strict=True))
    has_rows = reading.options.get("stream-changes") != "on"  # test_decoding leaves them out then
    replica, unknown, told = deliver(events, apply=has_rows)
    assert in_arrow(messages, format) == (told, unknown)
    assert not has_rows or difference(replica, tables) == {}
    if not reading.two_phase or version >= 18:
        assert unknown == ()
    elif reading.options.get("skip-empty-xacts") == "on":
        assert set(unknown) >= locked
    else:
        assert set(unknown) == locked


@pytest.mark.parametrize(("version", "reading"), BROKEN)
def test_over_connections_that_break(servers_done: Callable[[int], Done], version: int, reading: Reading) -> None:
    server, tables, locked = servers_done(version)
    random = Random(f"{run_seed()} {version} {reading.name}")
    messages = read_with_breaks(server, reading.slot, reading, random, BREAKS)
    events = list(wf.decode(messages, "pgoutput"))
    replica, unknown, told = deliver(events)
    assert difference(replica, tables) == {}
    assert in_arrow(messages, "pgoutput") == (told, unknown)
    assert set(unknown) == (locked if reading.two_phase and version < 18 else set())
    assert events == list(wf.decode(messages, "pgoutput", engine="declaration"))
    assert broken_blocks(events) > 0


def broken_blocks(events: list[wf.Event]) -> int:
    """How many blocks have no stop."""
    marks = [
        event.kind for event in events if event.kind in ("BEGIN", "COMMIT_PREPARED", "STREAM_START", "STREAM_STOP")
    ]
    return sum(left == "STREAM_START" and right != "STREAM_STOP" for left, right in pairwise(marks))


UNDONE = "insert into t select i, repeat('x', 500) from generate_series({0}, {0} + 300) i"
SAVEPOINTS: dict[str, list[str]] = {
    "and the rest too": [
        "savepoint s",
        UNDONE.format(1000),
        "rollback to s",
        "insert into t values (1, '')",
        "rollback",
    ],
    "with another in it": [
        *("savepoint s", UNDONE.format(2000), "savepoint s2", UNDONE.format(3000), "rollback to s2"),
        *(UNDONE.format(3000), "rollback to s", "insert into t values (2, '')", "rollback"),
    ],
    "and the rest kept": [
        "savepoint s",
        UNDONE.format(4000),
        "rollback to s",
        "insert into t values (3, '')",
        "commit",
    ],
    "and the rest prepared": [
        *("savepoint s", UNDONE.format(5000), "rollback to s", "insert into t values (4, '')"),
        *("prepare transaction 'g'", "commit prepared 'g'"),
    ],
    "behind what is kept": [UNDONE.format(6000), "savepoint s", UNDONE.format(7000), "rollback to s", "commit"],
    "after a first row": ["insert into t values (5, '')", "savepoint s", UNDONE.format(8000), "rollback"],
}


@pytest.mark.parametrize("version", MISSING)
def test_savepoints_that_are_undone(version: int) -> None:
    """PostgreSQL 18 knows at once what was undone, and says so of transactions that never had a block."""
    if version not in installations():
        pytest.skip(MISSING[version])
    readings = [one for one in READINGS if one.plugin == "pgoutput" and version >= one.since]
    with running(installations()[version]) as server, server.connect() as session:
        session.execute("create table t (id integer primary key, v text)")
        session.execute(f"create publication {PUBLICATION} for table t")
        create_slots(session, readings)
        for statements in SAVEPOINTS.values():
            for statement in ("begin", *statements):
                session.execute(statement)
        session.execute("insert into t values (6, '')")
        tables = all_tables(session)
        alone = 0
        for reading in readings:
            events = list(wf.decode([one.data for one in peek(session, reading)], "pgoutput", strict=True))
            alone += sum(isinstance(event, wf.StreamAbort) for event in events[:1])
            replica = Replica()
            replica.keys[("public", "t")] = ("id",)
            for change in wf.transactions(events):
                replica.take(change.event)
            assert difference(replica, tables) == {}, reading.name
    assert (alone > 0) == (version >= 18)
