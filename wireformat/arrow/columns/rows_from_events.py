"""Makes rows of the row-change table from events. The gather is tested against this module."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter
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
from ...formats.pgoutput.relations import LISTS, list_text
from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ...lsn import lsn_text, signed
from ...stream.reader import Located
from ...times import heartbeat_micros, parse_commit_time, table_time
from ..row_changes import one_batch
from ..schemas import DETAIL_KEYS, NUMBER_COLUMNS
from .row_limits import check_column

Row = dict[str, Any]


def build(located: Iterable[Located], schema: pa.Schema, heartbeat_factor: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the events, in order: in one batch, or in several if their texts are long.

    Raises LimitExceeded for a row that does not fit in a batch.
    """
    wanted = frozenset(schema.names)
    texts = [name for name in _WITH_TEXTS if name in wanted]
    batches: list[pa.RecordBatch] = []
    rows: list[Row] = []
    size = 0
    for message, record, event in located:
        for row in event_rows(event, heartbeat_factor, wanted):
            most_bytes = 0
            for name in texts:
                if (value := row.get(name)) is not None:
                    most_bytes += _BYTES_PER_CHARACTER * _characters(value)
            if most_bytes > COLUMN_BYTES:
                _check_row(row, texts, message, record)
            if (rows or batches) and size + most_bytes > BATCH_TEXT_BYTES:
                yield one_batch([*batches, _batch(rows, schema)])
                batches, rows, size = [], [], 0
            row["message"], row["record"] = message, record
            rows.append(row)
            size += most_bytes
            if len(rows) == ROWS_AT_ONCE:
                batches.append(_batch(rows, schema))
                rows = []
    yield one_batch([*batches, _batch(rows, schema)])


ROWS_AT_ONCE = 1024
"""Number of rows made at once from Python objects: with more, Python's garbage collection takes most of the time."""

_WITH_TEXTS = ("new", "old", "unchanged", "types", "detail", "error", "raw")
_BYTES_PER_CHARACTER = 4
"""The most bytes of a character in UTF-8."""


def _characters(value: Any) -> int:
    """Returns how many characters or bytes a cell has."""
    if not isinstance(value, list):
        return len(value)
    if value and isinstance(value[0], tuple):
        return sum([len(key) + len(text) if text else len(key) for key, text in value])
    return sum(map(len, value))


def _texts(value: Any) -> Iterator[Iterable[Any]]:
    """Yields the texts of a cell, grouped by Arrow column: a cell is a text, bytes, a list of texts or a map."""
    if not isinstance(value, list):
        yield () if value is None else (value,)
    elif value and isinstance(value[0], tuple):
        yield (key for key, _ in value)
        yield (text for _, text in value if text is not None)
    else:
        yield value


def _check_row(row: Row, names: Sequence[str], message: int, record: int) -> None:
    for name in names:
        for texts in _texts(row.get(name)):
            size = sum(len(text.encode() if isinstance(text, str) else text) for text in texts)
            check_column(size, message, record)


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )


def event_rows(event: Event, heartbeat_factor: int, wanted: Collection[str]) -> Iterator[Row]:
    """Yields the columns that an event fills; all others are null. A TRUNCATE has one row for each of its tables.

    wanted   the columns asked for; others may be left out
    """
    row: Row = {"kind": event.kind}
    names, numbers_of = _numbers(type(event))
    for name, number in zip(names, numbers_of(event), strict=True):
        if number is not None:
            row[name] = signed(number)
    if time := getattr(event, "commit_time", None):
        row["commit_time"] = _commit_time(time)
    if "detail" in wanted:
        row["detail"] = _detail(event)
    if isinstance(event, RowChange):
        row["table_schema"], row["table_name"] = event.table_schema, event.table_name
        if not _OF_IMAGES.isdisjoint(wanted):
            row |= {"new": _map(event.new), "old": _map(event.old), **_columns(event)}
    elif isinstance(event, Truncate) and event.tables:
        details = row.pop("detail", None)
        relation_ids = event.relation_ids or (None,) * len(event.tables)
        for (schema, table), relation_id in zip(event.tables, relation_ids, strict=True):
            named = {**row, "table_schema": schema, "table_name": table}
            if details is not None:
                named["detail"] = [*details, *_relation_detail(relation_id)]
            yield named
        return
    elif isinstance(event, Relation):
        row["table_schema"], row["table_name"] = event.table_schema, event.table_name
    elif isinstance(event, Type):
        row["table_schema"], row["table_name"] = event.namespace, event.name
    elif isinstance(event, Heartbeat):
        row["commit_time"] = table_time(heartbeat_micros(event.time, heartbeat_factor))
    elif isinstance(event, Unknown):
        row["raw"] = event.raw
    elif isinstance(event, Corrupt):
        row["error"], row["raw"] = event.error, event.raw
    yield row


