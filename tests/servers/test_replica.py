"""The replica that the agreement tests trust: what it does with each kind of change, by hand-written events."""

from __future__ import annotations

import pytest

import wireformat as wf

from .replica import Replica, difference
from .tables import Row

T = ("public", "t")


def image(**cells: str | wf.Unchanged | None) -> wf.TupleData:
    return wf.TupleData(tuple(cells), tuple(cells.values()), ("text",) * len(cells))


def insert(id: str, v: str | None = None, xid: int | None = None) -> wf.Insert:
    return wf.Insert(table_schema="public", table_name="t", new=image(id=id, v=v), xid=xid)


def update(new: wf.TupleData, old: wf.TupleData | None = None, old_kind: str | None = None) -> wf.Update:
    return wf.Update(table_schema="public", table_name="t", new=new, old=old, old_kind=old_kind)


def delete(old: wf.TupleData, old_kind: str | None = None) -> wf.Delete:
    return wf.Delete(table_schema="public", table_name="t", old=old, old_kind=old_kind)


TRUNCATE = wf.Truncate(tables=(T,))
BEGIN, COMMIT, STOP = wf.Begin(), wf.Commit(), wf.StreamStop()


def start(xid: int, first: bool = True) -> wf.StreamStart:
    return wf.StreamStart(xid=xid, first_segment=first)


ONE: list[wf.Event] = [BEGIN, insert("1", "one"), COMMIT]

CASES: dict[str, tuple[list[wf.Event], list[Row]]] = {
    "an insert": (ONE, [{"id": "1", "v": "one"}]),
    "found by the key in the new row": (
        [*ONE, BEGIN, update(image(id="1", v=None)), COMMIT],
        [{"id": "1", "v": None}],
    ),
    "a key that changes": (
        [*ONE, BEGIN, update(image(id="2", v=wf.UNCHANGED), image(id="1", v=None), "key"), COMMIT],
        [{"id": "2", "v": "one"}],
    ),
    "a full old row": (
        [*ONE, BEGIN, insert("1"), update(image(id="1", v="x"), image(id="1"), None), COMMIT],
        [{"id": "1", "v": "one"}, {"id": "1", "v": "x"}],
    ),
    "one of two equal rows": (
        [*ONE, *ONE, BEGIN, delete(image(id="1", v="one"), "full"), COMMIT],
        [{"id": "1", "v": "one"}],
    ),
    "a truncate": ([*ONE, BEGIN, TRUNCATE, insert("2"), COMMIT], [{"id": "2", "v": None}]),
    "a streamed transaction": (
        [
            start(7),
            insert("1", xid=7),
            STOP,
            start(8),
            insert("2", xid=8),
            STOP,
            start(7, False),
            insert("3", xid=7),
            STOP,
            wf.StreamCommit(xid=7),
            wf.StreamAbort(xid=8, subxid=8),
        ],
        [{"id": "1", "v": None}, {"id": "3", "v": None}],
    ),
    "a subtransaction that is undone": (
        [
            start(7),
            insert("1", xid=7),
            insert("2", xid=9),
            STOP,
            wf.StreamAbort(xid=7, subxid=9),
            wf.StreamCommit(xid=7),
        ],
        [{"id": "1", "v": None}],
    ),
    "two phases": (
        [
            *(BEGIN, insert("1"), wf.Prepare(gid="a"), BEGIN, insert("2"), wf.Prepare(gid="b")),
            *(wf.RollbackPrepared(gid="b"), wf.CommitPrepared(gid="a")),
        ],
        [{"id": "1", "v": None}],
    ),
    "two phases, streamed": (
        [start(7), insert("1", xid=7), STOP, wf.StreamPrepare(xid=7, gid="a"), wf.CommitPrepared(gid="a")],
        [{"id": "1", "v": None}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_events_lead_to_the_rows(name: str) -> None:
    events, rows = CASES[name]
    replica = Replica(keys={T: ("id",)})
    replica.apply(events)
    assert replica.rows[T] == rows
    assert difference(replica, {T: rows}) == {}
    other: Row = {"id": "other", "v": None}
    assert difference(replica, {T: [*rows, other]}) == {T: ([], [other])}


@pytest.mark.parametrize(
    "events",
    [[insert("1")], [BEGIN, BEGIN], [COMMIT], [STOP], [BEGIN, update(image(id="1", v="x")), COMMIT], [start(7, False)]],
)
def test_what_no_server_sends_is_no_replica(events: list[wf.Event]) -> None:
    with pytest.raises(AssertionError):
        Replica(keys={T: ("id",)}).apply(events)


@pytest.mark.parametrize("events", [[BEGIN], [start(7)], [start(7), STOP], [BEGIN, wf.Prepare(gid="a")]])
def test_a_transaction_without_end_is_seen(events: list[wf.Event]) -> None:
    with pytest.raises(AssertionError, match="no end"):
        Replica().apply(events)
