"""Columns that identify rows and get another type on a server: no row is current that the server does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg
import pytest

import wireformat as wf

from .installations import MISSING, installations
from .server import Server, running

pytestmark = pytest.mark.server

VERSION = 15
"""The casts are the same in all versions."""

DATES = ("2020-01-01", "2020-01-02 03:04:05.678", "2021-01-01")
NUMBERS = ("1.5", "2.25", "3")
WHOLE = ("1", "2", "3")
IDS = tuple(f"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1{number}" for number in WHOLE)
LETTERS = ("a", "b", "c")
ADDRESSES = ("10.0.0.1", "10.0.0.2", "::1")

KEPT = [
    *(("integer", other, WHOLE) for other in ("bigint", "smallint", "numeric", "numeric(10,2)", "float8", "text")),
    *(("bigint", other, WHOLE) for other in ("integer", "varchar(20)", "numeric(20)")),
    ("real", "float8", ("0.1", "0.5", "3")),
    ("oid", "bigint", WHOLE),
    *(("numeric(10,2)", f"{other}", NUMBERS) for other in ("numeric(12,2)", "numeric(12,4)", "numeric", "text")),
    *(("varchar(10)", other, LETTERS) for other in ("text", "varchar(20)", "varchar")),
    ("text", "varchar(10)", LETTERS),
    *(("date", other, DATES) for other in ("timestamp", "text")),
    ("timestamp(3)", "timestamp", DATES),
    ("timestamp(1)", "timestamp(3)", DATES),
    ("uuid", "text", IDS),
    ("jsonb", "text", ('{"a": 1}', "[1, 2]", "3")),
    ("varbit(9)", "varbit", ("1", "10", "11")),
]
"""Types, others in which the values are the same, and some values."""

OTHER = [
    ("float8", "real", ("0.1", "0.5", "3")),
    ("numeric", "numeric(10,2)", NUMBERS),
    ("numeric(10,2)", "numeric(10,1)", ("1.50", "2.25", "3")),
    *(("char(5)", other, LETTERS) for other in ("char(8)", "text", "varchar(9)")),
    *((type, "char(5)", LETTERS) for type in ("text", "varchar(10)")),
    ("timestamp", "timestamptz", DATES),
    ("timestamptz", "timestamp", DATES),
    ("timestamptz", "text using timezone('Asia/Tokyo', v)::text", DATES),
    ("interval", "interval(0)", ("1.2 s", "5.7 s", "9 s")),
    ("integer", "numeric(5,-2)", ("120", "280", "410")),
    ("timestamp", "date", DATES[1:]),
    ("timestamp", "timestamp(0)", DATES[1:]),
    *(("inet", other, ADDRESSES) for other in ("cidr", "text")),
    ("boolean", "text", ("t", "f")),
    ("boolean", "integer using v::integer", ("t", "f")),
    ("text", "integer using v::integer", ("01", "02", "03")),
    ("text", "jsonb using v::jsonb", ('{"a":1}', "[1,2]", "3")),
    ("bytea", "text using encode(v, 'hex')", (r"\x01", r"\x02", r"\x03")),
    ("date", "integer using v - date '2000-01-01'", DATES),
]
"""Types, others in which the values are not the same."""


class Retyped(NamedTuple):
    """What a server sends of a table, and the ids of its rows at the end."""

    messages: list[bytes]
    ids: list[int]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if VERSION not in installations():
        pytest.skip(MISSING[VERSION])
    with running(installations()[VERSION]) as found:
        yield found


def retyped(server: Server, identity: str, before: str, after: str, values: Sequence[str]) -> Retyped:
    """Rows with these values in `v`, whose type changes: one is updated then, one deleted, others stay."""
    with server.connect() as session:
        session.execute("drop table if exists t")
        session.execute("drop publication if exists p")
        session.execute(f"create table t (id integer, v {before} not null, w text)")
        session.execute(
            "alter table t add primary key (v)" if identity == "key" else "alter table t replica identity full"
        )
        session.execute("create publication p for table t")
        session.execute("select pg_create_logical_replication_slot('s', 'pgoutput', true)")
        for id, value in enumerate(values):
            session.execute("insert into t values (%s, %s, 'old')", (id, value))
        session.execute(f"alter table t alter column v type {after}")
        session.execute("update t set w = 'new' where id = 0")
        session.execute("delete from t where id = 1")
        rows = session.execute(
            "select data from pg_logical_slot_get_binary_changes('s', null, null, 'proto_version', '1', "
            "'publication_names', 'p')"
        ).fetchall()
        session.execute("select pg_drop_replication_slot('s')")
        ids = session.execute("select id from t order by id").fetchall()
    return Retyped([bytes(data) for (data,) in rows], [id for (id,) in ids])


@pytest.mark.parametrize("identity", ["key", "full"])
@pytest.mark.parametrize(("before", "after", "values"), KEPT, ids=lambda item: item if isinstance(item, str) else "")
def test_equal_values(server: Server, identity: str, before: str, after: str, values: Sequence[str]) -> None:
    found = retyped(server, identity, before, after, values)
    rows = wf.Capture(found.messages, "pgoutput").latest("public.t").to_pylist()
    assert sorted(row["id"] for row in rows) == found.ids
    assert all(row["v"] is not None and row["_unchanged"] is None for row in rows)


@pytest.mark.parametrize(("before", "after", "values"), OTHER, ids=lambda item: item if isinstance(item, str) else "")
def test_other_values(server: Server, before: str, after: str, values: Sequence[str]) -> None:
    """They are not known in the rows that did not change; of a key, they have to be."""
    found = retyped(server, "full", before, after, values)
    rows = wf.Capture(found.messages, "pgoutput").latest("public.t").to_pylist()
    assert sorted(row["id"] for row in rows) == found.ids
    assert [row["_unchanged"] for row in rows if row["id"] > 1] == [["v"]] * (len(values) - 2)
    try:
        found = retyped(server, "key", before, after, values)
    except psycopg.errors.UndefinedObject:  # no order of such values
        return
    with pytest.raises(wf.BadRows, match="no value in a column of keys: v"):
        wf.Capture(found.messages, "pgoutput").latest("public.t")
