"""What the chunks of a stream before a chunk have left for it."""

from __future__ import annotations

from typing import NamedTuple

from .controls import Control
from .positions import Position


class OpenAtStart(NamedTuple):
    """An attempt that had not ended where a chunk starts.

    stage, gid      as `OpenAttempts.staged` gives them
    begin, undone   see Attempt
    before          the number of its delivered rows in earlier chunks
    """

    stage: str
    gid: str | None
    begin: Control
    before: int
    undone: frozenset[int]


class ChunkStart(NamedTuple):
    """What the chunks before a chunk have left for it. Of many open attempts it has those that the chunk names.

    position                  how far the stream has been delivered
    open                      the attempts that have not ended
    open_before               see TransactionMachine.continue_after
    without_first_block       xids of streamed transactions of which only later blocks came
    """

    position: Position = Position()
    open: tuple[OpenAtStart, ...] = ()
    open_before: frozenset[int | None] | None = None
    without_first_block: frozenset[int] = frozenset()
