"""Captures that go on after a server described a table in a streamed transaction, for itself and for later ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from .installations import MISSING, installations
from .readings import Reading
from .replication import streaming, wait_until_sent
from .server import Server, running

pytestmark = pytest.mark.server

FILL = "insert into {} select n, 'new', repeat('x', 200) from generate_series({}, {}) n"
"""Rows of this many bytes are streamed once there are some hundreds."""

READING = Reading("described", "pgoutput", {"proto_version": "2", "publication_names": "p", "streaming": "on"})

ENDS = {"commit": ["commit"], "rollback": ["rollback to s", FILL.format("t", 2001, 2900), "rollback"]}


@pytest.mark.parametrize("version", [15, 16, 18], indirect=True)
@pytest.mark.parametrize("end", ENDS)
def test_rows(server: Server, end: str) -> None:
    """Another streamed transaction is open from before the end of the first one until after the next row."""
    messages, reads = messages_of(server, ENDS[end])
    whole = rows_of(wf.Capture(messages, "pgoutput"))
    assert whole[-3:] == [(("id", str(number)), ("b", "new"), ("c", "last")) for number in (-1, -2, -3)]
    for read in reads:
        first = wf.Capture(messages[:read], "pgoutput")
        rows = rows_of(first)
        needed = min(first.open()["message"].to_pylist(), default=read)
        second = wf.Capture(messages[needed:], "pgoutput", after=position_of(first))
        assert rows + rows_of(second) == whole


def position_of(capture: wf.Capture) -> CapturePosition:
    rows_of(capture)
    return CapturePosition.from_json(capture.position.to_json())


def rows_of(capture: wf.Capture) -> list[tuple[tuple[str, str], ...]]:
    return [tuple(row) for row in capture.committed(tables=["public.t"]).read_all()["new"].to_pylist()]


def messages_of(server: Server, ends: list[str]) -> tuple[list[bytes], list[int]]:
    """What the server sends on one connection, and how many messages after each statement."""
    with server.connect() as one, server.connect() as other:
        for statement in (
            "drop table if exists t, other",
            "drop publication if exists p",
            "create table t (id integer primary key, b text)",
            "create table other (id integer primary key, b text, c text)",
            "create publication p for table t, other",
            "select pg_create_logical_replication_slot('s', 'pgoutput')",
        ):
            one.execute(statement.encode())
        reads = []
        with streaming(server, "s", READING) as stream:
            for session, statement in [
                (one, "insert into t values (0, 'first')"),
                (one, "alter table t add c text"),
                *[(one, each) for each in ("begin", "savepoint s", FILL.format("t", 1, 900))],
                *[(other, each) for each in ("begin", FILL.format("other", 1, 900))],
                (one, FILL.format("t", 901, 1800)),
                *[(one, each) for each in ends],
                (one, "insert into t values (-1, 'new', 'last')"),
                (one, "insert into t values (-2, 'new', 'last')"),
                (other, "commit"),
                (one, "insert into t values (-3, 'new', 'last')"),
            ]:
                session.execute(statement.encode())
                wait_until_sent(server, stream)
                reads.append(len(stream.payloads))
        one.execute("select pg_drop_replication_slot('s')")
        return stream.payloads, reads


@pytest.fixture(scope="module")
def server(version: int) -> Iterator[Server]:
    if version not in installations():
        pytest.skip(MISSING[version])
    with running(installations()[version]) as found:
        yield found


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)