_OF_IMAGES = frozenset(("new", "old", "unchanged", "types"))


@cache
def _numbers(kind: type[Event]) -> tuple[tuple[str, ...], Callable[[Event], tuple[Any, ...]]]:
    """Returns which columns of numbers a kind of event fills, and a function that returns the numbers."""
    names = tuple(name for name in NUMBER_COLUMNS if name in kind.__dataclass_fields__)
    return names, _getter(names)


def _getter(names: tuple[str, ...]) -> Callable[[Event], tuple[Any, ...]]:
    """Returns a function that returns some fields of an event."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda event: tuple(getattr(event, name) for name in names)


@lru_cache(maxsize=256)
def _commit_time(text: str) -> int | None:
    return table_time(parse_commit_time(text))


def _flag(value: bool) -> str:
    return "true" if value else "false"


_DETAIL_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_lsn", "end_lsn"), lsn_text),
    **dict.fromkeys(("restart_identity", "cascade", "reply", "first_segment", "transactional"), _flag),
    **dict.fromkeys(LISTS, list_text),
}
"""Functions that write the values of `detail` as texts, for values that are not texts or plain numbers."""

Detail = list[tuple[str, str]]


@cache
def _detail_fields(
    kind: type[Event],
) -> tuple[tuple[tuple[str, Callable[[Any], str]], ...], Callable[[Event], tuple[Any, ...]]]:
    """Returns the keys of `detail` that are fields of a kind of event, in their order, each with the function that
    writes its values; and a function that returns the values."""
    keys = tuple(key for key in DETAIL_KEYS if key in kind.__dataclass_fields__)
    return tuple((key, _DETAIL_TEXTS.get(key, str)) for key in keys), _getter(keys)


def _detail(event: Event) -> Detail | None:
    """Returns the texts of `detail`; of a TRUNCATE those that all its tables have."""
    if isinstance(event, Corrupt):
        return None
    values: dict[str, Any]
    if isinstance(event, RowChange):
        if not event.binary and event.old_kind is None:
            return _relation_detail(event.relation_id) or None
        values = {"old": event.old_kind, "binary": event.binary or None, "relation_id": event.relation_id}
    elif isinstance(event, Type):
        values = {"type_oids": (event.type_oid,)}
    elif isinstance(event, Message) and isinstance(event.content, bytes):
        values = {name: getattr(event, name) for name in event.__dataclass_fields__}
        values |= {"content": f"\\x{event.content.hex()}", "binary": ("content",)}
    else:
        keys, values_of = _detail_fields(type(event))
        return [
            (key, write(value)) for (key, write), value in zip(keys, values_of(event), strict=True) if value is not None
        ] or None
    texts = [(key, _DETAIL_TEXTS.get(key, str)(values[key])) for key in DETAIL_KEYS if values.get(key) is not None]
    return texts or None


def _relation_detail(relation_id: int | None) -> Detail:
    return [] if relation_id is None else [("relation_id", str(relation_id))]


def _is_whole(image: TupleData) -> bool:
    """Whether all cells were sent."""
    return Unchanged not in map(type, image.values)


def _map(image: TupleData | None) -> list[tuple[str, str | None]] | None:
    """Returns the names and values of the cells that were sent."""
    if image is None:
        return None
    cells: Any = zip(image.names, image.values, strict=True)
    return [*cells] if _is_whole(image) else [cell for cell in cells if not isinstance(cell[1], Unchanged)]


def _columns(event: RowChange) -> Row:
    """Returns the types of the cells that were sent, and the names of the cells that were not sent."""
    image = event.old if event.new is None else event.new
    if image is None:
        return {}
    has_types = not image.types or not image.types[0].startswith(LITERAL_TYPES)
    if _is_whole(image):
        return {"types": [*image.types] if has_types else None}
    types = zip(image.types, image.values, strict=True)
    cells = zip(image.names, image.values, strict=True)
    return {
        "types": [type for type, value in types if not isinstance(value, Unchanged)] if has_types else None,
        "unchanged": [name for name, value in cells if isinstance(value, Unchanged)],
    }
