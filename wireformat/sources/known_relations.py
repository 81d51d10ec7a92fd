"""`KnownRelations`: the relations of pgoutput that are known where an input must begin after the next position."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Array
from ..arrow.noted.relation_events import events_in, rows_of_kinds
from ..events import Event, Relation
from ..formats.pgoutput.relations import Relations

MOST_LATER_ROWS = 1 << 15
"""How many rows are kept before they are read."""


class KnownRelations:
    """The relations of pgoutput that were described before the oldest message that is still needed.

    relations   those before the rows; they are not changed

    Few positions are looked at. Rows are kept until one is, or until there are many.
    """

    _KINDS = ("RELATION", "STREAM_START", "STREAM_STOP", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE")

    def __init__(self, relations: Relations | None = None) -> None:
        self._known = relations or Relations()
        self._later: list[pa.RecordBatch | list[tuple[int, Event]]] = []
        """Rows after `_known`, or their events with their messages. The list only grows: positions share it."""
        self._rows = 0
        self._described_in: set[int] = set()
        """The xids of streamed transactions that may have described relations."""
        self._in_block = self._known.block is not None

    def copy(self) -> Relations:
        """Returns the relations, for a decoder."""
        return self._known.copy()

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
            self._described_in = {xid for xid, _, _ in self._known.described_in_blocks()}
            self._described_in.update([] if self._known.block is None else [self._known.block])
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
        known: Relations,
        later: list[pa.RecordBatch | list[tuple[int, Event]]],
        count: int,
        message: int | None,
    ) -> tuple[Relation, ...]:
        events = [found for rows in later[:count] for found in (rows if isinstance(rows, list) else events_in(rows))]
        end = next(
            (at for at, (index, _) in enumerate(events) if message is not None and index >= message), len(events)
        )
        reached = known
        if end:
            reached = known.copy()
            for _, event in events[:end]:
                reached.take(event)
        if later is self._later:
            self._known, self._later = reached, [events[end:], *later[count:]]
            self._rows = sum(len(rows) for rows in later[count:])
        return reached.known()


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
