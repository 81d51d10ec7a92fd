"""Keeps the rows of open transactions in a store. Small transactions share a batch, and each has its row ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import OptionError, StateError
from ...stream.attempts import Attempt
from ...stream.saved import START_OVER
from ..arrays import Array
from ..codes import groups_of
from .row_ranges import CURRENT_BATCH, RowRange, gathered, row_indices, taken
from .spill import Handle, RowStore, checked_store

SHARED_BYTES = 256 << 10
"""About the size of a batch that transactions share. Larger rows of one transaction get a batch of their
own. So reading a small transaction never reads much more, and one that stays open keeps few rows of others."""

DEAD_SHARE = 0.25
"""A batch is rewritten when at least this share of its rows belongs to ended transactions."""


MOVED_BYTES = 8 << 20
"""How many bytes of sparse batches are in memory at a time to be rewritten."""


ROW = pa.field("_row", pa.int64())
"""The last column of held rows: the index of the row in the input."""


ORDINAL = pa.field("_ordinal", pa.int64())
"""The column before it, where row changes may have been stepped over: the ordinal of the row in its transaction."""


class SavedBatch(NamedTuple):
    """The saved fields of a batch in the store; see `_Batch`."""

    handle: Handle
    rows: int
    row_bytes: int


@dataclass(slots=True)
class _Batch:
    """A batch in the store.

    rows        how many rows it has
    open        how many of its rows belong to transactions that have not ended
    row_bytes   the average size of a row, rounded up
    """

    handle: Handle
    rows: int
    open: int
    row_bytes: int

    @property
    def open_bytes(self) -> int:
        return self.open * self.row_bytes

    @property
    def dead_bytes(self) -> int:
        return (self.rows - self.open) * self.row_bytes

    @property
    def is_sparse(self) -> bool:
        return self.rows - self.open >= DEAD_SHARE * self.rows


@dataclass(slots=True)
class _Move:
    """Consecutive row ranges of a transaction in one batch, which move to another batch and become one row range.

    handles   of the transaction
    index     the index in `handles` of the row range that they become
    count     the number of their delivered rows
    """

    handles: list[tuple[RowRange, int]]
    index: int
    count: int


class OpenRows:
    """The row ranges of open transactions, whose rows are in a store.

    When the batches have more dead rows than open ones, the open rows of sparse batches are rewritten. So the store
    never has much more than twice the open rows, and the cost of rewriting is bounded by the rows that died.

    schema   of held rows; None if it is not checked
    """

    def __init__(self, store: RowStore) -> None:
        self.schema: pa.Schema | None = None
        self._store = checked_store(store)
        self._batches: dict[int, _Batch] = {}
        self._next = 0
        self._open_bytes = self._dead_bytes = 0

    @property
    def saved(self) -> dict[int, SavedBatch]:
        """The saved fields of each batch, by its number. The number of open rows follows from the saved row ranges."""
        return {
            number: SavedBatch(batch.handle, batch.rows, batch.row_bytes) for number, batch in self._batches.items()
        }

    def restore(self, batches: Iterable[tuple[SavedBatch, int]]) -> None:
        """Restores saved batches, numbered from 0, with their numbers of open rows. Call it before anything is held."""
        for (handle, rows, row_bytes), open in batches:
            batch = _Batch(handle, rows, open, row_bytes)
            self._batches[self._next] = batch
            self._next += 1
            self._open_bytes += batch.open_bytes
            self._dead_bytes += batch.dead_bytes

    def put(self, batch: pa.RecordBatch) -> RowRange:
        """Stores a batch, all of whose rows are open, and returns its rows as a row range."""
        number, rows = self._next, len(batch)
        self._next += 1
        held = _Batch(self._store.put(batch), rows, rows, -(-batch.nbytes // rows))
        self._batches[number] = held
        self._open_bytes += held.open_bytes
        return number, 0, rows

    def get(self, number: int) -> pa.RecordBatch:
        """Returns a stored batch.

        Raises StateError if the store does not have the rows of the saved state, OptionError if their columns differ
        from those of the new rows.
        """
        held = self._batches[number]
        try:
            batch = self._store.get(held.handle)
        except KeyError:
            raise _missing() from None
        if len(batch) != held.rows:
            raise _missing()
        if self.schema is not None and not _are_alike(batch.schema, self.schema):
            raise OptionError(
                "row changes: expected the columns of the open rows in the state, "
                f"{_columns(batch.schema)}, got {_columns(self.schema)}"
            )
        return batch

    def row_bytes(self, number: int) -> int:
        """Returns the average size of a row of a stored batch."""
        return self._batches[number].row_bytes

    def rows_of(self, attempts: Iterable[Attempt[RowRange]]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of these attempts, as one batch for each stored batch with some of them."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for attempt in attempts:
            for (number, start, stop), _ in attempt.handles:
                ranges.setdefault(number, []).append((start, stop))
        for number, found in ranges.items():
            starts, stops = np.array(sorted(found), np.int64).T
            yield taken(self.get(number), row_indices(starts, stops)[0])

    def release(self, row_ranges: Iterable[RowRange]) -> None:
        """Releases rows that are no longer open. A batch is dropped with the last of its open rows."""
        ended: Counter[int] = Counter()
        for number, start, stop in row_ranges:
            ended[number] += stop - start
        for number, rows in ended.items():
            batch = self._batches[number]
            batch.open -= rows
            self._open_bytes -= rows * batch.row_bytes
            self._dead_bytes += rows * batch.row_bytes
            if not batch.open:
                self._drop(number)

    def hold(self, current: pa.RecordBatch, kept: Array, attempts: Iterable[Attempt[RowRange]]) -> None:
        """Moves the open rows of the batch that has been read into the store.

        current    the batch, with the column ROW
        kept       bool[n]: whether the row is kept
        attempts   the attempts with row ranges CURRENT_BATCH, which follow all their other row ranges
        """
        self._move_all(*_moves(attempts, {CURRENT_BATCH}), {CURRENT_BATCH: current}, kept)

    def hold_taken(
        self, take: Callable[[Array], pa.RecordBatch], kept: Array, attempts: Iterable[Attempt[RowRange]]
    ) -> None:
        """Stores the open rows of a source whose rows are not in a batch yet.

        take   returns some of the rows, with the column ROW
        """
        ranges, moves = _moves(attempts, {CURRENT_BATCH})
        if not moves:
            return
        batch_of, starts, stops, move_of = np.array(ranges, np.int64).T
        open = np.sort(row_indices(starts, stops)[0])
        open = open[kept[open]]
        bounds = (np.searchsorted(open, rows).tolist() for rows in (starts, stops))
        moved = [*zip(batch_of.tolist(), *bounds, move_of.tolist(), strict=True)]
        self._move_all(moved, moves, {CURRENT_BATCH: take(open)})

    def compact(self, open: Callable[[], Iterable[Attempt[RowRange]]]) -> None:
        """Rewrites the open rows of sparse batches if there are many dead rows.

        open   returns all attempts that have not ended
        """
        while self._dead_bytes > self._open_bytes + SHARED_BYTES:  # so at least one batch is sparse
            sparse: dict[int, pa.RecordBatch] = {}
            size = 0
            for number, batch in self._batches.items():
                if batch.is_sparse and size < MOVED_BYTES:
                    sparse[number] = self.get(number)
                    size += batch.open_bytes + batch.dead_bytes
            self._move_all(*_moves(open(), sparse.keys()), sparse)
            for number in sparse:
                self._drop(number)

    def _drop(self, number: int) -> None:
        batch = self._batches.pop(number)
        self._open_bytes -= batch.open_bytes
        self._dead_bytes -= batch.dead_bytes
        try:
            self._store.drop(batch.handle)
        except KeyError:
            raise _missing() from None

    def _move_all(
        self,
        ranges: list[tuple[int, int, int, int]],
        moves: list[_Move],
        batches: dict[int, pa.RecordBatch],
        kept: Array | None = None,
    ) -> None:
        """Moves row ranges into new batches.

        ranges    batch, start, stop, and index of the move
        kept      bool[n]: whether the row is moved; None for all rows
        """
        if not moves:
            return
        batch_of, starts, stops, move_of = np.array(ranges, np.int64).T
        indices, range_of = row_indices(starts, stops)
        if kept is not None:
            moved = kept[indices]
            indices, range_of = indices[moved], range_of[moved]
        row_bytes = {number: batch.nbytes / len(batch) for number, batch in batches.items()}
        sizes = np.array([row_bytes[number] for number, *_ in ranges])
        batch_of, move_of = batch_of[range_of], move_of[range_of]
        groups = _groups(np.bincount(move_of, sizes[range_of], len(moves)))[move_of]
        for rows in groups_of(groups):
            self._move(batches, batch_of[rows], indices[rows], move_of[rows], moves)

    def _move(
        self,
        batches: dict[int, pa.RecordBatch],
        batch_of: Array,
        indices: Array,
        move_of: Array,
        moves: list[_Move],
        split_below: float = np.inf,
    ) -> None:
        """Moves rows, sorted by move, into one new batch, or into several if they are larger than expected.

        split_below   a batch of this size or more is not split again, since splitting did not make it smaller
        """
        found = [*gathered(batches, batch_of, indices)]
        numbers, firsts = np.unique(move_of, return_index=True)
        size = sum(batch.nbytes for batch in found)
        if len(found) > 1 or (2 * SHARED_BYTES < size < split_below and len(numbers) > 1):
            middle = firsts[len(firsts) // 2]
            for half in (slice(0, middle), slice(middle, None)):
                self._move(batches, batch_of[half], indices[half], move_of[half], moves, size * 0.75)
            return
        held, _, end = self.put(found[0])
        for number, start, stop in zip(numbers.tolist(), firsts.tolist(), [*firsts[1:].tolist(), end], strict=True):
            move = moves[number]
            move.handles[move.index] = ((held, start, stop), move.count)


def _missing() -> StateError:
    return StateError(
        "saved state: expected the rows of open transactions in the store, got none or others: pass the store "
        f"with which the state was saved, {START_OVER}"
    )


def _are_alike(held: pa.Schema, here: pa.Schema) -> bool:
    return held.equals(here) or (held.names == here.names and held.types == here.types)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema if field.name != ROW.name)


def _moves(
    attempts: Iterable[Attempt[RowRange]], emptied: Container[int]
) -> tuple[list[tuple[int, int, int, int]], list[_Move]]:
    """Returns the row ranges that move out of the emptied batches, each with the index of its move, and the moves."""
    ranges: list[tuple[int, int, int, int]] = []
    moves: list[_Move] = []
    for attempt in attempts:
        handles = attempt.handles
        first = 0
        if CURRENT_BATCH in emptied:
            first = len(handles)
            while first and handles[first - 1][0][0] == CURRENT_BATCH:
                first -= 1
        candidates, handles[first:] = handles[first:], []
        last = None
        for candidate in candidates:
            (number, start, stop), count = candidate
            if number not in emptied:
                handles.append(candidate)
            else:
                if number != last:
                    moves.append(_Move(handles, len(handles), 0))
                    handles.append(candidate)
                moves[-1].count += count
                ranges.append((number, start, stop, len(moves) - 1))
            last = number
    return ranges, moves


def _groups(sizes: Array) -> Array:
    """Returns the group of each size: a large one is alone, small ones are together up to about SHARED_BYTES."""
    large = sizes >= SHARED_BYTES
    shared = np.cumsum(np.where(large, 0, sizes)) // SHARED_BYTES
    return np.where(large, -1.0 - np.arange(len(sizes)), shared)
