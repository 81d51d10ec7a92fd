"""The saved state of `strict` and of the filters of whole transactions, between two micro-batches of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from ..arrow.schemas import CHANGES
from ..events import RecordFacts
from ..stream.capture_position import columns_of, rows_of
from ..stream.order import STATES
from ..stream.records_before import FilterBefore, OrderBefore, RecordsBefore
from ..stream.saved import COUNT, FLAG, NAME, SIGNED, TEXT, UNSIGNED, SavedTable, Shape, damaged, maybe, one_of

_OPEN = SavedTable(
    {
        "kind": TEXT,
        "xid": maybe(UNSIGNED),
        "gid": maybe(TEXT),
        "subxid": maybe(UNSIGNED),
        "first_segment": maybe(FLAG),
        "transactional": maybe(FLAG),
        "message": TEXT,
    }
)
_STREAMED = SavedTable({"xid": maybe(UNSIGNED), "message": TEXT})
_CHANGED = SavedTable({"xid": UNSIGNED, "has_changes": FLAG})
_HELD = SavedTable(
    {
        "record": COUNT,
        "kind": one_of("BEGIN", "STREAM_START", "ORIGIN"),
        **dict.fromkeys(("lsn", "xid", "csn", "commit_lsn", "commit_time"), maybe(SIGNED)),
    }
)
_DETAIL = SavedTable({"row": COUNT, "name": TEXT, "value": maybe(TEXT)})

HELD_COLUMNS = (*_HELD.columns, "detail")
"""What is saved of rows that wait. They are control records, in which the other columns are null."""

RECORDS: Shape = {
    "state": maybe(one_of(*STATES)),
    "begun": _OPEN,
    "streamed": _STREAMED,
    "is_excluded": FLAG,
    "held_block": maybe(UNSIGNED),
    "changed": _CHANGED,
    "held": _HELD,
    "held_detail": _DETAIL,
    "held_at": [NAME],
}
"""What records mean for later ones: an OrderBefore, a FilterBefore, and the rows that wait for later records.

state      null without `strict`
begun      the record that began the open transaction or block, and what names its message
streamed   the streamed transactions that have not ended, and what names the messages in which they began
held_at    the positions of the messages of the rows in `held`, one after the other
"""


def fields_of_records(records: RecordsBefore, positions: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Returns the fields of what records mean for later ones.

    positions   of the messages of the rows that wait
    """
    order, filter = records.order, records.filter or _NO_FILTER
    rows = _rows_of(records.held_rows)
    detail = [(index, *pair) for index, row in enumerate(rows) for pair in row["detail"] or ()]
    return {
        "state": None if order is None else order.state,
        "begun": columns_of(_OPEN, [] if order is None or order.open is None else [[*order.open[0], order.open[1]]]),
        "streamed": columns_of(_STREAMED, [] if order is None else [*order.streamed.items()]),
        "is_excluded": filter.is_excluded,
        "held_block": filter.block,
        "changed": columns_of(_CHANGED, [*filter.has_changes.items()]),
        "held": columns_of(_HELD, [[row[name] for name in _HELD.columns] for row in rows]),
        "held_detail": columns_of(_DETAIL, detail),
        "held_at": [*chain.from_iterable(positions)],
    }


_NO_FILTER = FilterBefore(False, 0, None, {})


def _rows_of(held: pa.RecordBatch | None) -> list[dict[str, Any]]:
    if held is None:
        return []
    columns = {name: held[name] for name in HELD_COLUMNS}
    columns["commit_time"] = columns["commit_time"].cast(pa.int64())
    rows: list[dict[str, Any]] = pa.RecordBatch.from_pydict(columns).to_pylist()
    return rows


def records_of(kind: str, fields: dict[str, Any], columns: int) -> tuple[RecordsBefore, tuple[tuple[Any, ...], ...]]:
    """Returns what `fields_of_records` was given.

    columns   the number of columns order_by
    Raises StateError.
    """
    detail: list[list[tuple[str, str | None]]] = [[] for _ in fields["held"]["kind"]]
    if len(fields["held_at"]) != columns * len(detail):
        raise damaged(kind, "a value for each column of order_by and row of `held` in held_at", "more or fewer")
    for row, name, value in rows_of(fields["held_detail"], _DETAIL):
        if row >= len(detail):
            raise damaged(kind, "rows of `held` in held_detail", "others")
        detail[row].append((name, value))
    rows = [
        {**dict(zip(_HELD.columns, row, strict=True)), "message": message, "detail": detail[message] or None}
        for message, row in enumerate(rows_of(fields["held"], _HELD))
    ]
    open = [(RecordFacts(*facts), message) for *facts, message in rows_of(fields["begun"], _OPEN)]
    if len(open) > 1:
        raise damaged(kind, "at most one record in begun", "more")
    state, streamed = fields["state"], dict(rows_of(fields["streamed"], _STREAMED))
    records = RecordsBefore(
        None if state is None else OrderBefore(state, open[0] if open else None, streamed),
        FilterBefore(
            fields["is_excluded"], len(rows), fields["held_block"], dict(rows_of(fields["changed"], _CHANGED))
        ),
        held_rows=pa.RecordBatch.from_pylist(rows, schema=CHANGES) if rows else None,
    )
    values = iter(fields["held_at"])
    return records, tuple(tuple(next(values) for _ in range(columns)) for _ in rows)
