"""A database in LATIN1: which texts come in the connection's encoding, and which in the database's."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import wireformat as wf
from wireformat.framing.copy_data import ENVELOPE, ENVELOPE_BYTES

from .installations import MISSING, installations
from .readings import READINGS, Reading, create_slots
from .replication import logged_until, payloads_until, start_replication
from .server import START_SECONDS, Server, running
from .workload import PUBLICATION

pytestmark = pytest.mark.server

DATABASE = "latin"
TEXT = next(one for one in READINGS if one.name == "test-decoding-two-phase")
BY_PGOUTPUT = [
    next(one for one in READINGS if one.name == name)
    for name in ("pgoutput-3-streaming", "pgoutput-3-streaming-binary")
]
WAYS = ("SQL function", "walsender")


@pytest.fixture(scope="module", params=MISSING)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param not in installations():
        pytest.skip(MISSING[request.param])
    with running(installations()[request.param]) as server:
        with server.connect() as session:
            session.execute(f"create database {DATABASE} encoding 'LATIN1' template template0 locale 'C'")
        with server.connect(DATABASE, client_encoding="utf8") as session:
            session.execute('create table "té" (id integer primary key, "ü" text)')
            session.execute(f"create publication {PUBLICATION} for all tables")
            create_slots(session, [*BY_PGOUTPUT, *([TEXT] if server.installation.has_test_decoding else [])])
            session.execute("begin")
            session.execute("insert into \"té\" values (1, 'ä')")
            session.execute("select pg_logical_emit_message(true, 'é', 'ö')")
            session.execute("prepare transaction 'gé'")
            session.execute("commit prepared 'gé'")
        yield server


def read(server: Server, reading: Reading, way: str, client_encoding: str) -> list[bytes]:
    if way == "SQL function":
        wait_for_slots(server)
        with server.connect(DATABASE, client_encoding=client_encoding) as session:
            options = [part for pair in reading.options.items() for part in pair]
            query = "select data from pg_logical_slot_peek_binary_changes(%s, null, null, variadic %s::text[])"
            return [bytes(data) for (data,) in session.execute(query, (reading.slot, options))]
    end = logged_until(server)
    connection = start_replication(
        server, reading.slot, reading, f"dbname={DATABASE} client_encoding={client_encoding}"
    )
    found = [payload[ENVELOPE_BYTES:] for payload in payloads_until(connection, end) if payload[0] == ENVELOPE]
    connection.finish()
    wait_for_slots(server)
    return found


def wait_for_slots(server: Server) -> None:
    """The server notices after a while that a connection has ended; on a busy machine this takes seconds."""
    end = time.monotonic() + START_SECONDS
    with server.connect() as session:
        while session.execute("select from pg_replication_slots where active").fetchone():
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client_encoding", ["utf8", "latin1"])
@pytest.mark.parametrize("reading", BY_PGOUTPUT, ids=lambda reading: reading.name)
def test_pgoutput_is_in_the_encoding_of_the_connection(
    server: Server, reading: Reading, client_encoding: str, way: str
) -> None:
    """But the content of a MESSAGE, which is bytes, comes as it is in the database."""
    messages = read(server, reading, way, client_encoding)
    events = list(wf.decode(messages, "pgoutput", encoding=client_encoding))
    (insert,) = (event for event in events if isinstance(event, wf.Insert))
    assert (insert.table_name, insert.new and insert.new.as_dict()) == ("té", {"id": "1", "ü": "ä"})
    (message,) = (event for event in events if isinstance(event, wf.Message))
    assert (message.prefix, message.content) == ("é", "ö" if client_encoding == "latin1" else b"\xf6")
    assert {event.gid for event in events if isinstance(event, (wf.Prepare, wf.CommitPrepared))} == {"gé"}
    assert [change.event.kind for change in wf.transactions(events)] == ["INSERT", "MESSAGE"]
    if client_encoding == "latin1":
        with pytest.raises(wf.DecodeError):
            list(wf.decode(messages, "pgoutput"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client_encoding", ["utf8", "latin1"])
def test_test_decoding_is_in_the_encoding_of_the_database(server: Server, client_encoding: str, way: str) -> None:
    if not server.installation.has_test_decoding:
        pytest.skip("this server has no test_decoding")
    events = list(wf.decode(read(server, TEXT, way, client_encoding), "test-decoding", encoding="latin-1"))
    (insert,) = (event for event in events if isinstance(event, wf.Insert))
    assert (insert.table_name, insert.new and insert.new.as_dict()) == ("té", {"id": "1", "ü": "ä"})
    (message,) = (event for event in events if isinstance(event, wf.Message))
    assert (message.prefix, message.content) == ("é", "ö")
