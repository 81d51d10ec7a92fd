"""Batches of whole transactions, cut by size and time from the pieces that arrive."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from .intake import Intake, SqlIntake
from .messages import MessageFile, joined
from .transaction_ends import Piece


class Batch:
    """Whole transactions.

    arrays     the messages, or those after the messages in `spilled`
    spilled    a file with messages; None if all are in memory
    lsn        everything before it is in this batch or in earlier ones
    size       the number of bytes of the messages
    ended_us   when the last transaction was committed, or was sent if that is not known, in microseconds since 2000;
               None if there is none
    asked      whether the server has asked for a status update

    `messages` are the messages as a Capture takes them, `count` is their number.
    """

    def __init__(
        self,
        arrays: list[pa.Array],
        spilled: MessageFile | None,
        lsn: int,
        size: int,
        ended_us: int | None,
        asked: bool,
    ) -> None:
        self.lsn = lsn
        self.asked = asked
        self.ended_us = ended_us
        self.size = size
        self._spilled = spilled
        self.messages: Any
        if spilled is None:
            self.messages = joined(arrays)
            self.count = len(self.messages)
        else:
            for array in arrays:
                spilled.write(array)
            spilled.end()
            self.messages = spilled
            self.count = spilled.count

    def close(self) -> None:
        """Removes the temporary file."""
        if self._spilled is not None:
            self._spilled.close()


class Batches:
    """Collects pieces into batches. A batch has at least one whole transaction, unless it has no messages.

    most_bytes     a batch is cut when it has this many bytes
    most_seconds   a batch is cut when its first message has waited this long
    memory_bytes   the number of bytes that wait in memory; the rest go to a temporary file
    """

    def __init__(self, intake: Intake | SqlIntake, most_bytes: int, most_seconds: float, memory_bytes: int) -> None:
        self._intake = intake
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._memory_bytes = memory_bytes
        self._file: MessageFile | None = None
        self._whole: list[pa.Array] = []
        self._rest: list[pa.Array] = []
        self._size = self._whole_size = self._rest_size = 0
        self._lsn: int | None = None
        self._ended_us: int | None = None
        self._asked = False
        self._since: float | None = None

    @property
    def open_messages(self) -> int:
        """The number of messages of a transaction that has not ended."""
        return sum(map(len, self._rest)) + (0 if self._file is None or self._lsn is not None else self._file.count)

    def next(self, seconds: float, until: int | None = None) -> Batch | None:
        """Returns the next batch; None if there is none within this number of seconds.

        until   an LSN; when it has been reached, the batch is cut at once

        A batch without messages says that the server has no more changes before its LSN. Raises what `Intake.take`
        raises.
        """
        deadline = time.monotonic() + seconds
        while not self._is_due(until):
            left = deadline - time.monotonic()
            if self._has_whole and self._lsn is not None and self._since is not None:
                left = min(left, self._since + self._most_seconds - time.monotonic())
            piece = self._intake.take(left)
            if piece is not None:
                self._add(piece)
            # SqlIntake always returns a piece, which may have no messages.
            if (piece is None or not len(piece.messages)) and time.monotonic() >= deadline:
                break
        if self._lsn is None or (self._has_whole and not self._is_due(until)):
            return None
        return self._cut()

    def close(self) -> None:
        """Removes the temporary file of the next batch."""
        if self._file is not None:
            self._file.close()

    @property
    def _has_whole(self) -> bool:
        return bool(self._whole) or self._file is not None

    def _is_due(self, until: int | None) -> bool:
        if self._lsn is None:  # no transaction has ended; after other messages, a keepalive brings an LSN
            return False
        if until is not None and self._lsn >= until:
            return True
        if not self._has_whole or self._since is None:
            return False
        if self._size >= self._most_bytes or self._rest_size >= self._memory_bytes:
            return True
        return time.monotonic() - self._since >= self._most_seconds

    def _add(self, piece: Piece) -> None:
        if len(piece.messages) and self._since is None:
            self._since = time.monotonic()
        head, tail = piece.messages[: piece.whole], piece.messages[piece.whole :]
        if piece.lsn is not None:
            self._lsn = piece.lsn
            self._ended_us = piece.ended_us or self._ended_us
            self._asked |= piece.asked
        if len(head):
            self._whole += [*self._rest, head]
            self._whole_size += self._rest_size + head.nbytes
            self._size += self._rest_size + head.nbytes
            self._rest, self._rest_size = [], 0
        if len(tail):
            self._rest.append(tail)
            self._rest_size += tail.nbytes
        if self._whole_size >= self._memory_bytes:
            self._spill()
        if self._rest_size >= self._memory_bytes and self._lsn is None:  # with an LSN, a batch is cut before these
            self._whole += self._rest
            self._size += self._rest_size
            self._rest, self._rest_size = [], 0
            self._spill()

    def _spill(self) -> None:
        """Moves messages, if there are any, to a file. If no transaction has ended, they are those of an open one."""
        for array in self._whole:
            self._file = self._file or MessageFile()
            self._file.write(array)
        self._whole, self._whole_size = [], 0

    def _cut(self) -> Batch:
        assert self._lsn is not None, "a batch ends at an LSN"
        batch = Batch(self._whole, self._file, self._lsn, self._size, self._ended_us, self._asked)
        self._whole, self._file, self._size, self._whole_size = [], None, 0, 0
        self._lsn, self._ended_us, self._asked = None, None, False
        self._since = time.monotonic() if self._rest else None
        return batch
