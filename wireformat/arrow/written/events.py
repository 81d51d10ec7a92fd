"""Events out of rows of the row-change table: the inverse of columns/rows_from_events.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import pyarrow as pa

from ...errors import EncodeError, WireformatError
from ...events import (
    EVENTS,
    UNCHANGED,
    Corrupt,
    Event,
    Message,
    Origin,
    Relation,
    RowChange,
    Truncate,
    TupleData,
    Type,
    check_fields,
)
from ...formats.adapt import adapted
from ...formats.base import Writer
from ...formats.pgoutput.relations import DETAIL_READERS
from ...lsn import unsigned
from ...pgtypes import type_name
from ...times import time_text
from ..schemas import NUMBER_COLUMNS

Row = dict[str, Any]
Pairs = Sequence[tuple[str, Any]]


class RowEvents:
    """Makes events of rows that come in order.

    A column that was not sent is in `unchanged` without type and position, and one of `old` that is not in `new` has no
    type. The types come from the rows of the table before, the position from its RELATION row; without one it is
    after the columns that were sent.
    """

    def __init__(self) -> None:
        self._relations: dict[tuple[Any, Any], Relation] = {}
        self._types: dict[tuple[Any, Any], dict[str, str]] = {}

    def events(self, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Event]]:
        """Yields events with the index of their row. Rows of one TRUNCATE become one event, at the first of them.

        Raises EncodeError for a row that is not an event.
        """
        truncated: list[Row] = []
        first = 0
        for index, row in rows:
            if truncated and not is_same_record(truncated[0], row):
                yield first, self.event(first, truncated)
                truncated = []
            if row["kind"] == Truncate.kind:
                first = first if truncated else index
                truncated.append(row)
            else:
                yield index, self.event(index, [row])
        if truncated:
            yield first, self.event(first, truncated)

    def event(self, index: int, rows: list[Row]) -> Event:
        """The event of a row with this index, or of all rows of a TRUNCATE; see `events`."""
        kind = EVENTS.get(rows[0]["kind"])
        if kind is None:
            raise EncodeError(f"row {index}: kind: expected one of {', '.join(EVENTS)}")
        try:
            event = kind(**self._facts(kind, rows))
        except (TypeError, ValueError, KeyError) as error:
            words = str(error) if isinstance(error, EncodeError) else "expected what such a row has, got something else"
            raise EncodeError(f"row {index}: {kind.kind}: {words}") from None
        if isinstance(event, Relation):
            table = event.table_schema, event.table_name
            self._relations[table] = event
            self._types[table] = dict(zip(event.columns, map(type_name, event.type_oids), strict=True))
        return event

    def _facts(self, kind: type[Event], rows: list[Row]) -> dict[str, Any]:
        row = rows[0]
        detail = {name: text for name, text in row.get("detail") or () if text is not None}
        found: dict[str, Any] = {name: unsigned(row[name]) for name in NUMBER_COLUMNS if row.get(name) is not None}
        found |= {name: DETAIL_READERS.get(name, str)(text) for name, text in detail.items() if name != "origin"}
        if "origin" in detail:
            found["origin"] = detail["origin"] if kind is Origin else int(detail["origin"])
        found |= {
            name: row[name] for name in ("table_schema", "table_name", "error", "raw") if row.get(name) is not None
        }
        if found.get("commit_time") is None and row.get("commit_time") is not None:
            found["commit_time"] = time_text(row["commit_time"])
        _ADAPT.get(kind, _nothing)(found, rows)
        if issubclass(kind, RowChange):
            found |= self._images(row) | {"old_kind": detail.get("old")}
        names = _fields(kind)
        return {name: value for name, value in found.items() if name in names}

    def _images(self, row: Row) -> dict[str, TupleData | None]:
        new, old = row.get("new"), row.get("old")
        shown = old if new is None else new
        if shown is None:
            return {}
        table = row["table_schema"], row["table_name"]
        relation = self._relations.get(table)
        types = self._types.setdefault(table, {})
        given = row.get("types")
        if given is None:
            raise EncodeError("types: expected a type for each column, got none; tables of sql-decoding have no types")
        types |= dict(zip(reversed([name for name, _ in shown]), reversed(given), strict=True))  # of two, the first
        unsent = row.get("unchanged")
        if not unsent:
            found = TupleData(*_columns(shown), tuple(given))
        else:
            cells = dict.fromkeys(unsent, UNCHANGED) | dict(shown)
            order = relation.columns if relation and cells.keys() <= {*relation.columns} else (*dict(shown), *unsent)
            found = _image([(name, cells[name]) for name in order if name in cells], types)
        if new is None:
            return {"old": found}
        return {"new": found, "old": None if old is None else _image(old, types)}


def _columns(pairs: Pairs) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    return tuple(name for name, _ in pairs), tuple(value for _, value in pairs)


def _image(pairs: Pairs, types: Row) -> TupleData:
    names, values = _columns(pairs)
    if not types.keys() >= {*names}:
        raise EncodeError("types: a column has none: it is not among the columns sent, and no row before says it")
    return TupleData(names, values, tuple(types[name] for name in names))


def is_same_record(row: Row, other: Row) -> bool:
    """Whether both are of one TRUNCATE. Rows of two streams may have the same position."""
    own, its = ([one.get(name) for name in ("message", "record", "kind", "lsn", "xid")] for one in (row, other))
    flags, others = ({*(one.get("detail") or ())} for one in (row, other))
    return None not in own[:2] and own == its and all(name == "relation_id" for name, _ in flags ^ others)


def _nothing(found: Row, rows: list[Row]) -> None:
    """For kinds whose fields are columns, or in `detail` as they are."""


def _truncate(found: Row, rows: list[Row]) -> None:
    details = [dict(row.get("detail") or ()) for row in rows]
    if rows[0].get("table_name") is not None:
        found["tables"] = tuple((row["table_schema"], row["table_name"]) for row in rows)
    else:
        found["tables"] = ()
    found["relation_ids"] = tuple(int(detail["relation_id"]) for detail in details if "relation_id" in detail)


def _type(found: Row, rows: list[Row]) -> None:
    found |= {"namespace": found["table_schema"], "name": found["table_name"], "type_oid": found["type_oids"][0]}


def _message(found: Row, rows: list[Row]) -> None:
    if found.get("binary"):
        found["content"] = bytes.fromhex(found["content"][2:])


_ADAPT: dict[type[Event], Callable[[Row, list[Row]], None]] = {Truncate: _truncate, Type: _type, Message: _message}
"""Kinds of which a field is neither a column nor in `detail` as it is."""


@cache
def _fields(kind: type[Event]) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as Python values, times as microseconds since 1970."""
    index = batch.schema.names.index("commit_time")
    micros = batch.column(index).cast(pa.int64())
    rows: list[dict[str, Any]] = batch.set_column(index, "commit_time", micros).to_pylist()
    return rows


def write_event(writer: Writer, event: Event, adapt_to: str | None) -> list[bytes]:
    """The messages that are complete with an event."""
    if adapt_to is not None:
        event, _ = adapted(event, adapt_to)
    if isinstance(event, Corrupt):
        raise EncodeError("CORRUPT: the format cannot say it: no writer takes what could not be read")
    try:
        return writer.write(event)
    except WireformatError:
        raise
    except Exception:
        check_fields(event)
        raise
