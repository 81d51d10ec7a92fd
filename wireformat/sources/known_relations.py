"""`KnownRelations`: the relations of pgoutput that are known where an input must begin after the next position."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Array
from ..arrow.codes import codes_of_values, combined_codes, grouped
from ..events import Begin, Event, Relation, StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop
from ..formats.pgoutput.relation_lists import relation_lists
from ..formats.pgoutput.relations import Relations
from ..formats.record_facts import aborts_whole
from ..lsn import unsigned
from ..stream.capture_position import outside_blocks

MOST_LATER_ROWS = 1 << 15
"""How many rows are kept before they are read."""


class KnownRelations:
    """The relations of pgoutput that were described before the oldest message that is still needed.

    known       that were described before, in the order of time
    relations   what is known of them in transactions; None: they were described outside of streamed ones
    adopted     xids of streamed transactions that end after the rows, of which all get what they described

    Few positions are looked at. Rows are kept until one is, or until there are many.
    """

    _KINDS = ("RELATION", "STREAM_START", "STREAM_STOP", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE")

    def __init__(
        self,
        known: Iterable[Relation] = (),
        relations: Relations | None = None,
        adopted: frozenset[int | None] = frozenset(),
    ) -> None:
        given = [*known]
        newest = {one.relation_id: one for one in given}
        self._known = _Known(Relations(), {}).after(given) if relations is None else _Known(relations, newest)
        self._adopted = adopted
        self._later: list[pa.RecordBatch | list[tuple[int, Event]]] = []
        """Rows after `_known`, or their events with their messages. The list only grows: positions share it."""
        self._rows = 0
        self._described_in: set[int] = set()
        """The xids of streamed transactions that may have described relations."""
        self._in_block = self._known.relations.block is not None

    def copy(self) -> Relations:
        """Returns the relations, for a decoder."""
        return self._known.relations.copy()

    def take(self, batch: pa.RecordBatch) -> None:
        """Learns from the next rows of the input."""
        rows = _rows_of(batch, self._KINDS)
        if self._in_block or "STREAM_START" in rows["kind"].unique().to_pylist():
            rows = _rows_of(batch, (*self._KINDS, "BEGIN"))  # a block in which the connection broke ends there
        if not len(rows):  # as in each batch of a format that does not describe its tables
            return
        others = pc.indices_nonzero(pc.not_equal(rows["kind"], "RELATION"))
        if len(others):
            self._in_block = rows["kind"][others[-1].as_py()].as_py() == "STREAM_START"
        if not any(map(len, self._later)):
            self._described_in = {xid for xid, _, _ in self._known.relations.described_in_blocks()}
        rows = rows.filter(pa.array(~_describe_nothing(rows, self._described_in)))
        if len(rows):
            starts = pc.equal(rows["kind"], "STREAM_START")
            self._described_in.update(rows["xid"].filter(starts).drop_null().to_pylist())
            self._later.append(rows)
            self._rows += len(rows)

    def before(self, message: int | None) -> Callable[[], tuple[Relation, ...]]:
        """Returns what finds the relations that were known before a message, or now, also later.

        Earlier messages must not be asked for any more.
        """
        if self._rows >= MOST_LATER_ROWS:
            self._read(self._known, self._later, len(self._later), message)
        return partial(self._read, self._known, self._later, len(self._later), message)

    def _read(
        self,
        known: _Known,
        later: list[pa.RecordBatch | list[tuple[int, Event]]],
        count: int,
        message: int | None,
    ) -> tuple[Relation, ...]:
        events = [found for rows in later[:count] for found in (rows if isinstance(rows, list) else _events_in(rows))]
        end = next(
            (at for at, (index, _) in enumerate(events) if message is not None and index >= message), len(events)
        )
        reached = known.after([event for _, event in events[:end]])
        if later is self._later:
            self._known, self._later = reached, [events[end:], *later[count:]]
            self._rows = sum(len(rows) for rows in later[count:])
        adopted = {event.xid for _, event in events[end:] if isinstance(event, ADOPTING)}
        return outside_blocks(reached.found_before(adopted | self._adopted))


ADOPTING = StreamCommit, StreamPrepare
"""With these, all transactions get what the blocks of a transaction described."""


class _Known:
    """Relations at some time, and the newest one of each number that was described. It is never changed."""

    def __init__(self, relations: Relations, newest: dict[int, Relation]) -> None:
        self.relations = relations
        self._newest = newest

    def after(self, events: Sequence[Event]) -> _Known:
        """Returns what is known after events."""
        if not events:
            return self
        relations, newest = self.relations.copy(), {**self._newest}
        for event in events:
            relations.take(event)
            if isinstance(event, Relation):
                newest[event.relation_id] = event
        return _Known(relations, newest)

    @cached_property
    def found(self) -> tuple[Relation, ...]:
        """The relations. A later block of a transaction whose first one is not needed any more also needs its own."""
        return tuple(self.relations.find(number) or said for number, said in self._newest.items())

    def found_before(self, adopted: Collection[int | None]) -> tuple[Relation, ...]:
        """Returns the relations where streamed transactions, of these xids, end later: theirs are then those of all."""
        if not adopted:
            return self.found
        pairs = zip(self.found, self._newest.values(), strict=True)
        return tuple(said if said.xid in adopted else known for known, said in pairs)


_EVENT_COLUMNS = ("message", "kind", "xid", "table_schema", "table_name", "detail")


def relations_in(batch: pa.RecordBatch) -> Iterator[tuple[int, Relation]]:
    """Yields the relations that rows describe, each with the message that describes it."""
    for message, event in _events_in(_rows_of(batch, ("RELATION",))):
        assert isinstance(event, Relation)
        yield message, event


def _rows_of(batch: pa.RecordBatch, kinds: Sequence[str]) -> pa.RecordBatch:
    """Returns what `_events_in` needs of the rows of some kinds."""
    chosen = pc.indices_nonzero(pc.is_in(batch["kind"], pa.array(kinds)))
    needed = batch.select(_EVENT_COLUMNS)
    return needed.take(chosen) if len(chosen) else needed.slice(0, 0)


def _events_in(rows: pa.RecordBatch) -> Iterator[tuple[int, Event]]:
    """Yields the events of rows with their messages.

    Rows that say the same have one event: servers often say so again.
    """
    if not len(rows):
        return
    said = (rows[name] for name in _EVENT_COLUMNS if name != "message")
    firsts, indices = grouped(combined_codes([codes_of_values(pa.chunked_array([column])) for column in said]))
    events = [[*_events(row)] for row in rows.take(pa.array(firsts)).to_pylist()]
    for message, index in zip(rows["message"].to_pylist(), indices.tolist(), strict=True):
        yield from ((message, event) for event in events[index])


_AFTER_BLOCKS = ("STREAM_STOP", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE", "BEGIN")


def _describe_nothing(rows: pa.RecordBatch, described_in: Collection[int]) -> Array:
    """Returns bool[n]: whether the row belongs to a block without relations, or ends a transaction without them, or
    begins a transaction outside of blocks.

    rows           RELATION, BEGIN and the records of blocks
    described_in   the xids of transactions that may have described relations before
    """
    kinds, xids = rows["kind"], np.asarray(rows["xid"].fill_null(0))
    are_ends = np.asarray(pc.is_in(kinds, pa.array(_AFTER_BLOCKS)))
    are_starts, are_stops = (np.asarray(pc.equal(kinds, kind)) for kind in ("STREAM_START", "STREAM_STOP"))
    are_outside = np.append(False, are_ends[:-1])  # no block is open before these rows
    found = are_outside & are_starts & np.append(are_stops[1:], False)
    found[1:] |= found[:-1]
    kept = np.isin(xids, [*described_in, *xids[are_starts & ~found]])
    return found | (are_outside & are_ends & ~are_stops & ~kept)


def _events(row: Mapping[str, Any]) -> Iterator[Event]:
    detail = dict(row["detail"] or ())
    xid = None if row["xid"] is None else unsigned(row["xid"])
    kind = row["kind"]
    if kind == "RELATION":
        yield Relation(
            relation_id=int(detail["relation_id"]),
            table_schema=row["table_schema"],
            table_name=row["table_name"],
            replica_identity=detail["replica_identity"],
            xid=xid,
            **relation_lists(detail),
        )
    elif kind == "BEGIN":
        yield Begin(xid=xid)
    elif kind == "STREAM_START":
        yield StreamStart(xid=xid, first_segment=detail.get("first_segment") == "true")
    elif kind == "STREAM_STOP":
        yield StreamStop(xid=xid)
    elif kind == "STREAM_COMMIT":
        yield StreamCommit(xid=xid)
    elif kind == "STREAM_PREPARE":
        yield StreamPrepare(xid=xid, gid=detail.get("gid", ""))
    elif aborts_whole(xid, subxid_of(detail)):
        yield StreamAbort(xid=xid, subxid=xid)


def subxid_of(detail: Mapping[str, str]) -> int | None:
    """Returns the subtransaction that the details of a row name."""
    return int(detail["subxid"]) if "subxid" in detail else None
