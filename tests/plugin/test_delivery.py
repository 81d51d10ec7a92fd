"""What a plugin is given that takes transactions only as a whole, or filters some."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.plugin import whole_transactions

from ..servers.captures import read_capture
from .plugins import ALL, called

PLAIN = ALL - {"filter_by_origin", "filter_prepare"}
BASE = {"begin", "change", "commit", "message", "truncate", "other"}
STREAMING = {name for name in PLAIN if name.startswith("stream_")} - {"stream_prepare"}
PREPARED = {"begin_prepare", "prepare", "commit_prepared", "rollback_prepared"}

ENDS = {"commit_lsn": 90, "end_lsn": 95, "commit_time": "then"}
LOOSE = wf.Message(transactional=False, prefix="p")
HEARTBEAT = wf.Heartbeat(wal_end=1, time=2)


def row(number: int, xid: int | None = None) -> wf.Insert:
    image = wf.TupleData(("a",), (str(number),), ("integer",))
    return wf.Insert(table_schema="s", table_name="t", new=image, xid=xid)


def relation(xid: int | None = None) -> wf.Relation:
    return wf.Relation(
        relation_id=1,
        table_schema="s",
        table_name="t",
        replica_identity="full",
        columns=("a",),
        type_oids=(23,),
        typmods=(-1,),
        key_columns=("a",),
        xid=xid,
    )


def block(xid: int, *events: wf.Event, first: bool = True) -> list[wf.Event]:
    return [wf.StreamStart(xid=xid, first_segment=first), *events, wf.StreamStop()]


def plain(xid: int, *events: wf.Event, **facts: Any) -> list[wf.Event]:
    begin = wf.Begin(xid=xid, commit_lsn=90, commit_time="then", **facts)
    return [begin, *events, wf.Commit(lsn=91, **ENDS)]


STREAM_COMMIT = wf.StreamCommit(lsn=91, xid=7, **ENDS)
COMMIT_PREPARED = wf.CommitPrepared(lsn=91, xid=7, gid="g", **ENDS)
STREAM_PREPARE = wf.StreamPrepare(lsn=80, xid=7, end_lsn=81, prepare_time="before", gid="g")
BEGIN_PREPARE = wf.Begin(lsn=80, xid=7, end_lsn=81, prepare_time="before", gid="g")
PREPARE = wf.Prepare(lsn=80, xid=7, end_lsn=81, prepare_time="before", gid="g")
OTHER = plain(8, row(8))

WHOLE: dict[str, tuple[list[wf.Event], list[wf.Event]]] = {
    "ordinary ones stay": (
        [*OTHER, row(1), HEARTBEAT, LOOSE, wf.Abort(xid=1)],
        [*OTHER, row(1), HEARTBEAT, LOOSE, wf.Abort(xid=1)],
    ),
    "blocks": (
        [*block(7, relation(7), row(1, 7)), *OTHER, *block(7, row(2, 9), first=False), STREAM_COMMIT],
        [*OTHER, *plain(7, relation(), row(1), row(2))],
    ),
    "blocks of two": (
        [
            *block(7, row(1, 7)),
            *block(6, row(2, 6)),
            *block(7, row(3, 7)),
            STREAM_COMMIT,
            wf.StreamAbort(xid=6, subxid=6),
        ],
        plain(7, row(1), row(3)),
    ),
    "an aborted subtransaction": (
        [*block(7, row(1, 7), row(2, 9), row(3, 10)), wf.StreamAbort(xid=7, subxid=9), STREAM_COMMIT],
        plain(7, row(1), row(3)),
    ),
    "an aborted transaction": ([*block(7, row(1, 7)), wf.StreamAbort(xid=7, subxid=7), *OTHER], OTHER),
    "what overtakes": ([*block(7, HEARTBEAT, row(1, 7), LOOSE), STREAM_COMMIT], [HEARTBEAT, LOOSE, *plain(7, row(1))]),
    "a prepared one": (
        [BEGIN_PREPARE, relation(), row(1), PREPARE, *OTHER, COMMIT_PREPARED],
        [relation(), *OTHER, *plain(7, row(1))],
    ),
    "a prepared one, rolled back": ([BEGIN_PREPARE, row(1), PREPARE, *OTHER, wf.RollbackPrepared(gid="g")], OTHER),
    "one that was rolled back and not prepared here": ([wf.RollbackPrepared(gid="g"), *OTHER], OTHER),
    "one that was committed and not prepared here": ([COMMIT_PREPARED, *OTHER], OTHER),
    "a name used twice": (
        [BEGIN_PREPARE, row(1), PREPARE, COMMIT_PREPARED, BEGIN_PREPARE, row(2), PREPARE, COMMIT_PREPARED],
        [*plain(7, row(1)), *plain(7, row(2))],
    ),
    "a streamed and prepared one": (
        [*block(7, row(1, 7)), STREAM_PREPARE, *OTHER, COMMIT_PREPARED],
        [*OTHER, *plain(7, row(1))],
    ),
    "origin and csn stay": (
        [wf.Begin(xid=7, gid="g", csn=4, origin=2), row(1), PREPARE, COMMIT_PREPARED],
        plain(7, row(1), csn=4, origin=2),
    ),
    "PostgreSQL 18's PREPARE of nothing": ([PREPARE, *OTHER, COMMIT_PREPARED], [*OTHER, *plain(7)]),
    "PostgreSQL 18's PREPARE of nothing, rolled back": ([PREPARE, wf.RollbackPrepared(gid="g"), *OTHER], OTHER),
    "openGauss's PREPARE": ([row(1), wf.Prepare(xid=1), *OTHER], [row(1), *OTHER]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_transactions(name: str) -> None:
    events, expected = WHOLE[name]
    assert list(whole_transactions(events)) == expected


def test_a_plugin_without_streaming_gets_them_whole() -> None:
    events = [*block(7, row(1, 7)), STREAM_PREPARE, COMMIT_PREPARED, *block(6, row(2, 6)), wf.StreamCommit(xid=6)]
    assert [call[0] for call in called(events, BASE)] == ["begin", "change", "commit"] * 2
    assert [call[0] for call in called(events, BASE | PREPARED)] == [
        *("begin_prepare", "change", "prepare", "commit_prepared"),
        *("begin", "change", "commit"),
    ]
    assert called(events, BASE | PREPARED)[0] == ("begin_prepare", BEGIN_PREPARE)
    assert called(events, BASE | PREPARED)[2] == ("prepare", PREPARE)


def test_a_plugin_without_two_phase_commit_gets_blocks_committed() -> None:
    start = block(7, row(1, 7))
    calls = called([*start, STREAM_PREPARE, COMMIT_PREPARED], BASE | STREAMING)
    assert calls[-1] == ("stream_commit", STREAM_COMMIT)
    assert [call[0] for call in calls[:-1]] == ["stream_start", "stream_change", "stream_stop"]
    rolled_back = wf.RollbackPrepared(xid=7, gid="g", commit_time="then")
    calls = called([*start, STREAM_PREPARE, rolled_back], BASE | STREAMING)
    assert calls[-1] == ("stream_abort", wf.StreamAbort(xid=7, subxid=7, commit_time="then"))


MISSING: dict[str, tuple[list[wf.Event], str]] = {
    "a streamed one": ([STREAM_COMMIT], "STREAM_COMMIT: .* began before the first event"),
    "a streamed and prepared one": (
        [STREAM_PREPARE, COMMIT_PREPARED],
        "STREAM_PREPARE: .* began before the first event",
    ),
    "BEGIN without a name": ([wf.Begin(xid=7), row(1), PREPARE], "PREPARE: .* its BEGIN, which did not say"),
    "rows that are not there": (block(7, wf.StreamChange(xid=7)), "STREAM_CHANGE: the stream does not say which row"),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_cannot_be_delivered_whole(name: str) -> None:
    events, words = MISSING[name]
    with pytest.raises(wf.PluginError, match=words):
        list(whole_transactions(events))


def test_ends_of_what_was_not_prepared_can_be_asked_for() -> None:
    """PostgreSQL before 18 sends nothing else of a prepared transaction that only locked rows."""
    known = [BEGIN_PREPARE, row(1), PREPARE, COMMIT_PREPARED]
    lost = [wf.CommitPrepared(xid=9, gid="h"), wf.RollbackPrepared(gid="i"), COMMIT_PREPARED, COMMIT_PREPARED]
    events = whole_transactions([*known, *lost])
    assert list(events) == plain(7, row(1))
    assert events.unknown_prepared == ("h", "i", "g")


def test_a_plugin_that_filters_one_gets_no_end_of_it() -> None:
    calls = called([COMMIT_PREPARED, wf.CommitPrepared(gid="h")], PLAIN | {"filter_prepare"}, {"g"})
    assert [call[0] for call in calls] == ["filter_prepare", "filter_prepare", "commit_prepared"]


@pytest.mark.parametrize("event", [COMMIT_PREPARED, STREAM_COMMIT, STREAM_PREPARE, wf.RollbackPrepared(gid="g")])
def test_a_plugin_that_takes_pieces_gets_an_end_alone(event: wf.Event) -> None:
    assert called([event], ALL)[-1][1] == event


def test_what_could_not_be_read_is_never_left_out() -> None:
    corrupt = wf.Corrupt(error="e", raw=b"x")
    for events in ([BEGIN_PREPARE, corrupt], block(7, corrupt), [wf.Begin(origin=5), corrupt]):
        for answers in (set(), {5, None}):
            with pytest.raises(wf.EncodeError, match="CORRUPT"):
                called(events, BASE | {"filter_by_origin"}, answers)


def test_a_prepare_without_a_name_is_not_asked_for() -> None:
    """openGauss's, where an area of the log is decoded."""
    event = wf.Prepare(xid=1)
    assert called([event], PLAIN | {"filter_prepare"}, {"g", None}) == [("prepare", event)]


