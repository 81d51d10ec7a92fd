"""Events to columns: how every event fills a row of the table. The reference that the gather is tested against."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from ...events import (
    LITERAL_TYPES,
    Corrupt,
    Event,
    Heartbeat,
    Message,
    Relation,
    RowChange,
    Truncate,
    TupleData,
    Type,
    Unchanged,
    Unknown,
)
from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ...lsn import lsn_text, signed
from ...stream.reader import Located
from ...times import heartbeat_micros, parse_commit_time, table_time
from ..schemas import DETAIL_KEYS
from .row_limits import check_column

Row = dict[str, Any]


def build(located: Iterable[Located], schema: pa.Schema, heartbeat_factor: int) -> Iterator[pa.RecordBatch]:
    """The rows of these events, in their order, with the columns of the schema: one batch, more where texts are long.

    Raises LimitExceeded for a row that fits into none.
    """
    texts = [name for name in _WITH_TEXTS if name in schema.names]
    rows: list[Row] = []
    size = 0
    for item in located:
        for row in event_rows(item.event, heartbeat_factor):
            own = _MOST_BYTES_OF_CHARACTER * sum(len(text) for name in texts for text in chain(*_texts(row.get(name))))
            if own > COLUMN_BYTES:
                _check_row(row, texts, item)
            if rows and size + own > BATCH_TEXT_BYTES:
                yield _batch(rows, schema)
                rows, size = [], 0
            rows.append({**row, "message": item.message, "record": item.record})
            size += own
    yield _batch(rows, schema)


_WITH_TEXTS = ("new", "old", "unchanged", "types", "detail", "error", "raw")
_MOST_BYTES_OF_CHARACTER = 4


def _texts(value: Any) -> Iterator[Iterable[Any]]:
    """The texts of a cell, which is a text, bytes, a list of texts or a map, by the columns of Arrow that hold them."""
    if not isinstance(value, list):
        yield () if value is None else (value,)
    elif value and isinstance(value[0], tuple):
        yield (key for key, _ in value)
        yield (text for _, text in value if text is not None)
    else:
        yield value


def _check_row(row: Row, names: Sequence[str], item: Located) -> None:
    for name in names:
        for texts in _texts(row.get(name)):
            size = sum(len(text.encode() if isinstance(text, str) else text) for text in texts)
            check_column(size, item.message, item.record)


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )


def row_count(located: Sequence[Located]) -> int:
    """How many rows these events fill."""
    return sum(len(item.event.tables) or 1 if isinstance(item.event, Truncate) else 1 for item in located)


_NUMBERS = ("lsn", "xid", "csn", "commit_lsn")


def event_rows(event: Event, heartbeat_factor: int) -> Iterator[Row]:
    """The columns that an event fills, the others are null: one row, or one for each table of a TRUNCATE."""
    row: Row = {"kind": event.kind, "detail": _detail(event)}
    row |= {name: signed(number) for name in _NUMBERS if (number := getattr(event, name, None)) is not None}
    row["commit_time"] = table_time(parse_commit_time(getattr(event, "commit_time", None) or ""))
    if isinstance(event, Truncate) and event.tables:
        for index, (schema, table) in enumerate(event.tables):
            yield {**row, "table_schema": schema, "table_name": table, "detail": _detail(event.of_tables([index]))}
        return
    if isinstance(event, (RowChange, Relation)):
        row |= {"table_schema": event.table_schema, "table_name": event.table_name}
    if isinstance(event, RowChange):
        row |= {"new": _map(event.new), "old": _map(event.old), **_columns(event)}
    elif isinstance(event, Type):
        row |= {"table_schema": event.namespace, "table_name": event.name}
    elif isinstance(event, Heartbeat):
        row["commit_time"] = table_time(heartbeat_micros(event.time, heartbeat_factor))
    elif isinstance(event, Unknown):
        row["raw"] = event.raw
    elif isinstance(event, Corrupt):
        row |= {"error": event.error, "raw": event.raw}
    yield row


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _list(values: Sequence[str | int]) -> str:
    return json.dumps(values, ensure_ascii=False)


_DETAIL_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_lsn", "end_lsn"), lsn_text),
    **dict.fromkeys(("restart_identity", "cascade", "reply", "first_segment", "transactional"), _flag),
    **dict.fromkeys(("columns", "type_oids", "typmods", "key_columns", "binary"), _list),
}
"""How the values that are no texts and no plain numbers are written into detail; lists as JSON."""


def _detail(event: Event) -> list[tuple[str, str]] | None:
    found = _facts(event)
    texts = [(key, _DETAIL_TEXTS.get(key, str)(found[key])) for key in DETAIL_KEYS if found.get(key) is not None]
    return texts or None


def _facts(event: Event) -> dict[str, Any]:
    """What goes into detail, by its key."""
    if isinstance(event, RowChange):
        return {"old": event.old_kind, "binary": event.binary or None, "relation_id": event.relation_id}
    if isinstance(event, Corrupt):
        return {}
    found = {name: getattr(event, name) for name in event.__dataclass_fields__}
    if isinstance(event, Type):
        found["type_oids"] = (event.type_oid,)
    elif isinstance(event, Truncate) and event.relation_ids:
        found["relation_id"] = event.relation_ids[0]
    elif isinstance(event, Message) and isinstance(event.content, bytes):
        found |= {"content": f"\\x{event.content.hex()}", "binary": ("content",)}
    return found


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
