"""Makes rows of the row-change table from events. The gather is tested against this module."""

from __future__ import annotations

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
from ...formats.pgoutput.relation_lists import LISTS, list_text
from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ...lsn import lsn_text, signed
from ...stream.reader import Located
from ...times import heartbeat_micros, parse_commit_time, table_time
from ..schemas import DETAIL_KEYS, NUMBER_COLUMNS
from .row_limits import check_column

Row = dict[str, Any]


def build(located: Iterable[Located], schema: pa.Schema, heartbeat_factor: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the events, in order: in one batch, or in several if their texts are long.

    Raises LimitExceeded for a row that does not fit in a batch.
    """
    texts = [name for name in _WITH_TEXTS if name in schema.names]
    rows: list[Row] = []
    size = 0
    for item in located:
        for row in event_rows(item.event, heartbeat_factor):
            most_bytes = _BYTES_PER_CHARACTER * sum(
                len(text) for name in texts for text in chain(*_texts(row.get(name)))
            )
            if most_bytes > COLUMN_BYTES:
                _check_row(row, texts, item)
            if rows and size + most_bytes > BATCH_TEXT_BYTES:
                yield _batch(rows, schema)
                rows, size = [], 0
            rows.append({**row, "message": item.message, "record": item.record})
            size += most_bytes
    yield _batch(rows, schema)


_WITH_TEXTS = ("new", "old", "unchanged", "types", "detail", "error", "raw")
_BYTES_PER_CHARACTER = 4
"""The most bytes of a character in UTF-8."""


def _texts(value: Any) -> Iterator[Iterable[Any]]:
    """Yields the texts of a cell, grouped by Arrow column: a cell is a text, bytes, a list of texts or a map."""
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
    """Returns how many rows these events become."""
    return sum(len(item.event.tables) or 1 if isinstance(item.event, Truncate) else 1 for item in located)


def event_rows(event: Event, heartbeat_factor: int) -> Iterator[Row]:
    """Yields the columns that an event fills; all others are null. A TRUNCATE has one row for each of its tables."""
    row: Row = {"kind": event.kind, "detail": _detail(event)}
    row |= {name: signed(number) for name in NUMBER_COLUMNS if (number := getattr(event, name, None)) is not None}
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


_DETAIL_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_lsn", "end_lsn"), lsn_text),
    **dict.fromkeys(("restart_identity", "cascade", "reply", "first_segment", "transactional"), _flag),
    **dict.fromkeys(LISTS, list_text),
}
"""Functions that write the values of `detail` as texts, for values that are not texts or plain numbers."""


def _detail(event: Event) -> list[tuple[str, str]] | None:
    values = _detail_values(event)
    texts = [(key, _DETAIL_TEXTS.get(key, str)(values[key])) for key in DETAIL_KEYS if values.get(key) is not None]
    return texts or None


def _detail_values(event: Event) -> dict[str, Any]:
    """Returns the values of `detail`, by key; other keys are ignored."""
    if isinstance(event, RowChange):
        return {"old": event.old_kind, "binary": event.binary or None, "relation_id": event.relation_id}
    if isinstance(event, Corrupt):
        return {}
    values = {name: getattr(event, name) for name in event.__dataclass_fields__}
    if isinstance(event, Type):
        values["type_oids"] = (event.type_oid,)
    elif isinstance(event, Truncate) and event.relation_ids:
        values["relation_id"] = event.relation_ids[0]
    elif isinstance(event, Message) and isinstance(event.content, bytes):
        values |= {"content": f"\\x{event.content.hex()}", "binary": ("content",)}
    return values


def _map(image: TupleData | None) -> list[tuple[str, str | None]] | None:
    """Returns the names and values of the cells that were sent."""
    if image is None:
        return None
    cells = zip(image.names, image.values, strict=True)
    return [(name, value) for name, value in cells if not isinstance(value, Unchanged)]


def _columns(event: RowChange) -> Row:
    """Returns the types of the cells that were sent, and the names of the cells that were not sent."""
    image = event.old if event.new is None else event.new
    if image is None:
        return {}
    sent = [type for type, value in zip(image.types, image.values, strict=True) if not isinstance(value, Unchanged)]
    cells = zip(image.names, image.values, strict=True)
    return {
        "types": None if image.types and image.types[0].startswith(LITERAL_TYPES) else sent,
        "unchanged": [name for name, value in cells if isinstance(value, Unchanged)] or None,
    }