ORIGIN = wf.Origin(origin="there")


def test_origins_are_asked_for_once() -> None:
    events = [
        *plain(1, ORIGIN, row(1)),
        *plain(2, row(2)),
        *plain(3, row(3), origin=5),
        *block(7, ORIGIN, row(4, 7)),
        *block(7, row(5, 7), first=False),
        STREAM_COMMIT,
        *block(6, row(6, 6)),
        *block(6),
        wf.StreamAbort(xid=6, subxid=6),
        wf.Begin(gid="g"),
        ORIGIN,
        wf.Prepare(gid="g"),
    ]
    calls = called(events, PLAIN | {"filter_by_origin"})
    assert [call[1] for call in calls if call[0] == "filter_by_origin"] == ["there", None, 5, "there", None, "there"]
    assert [call[1] for call in calls if call[0] != "filter_by_origin"] == events


def test_a_filtered_transaction_delivers_nothing() -> None:
    kept = [*OTHER, *block(6, row(6, 6)), wf.StreamCommit(xid=6)]
    events = [
        *plain(1, ORIGIN, relation(), row(1), HEARTBEAT, LOOSE, wf.Unknown(raw=b"?")),
        *plain(3, row(3), origin=5),
        *block(7, ORIGIN, relation(7), row(4, 7)),
        *block(7, row(5, 7), first=False),
        wf.StreamAbort(xid=7, subxid=9),
        STREAM_PREPARE,
        COMMIT_PREPARED,
        wf.Begin(gid="h"),
        ORIGIN,
        wf.Prepare(gid="h"),
        wf.RollbackPrepared(gid="h"),
        *kept,
    ]
    for names in (PLAIN, BASE | STREAMING | {"stream_prepare"} | PREPARED):
        calls = called(events, names | {"filter_by_origin"}, {"there", 5})
        found = [call[1] for call in calls if call[0] != "filter_by_origin"]
        assert found == [relation(), HEARTBEAT, LOOSE, *kept]


