"""The plan of a stream on Spark, without Spark: what an error says of a position."""

from __future__ import annotations

import pytest

import wireformat as wf
from spark_udfs.chunks.plan import plan_stream

from ..chunks.reading import ChunkedReading
from ..streamed_histories import FORMAT, TIME, insert, relation


def test_a_stream_that_begins_too_late_names_what_was_open() -> None:
    """As on one machine."""
    begun = [
        wf.Begin(xid=4, commit_lsn=50, commit_time=TIME),
        relation(1, "a"),
        insert(1, "a", "0"),
        wf.Commit(commit_lsn=50, end_lsn=58, commit_time=TIME),
        wf.Begin(xid=5, commit_lsn=100, commit_time=TIME),
        insert(1, "a", "1"),
    ]
    later = [
        wf.Begin(xid=6, commit_lsn=200, commit_time=TIME),
        insert(1, "a", "2"),
        wf.Commit(commit_lsn=200, end_lsn=208, commit_time=TIME),
    ]
    messages = [*map(bytes, wf.encode([*begun, *later], FORMAT))]
    first = wf.Capture(messages[: len(begun)], FORMAT)
    first.committed().read_all()
    rest = messages[len(begun) :]
    with pytest.raises(wf.OrderError) as whole:
        wf.Capture(rest, FORMAT, after=first.position).committed().read_all()
    (summary,) = ChunkedReading([rest], FORMAT, after=first.position).summaries
    with pytest.raises(wf.OrderError) as found:
        plan_stream("[]", {0: summary}, first.position, "commit", True)
    assert found.value.hint == whole.value.hint
    assert "open at the position: plain transaction xid 5" in str(found.value)
