"""Events to columns: how every event fills a row of the table. The reference that the gather is tested against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..events import Begin, Commit, Corrupt, Event, Heartbeat, RowChange, TupleData, Unknown
from ..lsn import lsn_text, signed
from ..stream.reader import Located
from ..times import heartbeat_micros, parse_commit_time
from .spans import DETAIL_KEYS

Row = dict[str, Any]


def build(located: Sequence[Located], schema: pa.Schema, heartbeat_factor: int) -> pa.RecordBatch:
    """The rows of these events, in their order, with the columns of the schema."""
    rows = [
        {**event_row(item.event, heartbeat_factor), "message": item.message, "record": item.record} for item in located
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )


def event_row(event: Event, heartbeat_factor: int) -> Row:
    """The columns that an event fills; the others are null."""
    row: Row = {"kind": event.kind}
    if event.lsn is not None:
        row["lsn"] = signed(event.lsn)
    if isinstance(event, RowChange):
        row |= {"table_schema": event.table_schema, "table_name": event.table_name}
        row |= {"new": _map(event.new), "old": _map(event.old), "types": _types(event)}
    elif isinstance(event, Begin):
        row |= {"csn": _signed(event.csn), **_transaction(event)}
    elif isinstance(event, Commit):
        row |= _transaction(event)
    elif isinstance(event, Heartbeat):
        row |= {"commit_time": heartbeat_micros(event.time, heartbeat_factor), "detail": _detail(event)}
    elif isinstance(event, Unknown):
        row["raw"] = event.raw
    elif isinstance(event, Corrupt):
        row |= {"error": event.error, "raw": event.raw}
    return row


def _transaction(event: Begin | Commit) -> Row:
    commit_time = parse_commit_time(event.commit_time or "")
    return {"xid": _signed(event.xid), "commit_time": commit_time, "detail": _detail(event)}


def _detail(event: Event) -> list[tuple[str, str]] | None:
    found = [(key, getattr(event, key, None)) for key in DETAIL_KEYS]
    texts = [(key, lsn_text(value) if key == "first_lsn" else str(value)) for key, value in found if value is not None]
    return texts or None


def _map(image: TupleData | None) -> list[tuple[str, str | None]] | None:
    return None if image is None else list(zip(image.names, image.values, strict=True))


def _types(event: RowChange) -> list[str] | None:
    image = event.old if event.new is None else event.new
    return None if image is None else list(image.types)


def _signed(value: int | None) -> int | None:
    return None if value is None else signed(value)
