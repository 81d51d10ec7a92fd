"""A table that is dropped and created again: its changes carry another OID, and its rows are those of the new table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wireformat as wf
from wireformat.arrow.typed_tables.latest import earlier_tables

from ..spark.conftest import spark
from .installations import MISSING, installations
from .readings import READINGS, create_slots, peek
from .server import Server, running
from .workload import PUBLICATION

__all__ = ["spark"]

pytestmark = pytest.mark.server

BY_PGOUTPUT = [one for one in READINGS if one.name in ("pgoutput-1", "pgoutput-3-streaming-binary")]


@pytest.fixture(scope="module", params=MISSING)
def done(request: pytest.FixtureRequest) -> Iterator[tuple[Server, list[int]]]:
    """A server with such a table, and the OIDs of the old and of the new one."""
    if request.param not in installations():
        pytest.skip(MISSING[request.param])
    with running(installations()[request.param]) as server, server.connect() as session:
        session.execute(f"create publication {PUBLICATION} for all tables")
        create_slots(session, BY_PGOUTPUT)
        oids = []
        for text in ("old", "new"):
            session.execute("drop table if exists orders")
            session.execute("create table orders (id integer primary key, v text)")
            oids.append(session.execute("select 'orders'::regclass::oid::integer").fetchone()[0])
            session.execute(f"insert into orders values (1, '{text}'), (2, '{text}')")
            session.execute("update orders set id = 3 where id = 2")
        session.execute("truncate orders")
        session.execute("insert into orders values (4, 'new')")
        yield server, oids


@pytest.mark.parametrize("engine", ["scan", "declaration"])
@pytest.mark.parametrize("reading", BY_PGOUTPUT, ids=lambda reading: reading.name)
def test_changes_carry_the_oid(done, reading, engine) -> None:
    server, oids = done
    with server.connect() as session:
        messages = [one.data for one in peek(session, reading)]
    events = [event for event in wf.decode(messages, "pgoutput", engine=engine) if isinstance(event, wf.RowChange)]
    assert [event.relation_id for event in events] == [oids[0]] * 3 + [oids[1]] * 4
    rows = wf.arrow.changes(messages, "pgoutput", engine=engine)
    typed = wf.arrow.typed(wf.arrow.transactions(rows), "public.orders")
    assert typed["_relation_id"].to_pylist() == [oids[0]] * 3 + [oids[1]] * 5


@pytest.mark.spark
@pytest.mark.slow  # a second session, beside the servers
@pytest.mark.parametrize("reading", BY_PGOUTPUT, ids=lambda reading: reading.name)
def test_the_current_table_is_the_new_one(done, reading, spark, caplog) -> None:
    import spark_udfs

    server, oids = done
    with server.connect() as session:
        messages = [(place, bytes(one.data)) for place, one in enumerate(peek(session, reading))]
    raw = spark.createDataFrame(messages, "seq bigint, payload binary").coalesce(1)
    capture = spark_udfs.capture(raw, "payload", "pgoutput", order_by=["seq"])
    assert capture.latest("public.orders").select("id", "v").collect() == [(4, "new")]
    assert [record.getMessage() for record in caplog.records if "latest" in record.getMessage()] == [
        earlier_tables(oids)
    ]
    no_truncate = capture.typed("public.orders").where("_change_type <> 'truncate'")
    assert sorted(spark_udfs.latest(no_truncate, ["id"]).select("id", "v").collect()) == [
        *((1, "new"), (3, "new"), (4, "new"))
    ]