def test_a_filtered_prepare_comes_when_it_is_committed() -> None:
    prepared = [BEGIN_PREPARE, row(1), PREPARE]
    streamed = [*block(7, row(2, 7)), STREAM_PREPARE]
    for answers, expected in (
        (set(), ["begin_prepare", "change", "prepare", "begin", "change", "commit", "commit_prepared"]),
        ({"g"}, ["begin", "change", "commit", "begin", "change", "commit"]),
    ):
        calls = called([*prepared, *OTHER, COMMIT_PREPARED], PLAIN | {"filter_prepare"}, answers)
        assert [call[0] for call in calls if call[0] != "filter_prepare"] == expected
        assert ("filter_prepare", 7, "g") in calls
    calls = called([*streamed, COMMIT_PREPARED], PLAIN | {"filter_prepare"}, {"g"})
    assert [call[0] for call in calls][-1] == "stream_commit"
    with pytest.raises(wf.PluginError, match=r"PREPARE: .* filters this one"):
        called([wf.Begin(), row(1), PREPARE], PLAIN | {"filter_prepare"}, {"g"})


@st.composite
def interleaved(draw: Any) -> tuple[list[wf.Event], dict[int, list[int]]]:
    """Streamed transactions in blocks, mixed; and the rows of each that is committed, in order."""
    count = draw(st.integers(1, 4))
    rows: dict[int, list[tuple[int, int]]] = {xid: [] for xid in range(1, count + 1)}
    events: list[wf.Event] = []
    committed: dict[int, list[int]] = {}
    number = 0
    undone: set[int] = set()
    alive = set(rows)
    for _ in range(draw(st.integers(0, 12))):
        if not alive:
            break
        xid = draw(st.sampled_from(sorted(alive)))
        action = draw(st.sampled_from(["block", "block", "abort one", "commit", "abort", "prepare"]))
        started = any(isinstance(event, wf.StreamStart) and event.xid == xid for event in events)
        if action == "block" or not started:
            found = [xid, xid * 100 + 1, *([] if xid in undone else [xid * 100])]
            added = [(draw(st.sampled_from(found)), number + place) for place in range(draw(st.integers(0, 3)))]
            number += len(added)
            rows[xid] += added
            events += block(xid, *(row(value, sub) for sub, value in added))
        elif action == "abort one":
            sub = xid * 100
            undone.add(xid)
            rows[xid] = [pair for pair in rows[xid] if pair[0] != sub]
            events.append(wf.StreamAbort(xid=xid, subxid=sub))
        else:
            alive.discard(xid)
            if action == "prepare":
                events.append(wf.StreamPrepare(xid=xid, gid=str(xid)))
                events.append(wf.CommitPrepared(xid=xid, gid=str(xid)))
            else:
                end = wf.StreamCommit(xid=xid) if action == "commit" else wf.StreamAbort(xid=xid, subxid=xid)
                events.append(end)
            if action != "abort":
                committed[xid] = [value for _, value in rows[xid]]
    return events, committed


