"""Builds batches of committed rows, a few megabytes at a time, of the rows that are being read and of held ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from ...stream.attempts import Attempt, TransactionFacts
from ..arrays import Array
from .batch import RECORDS_AT_ONCE, InputRows, PlainTransactions
from .facts import SettledRows, committed_rows, facts_batch
from .row_ranges import CURRENT_BATCH, RowRange, chosen_indices, gathered

OUTPUT_BYTES = 2 << 20
"""About the size of a batch of committed rows: large enough that a call costs little, and small: what takes the rows
has some copies of them."""

SETTLED_ROWS = 256
"""At least this many neighbouring rows of a source are not copied. Fewer cost less in a batch with held ones."""

_RANGE_FIELDS = ("batch", "start", "stop", "first_ordinal", "transaction")
"""The fields of a waiting row range: a RowRange, the ordinal of its first delivered row, and its transaction."""


_NO_FACTS = TransactionFacts(*(None,) * len(TransactionFacts._fields))


class CommittedOutput:
    """Collects row ranges of committed transactions, and builds batches of their rows.

    rows       the rows that are being read
    schema     of the batches
    held       returns a held batch by its number
    row_bytes  returns the average size of a row of a held batch, by its number
    """

    def __init__(
        self,
        rows: InputRows,
        schema: pa.Schema,
        held: Callable[[int], InputRows],
        row_bytes: Callable[[int], int],
    ) -> None:
        self._rows = rows
        self._schema = schema
        self._held = held
        self._row_bytes = row_bytes
        self._count = 0
        self._waiting: list[tuple[int, int, int, int, int]] = []
        self._ranges: list[Array] = []
        self._undone: dict[int, set[int] | frozenset[int]] = {}
        self._new_facts: list[TransactionFacts] = []
        self._facts: list[pa.RecordBatch] = []

    def add(self, attempt: Attempt[RowRange], facts: TransactionFacts) -> None:
        """Adds the rows of one transaction."""
        first = attempt.before
        for row_range, count in attempt.handles:
            if count:
                self._waiting.append((*row_range, first, self._count))
                first += count
        if attempt.undone:
            self._undone[self._count] = attempt.undone
        self._add_facts(facts)

    def _add_facts(self, facts: TransactionFacts) -> None:
        self._new_facts.append(facts)
        self._count += 1
        if len(self._new_facts) == RECORDS_AT_ONCE:
            self._take_new_facts()

    def add_outside(self, row: int) -> None:
        """Adds a row that belongs to no transaction."""
        self._waiting.append((CURRENT_BATCH, row, row + 1, 0, self._count))
        self._add_facts(_NO_FACTS)

    def add_plain_transactions(self, plain: PlainTransactions, facts: pa.RecordBatch, resent: Array) -> None:
        """Adds the rows of plain transactions, without those that were sent before."""
        self._take_new_facts()
        count = len(resent)
        numbers = self._count + np.arange(count)
        firsts = np.zeros(count, np.int64)
        ranges = np.stack([np.full(count, CURRENT_BATCH), plain.begins + 1, plain.commits, firsts, numbers])
        self._ranges.append(ranges[:, ~resent])
        self._facts.append(facts)
        self._count += count

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows, in the order in which their transactions were added, if no source has them."""
        for found in self.settled():
            assert isinstance(found, pa.RecordBatch), "rows of a source are not copied"
            yield found

    def settled(self) -> Iterator[pa.RecordBatch | SettledRows]:
        """Yields all rows, in the order in which their transactions were added; those of a source as they are."""
        self._take_new_facts()
        if not self._ranges:
            return
        ranges = np.concatenate(self._ranges, axis=1)
        facts = pa.Table.from_batches(self._facts).combine_chunks().to_batches()[0]
        for start, stop, is_settled in self._parts(ranges):
            part = ranges[:, start:stop]
            if is_settled:
                indices, range_of, ordinals = self._delivered(self._rows, part, np.arange(stop - start))
                yield SettledRows(indices, facts, part[4][range_of], ordinals)
            else:
                for first, last in self._bounds(part):
                    yield from self._built(part[:, first:last], facts)

    def _take_new_facts(self) -> None:
        if self._new_facts:
            self._facts.append(facts_batch(self._new_facts))
            self._ranges.append(np.array(self._waiting, np.int64).reshape(-1, len(_RANGE_FIELDS)).T)
            self._new_facts, self._waiting = [], []

    def _parts(self, ranges: Array) -> Iterator[tuple[int, int, bool]]:
        """Yields bounds that divide the ranges into settled rows of a source, and others."""
        count = ranges.shape[1]
        done = 0
        if count and self._rows.source is not None:
            is_current = ranges[0] == CURRENT_BATCH
            bounds = (np.flatnonzero(is_current[1:] != is_current[:-1]) + 1).tolist()
            rows_before = np.concatenate([[0], np.cumsum(ranges[2] - ranges[1])])
            for start, stop in zip([0, *bounds], [*bounds, count], strict=True):
                if is_current[start] and (
                    rows_before[stop] - rows_before[start] >= SETTLED_ROWS or stop - start == count
                ):
                    if done < start:
                        yield done, start, False
                    yield start, stop, True
                    done = stop
        if done < count:
            yield done, count, False

    def _bounds(self, ranges: Array) -> Iterator[tuple[int, int]]:
        """Yields bounds that divide the ranges into groups of about OUTPUT_BYTES. No range is divided."""
        sources, source_of = np.unique(ranges[0], return_inverse=True)
        sizes = [
            self._rows.row_bytes if source == CURRENT_BATCH else self._row_bytes(source) for source in sources.tolist()
        ]
        ends = np.cumsum((ranges[2] - ranges[1]) * np.array(sizes)[source_of])
        bounds = np.flatnonzero(np.diff(ends // OUTPUT_BYTES, prepend=0)).tolist()
        for start, stop in zip([0, *bounds], [*bounds, ranges.shape[1]], strict=True):
            if start < stop:
                yield start, stop

    def _built(self, ranges: Array, facts: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        sources = np.unique(ranges[0]).tolist()
        batches: dict[int, pa.RecordBatch] = {}
        found = []
        for source in sources:
            rows = self._rows if source == CURRENT_BATCH else self._held(source)
            indices, range_of, ordinals = self._delivered(rows, ranges, np.flatnonzero(ranges[0] == source))
            if len(sources) > 1 or rows.source is not None:  # only the delivered rows of each batch stay in memory
                batches[source] = rows.batch_of(indices)
                indices = np.arange(len(indices))
            else:
                batches[source] = rows.batch
            found.append((indices, range_of, ordinals))
        indices, range_of, ordinals = (np.concatenate(columns) for columns in zip(*found, strict=True))
        if not len(indices):
            return
        if len(sources) > 1:
            order = np.argsort(range_of, kind="stable")
            indices, range_of, ordinals = indices[order], range_of[order], ordinals[order]
        transactions = ranges[4][range_of]
        done = 0
        for batch in gathered(batches, ranges[0][range_of], indices):
            rows_of_batch = slice(done, done + len(batch))
            done = rows_of_batch.stop
            own = transactions[rows_of_batch]
            settled = SettledRows(indices[rows_of_batch], facts, own, ordinals[rows_of_batch])
            yield committed_rows(batch, settled, self._schema)

    def _delivered(self, rows: InputRows, ranges: Array, own: Array) -> tuple[Array, Array, Array]:
        """Returns the indices of the delivered rows of one batch, and for each the index of its range, and its ordinal.

        own   int64[k]: indices of the ranges of this batch
        """
        _, starts, stops, firsts, transactions = ranges[:, own]
        indices, range_of = chosen_indices(starts, stops, rows.may_be_handed_on)
        if self._undone:
            is_left = ~self._is_undone(rows, indices, transactions[range_of])
            indices, range_of = indices[is_left], range_of[is_left]
        if rows.ordinals is not None:
            return indices, own[range_of], rows.ordinals[indices]
        ordinals = rows.counted_before[indices]
        ordinals += (firsts - rows.counted_through[starts])[range_of]
        return indices, own[range_of], ordinals

    def _is_undone(self, rows: InputRows, indices: Array, transactions: Array) -> Array:
        """Returns bool[n]: whether the row belongs to a subtransaction that was rolled back.

        transactions   int64[n]: the transaction of each row, ascending
        """
        is_undone = np.zeros(len(indices), bool)
        for transaction in np.intersect1d(transactions, [*self._undone]).tolist():
            own = slice(*np.searchsorted(transactions, [transaction, transaction + 1]))
            at = indices[own]
            undone = np.array([*self._undone[transaction]], np.uint64).view(np.int64)  # as notes have them
            is_undone[own] = rows.xids.valid[at] & np.isin(rows.xids.values[at].view(np.int64), undone)
        return is_undone
