"""Rows of open transactions in batches of a store: small transactions share a batch, and each knows its rows in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import OptionError, StateError
from ...stream.attempts import Attempt
from ...stream.saved import BEGIN_ANEW
from ..arrays import Array
from .row_ranges import HERE, RowRange, gathered, spread, taken
from .spill import Handle, Store

SHARED_BYTES = 256 << 10
"""About how large a batch is that transactions share. What a transaction has more of in one batch lies alone. So
to read a small one back never means to read much more, and one that stays open keeps little of others."""

DEAD_SHARE = 0.25
"""How much of a batch must be of ended transactions before its other rows are worth being written anew."""


MOVED_BYTES = 8 << 20
"""How many bytes of worn batches are in memory at a time to be written anew."""


ROW = pa.field("_row", pa.int64())
"""The last column of held rows: the index of each row in the input."""


class SavedBatch(NamedTuple):
    """What a saved state says of a batch in the store; see `_Batch`."""

    handle: Handle
    rows: int
    row_bytes: int


@dataclass(slots=True)
class _Batch:
    """A batch in the store.

    open        how many of its rows are of transactions that have not ended
    row_bytes   of a row, on average and rounded up
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
    def is_worn(self) -> bool:
        return self.rows - self.open >= DEAD_SHARE * self.rows


@dataclass(slots=True)
class _Move:
    """Parts of one batch that follow each other in a transaction, on their way to another batch.

    pieces, at   where the piece stands that they become
    count        how many of the rows count
    """

    pieces: list[tuple[RowRange, int]]
    at: int
    count: int


