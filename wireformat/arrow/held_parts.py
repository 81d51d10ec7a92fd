"""Rows of open transactions in batches of a store: small transactions share a batch, and each knows its rows in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..stream.transactions import Attempt
from .compiled import Array
from .held_rows import Store
from .parts import HERE, Part, gathered, spread, taken

SHARED_BYTES = 256 << 10
"""About how large a batch is that transactions share. What a transaction has more of in one batch lies alone. So
to read a small one back never means to read much more, and one that stays open keeps little of others."""

DEAD_SHARE = 0.25
"""How much of a batch must be of ended transactions before its other rows are worth being written anew."""


MOVED_BYTES = 8 << 20
"""How many bytes of worn batches are in memory at a time to be written anew."""


@dataclass(slots=True)
class _Batch:
    """A batch in the store.

    open        how many of its rows are of transactions that have not ended
    row_bytes   of a row, on average and rounded up
    """

    handle: Any
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

    pieces: list[tuple[Part, int]]
    at: int
    count: int


class HeldParts:
    """Where the parts of open transactions are; the rows lie in a store.

    Once more is dead in its batches than alive, what is alive in worn ones is put together anew: so there is never much
    more than twice of what is open, and what is moved is paid by what is dead.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batches: dict[int, _Batch] = {}
        self._next = 0
        self._open_bytes = self._dead_bytes = 0

    @property
    def state(self) -> Any:
        """All but the rows."""
        return self._batches, self._next, self._open_bytes, self._dead_bytes

    @state.setter
    def state(self, state: Any) -> None:
        self._batches, self._next, self._open_bytes, self._dead_bytes = state

    def put(self, batch: pa.RecordBatch) -> Part:
        """Keep a batch, all of it open."""
        number, rows = self._next, len(batch)
        self._next += 1
        held = _Batch(self._store.put(batch), rows, rows, -(-batch.nbytes // rows))
        self._batches[number] = held
        self._open_bytes += held.open_bytes
        return number, 0, rows

    def get(self, number: int) -> pa.RecordBatch:
        """A batch that is kept."""
        return self._store.get(self._batches[number].handle)

    def bytes_of(self, number: int) -> int:
        """Of a row of it, on average."""
        return self._batches[number].row_bytes

    def rows_of(self, attempts: Iterable[Attempt[Part]]) -> Iterator[pa.RecordBatch]:
        """The rows of these, a batch for each one in which some lie."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for attempt in attempts:
            for (number, start, stop), _ in attempt.pieces:
                ranges.setdefault(number, []).append((start, stop))
        for number, found in ranges.items():
            starts, stops = np.array(sorted(found), np.int64).T
            yield taken(self.get(number), spread(starts, stops)[0])

    def release(self, parts: Iterable[Part]) -> None:
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

    def hold(self, here: pa.RecordBatch, kept: Array, attempts: Iterable[Attempt[Part]]) -> None:
        """What is open in the batch that was read moves out of it.

        here        with whatever is to be held besides
        kept        bool[n]: its rows that are
        attempts    those that have parts HERE, each behind all its others
        """
        self._move_all(*_moves(attempts, {HERE}), {HERE: here}, kept)

    def renew(self, open: Callable[[], Iterable[Attempt[Part]]]) -> None:
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
        self._store.drop(batch.handle)

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
        places, of = spread(starts, stops)
        if kept is not None:
            wanted = kept[places]
            places, of = places[wanted], of[wanted]
        row_bytes = {number: batch.nbytes / len(batch) for number, batch in batches.items()}
        sizes = np.array([row_bytes[number] for number, *_ in parts])
        which, move = which[of], move[of]
        together = _together(np.bincount(move, sizes[of], len(moves)))[move]
        order = np.argsort(together, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(together[order])) + 1):
            self._move(batches, which[rows], places[rows], move[rows], moves)

    def _move(
        self,
        batches: dict[int, pa.RecordBatch],
        which: Array,
        places: Array,
        move: Array,
        moves: list[_Move],
        most: float = np.inf,
    ) -> None:
        """Rows into one batch, those of a move behind each other; into more where they are larger than others."""
        found = [*gathered(batches, which, places)]
        numbers, firsts = np.unique(move, return_index=True)
        size = sum(batch.nbytes for batch in found)
        if len(found) > 1 or (2 * SHARED_BYTES < size < most and len(numbers) > 1):
            middle = firsts[len(firsts) // 2]
            for half in (slice(0, middle), slice(middle, None)):
                self._move(batches, which[half], places[half], move[half], moves, size * 0.75)
            return
        held, _, end = self.put(found[0])
        for number, start, stop in zip(numbers.tolist(), firsts.tolist(), [*firsts[1:].tolist(), end], strict=True):
            one = moves[number]
            one.pieces[one.at] = ((held, start, stop), one.count)


def _moves(
    attempts: Iterable[Attempt[Part]], out: Container[int]
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
