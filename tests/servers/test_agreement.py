"""What is decoded from real servers: applied it gives their tables, and every reading says the same changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

import wireformat as wf
from wireformat.pgtypes import SQL_NAMES

from .captures import capture_names, read_capture, read_tables
from .conftest import Runs, Servers
from .gaussdb_styles import STYLES, said_by_gaussdb
from .installations import MISSING
from .readings import LIVE, READINGS, Reading, peek, readings_of
from .replica import Change, Replica, Table, committed, difference
from .server import Server
from .tables import all_tables

FORMATS = {"pgoutput": "pgoutput", "test_decoding": "test-decoding"}
"""The format of each plugin."""

WITH_ROWS = [one for one in READINGS if one.options.get("stream-changes") != "on"]
"""All readings but those where test_decoding streams: it leaves the rows out then."""

LIVE_READINGS = [
    pytest.param(version, one, id=f"{version}-{one.name}")
    for version in MISSING
    for one in WITH_ROWS
    if one in readings_of(version, test_decoding=version == 15)
]


@cache
def decoded(server: Server, reading: Reading) -> list[wf.Event]:
    with server.connect() as session:
        return list(wf.decode([one.data for one in peek(session, reading)], FORMATS[reading.plugin]))


def keys_of(events: Iterable[wf.Event]) -> dict[Table, tuple[str, ...]]:
    """The key of every table that pgoutput describes; test_decoding says none.

    As a table is described first: where it becomes FULL later, its old rows are there to be found by.
    """
    found: dict[Table, tuple[str, ...]] = {}
    for event in events:
        if isinstance(event, wf.Relation):
            found.setdefault((event.table_schema, event.table_name), event.key_columns)
    return found


PLAIN = next(one for one in READINGS if one.name == "pgoutput-1")


@pytest.mark.parametrize(("version", "reading"), LIVE_READINGS)
def test_applied_changes_give_the_tables(servers: Servers, version: int, reading: Reading) -> None:
    server = servers(version)
    replica = Replica(keys_of(decoded(server, PLAIN)) if reading.plugin == "test_decoding" else {})
    replica.apply(decoded(server, reading))
    with server.connect() as session:
        tables = all_tables(session)
    assert sum(map(len, tables.values())) > 500
    assert difference(replica, tables) == {}
    assert bool(replica.binary_columns) == (reading.options.get("binary") == "true")


@pytest.mark.parametrize("version", [version for version in MISSING if version >= LIVE.since])
def test_a_stream_read_while_the_tables_change_gives_the_tables(runs: Runs, version: int) -> None:
    """Over a replication connection, in envelopes; with the streams of transactions that are rolled back later."""
    server, stream = runs(version)
    assert stream is not None
    events = list(wf.decode(stream.payloads, "pgoutput"))
    assert any(isinstance(event, wf.Heartbeat) for event in events)
    assert any(isinstance(event, wf.StreamAbort) and event.xid == event.subxid for event in events)
    replica = Replica()
    replica.apply(events)
    with server.connect() as session:
        assert difference(replica, all_tables(session)) == {}


@pytest.mark.parametrize("name", sorted(capture_names("pgoutput"), reverse=True))
def test_captures_give_the_tables(name: str) -> None:
    """The same of what is stored, without a server."""
    replica = Replica()
    replica.apply(wf.decode(read_capture(name).messages, "pgoutput"))
    assert difference(replica, read_tables(name.split("-")[0])) == {}


Fact = tuple[Any, ...]


PARTITIONED = ("public", "z1")
"""TRUNCATE of it: test_decoding names it and its partitions, pgoutput the partitions alone."""


def facts(changes: Iterable[Change], left_out: set[tuple[Table, str]]) -> list[Fact]:
    """What every reading says of changes: not the types that are not built in, nor NULLs of an old row."""
    found: list[Fact] = []
    for change in changes:
        if isinstance(change, wf.Truncate):
            tables = sorted(set(change.tables) - {PARTITIONED})
            found.append((change.kind, tables, change.cascade, change.restart_identity))
        elif isinstance(change, wf.Message):
            found.append((change.kind, change.prefix, change.content))
        elif isinstance(change, wf.RowChange):
            table = change.table_schema, change.table_name
            old = {name: cell for name, cell in _cells(change.old, table, left_out).items() if cell[0] is not None}
            found.append((change.kind, *table, _cells(change.new, table, left_out), old))
    return found


BUILT_IN = set(SQL_NAMES.values())


def _cells(image: wf.TupleData | None, table: Table, left_out: set[tuple[Table, str]]) -> dict[str, tuple[Any, Any]]:
    if image is None:
        return {}
    return {
        name: (value, type if type in BUILT_IN else None)
        for name, value, type in zip(image.names, image.values, image.types, strict=True)
        if (table, name) not in left_out
    }


def binary_columns(events: Iterable[wf.Event]) -> set[tuple[Table, str]]:
    """Columns with values in a binary form that the package does not read."""
    rows = [event for event in events if isinstance(event, wf.RowChange)]
    return {((row.table_schema, row.table_name), column) for row in rows for column in row.binary}


@pytest.mark.parametrize(("version", "reading"), LIVE_READINGS)
def test_all_readings_say_the_same_changes(servers: Servers, version: int, reading: Reading) -> None:
    """Transaction by transaction, as version 1 of pgoutput; those without changes are left out."""
    server = servers(version)
    plain, other = decoded(server, PLAIN), decoded(server, reading)
    left_out = binary_columns(other)
    ours, theirs = (
        [found for changes in committed(events) if (found := facts(changes, left_out))] for events in (plain, other)
    )
    assert len(ours) > 100
    for number, (left, right) in enumerate(zip(ours, theirs, strict=False)):
        assert left == right, f"transaction {number}"
    assert len(ours) == len(theirs)


@pytest.mark.parametrize(("version", "reading"), LIVE_READINGS)
def test_all_readings_say_the_same_messages_that_count_at_once(
    servers: Servers, version: int, reading: Reading
) -> None:
    ours, theirs = (
        [
            (event.prefix, event.content)
            for event in decoded(servers(version), one)
            if isinstance(event, wf.Message) and not event.transactional
        ]
        for one in (PLAIN, reading)
    )
    assert len(ours) == 5
    assert ours == theirs


@pytest.mark.parametrize("format", STYLES)
def test_written_in_another_style_they_are_the_same_changes(format: str) -> None:
    """The committed changes of a server, written as GaussDB would write them, and read again."""
    said = said_by_gaussdb(wf.decode(read_capture("18-pgoutput-1").messages, "pgoutput"), format)
    back = list(wf.decode(wf.encode(said, format), format))
    ours, theirs = ([facts(changes, set()) for changes in committed(one)] for one in (said, back))
    assert sum(map(len, ours)) > 1500
    assert ours == theirs
