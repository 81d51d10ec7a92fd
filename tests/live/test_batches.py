"""Batches of a stream: what waits for the end of a transaction, in memory or in a file, and where the slot is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import pyarrow as pa
import pytest

from wireformat.live.batches import Batches
from wireformat.live.transaction_ends import Piece


class Pieces:
    """An intake with pieces that are there."""

    received = 0

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = deque(pieces)

    def take(self, seconds: float) -> Piece | None:
        return self._pieces.popleft() if self._pieces else None


def piece(text: str, whole: int, lsn: int | None) -> Piece:
    return Piece(pa.array([letter.encode() for letter in text], pa.binary()), whole, lsn, 0, False, None)


@pytest.mark.parametrize("memory", [1, 30, 1 << 20])
def test_what_does_not_fit_into_memory_waits_in_a_file(memory: int) -> None:
    """A batch has the same messages; those outside of transactions, without an LSN, too."""
    pieces = [piece("abc", 3, None), piece("def", 0, None), piece("gh", 1, 7), piece("i", 0, None), piece("jk", 2, 9)]
    batches = Batches(Pieces(pieces), 1, 0, memory)  # type: ignore[arg-type]
    found = []
    for _ in pieces:
        batch = batches.next(0)
        if batch is not None:
            messages = batch.messages
            messages = messages if isinstance(messages, pa.ChunkedArray) else pa.table(messages)["payload"]
            found.append((b"".join(messages.to_pylist()), batch.lsn, batch.count))
            batch.close()
    batches.close()
    assert found == [(b"abcdefg", 7, 7), (b"hijk", 9, 4)]


@pytest.mark.parametrize("memory", [0, 1])
def test_positions_without_messages_need_no_memory(memory: int) -> None:
    """An idle slot moves with any memory limit: an empty file is no batch that waits."""
    batches = Batches(Pieces([piece("", 0, 7), piece("", 0, 9)]), 1 << 20, 60, memory)  # type: ignore[arg-type]
    found = [(batch.lsn, batch.count) for batch in (batches.next(0), batches.next(0)) if batch is not None]
    batches.close()
    assert found == [(7, 0), (9, 0)]
