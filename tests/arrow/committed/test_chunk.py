"""A stream in chunks gives what it gives in one piece, wherever it is cut and however its batches are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from tests.arrow.committed.delivery import deliver, open_rows
from wireformat.arrow.committed import batch as transaction_rows
from wireformat.arrow.committed.chunk import Chunk, chunk_schema
from wireformat.arrow.committed.fates import segment_fates

from ...histories import histories, table
from .test_assembler import TWO_PHASE, cut


@pytest.fixture(autouse=True, scope="module", params=[1, transaction_rows.STRETCH])
def stretches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Plain transactions one by one, and also few of them together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_rows, "STRETCH", request.param)
        yield


def read(rows: pa.Table, places: list[int], drop_resent: bool = True) -> tuple[bytes, pa.Table]:
    """One chunk in batches: its summary and its rows."""
    chunk = Chunk(drop_resent=drop_resent, controls=True, memory_limit=0)
    found = [row for piece in cut(rows, places) for batch in piece.to_batches() for row in chunk.take(batch)]
    found += list(chunk.finish())
    chunk.close()
    return chunk.summary, pa.Table.from_batches(found, chunk_schema(rows.schema))


def by_sequence(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(
        rows.to_pylist(), key=lambda row: (row["sequence"]["commit_lsn"], row["sequence"]["ordinal"], row["message"])
    )


PLACES = st.lists(st.integers(0, 60), max_size=5)


@given(histories(losses=True) | histories(), PLACES, PLACES, TWO_PHASE, st.booleans())
def test_chunks_give_the_same(
    events: list[wf.Event], chunks: list[int], batches: list[int], two_phase: str, drop_resent: bool
) -> None:
    rows = table(events)
    read_chunks = [read(piece, batches, drop_resent) for piece in cut(rows, chunks)]
    summaries = [summary for summary, _ in read_chunks]
    try:
        whole = wf.arrow.transactions(rows, two_phase=two_phase, drop_resent=drop_resent)
    except wf.OrderError as error:
        with pytest.raises(wf.OrderError, match=f"^{re.escape(str(error))}$"):
            segment_fates(summaries, two_phase=two_phase, drop_resent=drop_resent)
        return
    fates = segment_fates(summaries, two_phase=two_phase, drop_resent=drop_resent)
    delivered, open = [], []
    for number, (_, found) in enumerate(read_chunks):
        own = fates.filter(pc.equal(fates["chunk"], number))
        delivered += [deliver(batch, own, drop_resent=drop_resent) for batch in found.to_batches()]
        open += [open_rows(batch, own) for batch in found.to_batches()]
    assert by_sequence(pa.Table.from_batches(delivered, whole.schema)) == by_sequence(whole)
    expected = wf.arrow.open_transactions(rows, two_phase=two_phase, drop_resent=drop_resent)
    assert pa.Table.from_batches(open, rows.schema).sort_by("message").equals(expected)
    assert fates.schema.metadata[b"wireformat.position"] == expected.schema.metadata[b"wireformat.position"]


@given(histories(losses=True) | histories(), PLACES)
def test_batches_do_not_matter(events: list[wf.Event], places: list[int]) -> None:
    rows = table(events)
    (summary, found), (other_summary, other) = read(rows, []), read(rows, places)
    assert summary == other_summary
    order = [("_segment", "ascending"), ("message", "ascending"), ("table_name", "ascending")]
    assert found.sort_by(order).equals(other.sort_by(order))


def test_a_summary_does_not_grow_with_plain_transactions() -> None:
    one: list[wf.Event] = [wf.Begin(xid=1), wf.Insert(table_schema="s", table_name="t"), wf.Commit()]
    summary, rows = read(table(one * 1000), [100, 1001])
    assert len(rows) == 1000
    assert len(summary) < 200


def test_a_segment_without_a_fate_is_an_error() -> None:
    _, rows = read(table([wf.Begin(xid=1), wf.Insert(table_schema="s", table_name="t"), wf.Commit()]), [])
    with pytest.raises(ValueError, match="none of segment -1"):
        deliver(rows.to_batches()[0], segment_fates([]))