@given(interleaved())
def test_committed_rows_come_once_and_in_order(case: tuple[list[wf.Event], dict[int, list[int]]]) -> None:
    events, committed = case
    expected = [
        event for xid, numbers in committed.items() for event in (wf.Begin(xid=xid), *map(row, numbers), wf.Commit())
    ]
    assert list(whole_transactions(events)) == expected


def sent_by_the_server(name: str) -> list[wf.Event]:
    return list(wf.decode(read_capture(name).messages, "pgoutput", strict=True))


@pytest.mark.parametrize("reading", ["2", "3", "4-two-phase"])
def test_whole_transactions_are_what_the_server_sends_without_pieces(reading: str) -> None:
    """The same workload, sent once with blocks and prepared transactions and once without, differs in nothing else."""
    plain = sent_by_the_server("18-pgoutput-1")
    pieces = sent_by_the_server(f"18-pgoutput-{reading}")
    assert any(isinstance(event, (wf.StreamCommit, wf.CommitPrepared)) for event in pieces)
    rows = [event for event in whole_transactions(pieces) if not isinstance(event, (wf.Relation, wf.Type))]
    assert rows == [event for event in plain if not isinstance(event, (wf.Relation, wf.Type))]


def test_whole_transactions_can_be_written_without_words_for_pieces() -> None:
    """Every record comes back, and in an order that needs neither blocks nor prepared transactions."""
    events = list(whole_transactions(sent_by_the_server("18-pgoutput-4-two-phase")))
    messages = list(wf.encode(events, "pgoutput"))
    assert list(wf.decode(messages, "pgoutput", strict=True)) == events
