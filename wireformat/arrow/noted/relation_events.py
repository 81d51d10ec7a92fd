"""Events of rows that say what was described in which transactions of pgoutput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...events import Begin, Commit, Event, Relation, StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop
from ...formats.pgoutput.relations import relation_lists
from ...formats.pgoutput.undelivered import Descriptions
from ...lsn import unsigned
from ...options.reading import KINDS
from ..arrays import Array
from ..codes import codes_of_values, combined_codes, grouped

if TYPE_CHECKING:  # it needs the compiler
    from .rows import NotedRows

_KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (Begin, Commit, StreamStart, StreamStop, StreamAbort, StreamCommit, StreamPrepare)
}

DESCRIBING_KINDS = ("RELATION", *_KINDS)
"""The kinds of the records that Descriptions takes."""

_IS_DESCRIBING = np.array([kind in DESCRIBING_KINDS for kind in KINDS])

_RELATION, _BEGIN, _COMMIT, _START, _STOP = map(
    KINDS.index, ("RELATION", "BEGIN", "COMMIT", "STREAM_START", "STREAM_STOP")
)

_FIRST_RECORDS = 64
"""As many records are read before the first look at what need not be read after them."""


def take_descriptions(descriptions: Descriptions, rows: pa.RecordBatch | NotedRows) -> None:
    """Has Descriptions learn from the next rows. What can tell nothing new is stepped over."""
    codes = _kind_codes(rows)
    chosen = np.flatnonzero(_IS_DESCRIBING[codes])
    if descriptions.are_settled:
        chosen = chosen[codes[chosen] != _RELATION][-1:]  # it says what the next rows are in
    if not len(chosen):
        return
    batch = rows.take(pa.array(chosen)) if isinstance(rows, pa.RecordBatch) else rows.batch_of(chosen)
    batch, kinds = batch.select(_EVENT_COLUMNS), codes[chosen]
    said = _descriptions_of(batch, kinds)
    is_known = np.zeros(said.max(initial=-1) + 2, bool)
    start, count = 0, _FIRST_RECORDS
    while start < len(chosen):
        part = np.arange(start, min(start + count, len(chosen)))
        part = part[~is_known[said[part]]]
        for begin, end in ((_BEGIN, _COMMIT), (_START, _STOP)):
            part = part[~_are_empty(kinds[part], begin, end)]
        events = [event for _, event in events_in(batch.take(pa.array(part)))]
        for event in events:
            descriptions.take(event)
        for index, event in zip(part, events, strict=True):
            if isinstance(event, Relation):
                is_known[said[index]] = descriptions.are_delivered(event)
        start, count = start + count, 4 * count
    descriptions.is_behind = False


def _descriptions_of(batch: pa.RecordBatch, kinds: Array) -> Array:
    """Returns int64[n]: of each RELATION a number, which is equal where they say the same in whichever transaction.

    -1 for other records.
    """
    found, relations = np.full(len(kinds), -1), np.flatnonzero(kinds == _RELATION)
    rows = batch.take(pa.array(relations))
    columns = (pa.chunked_array([rows[name]]) for name in ("table_schema", "table_name", "detail"))
    if len(rows):
        found[relations] = grouped(combined_codes([*map(codes_of_values, columns)]))[1]
    return found


def _kind_codes(rows: pa.RecordBatch | NotedRows) -> Array:
    if isinstance(rows, pa.RecordBatch):
        return np.asarray(pc.index_in(rows["kind"], pa.array(KINDS)))
    return rows.kind_codes


def _are_empty(kinds: Array, begin: int, end: int) -> Array:
    """Returns bool[n]: whether a record begins something and the next one ends it, or ends what the last one began."""
    found = (kinds == begin) & np.append(kinds[1:] == end, False)
    found[1:] |= found[:-1]
    return found


_EVENT_COLUMNS = ("message", "kind", "xid", "table_schema", "table_name", "detail")


def relations_in(batch: pa.RecordBatch) -> Iterator[tuple[int, Relation]]:
    """Yields the relations that rows describe, each with the message that describes it."""
    for message, event in events_in(rows_of_kinds(batch, ("RELATION",))):
        assert isinstance(event, Relation)
        yield message, event


def rows_of_kinds(batch: pa.RecordBatch, kinds: Sequence[str]) -> pa.RecordBatch:
    """Returns what `events_in` needs of the rows of some kinds."""
    chosen = pc.indices_nonzero(pc.is_in(batch["kind"], pa.array(kinds)))
    needed = batch.select(_EVENT_COLUMNS)
    return needed.take(chosen) if len(chosen) else needed.slice(0, 0)


def events_in(rows: pa.RecordBatch) -> Iterator[tuple[int, Event]]:
    """Yields the events of rows with their messages.

    Rows that say the same have one event: servers often say so again.
    """
    if not len(rows):
        return
    said = (rows[name] for name in _EVENT_COLUMNS if name != "message")
    firsts, indices = grouped(combined_codes([codes_of_values(pa.chunked_array([column])) for column in said]))
    events = [_event(row) for row in rows.take(pa.array(firsts)).to_pylist()]
    yield from zip(rows["message"].to_pylist(), (events[index] for index in indices.tolist()), strict=True)


def _event(row: Mapping[str, Any]) -> Event:
    detail = dict(row["detail"] or ())
    xid = None if row["xid"] is None else unsigned(row["xid"])
    if row["kind"] == "RELATION":
        return Relation(
            relation_id=int(detail["relation_id"]),
            table_schema=row["table_schema"],
            table_name=row["table_name"],
            replica_identity=detail["replica_identity"],
            xid=xid,
            **relation_lists(detail),
        )
    is_first = detail.get("first_segment") == "true"
    given = {"xid": xid, "gid": detail.get("gid"), "subxid": subxid_of(detail), "first_segment": is_first}
    kind = _KINDS[row["kind"]]
    event: Event = kind(**{name: value for name, value in given.items() if hasattr(kind, name)})
    return event


def subxid_of(detail: Mapping[str, str]) -> int | None:
    """Returns the subtransaction that the details of a row name."""
    return int(detail["subxid"]) if "subxid" in detail else None
