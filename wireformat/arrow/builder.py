"""Events to columns: how every event fills a row of the table. The reference that the gather is tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ..events import (
    LITERAL_TYPES,
    Abort,
    Begin,
    Commit,
    Corrupt,
    Ddl,
    Event,
    Heartbeat,
    Prepare,
    RowChange,
    Truncate,
    TupleData,
    Unchanged,
    Unknown,
)
from ..lsn import lsn_text, signed
from ..stream.reader import Located
from ..times import heartbeat_micros, parse_commit_time
from .spans import DETAIL_KEYS

Row = dict[str, Any]


def build(located: Sequence[Located], schema: pa.Schema, heartbeat_factor: int) -> pa.RecordBatch:
    """The rows of these events, in their order, with the columns of the schema."""
    rows = [
        {**row, "message": item.message, "record": item.record}
        for item in located
        for row in event_rows(item.event, heartbeat_factor)
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )


def row_count(located: Sequence[Located]) -> int:
    """How many rows these events fill."""
    return sum(len(item.event.tables) if isinstance(item.event, Truncate) else 1 for item in located)


def event_rows(event: Event, heartbeat_factor: int) -> Iterator[Row]:
    """The columns that an event fills, the others are null: one row, or one for each table of a TRUNCATE."""
    row: Row = {"kind": event.kind, "detail": _detail(event)}
    if event.lsn is not None:
        row["lsn"] = signed(event.lsn)
    if isinstance(event, Truncate):
        yield from ({**row, "table_schema": schema, "table_name": table} for schema, table in event.tables)
        return
    if isinstance(event, RowChange):
        row |= {"table_schema": event.table_schema, "table_name": event.table_name}
        row |= {"new": _map(event.new), "old": _map(event.old), **_columns(event)}
    elif isinstance(event, (Begin, Commit, Abort, Prepare)):
        row |= {"csn": _signed(getattr(event, "csn", None)), "xid": _signed(event.xid)}
        row["commit_time"] = parse_commit_time(event.commit_time or "")
    elif isinstance(event, Heartbeat):
        row["commit_time"] = heartbeat_micros(event.time, heartbeat_factor)
    elif isinstance(event, Unknown):
        row["raw"] = event.raw
    elif isinstance(event, Corrupt):
        row |= {"error": event.error, "raw": event.raw}
    yield row


_IN_DETAIL: dict[type[Event], frozenset[str]] = {
    kind: frozenset(kind.__dataclass_fields__) & frozenset(DETAIL_KEYS)
    for kind in (Begin, Commit, Abort, Prepare, Truncate, Ddl, Heartbeat, Unknown)
}
"""The fields of each kind of event that go into detail."""


def _flag(value: bool) -> str:
    return "true" if value else "false"


_DETAIL_TEXTS: dict[str, Callable[[Any], str]] = {"first_lsn": lsn_text, "restart_identity": _flag, "cascade": _flag}


def _detail(event: Event) -> list[tuple[str, str]] | None:
    fields = _IN_DETAIL.get(type(event), frozenset())
    found = [(key, getattr(event, key)) for key in DETAIL_KEYS if key in fields]
    texts = [(key, _DETAIL_TEXTS.get(key, str)(value)) for key, value in found if value is not None]
    return texts or None


def _map(image: TupleData | None) -> list[tuple[str, str | None]] | None:
    """The cells that were sent."""
    if image is None:
        return None
    cells = zip(image.names, image.values, strict=True)
    return [(name, value) for name, value in cells if not isinstance(value, Unchanged)]


def _columns(event: RowChange) -> Row:
    """The types of the cells that were sent, and the columns that were not."""
    image = event.old if event.new is None else event.new
    if image is None:
        return {}
    sent = [type for type, value in zip(image.types, image.values, strict=True) if not isinstance(value, Unchanged)]
    cells = zip(image.names, image.values, strict=True)
    return {
        "types": None if image.types and image.types[0].startswith(LITERAL_TYPES) else sent,
        "unchanged": [name for name, value in cells if isinstance(value, Unchanged)] or None,
    }


def _signed(value: int | None) -> int | None:
    return None if value is None else signed(value)
