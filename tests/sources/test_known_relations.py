"""The relations of a position are the same whenever someone looks at it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.sources import resumption
from wireformat.sources.resumption import KnownRelations

from .. import handmade_pgoutput as hand

XIDS = [800, 801]
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
        else:
            found.append(hand.stream_commit(more[0]) if what == "commit" else hand.stream_abort(more[0], more[0]))
    return found


@pytest.mark.parametrize("most", [1, 3, resumption.MOST_LATER_ROWS])
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
        patched.setattr(resumption, "MOST_LATER_ROWS", most)
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
