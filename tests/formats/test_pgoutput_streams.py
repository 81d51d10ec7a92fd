"""Generated streams of pgoutput in many small batches and in openGauss's dialect, and any binary cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.pgtypes import SQL_NAMES, type_oid
from wireformat.pgtypes.binary import has_text

from ..arrow.scan.small_limits import shrink
from ..engines import agree, read
from ..handmade_pgoutput import binary, change, column, image, relation
from ..pgoutput_strategies import streams
from ..strategies import U64, values

FORMAT = "pgoutput"


@given(streams())
def test_with_little_room(events: list[wf.Event]) -> None:
    """Every message in a batch of its own: blocks and descriptions are remembered from one to the next."""
    messages = list(wf.encode(events, FORMAT))
    with pytest.MonkeyPatch.context() as monkeypatch:
        shrink(monkeypatch, MESSAGE_BATCH_ROWS=2, MESSAGE_BATCH_CELLS=12, MESSAGE_BATCH_BYTES=1)
        assert read(messages, format=FORMAT) == events


def test_a_table_has_one_oid_in_all_transactions() -> None:
    """A server keeps it, also where it describes the table anew: a table with another OID is another table."""
    tables = ["orders", "lines"]

    def block(xid: int, *, first: bool = True) -> list[wf.Event]:
        rows = [
            wf.Insert(
                table_schema="public", table_name=table, xid=xid, new=wf.TupleData(("id",), (str(xid),), ("integer",))
            )
            for table in (tables if xid % 2 else reversed(tables))
        ]
        return [wf.StreamStart(xid=xid, first_segment=first), *rows, wf.StreamStop()]

    def commit(xid: int) -> wf.Event:
        time = "2026-11-22 10:00:00+00"
        return wf.StreamCommit(xid=xid, commit_lsn=16 * xid, end_lsn=16 * xid + 8, commit_time=time)

    events = [*block(7), *block(8), *block(7, first=False), commit(7), wf.StreamAbort(xid=8, subxid=8)]
    events += [*block(9), *block(10), commit(9), commit(10)]
    rows = [event for event in wf.decode(wf.encode(events, FORMAT), FORMAT) if isinstance(event, wf.Insert)]
    assert {(row.table_name, row.relation_id) for row in rows} == {("orders", 16384), ("lines", 16385)}
    assert {row.xid for row in rows} == {7, 8, 9, 10}
    capture = wf.Capture(list(wf.encode(events, FORMAT)), FORMAT)
    assert sorted(capture.latest("public.orders", keys=["id"])["id"].to_pylist()) == [7, 9, 10]


def test_an_oid_that_another_table_got_is_not_its_own() -> None:
    """Both tables of the TRUNCATE would have it."""
    time, new = "2026-11-22 10:00:00+00", wf.TupleData(("id",), ("1",), ("integer",))
    events = [
        wf.StreamStart(xid=10, first_segment=True),
        wf.Insert(table_schema="s", table_name="w", xid=10, new=new),
        wf.Relation(
            relation_id=16384,
            table_schema="s",
            table_name="u",
            replica_identity="default",
            columns=("id",),
            type_oids=(23,),
            typmods=(-1,),
            key_columns=("id",),
            xid=10,
        ),
        wf.StreamStop(),
        wf.StreamAbort(xid=10, subxid=10),
        wf.Begin(xid=11, commit_lsn=300, commit_time=time),
        wf.Truncate(tables=(("s", "w"), ("s", "u"))),
        wf.Commit(commit_lsn=300, end_lsn=308, commit_time=time),
    ]
    found = wf.decode(wf.encode(events, FORMAT), FORMAT)
    assert [event.tables for event in found if isinstance(event, wf.Truncate)] == [(("s", "w"), ("s", "u"))]


opengauss = st.one_of(
    st.builds(
        wf.Begin,
        commit_lsn=U64,
        commit_time=st.just("2026-11-21 01:02:03+00"),
        xid=U64,
        csn=st.none() | U64,
    ),
    st.builds(wf.Ddl, lsn=U64, prefix=st.sampled_from(["", "p", "é"]), content=values().map(lambda text: text or "")),
)


@given(st.lists(opengauss, max_size=5))
def test_opengauss(events: list[wf.Event]) -> None:
    messages = list(wf.encode(events, FORMAT, options={"dialect": "opengauss"}))
    assert agree(messages, format=FORMAT, dialect="opengauss").events == events
    rows = wf.arrow.changes(messages, FORMAT, dialect="opengauss")
    for engine in ("scan", "declaration"):
        found = wf.arrow.encode(rows, FORMAT, options={"dialect": "opengauss"}, engine=engine)
        assert found.to_pylist() == messages


BUILT_IN = sorted(name for name in SQL_NAMES.values() if has_text(type_oid(name)))


@given(
    st.sampled_from(BUILT_IN),
    st.lists(
        st.sampled_from([0, 1, 2, 4, 8, 12, 16]).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
        max_size=4,
    ),
    st.sampled_from(["utf-8", "gbk"]),
)
def test_any_binary_cell(name: str, cells: list[bytes], encoding: str) -> None:
    """Both engines make the same text of it, or refuse it; and a value of the wrong size is refused."""
    described = relation(column(b"a", type_oid(name)))
    messages = [described, *(change(b"I", image(b"N", binary(data))) for data in cells)]
    events = agree(messages, format=FORMAT, mode="PERMISSIVE", encoding=encoding).events
    sizes = {"smallint": 2, "integer": 4, "bigint": 8, "boolean": 1, "oid": 4, "real": 4, "uuid": 16}
    for data, event in zip(cells, events[1:], strict=True):
        is_row = isinstance(event, wf.Insert)
        assert name not in sizes or is_row == (len(data) == sizes[name])
        assert name != "date" or len(data) == 4 or not is_row  # some numbers are no dates


def test_an_event_that_is_refused_changes_nothing() -> None:
    """Also not the number of the next relation that is made."""
    good = wf.Insert(table_schema="s", table_name="t", new=wf.TupleData(("a",), ("1",), ("integer",)))
    writer = wf.FORMATS[FORMAT].writer({}, encoding="utf-8", batch_bytes=0)
    with pytest.raises(wf.EncodeError):
        writer.write(replace(good, table_name="u", old=good.new))
    assert writer.write(good) == [*wf.encode([good], FORMAT)]
