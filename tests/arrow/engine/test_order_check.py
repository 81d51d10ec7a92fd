"""The order of records is checked on rows as on events: the same facts come out of both."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.columns.rows_from_events import build
from wireformat.arrow.engine.order_check import _COLUMNS, OrderChecked, record_facts
from wireformat.arrow.schemas import CHANGES
from wireformat.events import RecordFacts
from wireformat.stream.reader import Located

BIG = (1 << 64) - 1
EVENTS = [
    wf.Begin(lsn=BIG, xid=BIG, gid="it's"),
    wf.Origin(origin="o"),
    wf.Insert(table_schema="s", table_name="t", xid=5),
    wf.Message(transactional=True, prefix="p"),
    wf.Message(transactional=False, prefix="p"),
    wf.Prepare(xid=1, gid="g"),
    wf.CommitPrepared(xid=1, gid="g"),
    wf.RollbackPrepared(xid=1, gid=""),
    wf.StreamStart(xid=7, first_segment=True),
    wf.StreamStart(xid=7, first_segment=False),
    wf.StreamStart(),
    wf.StreamStop(),
    wf.StreamAbort(xid=7, subxid=BIG),
    wf.StreamAbort(xid=0, subxid=0),
    wf.StreamCommit(xid=7),
    wf.StreamPrepare(xid=7, gid="g"),
    wf.Commit(xid=3),
    wf.Heartbeat(wal_end=1, time=2),
    wf.Corrupt(error="e", raw=b""),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_a_row_has_the_facts_of_its_event(event: wf.Event) -> None:
    (batch,) = build([Located(3, 4, event)], CHANGES, 0)
    (row,) = batch.select(_COLUMNS).to_pylist()
    assert record_facts(row) == RecordFacts.of(event)


class Rows:
    """An engine that has events already, and gives them as one batch or as events."""

    dropped = 0

    def __init__(self, events: list[wf.Event]) -> None:
        self.located = [Located(3, place, event) for place, event in enumerate(events)]

    def events(self, messages: object, first: int = 0) -> object:
        return iter(self.located)

    def batches(self, messages: object, schema: pa.Schema, first: int = 0) -> object:
        yield from build(self.located, schema, 0)


STREAMS = {
    "another transaction": [wf.Begin(xid=BIG), wf.Commit(xid=1)],
    "another name": [wf.Begin(xid=1, gid="a"), wf.Prepare(gid="b")],
    "not the first segment": [wf.StreamStart(xid=7, first_segment=False)],
    "a message of a transaction": [wf.Message(transactional=True, prefix="p")],
    "one that was dropped": [
        *(wf.StreamStart(xid=7), wf.StreamStop(), wf.StreamAbort(xid=7, subxid=7)),
        wf.StreamCommit(lsn=BIG, xid=7),
    ],
    "in order": [
        *(wf.StreamStart(xid=7, first_segment=True), wf.StreamStop(), wf.StreamAbort(xid=7, subxid=8)),
        *(wf.Begin(xid=9, gid="g"), wf.Truncate(tables=(("s", "t"), ("s", "u"))), wf.Prepare(xid=9, gid="g")),
        wf.StreamCommit(xid=7),
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_rows_and_events_end_in_the_same_error(name: str) -> None:
    found: list[str | None] = []
    for read in (lambda engine: engine.events([]), lambda engine: engine.batches([], CHANGES)):
        try:
            list(read(OrderChecked(Rows(STREAMS[name]), "pgoutput")))  # type: ignore[arg-type]
            found.append(None)
        except wf.OrderError as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert (found[0] is None) == (name == "in order")
