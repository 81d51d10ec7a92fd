"""Row-only transactions are checked and filtered together: rows must end as events do, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.columns.rows_from_events import build
from wireformat.arrow.engine.order_check import OrderChecked, row_only_transactions
from wireformat.arrow.engine.transaction_filter import FilteredTransactions
from wireformat.arrow.schemas import CHANGES
from wireformat.options import ReadOptions
from wireformat.stream.reader import Located

ROW = wf.Insert(table_schema="s", table_name="t", new=wf.TupleData())
XIDS = st.sampled_from([None, 7, 8, 1 << 63])
PLAIN = st.builds(
    lambda xid, rows: [wf.Begin(xid=xid), *[ROW] * rows, wf.Commit(xid=xid)], XIDS, st.sampled_from([0, 0, 1, 3])
)
ODD = st.one_of(
    st.builds(wf.Begin, xid=XIDS, gid=st.sampled_from([None, "g"]), username=st.sampled_from([None, "u"])),
    st.builds(wf.Commit, xid=XIDS),
    st.builds(wf.Prepare, xid=XIDS, gid=st.sampled_from([None, "g"])),
    st.builds(wf.StreamStart, xid=XIDS),
    st.builds(wf.StreamCommit, xid=XIDS),
    st.builds(wf.Message, transactional=st.booleans(), prefix=st.just("p")),
    st.sampled_from(
        [ROW, wf.StreamStop(), wf.Origin(origin="o"), wf.Heartbeat(wal_end=1, time=1), wf.Corrupt(error="e", raw=b"")]
    ),
    st.just(wf.Truncate(tables=(("s", "t"), ("s", "u")))),
).map(lambda event: [event])
STREAMS = st.lists(st.one_of(PLAIN, PLAIN, PLAIN, ODD), max_size=25).map(
    lambda parts: [one for part in parts for one in part]
)
FORMATS = ["gaussdb-binary", "mppdb-json", "test-decoding", "pgoutput"]


class InBatches:
    """An engine that has events already, and gives them as events, or as batches of some size."""

    dropped = 0

    def __init__(self, events: list[wf.Event], size: int) -> None:
        self._located = [Located(3, index, event) for index, event in enumerate(events)]
        self._size = size

    def events(self, messages: object, first: int = 0) -> Iterator[Located]:
        return iter(self._located)

    def batches(self, messages: object, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(self._located), self._size):
            yield from build(self._located[begin : begin + self._size], schema, 0)


def rows_of(batches: Iterator[pa.RecordBatch]) -> tuple[list[Any], str | None]:
    rows: list[Any] = []
    try:
        for batch in batches:
            rows += zip(batch["record"].to_pylist(), batch["kind"].to_pylist(), strict=True)
    except wf.OrderError as error:
        return rows, str(error)
    return rows, None


def events_of(located: Iterator[Located]) -> tuple[list[Any], str | None]:
    rows: list[Any] = []
    try:
        for one in located:
            rows += [(one.record, one.event.kind)] * (2 if isinstance(one.event, wf.Truncate) else 1)
    except wf.OrderError as error:
        return rows, str(error)
    return rows, None


@pytest.mark.parametrize("format", FORMATS)
@given(events=STREAMS, size=st.sampled_from([1, 2, 5, 1000]))
def test_strict(format: str, events: list[wf.Event], size: int) -> None:
    """The same error at the same record; events that precede it come out, whole batches do."""
    checked = OrderChecked(InBatches(events, size), format)  # type: ignore[arg-type]
    rows, error = rows_of(checked.batches([], CHANGES))
    wanted, wanted_error = events_of(checked.events([]))
    assert error == wanted_error
    assert rows == wanted[: len(rows)]
    assert error is not None or len(rows) == len(wanted)


@given(
    events=STREAMS,
    size=st.sampled_from([1, 2, 5, 1000]),
    options=st.sampled_from(
        [
            {"skip_empty_xacts": True},
            {"skip_empty_xacts": True, "kinds": ["COMMIT", "INSERT"]},
            {"skip_empty_xacts": True, "exclude_users": ["u"]},
            {"exclude_users": ["u"]},
            {"kinds": ["BEGIN", "MESSAGE"]},
            {},
        ]
    ),
)
def test_filters(events: list[wf.Event], size: int, options: dict[str, Any]) -> None:
    filtered = FilteredTransactions(InBatches(events, size), ReadOptions.check(**options))  # type: ignore[arg-type]
    assert rows_of(filtered.batches([], CHANGES)) == events_of(filtered.events([]))


def test_which_ones_are_row_only() -> None:
    """Neighbours form a run; another xid, a gid and any other record prevent it."""
    events = [
        *(wf.Begin(xid=1), ROW, wf.Commit(xid=1)),
        *(wf.Begin(), wf.Commit(xid=2)),
        *(wf.Begin(xid=3), ROW, wf.Commit(xid=4)),
        *(wf.Begin(xid=5, gid="g"), wf.Commit(xid=5)),
        *(wf.Begin(xid=6), wf.Heartbeat(wal_end=1, time=1), wf.Commit(xid=6)),
        *(wf.Begin(xid=7), ROW, ROW, wf.Commit()),
        wf.Begin(xid=8),
    ]
    (batch,) = InBatches(events, 100).batches([], CHANGES)
    found = row_only_transactions(batch)
    assert (found.begins.tolist(), found.commits.tolist()) == ([0, 3, 13], [2, 4, 16])
    assert found.runs == {0: 5, 13: 17}
