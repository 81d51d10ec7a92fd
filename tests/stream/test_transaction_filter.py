"""Which transactions are empty: one rule for what is written and what is read, of plain and streamed transactions."""

from __future__ import annotations

import pytest
from hypothesis import given

import wireformat as wf
from wireformat.events import RecordFacts
from wireformat.stream.transaction_filter import TransactionFilter

from ..engines import agree
from ..histories import histories
from ..servers.captures import read_capture

ROW = wf.Insert(table_schema="s", table_name="t", new=wf.TupleData())
BEGIN, COMMIT = wf.Begin(xid=5), wf.Commit()
BLOCK = wf.StreamStart(xid=5), wf.StreamStop(xid=5)
FIRST = wf.StreamStart(xid=5, first_segment=True), wf.StreamStop()
LATER = wf.StreamStart(xid=5, first_segment=False), wf.StreamStop()
CHANGE = wf.StreamChange(xid=5)
ORIGIN = wf.Origin(origin="there")
LOOSE = wf.Message(transactional=False, prefix="p")
OF_TRANSACTION = wf.Message(transactional=True, prefix="p")
COMMIT_PREPARED = wf.CommitPrepared(gid="g")
PART = wf.StreamAbort(xid=5, subxid=6)
STREAM_COMMIT = wf.StreamCommit(xid=5)
CORRUPT = wf.Corrupt(error="e", raw=b"x")


def kept(events: list[wf.Event], users: tuple[str, ...] = ()) -> list[wf.Event]:
    chosen: TransactionFilter[wf.Event] = TransactionFilter(users, True)
    return [
        found
        for event in events
        for found in chosen.take(RecordFacts.of(event), getattr(event, "username", None), event)
    ]


CASES: dict[str, tuple[list[wf.Event], list[wf.Event]]] = {
    "a block, and the end of its transaction": ([*BLOCK, STREAM_COMMIT, BEGIN, ROW, COMMIT], [BEGIN, ROW, COMMIT]),
    "a block of a transaction with others": (
        [*BLOCK, BLOCK[0], CHANGE, BLOCK[1], *BLOCK, STREAM_COMMIT],
        [BLOCK[0], CHANGE, BLOCK[1], STREAM_COMMIT],
    ),
    "a part that is aborted is not the end": ([*BLOCK, PART, STREAM_COMMIT], []),
    "a part that is aborted, of one with changes": (
        [BLOCK[0], CHANGE, BLOCK[1], PART, STREAM_COMMIT],
        [BLOCK[0], CHANGE, BLOCK[1], PART, STREAM_COMMIT],
    ),
    "blocks of pgoutput, which say which is the first": (
        [*FIRST, *LATER, STREAM_COMMIT],
        [*FIRST, *LATER, STREAM_COMMIT],
    ),
    "a transaction of pgoutput that will be prepared": (
        [wf.Begin(gid="g"), wf.Prepare(gid="g"), COMMIT_PREPARED],
        [wf.Begin(gid="g"), wf.Prepare(gid="g"), COMMIT_PREPARED],
    ),
    "a prepared transaction of test_decoding": ([BEGIN, wf.Prepare(gid="g"), COMMIT_PREPARED], [COMMIT_PREPARED]),
    "an ORIGIN waits with its BEGIN": (
        [BEGIN, ORIGIN, COMMIT, BEGIN, ORIGIN, ROW, COMMIT],
        [BEGIN, ORIGIN, ROW, COMMIT],
    ),
    "a message": (
        [BEGIN, LOOSE, COMMIT, BEGIN, OF_TRANSACTION, COMMIT],
        [LOOSE, BEGIN, OF_TRANSACTION, COMMIT],
    ),
    "what begins after a restart": ([BEGIN, BLOCK[0], BEGIN, ROW, COMMIT], [BEGIN, ROW, COMMIT]),
    "blocks that do not say their transaction": (
        [wf.StreamStart(), wf.StreamStop(), wf.StreamCommit()],
        [wf.StreamCommit()],
    ),
    "what cannot be read": (
        [*BLOCK[:1], CORRUPT, BLOCK[1], STREAM_COMMIT],
        [BLOCK[0], CORRUPT, BLOCK[1], STREAM_COMMIT],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept(name: str) -> None:
    events, expected = CASES[name]
    assert kept(events) == expected


def test_a_transaction_of_a_user_leaves_nothing_that_waits() -> None:
    events = [BEGIN, wf.Begin(username="a"), LOOSE, CORRUPT, COMMIT, ROW]
    assert kept(events, ("a",)) == [LOOSE, CORRUPT, ROW]


@given(histories())
def test_committed_changes_are_the_same_without_empty_transactions(events: list[wf.Event]) -> None:
    """Whatever is left out, the rest is a stream in order, with the same changes."""
    expected = [change.event for change in wf.transactions(events)]
    left = kept(events)
    assert [change.event for change in wf.transactions(left)] == expected
    assert kept(left) == left


STREAMS = {
    **dict.fromkeys(("15-test-decoding-streaming", "15-test-decoding-all", "15-test-decoding-plain"), "test-decoding"),
    **dict.fromkeys(("18-pgoutput-1", "18-pgoutput-3-streaming", "18-pgoutput-4-two-phase"), "pgoutput"),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("tables", [["*.none"], None])
def test_captures(name: str, tables: list[str] | None) -> None:
    """Events and rows of both engines agree, and what the rule keeps of the events is what is read."""
    messages, format = read_capture(name).messages, STREAMS[name]
    answer = agree(messages, format=format, tables=tables, skip_empty_xacts=True)
    full = list(wf.decode(messages, format, tables=tables))
    assert answer.events == kept(full)
    assert len(answer.events) < len(full) or tables is None
    assert [change.event for change in wf.transactions(answer.events)] == [
        change.event for change in wf.transactions(full)
    ]
