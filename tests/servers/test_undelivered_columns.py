"""Columns that transactions gave a table on a server: the typed rows have those of committed transactions alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import wireformat as wf

from .installations import MISSING, installations
from .server import Server, running

pytestmark = pytest.mark.server

FILL = "insert into t select n, repeat('x', 200) from generate_series({}, {}) n"
"""Rows of this many bytes are streamed once there are some hundreds."""

READ = (
    "select data from pg_logical_slot_get_binary_changes('s', null, null, 'proto_version', '3', "
    "'publication_names', 'p', 'streaming', 'on')"
)

STEPS = {
    "a transaction": ["begin", "alter table t add c text", FILL.format(1, 900), "rollback"],
    "a savepoint": [
        "begin",
        FILL.format(1, 900),
        "savepoint s",
        "alter table t add c text",
        FILL.format(901, 1800),
        "rollback to s",
        FILL.format(1801, 1900),
        "commit",
    ],
    "a released savepoint": [
        "begin",
        "savepoint s",
        "alter table t add d text",
        FILL.format(1, 900),
        "release s",
        FILL.format(901, 1000),
        "commit",
    ],
    "a savepoint after the change": [
        "begin",
        "alter table t add d text",
        "savepoint s",
        FILL.format(1, 900),
        "rollback to s",
        FILL.format(901, 1800),
        "commit",
    ],
    "a savepoint after the change, all at once": [
        (
            "begin; alter table t add d text; savepoint s; "
            f"{FILL.format(1, 900)}; rollback to s; {FILL.format(901, 1800)}; commit"
        )
    ],
    "savepoints in each other": [
        "begin",
        "savepoint s",
        "alter table t add d text",
        "savepoint u",
        FILL.format(1, 900),
        "rollback to u",
        FILL.format(901, 1800),
        "release s",
        FILL.format(1801, 1810),
        "commit",
    ],
    "a prepared transaction that is committed": [
        "begin",
        "alter table t add d text",
        FILL.format(1, 900),
        "prepare transaction 'g'",
        "commit prepared 'g'",
    ],
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("version", [15, 16, 18], indirect=True)
def test_columns(server: Server, name: str) -> None:
    messages, columns = messages_of(server, STEPS[name])
    assert "STREAM_START" in wf.arrow.changes(messages, "pgoutput")["kind"].to_pylist()
    found = wf.Capture(messages, "pgoutput").typed("public.t").read_all()
    assert {*found.schema.names} & set("abcd") == columns
    assert "first" in found["b"].to_pylist()
    assert "last" in found["b"].to_pylist()


@pytest.mark.parametrize("end", ["commit prepared 'g'", "rollback prepared 'g'"])
@pytest.mark.parametrize("version", [15, 16, 18], indirect=True)
def test_rows_after_a_prepared_transaction(server: Server, end: str) -> None:
    """The server does not describe the table to them again."""
    before = ["alter table t add d text", "begin", "insert into t values (1, 'b', 'd')", "prepare transaction 'g'"]
    messages, _ = messages_of(server, [*before, end, "insert into t values (2, 'b', 'kept')"], at_once=True)
    found = wf.Capture(messages, "pgoutput").typed("public.t").read_all()
    assert found["d"].to_pylist() == [None, *(["d"] if end.startswith("commit") else []), "kept", None]


@pytest.fixture(scope="module")
def server(version: int) -> Iterator[Server]:
    if version not in installations():
        pytest.skip(MISSING[version])
    with running(installations()[version]) as found:
        yield found


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def messages_of(server: Server, steps: Sequence[str], *, at_once: bool = False) -> tuple[list[bytes], set[str]]:
    """What the server sends of a table in which these steps come between two rows, and the columns that it has then.

    It is asked after each statement, since it does not send what it knows to be rolled back; or once at the end.
    """
    messages: list[bytes] = []
    with server.connect() as session, server.connect() as reader:
        reader.execute("set logical_decoding_work_mem = '64kB'")
        session.execute("drop table if exists t")
        session.execute("create table if not exists other (n integer)")
        session.execute("drop publication if exists p")
        session.execute("create table t (id integer primary key, b text)")
        session.execute("create publication p for table t")
        session.execute("select pg_create_logical_replication_slot('s', 'pgoutput', false, true)")
        all_steps = ["insert into t values (0, 'first')", *steps, "insert into t values (-1, 'last')"]
        for number, statement in enumerate(all_steps, 1):
            session.execute(statement.encode())
            if at_once and number < len(all_steps):
                continue
            reader.execute("insert into other values (1)")  # its commit has the log written, which is read then
            messages += [bytes(data) for (data,) in reader.execute(READ).fetchall()]
        session.execute("select pg_drop_replication_slot('s')")
        found = session.execute("select attname from pg_attribute where attrelid = 't'::regclass and attnum > 1")
        return messages, {name for (name,) in found.fetchall()}
