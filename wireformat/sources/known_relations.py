"""`KnownRelations`: the relations of pgoutput that are known where an input must begin after the next position."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Array
from ..arrow.noted.relation_events import events_in, rows_of_kinds
from ..events import Event, Relation, StreamCommit, StreamPrepare
from ..formats.pgoutput.relations import Relations
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
        rows = rows_of_kinds(batch, self._KINDS)
        if self._in_block or "STREAM_START" in rows["kind"].unique().to_pylist():
            rows = rows_of_kinds(batch, (*self._KINDS, "BEGIN"))  # a block in which the connection broke ends there
        if not len(rows):  # as in each batch of a format that does not describe its tables
            return
        others = pc.indices_nonzero(pc.not_equal(rows["kind"], "RELATION"))
        if len(others):
            self._in_block = rows["kind"][others[-1].as_py()].as_py() == "STREAM_START"
        if not any(map(len, self._later)):
            known = self._known.relations
            self._described_in = {xid for xid, _, _ in known.described_in_blocks()}
            self._described_in.update([] if known.block is None else [known.block])
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
        events = [found for rows in later[:count] for found in (rows if isinstance(rows, list) else events_in(rows))]
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
