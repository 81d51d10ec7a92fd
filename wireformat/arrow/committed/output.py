"""Committed rows of one batch, and of held ones, on their way out: gathered, and built some megabytes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from ...stream.attempts import Attempt, TransactionFacts
from ..arrays import Array
from .batch import MARKS, Rows, Stretch
from .facts import committed, facts_batch
from .row_ranges import HERE, RowRange, gathered, spread, taken

OUTPUT_BYTES = 8 << 20
"""About how large a batch of committed rows becomes: enough to make calls free, and little beside what is held."""

_PART = ("batch", "start", "stop", "first", "transaction")


class Output:
    """Committed rows that wait to be built together.

    rows      the batch that is being read
    schema    of what is built; with `_segment`, transactions say theirs
    held      a held batch by its number
    size_of   how many bytes a row of it has, on average
    """

    def __init__(
        self,
        rows: Rows,
        schema: pa.Schema,
        held: Callable[[int], Rows],
        size_of: Callable[[int], int],
    ) -> None:
        self._rows = rows
        self._schema = schema
        self._held = held
        self._size_of = size_of
        self._count = 0
        self._waiting: list[tuple[int, int, int, int, int]] = []
        self._parts: list[Array] = []
        self._undone: dict[int, set[int]] = {}
        self._new_facts: list[TransactionFacts] = []
        self._facts: list[pa.RecordBatch] = []
        self._segments: list[int] = []

    def add(self, attempt: Attempt[RowRange], facts: TransactionFacts, segment: int = 0) -> None:
        """The rows of one transaction."""
        first = 0
        for part, count in attempt.pieces:
            if count:
                self._waiting.append((*part, first, self._count))
                first += count
        if attempt.undone:
            self._undone[self._count] = attempt.undone
        self._new_facts.append(facts)
        self._segments.append(segment)
        self._count += 1
        if len(self._new_facts) == MARKS:
            self._take_new_facts()

    def add_stretch(self, stretch: Stretch, facts: pa.RecordBatch, resent: Array, segment: int = 0) -> None:
        """The rows of whole transactions, but for those that were sent before."""
        self._take_new_facts()
        count = len(resent)
        numbers = self._count + np.arange(count)
        parts = np.stack([np.full(count, HERE), stretch.begins, stretch.commits, np.zeros(count, int), numbers])
        self._parts.append(parts[:, ~resent])
        self._facts.append(facts)
        self._segments += [segment] * count
        self._count += count

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them, in the order in which they were added."""
        self._take_new_facts()
        if not self._parts:
            return
        parts = np.concatenate(self._parts, axis=1)
        facts = pa.Table.from_batches(self._facts).combine_chunks().to_batches()[0]
        segments = np.array(self._segments)
        for start, stop in self._cuts(parts):
            yield from self._built(parts[:, start:stop], facts, segments)

    def _take_new_facts(self) -> None:
        if self._new_facts:
            self._facts.append(facts_batch(self._new_facts))
            self._parts.append(np.array(self._waiting, np.int64).reshape(-1, len(_PART)).T)
            self._new_facts, self._waiting = [], []

    def _cuts(self, parts: Array) -> Iterator[tuple[int, int]]:
        """Where to cut the parts: behind about OUTPUT_BYTES, never in one."""
        sources, of = np.unique(parts[0], return_inverse=True)
        here = self._rows.batch
        sizes = [here.nbytes / len(here) if source == HERE else self._size_of(source) for source in sources.tolist()]
        ends = np.cumsum((parts[2] - parts[1]) * np.array(sizes)[of])
        bounds = np.flatnonzero(np.diff(ends // OUTPUT_BYTES, prepend=0)).tolist()
        for start, stop in zip([0, *bounds], [*bounds, parts.shape[1]], strict=True):
            if start < stop:
                yield start, stop

    def _built(self, parts: Array, facts: pa.RecordBatch, segments: Array) -> Iterator[pa.RecordBatch]:
        sources = np.unique(parts[0]).tolist()
        batches: dict[int, pa.RecordBatch] = {}
        found = []
        for source in sources:
            rows = self._rows if source == HERE else self._held(source)
            indices, of, ordinals = self._wanted(rows, parts, np.flatnonzero(parts[0] == source))
            batches[source] = rows.batch
            if len(sources) > 1:  # no more than what is wanted of each stays in memory
                batches[source] = taken(rows.batch, indices)
                indices = np.arange(len(indices))
            found.append((indices, of, ordinals))
        indices, of, ordinals = (np.concatenate(columns) for columns in zip(*found, strict=True))
        if not len(indices):
            return
        if len(sources) > 1:
            order = np.argsort(of, kind="stable")
            indices, of, ordinals = indices[order], of[order], ordinals[order]
        transaction = parts[4][of]
        at = 0
        for batch in gathered(batches, parts[0][of], indices):
            now = slice(at, at + len(batch))
            at = now.stop
            own = transaction[now]
            yield committed(batch, facts, own, ordinals[now], self._schema, segments[own])

    def _wanted(self, rows: Rows, parts: Array, own: Array) -> tuple[Array, Array, Array]:
        """The indices of the delivered rows of one batch, and for each the number of its range and its ordinal."""
        _, starts, stops, firsts, transactions = parts[:, own]
        indices, of = spread(starts, stops)
        wanted = rows.delivered[indices]
        if self._undone:
            wanted &= ~self._is_undone(rows, indices, transactions[of])
        indices, of = indices[wanted], of[wanted]
        return indices, own[of], (firsts - rows.before[starts])[of] + rows.before[indices]

    def _is_undone(self, rows: Rows, indices: Array, transactions: Array) -> Array:
        """bool[n]: rows of subtransactions that were undone. transactions: of each row; it rises."""
        found = np.zeros(len(indices), bool)
        for number in np.intersect1d(transactions, [*self._undone]).tolist():
            one = slice(*np.searchsorted(transactions, [number, number + 1]))
            at = indices[one]
            undone = np.array([*self._undone[number]], np.uint64)
            found[one] = rows.xids.valid[at] & np.isin(rows.xids.values[at].view(np.uint64), undone)
        return found