class OpenRows:
    """Where the parts of open transactions are; the rows lie in a store.

    Once more is dead in its batches than alive, what is alive in worn ones is put together anew: so there is never much
    more than twice of what is open, and what is moved is paid by what is dead.

    schema   of the rows that come now, with whatever is held besides; None if it does not matter
    """

    def __init__(self, store: Store) -> None:
        self.schema: pa.Schema | None = None
        self._store = store
        self._batches: dict[int, _Batch] = {}
        self._next = 0
        self._open_bytes = self._dead_bytes = 0

    @property
    def saved(self) -> dict[int, SavedBatch]:
        """What to keep of each batch in a saved state, by its number; how much of it is open follows from its parts."""
        return {
            number: SavedBatch(batch.handle, batch.rows, batch.row_bytes) for number, batch in self._batches.items()
        }

    def go_on_with(self, batches: Iterable[tuple[SavedBatch, int]]) -> None:
        """Nothing was held yet: these batches were, numbered from 0, each with so many open rows."""
        for (handle, rows, row_bytes), open in batches:
            batch = _Batch(handle, rows, open, row_bytes)
            self._batches[self._next] = batch
            self._next += 1
            self._open_bytes += batch.open_bytes
            self._dead_bytes += batch.dead_bytes

    def put(self, batch: pa.RecordBatch) -> RowRange:
        """Keep a batch, all of it open."""
        number, rows = self._next, len(batch)
        self._next += 1
        held = _Batch(self._store.put(batch), rows, rows, -(-batch.nbytes // rows))
        self._batches[number] = held
        self._open_bytes += held.open_bytes
        return number, 0, rows

    def get(self, number: int) -> pa.RecordBatch:
        """A batch that is kept.

        Raises StateError where the store does not have what a saved state says, OptionError where its columns are not
        those of the rows that come now.
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
                "row changes: expected the columns of the rows of open transactions that the state holds, "
                f"{_columns(batch.schema)}, got {_columns(self.schema)}"
            )
        return batch

    def bytes_of(self, number: int) -> int:
        """Of a row of it, on average."""
        return self._batches[number].row_bytes

    def rows_of(self, attempts: Iterable[Attempt[RowRange]]) -> Iterator[pa.RecordBatch]:
        """The rows of these, a batch for each one in which some lie."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for attempt in attempts:
            for (number, start, stop), _ in attempt.pieces:
                ranges.setdefault(number, []).append((start, stop))
        for number, found in ranges.items():
            starts, stops = np.array(sorted(found), np.int64).T
            yield taken(self.get(number), spread(starts, stops)[0])

    def release(self, parts: Iterable[RowRange]) -> None:
        """These are open no longer; a batch goes with the last of its rows."""
        ended: Counter[int] = Counter()
        for number, start, stop in parts:
            ended[number] += stop - start
        for number, rows in ended.items():
            batch = self._batches[number]
            batch.open -= rows
            self._open_bytes -= rows * batch.row_bytes
            self._dead_bytes += rows * batch.row_bytes
            if not batch.open:
                self._drop(number)

    def hold(self, here: pa.RecordBatch, kept: Array, attempts: Iterable[Attempt[RowRange]]) -> None:
        """What is open in the batch that was read moves out of it.

        here        with whatever is to be held besides
        kept        bool[n]: its rows that are
        attempts    those that have parts HERE, each behind all its others
        """
        self._move_all(*_moves(attempts, {HERE}), {HERE: here}, kept)

    def renew(self, open: Callable[[], Iterable[Attempt[RowRange]]]) -> None:
        """Put together anew what is worn, if there is much of it. open: all attempts that have not ended."""
        while self._dead_bytes > self._open_bytes + SHARED_BYTES:  # so at least one is worn
            worn: dict[int, pa.RecordBatch] = {}
            size = 0
            for number, batch in self._batches.items():
                if batch.is_worn and size < MOVED_BYTES:
                    worn[number] = self.get(number)
                    size += batch.open_bytes + batch.dead_bytes
            self._move_all(*_moves(open(), worn.keys()), worn)
            for number in worn:
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
        parts: list[tuple[int, int, int, int]],
        moves: list[_Move],
        batches: dict[int, pa.RecordBatch],
        kept: Array | None = None,
    ) -> None:
        if not moves:
            return
        which, starts, stops, move = np.array(parts, np.int64).T
        indices, of = spread(starts, stops)
        if kept is not None:
            wanted = kept[indices]
            indices, of = indices[wanted], of[wanted]
        row_bytes = {number: batch.nbytes / len(batch) for number, batch in batches.items()}
        sizes = np.array([row_bytes[number] for number, *_ in parts])
        which, move = which[of], move[of]
        together = _together(np.bincount(move, sizes[of], len(moves)))[move]
        order = np.argsort(together, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(together[order])) + 1):
            self._move(batches, which[rows], indices[rows], move[rows], moves)

    def _move(
        self,
        batches: dict[int, pa.RecordBatch],
        which: Array,
        indices: Array,
        move: Array,
        moves: list[_Move],
        most: float = np.inf,
    ) -> None:
        """Rows into one batch, those of a move behind each other; into more where they are larger than others."""
        found = [*gathered(batches, which, indices)]
        numbers, firsts = np.unique(move, return_index=True)
        size = sum(batch.nbytes for batch in found)
        if len(found) > 1 or (2 * SHARED_BYTES < size < most and len(numbers) > 1):
            middle = firsts[len(firsts) // 2]
            for half in (slice(0, middle), slice(middle, None)):
                self._move(batches, which[half], indices[half], move[half], moves, size * 0.75)
            return
        held, _, end = self.put(found[0])
        for number, start, stop in zip(numbers.tolist(), firsts.tolist(), [*firsts[1:].tolist(), end], strict=True):
            one = moves[number]
            one.pieces[one.at] = ((held, start, stop), one.count)


def _missing() -> StateError:
    return StateError(
        "saved state: expected the rows of open transactions in the store, got none or others: give the store "
        f"with which the state was saved, {BEGIN_ANEW}"
    )


def _are_alike(held: pa.Schema, here: pa.Schema) -> bool:
    return held.equals(here) or (held.names == here.names and held.types == here.types)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema if field.name != ROW.name)


def _moves(
    attempts: Iterable[Attempt[RowRange]], out: Container[int]
) -> tuple[list[tuple[int, int, int, int]], list[_Move]]:
    """The parts of these attempts that move out of these batches, each with the number of its move."""
    parts: list[tuple[int, int, int, int]] = []
    moves: list[_Move] = []
    for attempt in attempts:
        pieces = attempt.pieces
        first = 0
        if HERE in out:
            first = len(pieces)
            while first and pieces[first - 1][0][0] == HERE:
                first -= 1
        moved, pieces[first:] = pieces[first:], []
        last = None
        for piece in moved:
            (number, start, stop), count = piece
            if number not in out:
                pieces.append(piece)
            else:
                if number != last:
                    moves.append(_Move(pieces, len(pieces), 0))
                    pieces.append(piece)
                moves[-1].count += count
                parts.append((number, start, stop, len(moves) - 1))
            last = number
    return parts, moves


def _together(sizes: Array) -> Array:
    """Which of these sizes go together: a large one goes alone, small ones up to about SHARED_BYTES."""
    large = sizes >= SHARED_BYTES
    shared = np.cumsum(np.where(large, 0, sizes)) // SHARED_BYTES
    return np.where(large, -1.0 - np.arange(len(sizes)), shared)
