"""`ChunkEnd`: what a chunk of a stream leaves for the next one, which has not been read yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...stream.attempts import Attempt, AttemptKey, ChunkStart, OpenAtStart, key_of
from ...stream.chunk_plan import LaterFate
from ...stream.transactions import TransactionMachine
from .row_ranges import RowRange


class OpenAtEnd(NamedTuple):
    """A transaction that is open at the end of a chunk.

    was        its index in the `open` of the chunk's start; None if it began in the chunk
    key        what `Transactions.settle_later` knows it by
    has_rows   whether the chunk has rows of it that are delivered if the transaction is
    """

    was: int | None
    key: AttemptKey
    has_rows: bool


class ChunkEnd(NamedTuple):
    """What a chunk leaves for the next one.

    start   of the next chunk
    open    of each transaction in `start.open`, in their order
    ended   how transactions ended that were open at the start of the chunk, by their index there
    """

    start: ChunkStart
    open: tuple[OpenAtEnd, ...]
    ended: Mapping[int, LaterFate]


def end_of_chunk(
    machine: TransactionMachine[RowRange],
    start: ChunkStart,
    indices: Mapping[Attempt[RowRange], int],
    ended: Mapping[int, LaterFate],
) -> ChunkEnd:
    """Returns the end of a chunk that the machine has taken.

    start     of the chunk
    indices   of the attempts in `start.open`
    ended     see ChunkEnd
    """
    staged = [*machine.staged()]
    xids = {attempt.begin.xid for _, _, attempt in staged} | machine.without_first_block | (start.open_before or set())
    found = machine.begin_of_chunk(
        {xid for xid in xids if xid is not None}, {gid for gid, _ in machine.position.prepared}
    )
    open, open_at_end = [], []
    for stage, gid, attempt in staged:
        was = indices.get(attempt)
        before = 0 if was is None else start.open[was].before
        open.append(OpenAtStart(stage, gid, attempt.begin, attempt.delivered, frozenset(attempt.undone)))
        open_at_end.append(OpenAtEnd(was, key_of(stage, gid, attempt), attempt.delivered > before))
    return ChunkEnd(found._replace(open=tuple(open)), tuple(open_at_end), ended)
