"""Rows of undone subtransactions, in Arrow and of plugins: the rule `Attempt.is_undone`, for every combination."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

import pytest

import wireformat as wf
from wireformat.plugin import whole_transactions
from wireformat.stream.attempts import Attempt
from wireformat.stream.controls import Control

from ...histories import table

NUMBERS = (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
"""Unsigned numbers around the places where int64 changes its sign."""

FIRST_XID = 1000


def cases() -> Iterator[tuple[tuple[int, ...], tuple[int | None, ...], int]]:
    """What is undone; the xids of two rows, one a block; behind which block it is undone."""
    undone = [subset for size in range(3) for subset in combinations(NUMBERS, size)]
    yield from product(undone, product((None, *NUMBERS), repeat=2), (0, 1))


def stream() -> tuple[list[wf.Event], list[str]]:
    """A streamed transaction for each case; and the tables of the rows that are committed, by the rule."""
    events: list[wf.Event] = []
    kept = []
    for number, (undone, xids, behind) in enumerate(cases()):
        top = FIRST_XID + number
        attempt: Attempt[None] = Attempt(Control("STREAM_START"), undone={*undone})
        for block, xid in enumerate(xids):
            name = f"{number} {block}"
            new = wf.TupleData(("a",), ("1",), ("integer",))
            row = wf.Insert(table_schema="s", table_name=name, new=new, xid=xid)
            events += [wf.StreamStart(xid=top, first_segment=block == 0), row, wf.StreamStop()]
            if block == behind:
                events += [wf.StreamAbort(xid=top, subxid=subxid) for subxid in undone]
            if not attempt.is_undone(xid):
                kept.append(name)
        events.append(wf.StreamCommit(xid=top, commit_lsn=top, end_lsn=top + 1))
    return events, kept


def names(events: Iterable[wf.Event]) -> list[str]:
    return [event.table_name for event in events if isinstance(event, wf.Insert)]


@pytest.mark.parametrize("pieces", [1, 7])
def test_every_combination(pieces: int) -> None:
    events, kept = stream()
    assert names(change.event for change in wf.transactions(events)) == kept
    assert names(whole_transactions(events)) == kept
    rows = table(events)
    size = -(-len(rows) // pieces)
    batches = [rows.slice(start, size) for start in range(0, len(rows), size)]
    for memory_limit in (0, 1 << 20):
        found = wf.arrow.transactions(batches, memory_limit=memory_limit)
        assert found["table_name"].to_pylist() == kept
    assert 0 < len(kept) < 2 * len([*cases()])
