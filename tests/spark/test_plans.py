"""The plan of a stream on Spark, without Spark: what an error says of a position."""

from __future__ import annotations

import pytest

import wireformat as wf
from spark_udfs.chunks.plan import plan_stream

from ..capture.streams import TIME, committed, insert, relation
from ..chunks.reading import ChunkedReading

FORMAT = "pgoutput"


def test_a_stream_that_begins_too_late_names_what_was_open() -> None:
    """As on one machine."""
    row = insert("a", values=("1",))
    before = committed(50, relation("a", keys=("a",), identity="default"), row)
    begun = [*before, wf.Begin(xid=5, commit_lsn=100, commit_time=TIME), row]
    later = committed(200, row)
    messages = [*wf.encode([*begun, *later], FORMAT)]
    first = wf.Capture(messages[: len(begun)], FORMAT)
    first.committed().read_all()
    rest = messages[len(begun) :]
    with pytest.raises(wf.OrderError) as whole:
        wf.Capture(rest, FORMAT, after=first.position).committed().read_all()
    (summary,) = ChunkedReading([rest], FORMAT, after=first.position).summaries
    with pytest.raises(wf.OrderError) as found:
        plan_stream("[]", {0: summary}, first.position, "commit", True).check()
    assert found.value.hint == whole.value.hint
    assert "open at the position: plain transaction xid 5" in str(found.value)
