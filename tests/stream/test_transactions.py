"""Committed changes of events: cases by hand, and agreement with the reference on generated histories."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from ..histories import histories, table
from .reference import OutOfOrder, names, reference


def told(change: wf.CommittedChange) -> tuple[Any, ...]:
    """A change as the reference says it."""
    facts = (change.xid, change.csn, change.commit_lsn, change.commit_time, change.username, change.origin)
    (name,) = names(change.event)
    return (tuple(change.sequence), *facts, change.event.kind, name)


@given(histories(), st.sampled_from(["commit", "prepare"]), st.booleans(), st.sampled_from([0, 1 << 20]))
def test_agrees_with_the_reference(
    events: list[wf.Event], two_phase: str, drop_resent: bool, memory_limit: int
) -> None:
    changes = wf.transactions(events, two_phase=two_phase, drop_resent=drop_resent, memory_limit=memory_limit)
    delivered, open = reference(events, two_phase, drop_resent)
    assert [told(change) for change in changes] == delivered
    assert changes.open == open
    changes.close()


@given(histories(losses=True), st.sampled_from(["commit", "prepare"]), st.booleans())
def test_what_is_out_of_order_is_an_error(events: list[wf.Event], two_phase: str, drop_resent: bool) -> None:
    changes = wf.transactions(events, two_phase=two_phase, drop_resent=drop_resent)
    try:
        delivered, open = reference(events, two_phase, drop_resent)
    except OutOfOrder:
        with pytest.raises(wf.OrderError):
            list(changes)
    else:
        assert [told(change) for change in changes] == delivered
        assert changes.open == open


@given(histories(), st.data())
def test_open_events_and_the_rest_give_what_is_missing(events: list[wf.Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    two_phase = data.draw(st.sampled_from(["commit", "prepare"]))
    first = wf.transactions(events[:cut], two_phase=two_phase)
    before = list(first)
    second = wf.transactions([*first.open, *events[cut:]], two_phase=two_phase, after=first.position)
    whole = wf.transactions(events, two_phase=two_phase)
    assert before + list(second) == list(whole)
    assert second.open == whole.open
    assert second.position == whole.position


@given(histories(restarts=False), st.sampled_from(["commit", "prepare"]))
def test_nothing_is_delivered_twice(events: list[wf.Event], two_phase: str) -> None:
    once = list(wf.transactions(events, two_phase=two_phase))
    if any(event.kind in ("BEGIN", "STREAM_START") and event.lsn is None for event in events):
        return  # without positions nobody can know
    again = list(wf.transactions([*events, *events], two_phase=two_phase))
    assert again[: len(once)] == once
    assert len({change.sequence for change in again}) == len(again)
    assert len({told(change)[-1] for change in again}) == len(again)


def insert(name: str, xid: int | None = None) -> wf.Insert:
    return wf.Insert(table_schema="public", table_name=name, new=wf.TupleData(), xid=xid)


def start(xid: int, first: bool | None = None) -> wf.StreamStart:
    return wf.StreamStart(xid=xid, first_segment=first)


def begin(lsn: int, xid: int | None = None) -> wf.Begin:
    return wf.Begin(lsn=lsn, commit_lsn=lsn, xid=xid)


def commit(lsn: int) -> wf.Commit:
    return wf.Commit(lsn=lsn + 1, commit_lsn=lsn)


STOP = wf.StreamStop()

CASES: dict[str, tuple[list[wf.Event], list[tuple[int, int, str]], int]] = {
    "facts of a GaussDB transaction": (
        [wf.Begin(csn=5, first_lsn=1), insert("a"), insert("b"), wf.Commit(lsn=9, xid=7)],
        [(9, 0, "a"), (9, 1, "b")],
        0,
    ),
    "by csn": ([wf.Begin(), insert("a"), wf.Commit(csn=5)], [(5, 0, "a")], 0),
    "by number": ([wf.Begin(), wf.Commit(), wf.Begin(), insert("a"), wf.Commit()], [(2, 0, "a")], 0),
    "interleaved blocks, in the order of their commits": (
        [
            *(start(1), insert("a", 1), STOP, start(2), insert("b", 2), STOP, start(1), insert("c", 1), STOP),
            *(wf.StreamCommit(xid=2, commit_lsn=5), wf.StreamCommit(xid=1, commit_lsn=6)),
        ],
        [(5, 0, "b"), (6, 0, "a"), (6, 1, "c")],
        0,
    ),
    "an ordinal stays free where a subtransaction was undone": (
        [
            *(start(1), insert("a", 2), insert("b", 1), STOP, wf.StreamAbort(xid=1, subxid=2)),
            wf.StreamCommit(xid=1, commit_lsn=5),
        ],
        [(5, 1, "b")],
        0,
    ),
    "a restart in a transaction": (
        [begin(5), insert("a"), begin(5), insert("a"), insert("b"), commit(5)],
        [(5, 0, "a"), (5, 1, "b")],
        0,
    ),
    "a restart behind it": ([begin(5), insert("a"), commit(5), begin(5), insert("a"), commit(5)], [(5, 0, "a")], 0),
    "in CSN order LSNs do not rise": (
        [wf.Begin(csn=1), insert("a"), wf.Commit(lsn=9), wf.Begin(csn=2), insert("b"), wf.Commit(lsn=8)],
        [(9, 0, "a"), (8, 0, "b")],
        0,
    ),
    "a restart with a transaction of a higher csn, that is known": (
        [
            *(wf.Begin(csn=6), insert("a"), wf.Commit(lsn=8), wf.Begin(csn=5), insert("b"), wf.Begin(csn=6)),
            *(insert("a"), wf.Commit(lsn=8), wf.Begin(csn=5), insert("b"), wf.Commit(lsn=9)),
        ],
        [(8, 0, "a"), (9, 0, "b")],
        0,
    ),
    "a restart ends what was streamed: it comes again in one piece": (
        [
            *(start(1), insert("a", 1), STOP, begin(5), insert("b"), begin(5), insert("b"), commit(5)),
            *(begin(6, 1), insert("a"), commit(6)),
        ],
        [(5, 0, "b"), (6, 0, "a")],
        0,
    ),
    "a message by itself": ([wf.Message(transactional=True, prefix="p")], [(1, 0, "p")], 0),
    "a truncate of two tables": (
        [wf.Begin(), wf.Truncate(tables=(("s", "a"), ("s", "b"))), wf.Commit(lsn=5)],
        [(5, 0, "a"), (5, 1, "b")],
        0,
    ),
    "open ones": ([start(1), insert("a"), STOP, wf.Begin(), insert("b")], [], 5),
    "a restart in a block": (
        [start(1, True), insert("a", 1), start(1, True), insert("a", 1), STOP, wf.StreamCommit(xid=1, commit_lsn=5)],
        [(5, 0, "a")],
        0,
    ),
    "an abort of what never came": ([wf.StreamAbort(xid=5, subxid=5), wf.RollbackPrepared(gid="g")], [], 0),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    events, delivered, open = CASES[name]
    changes = wf.transactions(events)
    assert [(*change.sequence, *names(change.event)) for change in changes] == delivered
    assert len(changes.open) == open


def test_facts() -> None:
    events = [wf.Begin(csn=5, commit_time="t", username="u", origin=3), insert("a"), wf.Commit(lsn=9, xid=7)]
    (change,) = wf.transactions(events)
    assert told(change) == ((9, 0), 7, 5, 9, "t", "u", "3", "INSERT", "a")


TWO_PHASE = [wf.Begin(gid="g", lsn=5), insert("a"), wf.Prepare(gid="g", lsn=5, prepare_time="p"), begin(7), commit(7)]


@pytest.mark.parametrize(
    ("end", "two_phase", "delivered"),
    [
        (wf.CommitPrepared(gid="g", commit_lsn=9, commit_time="c"), "commit", [(9, "c")]),
        (wf.CommitPrepared(gid="g", commit_lsn=9, commit_time="c"), "prepare", [(5, "p")]),
        (wf.RollbackPrepared(gid="g"), "commit", []),
        (wf.RollbackPrepared(gid="g"), "prepare", [(5, "p")]),
    ],
)
def test_two_phases(end: wf.Event, two_phase: str, delivered: list[tuple[int, str]]) -> None:
    changes = wf.transactions([*TWO_PHASE, end], two_phase=two_phase)
    assert [(change.commit_lsn, change.commit_time) for change in changes] == delivered
    assert changes.open == []


def test_prepared_before_the_slot_had_two_phases() -> None:
    """It is sent only now, with its old position: not to be taken for one that was sent before."""
    late = [begin(7), commit(7), *TWO_PHASE[:3], wf.CommitPrepared(gid="g", commit_lsn=9)]
    assert [change.commit_lsn for change in wf.transactions(late, two_phase="prepare")] == [9]


def test_prepared_and_committed_and_sent_again() -> None:
    """Its PREPARE is then below what was delivered, as that of one from before the slot had two phases."""
    events = [*TWO_PHASE, wf.CommitPrepared(gid="g", commit_lsn=9)]
    changes = wf.transactions([*events, *events], two_phase="prepare")
    assert [change.commit_lsn for change in changes] == [5]
    assert changes.open == []


def test_a_gid_that_is_used_again() -> None:
    """The end of the first transaction is sent again after the second one was prepared: it does not end that one."""
    second = [wf.Begin(gid="g", lsn=15), insert("b"), wf.Prepare(gid="g", lsn=15)]
    for end in (wf.CommitPrepared(gid="g", commit_lsn=9), wf.RollbackPrepared(gid="g", lsn=6)):
        first = [*TWO_PHASE[:3], end]
        changes = wf.transactions(
            [*first, *second, *first, *second, wf.CommitPrepared(gid="g", commit_lsn=19)], two_phase="prepare"
        )
        assert [change.commit_lsn for change in changes] == [5, 15]
        assert changes.open == []


K, R = (kind(gid="g", xid=7, **at) for kind, at in ((wf.CommitPrepared, {"commit_lsn": 50}), (wf.RollbackPrepared, {})))
P = wf.Prepare(gid="g", xid=7, lsn=40)
OTHER = [begin(60, 8), insert("other"), commit(60)]

UNKNOWN: dict[str, tuple[list[wf.Event], tuple[str, ...]]] = {
    "committed": ([*OTHER, wf.CommitPrepared(gid="g", xid=7, commit_lsn=70)], ("g",)),
    "committed, without positions": ([wf.CommitPrepared(gid="g", xid=7), *OTHER], ("g",)),
    "rolled back": ([R, *OTHER], ("g",)),
    "in the order of their ends, each once": (
        [wf.RollbackPrepared(gid="b"), *(wf.CommitPrepared(gid=gid) for gid in "cab"), *OTHER],
        ("b", "c", "a"),
    ),
    "PostgreSQL 18 prepares what only locks": ([P, K, *OTHER], ()),
    "and rolls it back": ([P, R, *OTHER], ()),
    "twice of one name": ([P, K, *OTHER, wf.CommitPrepared(gid="g", xid=8, commit_lsn=70)], ("g",)),
    "committed and sent again": ([P, K, *OTHER, K], ()),
    "another one": ([P, wf.CommitPrepared(gid="h", xid=8, commit_lsn=50), *OTHER], ("h",)),
    "behind a block that broke": ([start(9, True), insert("a", 9), K, *OTHER], ("g",)),
    "streamed": ([start(7, True), STOP, wf.StreamPrepare(gid="g", xid=7, lsn=40), K, *OTHER], ()),
}


@pytest.mark.parametrize("two_phase", ["commit", "prepare"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_ends_of_what_was_not_prepared(name: str, two_phase: str) -> None:
    """They deliver nothing, and their gids can be asked for."""
    events, gids = UNKNOWN[name]
    changes = wf.transactions(events, two_phase=two_phase)
    assert changes.unknown_prepared == ()
    assert [change.event.table_name for change in changes] == ["other"]
    assert changes.unknown_prepared == gids
    with wf.arrow.Transactions(two_phase=two_phase) as found:
        assert sum(batch.num_rows for batch in found.take(table(events).to_batches()[0])) == 1
        assert found.unknown_prepared == gids


RESTARTED: dict[str, list[wf.Event]] = {
    "a PREPARE alone": [P, *OTHER],
    "an undone subtransaction": [wf.StreamAbort(xid=9, subxid=10), *OTHER],
    "the end of what was not prepared": [R, *OTHER],
}
"""What PostgreSQL 18 may send first to a new connection."""


@pytest.mark.parametrize("name", RESTARTED)
@pytest.mark.parametrize(
    "broken", [OTHER[:2], [wf.Begin(gid="h", lsn=50, xid=3), insert("x")], [start(9, True), insert("x", 9)]]
)
def test_first_behind_a_connection_that_broke(name: str, broken: list[wf.Event]) -> None:
    changes = wf.transactions([*broken, *RESTARTED[name]])
    assert [change.event.table_name for change in changes] == ["other"]
    assert [event.kind for event in changes.open] == (["PREPARE"] if RESTARTED[name][0] is P else [])


def test_what_was_streamed_comes_again_in_one_piece() -> None:
    """PostgreSQL 18 does not stream again what shrank, since it knows by then what was undone."""
    changes = wf.transactions([start(9, True), insert("x", 9), insert("x", 10), STOP, begin(60, 9), *OTHER[1:]])
    assert [change.event.table_name for change in changes] == ["other"]
    assert changes.open == []


BAD: dict[str, tuple[list[wf.Event], str]] = {
    "in the middle": ([insert("a"), wf.Commit()], "BEGIN or STREAM_START before rows"),
    "a message in the middle": ([wf.Message(transactional=True, prefix="p", lsn=1)], "before rows"),
    "an end alone": ([wf.Commit(lsn=5)], "BEGIN before an end"),
    "an area": ([wf.Abort(xid=1)], "BEGIN before an end"),
    "a lost COMMIT": ([begin(5), insert("a"), begin(6)], "the end of the open transaction, or its BEGIN again"),
    "lost COMMITs, where BEGIN says its csn": (
        [wf.Begin(csn=5), insert("a"), wf.Begin(csn=6), insert("b"), wf.Commit(lsn=9)],
        "the end of the open transaction, or its BEGIN again",
    ),
    "another's COMMIT": ([begin(5), insert("a"), commit(6)], "the end of the open transaction"),
    "a lost first block": ([start(1, False)], "the first block"),
    "blocks that do not say their xid": ([wf.StreamStart()], "STREAM_START with an xid"),
    "a PREPARE of another, that comes later": (
        [begin(5, 1), insert("a"), wf.Prepare(gid="g", lsn=6, xid=2)],
        "the end of the open transaction",
    ),
    "an abort of all in a transaction": (
        [begin(5), wf.StreamAbort(xid=1, subxid=1)],
        "the end of the open transaction",
    ),
    "blocks that are lost": ([wf.StreamCommit(xid=1, commit_lsn=5)], "the blocks of this transaction"),
    "a block in a block's end": ([STOP], "STREAM_START of this block"),
    "an end in a block": ([start(1), wf.StreamCommit(xid=1)], "the end of the open transaction"),
    "corrupt": ([wf.Corrupt(error="e", raw=b"")], "an unreadable record is not complete"),
    "a COMMIT of what is to be prepared": (
        [wf.Begin(gid="g", lsn=5), insert("a"), wf.Commit(lsn=5)],
        "PREPARE, since BEGIN has a gid",
    ),
    "an end that came before, in a block": (
        [begin(5), insert("a"), commit(5), start(9, True), commit(5)],
        "BEGIN before an end record",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name: str) -> None:
    events, text = BAD[name]
    with pytest.raises(wf.OrderError, match=text) as caught:
        list(wf.transactions([wf.Heartbeat(wal_end=1, time=1), *events]))
    assert re.search(r", at event [1-9]\](;|$)", str(caught.value))


def test_an_end_that_came_before_needs_no_beginning() -> None:
    assert [change.commit_lsn for change in wf.transactions([begin(5), insert("a"), commit(5), commit(5)])] == [5]


def test_unknown_words() -> None:
    with pytest.raises(wf.OptionError, match="two_phase: expected commit, prepare; got 'x'"):
        wf.transactions([], two_phase="x")


def test_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When they are no longer needed, at close, and with the object."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    block = [start(1), *(insert("a", 1) for _ in range(9)), STOP]
    changes = wf.transactions(iter([*block, wf.StreamCommit(xid=1, commit_lsn=5), *block]), memory_limit=1000)
    assert next(changes).sequence == (5, 0)
    (folder,) = tmp_path.iterdir()
    before = {path.name for path in folder.iterdir()}
    assert before
    assert [change.sequence.ordinal for change in changes] == [*range(1, 9)]
    after = {path.name for path in folder.iterdir()}
    assert after
    assert not before & after
    for path in folder.iterdir():
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            assert reader.schema.names == ["event"]
    assert len(changes.open) == len(block)
    with changes:
        pass
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(wf.StateError, match="open: expected open transactions, but they were closed"):
        _ = changes.open
    other = wf.transactions(block, memory_limit=1000)
    assert list(other) == []
    assert list(tmp_path.iterdir()) != []
    del other
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_held_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small transactions one behind the other make no files, however many they are."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    events = [event for lsn in range(1, 100) for event in (begin(lsn), insert("a"), commit(lsn))]
    assert len(list(wf.transactions(events, memory_limit=5000))) == 99
    assert list(tmp_path.iterdir()) == []


def test_a_gid_that_is_used_again_whose_first_end_was_lost() -> None:
    second = [wf.Begin(gid="g", lsn=15), insert("b"), wf.Prepare(gid="g", lsn=15)]
    changes = wf.transactions([*TWO_PHASE[:3], *second], two_phase="prepare")
    assert [change.commit_lsn for change in changes] == [5, 15]


def test_facts_that_only_a_prepare_has() -> None:
    events = [wf.Begin(gid="g", lsn=5), insert("a"), wf.Prepare(gid="g", lsn=5, xid=7)]
    (change,) = wf.transactions([*events, wf.CommitPrepared(gid="g", commit_lsn=9)])
    assert change.xid == 7


PREPARED = [wf.Begin(gid="g", lsn=5), *(insert("a") for _ in range(9)), wf.Prepare(gid="g", lsn=5)]
BLOCK = [start(1), *(insert("a", 1) for _ in range(9)), STOP]


@pytest.mark.parametrize(
    "events",
    [
        [*PREPARED, *PREPARED, wf.CommitPrepared(gid="g", commit_lsn=9)],
        [*BLOCK, begin(5), insert("b"), begin(5), insert("b"), commit(5)],
        [*BLOCK, begin(5, 1), insert("b"), commit(5)],
    ],
    ids=["prepared", "streamed", "in one piece"],
)
def test_files_of_what_is_sent_again_go(
    events: list[wf.Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    changes = wf.transactions(events, memory_limit=1000)
    assert list(changes)
    (folder,) = tmp_path.iterdir()
    assert list(folder.iterdir()) == []
