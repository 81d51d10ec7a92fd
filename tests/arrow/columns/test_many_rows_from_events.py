"""Rows of many events: they are made some at a time, and are one batch."""

from __future__ import annotations

import pyarrow as pa

import wireformat as wf
from wireformat.arrow.columns.rows_from_events import ROWS_AT_ONCE, build
from wireformat.arrow.schemas import CHANGES, change_schema
from wireformat.stream.reader import Located


def located(count: int) -> list[Located]:
    """Events of several kinds."""
    table, image = {"table_schema": "s", "table_name": "t"}, wf.TupleData(("a", "b"), ("1", None), ("int4", "text"))
    partly = wf.TupleData(("a", "b"), ("1", wf.UNCHANGED), ("int4", "text"))
    events: list[wf.Event] = [
        wf.Begin(lsn=(1 << 64) - 1, commit_time="2026-11-21 01:02:03+00"),
        wf.Insert(**table, new=image, relation_id=7),
        wf.Update(**table, new=partly, old=image, old_kind="key", binary=("a",)),
        wf.Delete(**table, old=image),
        wf.Truncate(tables=(("s", "t"), ("s", "u")), relation_ids=(7, 8), cascade=True),
        wf.Truncate(tables=()),
        wf.Ddl(sql="", prefix="p", size=0),
        wf.Message(transactional=False, prefix="p", content=b"\xff"),
        wf.Corrupt(error="bad", raw=b"\0"),
    ]
    return [Located(index, index % 3, events[index % len(events)]) for index in range(count)]


def test_many_rows_are_those_of_each_event() -> None:
    events = located(2 * ROWS_AT_ONCE + 5)
    for schema in (CHANGES, change_schema(["message", "kind"]), change_schema(["record", "unchanged", "detail"])):
        (whole,) = build(events, schema, 0)
        alone = pa.Table.from_batches(batch for event in events[:9] for batch in build([event], schema, 0))
        assert whole.slice(0, 10).to_pylist() == alone.to_pylist()
        parts = pa.Table.from_batches(
            batch for at in range(0, len(events), 100) for batch in build(events[at : at + 100], schema, 0)
        )
        assert pa.Table.from_batches([whole]).equals(parts)


def test_exactly_as_many_rows_as_are_made_at_once() -> None:
    for count in (0, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1):
        events = [Located(index, 0, wf.Unknown(raw=b"x")) for index in range(count)]
        (batch,) = build(events, CHANGES, 0)
        assert batch["message"].to_pylist() == list(range(count))
