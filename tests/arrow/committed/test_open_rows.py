"""Small transactions that stay open over many batches: what is held of them, what it keeps, and how it comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.committed import assembler as committed
from wireformat.arrow.committed import batch as transaction_rows
from wireformat.arrow.committed import open_rows as held_parts
from wireformat.arrow.committed import output as committed_rows
from wireformat.arrow.committed.spill import RowSpill
from wireformat.stream.positions import Position

from ...examples import at_most
from ...histories import histories, table
from ...stream.reference import reference
from .test_assembler import said, told


class Counted(RowSpill):
    """A store that knows how many bytes are in it, and how many batches."""

    def __init__(self) -> None:
        super().__init__(1 << 40)
        self.kept: dict[int, int] = {}

    def put(self, batch: pa.RecordBatch) -> int:
        handle = super().put(batch)
        self.kept[handle] = batch.nbytes
        return handle

    def drop(self, handle: int) -> None:
        super().drop(handle)
        del self.kept[handle]

    @property
    def bytes(self) -> int:
        return sum(self.kept.values())


def block(xid: int, text: str = "x", rows: int = 1) -> list[wf.Event]:
    new = wf.TupleData(("id", "text"), (str(xid), text), ("integer", "text"))
    change = wf.Insert(table_schema="s", table_name=f"t{xid}", new=new, xid=xid)
    return [wf.StreamStart(xid=xid), *[change] * rows, wf.StreamStop()]


LSNS = count(1)


def end(xid: int) -> wf.Event:
    """Of what is committed after all others so far."""
    return wf.StreamCommit(xid=xid, commit_lsn=next(LSNS))


def batches(rows: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        yield from rows.slice(start, size).combine_chunks().to_batches()


def take(transactions: Any, events: list[wf.Event]) -> list[pa.RecordBatch]:
    return [found for batch in table(events).to_batches() for found in transactions.take(batch)]


def names(found: list[pa.RecordBatch]) -> list[str]:
    return [name for batch in found for name in batch["table_name"].to_pylist()]


def small_ones(seed: int) -> list[wf.Event]:
    """Transactions of some blocks, up to twenty at a time, of which most end; rows of some are large."""
    chance = Random(seed)
    open: list[int] = []
    events: list[wf.Event] = []
    for step in range(chance.randint(0, 300)):
        if chance.random() * 20 > len(open):
            xid = step + 1
            open += [xid] if chance.random() < 0.95 else []
            events += block(xid, f"{step}" * (1 if step % 29 else 300), 1 + step % 3)
            continue
        xid = chance.choice(open)
        lsn = 1000 + step
        kind = chance.choices(["block", "undone", "abort", "commit"], [2, 1, 1, 6])[0]
        if kind == "block":
            events += block(xid)
        elif kind == "commit":
            events.append(wf.StreamCommit(xid=xid, lsn=lsn, commit_lsn=lsn))
        else:
            events.append(wf.StreamAbort(xid=xid, subxid=xid if kind == "abort" else xid + 1000, lsn=lsn))
        if kind in ("abort", "commit"):
            open.remove(xid)
    return events


def sent_again(seed: int) -> list[wf.Event]:
    """Transactions of one block or none, with the same few xids; some were open before, and are sent again."""
    chance = Random(seed)
    events: list[wf.Event] = []
    for step in range(chance.randint(0, 60)):
        xid, lsn = chance.randint(1, 9), 1000 + (step if chance.random() < 0.9 else chance.randint(0, step))
        rows = [event for event in block(xid, f"{step}")[1:-1] for _ in range(chance.choice([0, 1, 1, 3]))]
        if chance.random() < 0.2:
            rows.insert(chance.randint(0, len(rows)), wf.Origin(origin=f"node {step}"))
        if chance.random() < 0.1:
            rows.append(wf.Message(transactional=True, prefix=f"{step}", content="x", xid=xid, lsn=lsn))
        if chance.random() < 0.4:
            plain = [replace(row, xid=None) if isinstance(row, wf.Insert) else row for row in rows]
            events += [wf.Begin(xid=xid, commit_lsn=lsn), *plain, wf.Commit(commit_lsn=lsn)]
            continue
        first = chance.choice([True] * 8 + [None])
        events += [wf.StreamStart(xid=xid, first_segment=first), *rows, wf.StreamStop()]
        if chance.random() < 0.1:
            events.append(wf.StreamAbort(xid=xid, subxid=xid + chance.randint(0, 1)))
            events += block(xid) if events[-1].subxid == xid else []
        if chance.random() < 0.8:
            events.append(wf.StreamCommit(xid=xid, commit_lsn=lsn))
    return events


SMALL_ONES = st.builds(small_ones, st.integers(0, 1 << 32))
SENT_AGAIN = st.builds(sent_again, st.integers(0, 1 << 32))
LIMITS = st.fixed_dictionaries(
    {
        "SHARED_BYTES": st.sampled_from([1, 3000, 6000, held_parts.SHARED_BYTES]),
        "MOVED_BYTES": st.sampled_from([1, held_parts.MOVED_BYTES]),
        "OUTPUT_BYTES": st.sampled_from([1, 1000, committed_rows.OUTPUT_BYTES]),
        "FEWEST_TOGETHER": st.sampled_from([1, transaction_rows.FEWEST_TOGETHER]),
        "RECORDS_AT_ONCE": st.sampled_from([1, transaction_rows.RECORDS_AT_ONCE]),
    }
)


@at_most(50)
@given(SMALL_ONES | SENT_AGAIN | histories(), LIMITS, st.sampled_from([1, 7, 60, 1000]), st.sampled_from([0, 1 << 20]))
def test_neither_batches_nor_limits_matter(
    events: list[wf.Event], limits: dict[str, int], size: int, memory_limit: int
) -> None:
    """All agree with the reference, keep the same rows open, and leave nothing behind in the store."""
    delivered, open = reference(events)
    rows = table(events)
    with pytest.MonkeyPatch.context() as patch:
        for module in (held_parts, committed, committed_rows, transaction_rows):
            for name, value in limits.items():
                if hasattr(module, name):
                    patch.setattr(module, name, value)
        with wf.arrow.Transactions(memory_limit=memory_limit) as transactions:
            found = [out for batch in batches(rows, size) for out in transactions.take(batch)]
            left = transactions.open
    assert told(pa.Table.from_batches(found, wf.arrow.committed_schema(rows.schema))) == said(delivered)
    assert left.drop_columns("message").equals(table(open).drop_columns("message"))


@pytest.mark.parametrize("again", ["plain", "streamed"])
@pytest.mark.parametrize("others", [0, 100])
def test_a_streamed_transaction_that_is_sent_again_is_open_no_more(again: str, others: int) -> None:
    """Also among many that are read together."""
    with wf.arrow.Transactions() as transactions:
        assert take(transactions, block(5)) == []
        events: list[wf.Event] = []
        for xid in (5, *range(100, 100 + others)):
            _, row, _ = block(xid)
            if again == "plain":
                events += [wf.Begin(xid=xid, commit_lsn=1000 + xid), row, wf.Commit(commit_lsn=1000 + xid)]
            else:
                start = wf.StreamStart(xid=xid, first_segment=True)
                events += [start, row, wf.StreamStop(), wf.StreamCommit(xid=xid, commit_lsn=1000 + xid)]
        assert len(names(take(transactions, events))) == 1 + others
        assert len(transactions.open) == 0
        assert transactions.describe_open() == []


def test_a_plain_transaction_is_open_whose_blocks_came_without_the_first_one() -> None:
    """They were of an earlier attempt, which says nothing of this one."""
    _, row, stop = block(5)
    with wf.arrow.Transactions() as transactions:
        transactions.continue_after(Position(), {5})
        later_block = [wf.StreamStart(xid=5, first_segment=False), row, stop]
        take(transactions, [*later_block, wf.Begin(xid=5, commit_lsn=10), row])
        assert [one.stage for one, _ in transactions.describe_open()] == ["plain"]


def test_what_is_settled_together_comes_out_together() -> None:
    """Held in one batch and settled in one, and as few batches are held."""
    store = Counted()
    transactions = wf.arrow.Transactions(store=store)
    assert take(transactions, [event for xid in range(1, 1001) for event in block(xid)]) == []
    assert len(store.kept) <= 4
    (found,) = take(transactions, [end(xid) for xid in range(1000, 0, -1)])
    assert names([found]) == [f"t{xid}" for xid in range(1000, 0, -1)]
    assert store.kept == {}


def test_what_comes_out_is_bounded() -> None:
    """However much of one batch, of held ones or of one transaction is settled together."""
    transactions = wf.arrow.Transactions()
    text = "x" * 100_000
    for _ in range(4):
        assert take(transactions, [event for xid in range(1, 101) for event in block(xid, text)]) == []
    found = take(transactions, [end(xid) for xid in range(1, 101)])
    assert names(found) == [f"t{xid}" for xid in range(1, 101) for _ in range(4)]
    fewest = 4 * 100 * len(text) // committed_rows.OUTPUT_BYTES
    assert fewest <= len(found) <= 2 * fewest
    assert max(batch.nbytes for batch in found) < 2 * committed_rows.OUTPUT_BYTES


@pytest.mark.slow
def test_open_ones_keep_little_of_ended_ones() -> None:
    """Each batch leaves a small one open among a thousand that end in the next, and a large one that ends later."""
    store = Counted()
    transactions = wf.arrow.Transactions(store=store)
    alone = wf.arrow.Transactions(store=Counted())
    large = 10**6
    ended: list[wf.Event] = []
    for step in range(40):
        stays, *others = range(1 + 300 * step, 301 + 300 * step)
        events = [*ended, *block(stays), *block(large + step // 10, "x" * 1000, 200)]
        take(transactions, events + [event for xid in others for event in block(xid, "y" * 100)])
        take(alone, block(stays))
        ended = [end(xid) for xid in others] + ([end(large + step // 10)] if step % 10 == 9 else [])
    take(transactions, ended)
    assert transactions.open.drop_columns("message").equals(alone.open.drop_columns("message"))
    assert store.bytes < 2 * alone.open.nbytes + 2 * held_parts.SHARED_BYTES
    assert len(store.kept) <= 5
    assert len(take(transactions, [end(1 + 300 * step) for step in range(40)])) == 1
    assert store.kept == {}


def test_a_large_row_among_small_ones_goes_with_its_transaction() -> None:
    store = Counted()
    transactions = wf.arrow.Transactions(store=store)
    take(transactions, [event for xid in range(1, 101) for event in block(xid, "x" * (10**7 if xid == 50 else 10))])
    assert store.bytes > 10**7
    assert names(take(transactions, [end(50)])) == ["t50"]
    assert store.bytes < 2 * held_parts.SHARED_BYTES


@pytest.mark.slow
def test_files_of_many_small_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that stay open are moved out of files that hold little else."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    limit = 1 << 20
    with wf.arrow.Transactions(memory_limit=limit) as transactions:
        for step in range(30):
            others = range(1 + 500 * step, 501 + 500 * step)
            take(transactions, [event for xid in others for event in block(xid, "x" * 200)])
            take(transactions, [end(xid) for xid in others[1:]])
        on_disk = sum(path.stat().st_size for path in tmp_path.rglob("*.arrows"))
        assert on_disk < 2 * limit
        assert len(transactions.open) == 90
    assert list(tmp_path.iterdir()) == []


def coded(events: list[wf.Event], step: int) -> pa.Table:
    """With a column whose codes fill most of what int8 has room for."""
    rows = table(events)
    words = pa.array([f"{step} {row}" for row in range(100)])
    indices = pa.array([row % 100 for row in range(len(rows))], pa.int8())
    return rows.append_column("code", pa.DictionaryArray.from_arrays(indices, words))


def codes(found: list[pa.RecordBatch]) -> list[str]:
    return [code for batch in found for code in batch["code"].to_pylist()]


def test_dictionaries_that_do_not_fit_together() -> None:
    """They come out apart."""
    transactions = wf.arrow.Transactions()
    for step in range(4):
        (batch,) = coded(block(1) + block(2), step).to_batches()
        assert list(transactions.take(batch)) == []
    assert transactions.open["code"].to_pylist() == [f"{step} {row}" for step in range(4) for row in range(6)]
    found = list(transactions.take(*coded([end(2), end(1)], 5).to_batches()))
    assert codes(found) == [f"{step} {row}" for row in (4, 1) for step in range(4)]
    assert len(found) > 1


def test_dictionaries_that_do_not_fit_together_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays open of some batches is put together where it can be, and else stays apart."""
    monkeypatch.setattr(held_parts, "SHARED_BYTES", 10_000)
    store = Counted()
    transactions = wf.arrow.Transactions(store=store)
    for step in range(4):
        xids = range(100 * step, 100 * step + 30)
        events = [event for xid in xids for event in block(xid)]
        for batch in coded(events, step).to_batches() + coded([end(xid) for xid in xids[2:]], step).to_batches():
            list(transactions.take(batch))
    (batch,) = coded([end(100 * step + xid) for step in range(4) for xid in range(2)], 4).to_batches()
    assert store.bytes < transactions.open.nbytes + 5 * 10_000
    assert codes(list(transactions.take(batch))) == [f"{step} {row}" for step in range(4) for row in (1, 4)]
    assert store.kept == {}


def test_a_state_goes_on_with_shared_batches() -> None:
    store = RowSpill(0)
    state = None
    found = []
    for events in (
        [event for xid in range(1, 301) for event in block(xid, "x" * 2000)],
        [end(xid) for xid in range(1, 250)],
        [end(xid) for xid in range(250, 301)],
    ):
        transactions = wf.arrow.Transactions(store=store, state=state)
        found += take(transactions, events)
        state = transactions.state
    assert names(found) == [f"t{xid}" for xid in range(1, 301)]
    assert len(transactions.open) == 0
