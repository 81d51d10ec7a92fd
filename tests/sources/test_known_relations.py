"""The relations of a position are the same whenever someone looks at it, and whatever says nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.noted import relation_events
from wireformat.formats.pgoutput.relations import OUTSIDE, Relations
from wireformat.sources import known_relations
from wireformat.sources.known_relations import KnownRelations

from .. import handmade_pgoutput as hand
from ..pgoutput_strategies import streams

XIDS = [800, 801]
(BEGIN,) = wf.encode([wf.Begin(xid=7, commit_lsn=9, commit_time=hand.TIME_TEXT)], "pgoutput")
names = st.sampled_from([b"a", b"b"])
relations = st.tuples(st.just("relation"), names, st.sampled_from([1, 2, 3]))
blocks = st.tuples(st.just("block"), st.sampled_from(XIDS), st.lists(relations, max_size=2), st.booleans())
ends = st.tuples(st.sampled_from(["commit", "abort"]), st.sampled_from(XIDS))


def messages_of(said: list[tuple]) -> list[bytes]:
    found = []
    for what, *more in said:
        if what == "relation":
            found.append(hand.relation(hand.column(more[0]), oid=more[1]))
        elif what == "block":
            xid, inside, is_first = more
            described = [hand.relation(hand.column(name), oid=oid, xid=hand.u32(xid)) for _, name, oid in inside]
            found += [hand.start(xid, is_first=is_first), *described, hand.STOP]
        elif what == "broken":
            xid, inside = more
            described = [hand.relation(hand.column(name), oid=oid, xid=hand.u32(xid)) for _, name, oid in inside]
            found += [hand.start(xid), *described, BEGIN]
        else:
            found.append(hand.stream_commit(more[0]) if what == "commit" else hand.stream_abort(more[0], more[0]))
    return found


@pytest.mark.parametrize("most", [1, 3, known_relations.MOST_LATER_ROWS])
@given(
    said=st.lists(st.one_of(relations, blocks, ends), max_size=12),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    open=st.lists(st.one_of(st.none(), st.integers(0, 40)), min_size=8, max_size=8),
    data=st.data(),
)
def test_positions_that_are_looked_at_later(
    most: int, said: list[tuple], cuts: list[int], open: list[int | None], data: st.DataObject
) -> None:
    """`open` are the messages that are still needed at the positions after each piece, or None."""
    messages = messages_of(said)
    rows = wf.arrow.changes(messages, "pgoutput").combine_chunks()
    now, later = KnownRelations(), KnownRelations()
    expected: list[tuple[wf.Relation, ...]] = []
    found: list[Callable[[], tuple[wf.Relation, ...]]] = []
    needed = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(known_relations, "MOST_LATER_ROWS", most)
        for (begin, end), oldest in zip(pairwise([0, *sorted(cuts), len(rows)]), open, strict=False):
            piece = rows.slice(min(begin, len(rows)), max(min(end, len(rows)) - begin, 0))
            messages_seen = min(end, len(rows))
            needed = max(needed, messages_seen if oldest is None else min(oldest, messages_seen))
            for batch in piece.to_batches():
                now.take(batch)
                later.take(batch)
            limit = None if needed == messages_seen else needed
            expected.append(now.before(limit)())
            found.append(later.before(limit))
        order = data.draw(st.permutations(range(len(found))))
        assert {index: found[index]() for index in order} == dict(enumerate(expected))


def test_a_block_that_was_open_at_a_position_may_describe_tables_after_it() -> None:
    messages = messages_of([("relation", b"b", 1), ("block", 800, [("relation", b"a", 1)], True), ("commit", 800)])
    rows = wf.arrow.changes(messages, "pgoutput").combine_chunks().to_batches()[0]
    known = KnownRelations()
    known.take(rows.slice(0, 2))
    assert [one.columns for one in known.before(None)()] == [("b",)]
    known.take(rows.slice(2))
    assert [one.columns for one in known.before(None)()] == [("a",)]


@given(streams(steps=40), st.lists(st.integers(0, 60), max_size=5), st.booleans())
def test_blocks_without_relations_do_not_matter_for_what_is_known(
    events: list[wf.Event], cuts: list[int], is_asked: bool
) -> None:
    rows = wf.arrow.changes(list(wf.encode(events, "pgoutput")), "pgoutput").combine_chunks()
    ends = [*sorted({min(cut, len(rows)) for cut in cuts}), len(rows)]
    known, reference = KnownRelations(), KnownRelations()
    for start, end in zip([0, *ends], ends, strict=False):
        for batch in rows.slice(start, end - start).to_batches():
            known.take(batch)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(known_relations, "_describe_nothing", lambda rows, _: np.zeros(len(rows), bool))
                reference.take(batch)
            oldest = _outside_of_blocks(rows, end // 2)  # as the first message of a transaction is
            one, other = known.before(oldest), reference.before(oldest)
            assert not is_asked or one() == other()
    assert known.before(None)() == reference.before(None)()
    assert [*known.copy().described_in_blocks()] == [*reference.copy().described_in_blocks()]


def _outside_of_blocks(rows: pa.RecordBatch, message: int) -> int:
    """The message, or the one that begins the block in which it is."""
    ends = {"STREAM_STOP", *(kind.kind for kind in OUTSIDE)}
    start = None
    for row in rows.select(["kind", "message", "xid"]).to_pylist():
        if row["message"] >= message:
            break
        if row["kind"] == "STREAM_START":
            start = row["message"]
        elif row["kind"] in ends or (row["kind"] == "MESSAGE" and row["xid"] is None):
            start = None
    return message if start is None else start


broken = st.tuples(st.just("broken"), st.sampled_from(XIDS), st.lists(relations, max_size=2))


@given(
    said=st.lists(st.one_of(relations, blocks, ends, broken), max_size=12),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
@example(said=[("relation", b"b", 1), ("broken", 800, [("relation", b"a", 1)])], cuts=[])
@example(said=[("broken", 800, []), ("relation", b"b", 1), ("block", 801, [], True)], cuts=[2])
@example(said=[("broken", 800, []), ("relation", b"b", 1), ("block", 801, [], True)], cuts=[1, 2])
def test_what_is_known_is_what_all_events_say(said: list[tuple], cuts: list[int]) -> None:
    """The connection breaks in some blocks; the next one begins with a transaction."""
    rows = wf.arrow.changes(messages_of(said), "pgoutput").combine_chunks()
    known, reference = KnownRelations(), Relations()
    for event in wf.decode(messages_of(said), "pgoutput"):
        reference.take(event)
    ends = [*sorted({min(cut, len(rows)) for cut in cuts}), len(rows)]
    for start, end in zip([0, *ends], ends, strict=False):
        for batch in rows.slice(start, end - start).to_batches():
            known.take(batch)
    assert known.before(None)() == reference.known()


def test_transactions_outside_of_blocks_are_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    events_of = relation_events._event
    monkeypatch.setattr(relation_events, "_event", lambda row: (made.append(row), events_of(row))[1])
    events: list[wf.Event] = []
    for lsn in range(10, 110):
        events.append(wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=hand.TIME_TEXT))
        events.append(wf.Commit(commit_lsn=lsn, end_lsn=lsn + 1, commit_time=hand.TIME_TEXT))
    messages = [hand.DESCRIBED, *messages_of([("block", 800, [], True)]), *wf.encode(events, "pgoutput")]
    capture = wf.Capture(messages, "pgoutput")
    capture.committed().read_all()
    assert [one.table_name for one in capture.position.relations] == ["t"]
    assert 0 < len(made) < 10


def test_blocks_without_relations_are_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    events_of = relation_events._event
    monkeypatch.setattr(relation_events, "_event", lambda row: (made.append(row), events_of(row))[1])
    row = wf.Insert(
        table_schema="public", table_name="t", new=wf.TupleData(("id", "v"), ("1", "x"), ("integer", "text"))
    )
    events: list[wf.Event] = [hand.RELATION]
    for xid in range(5, 105):
        events += [wf.StreamStart(xid=xid, first_segment=True), replace(row, xid=xid), wf.StreamStop()]
        events.append(wf.StreamCommit(xid=xid, commit_lsn=xid, end_lsn=xid + 1, commit_time=hand.TIME_TEXT))
    capture = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput")
    assert len(capture.committed().read_all()) == 100
    assert len(capture.position.relations) == 1
    assert 0 < len(made) < 10
