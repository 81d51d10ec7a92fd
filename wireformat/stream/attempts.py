"""Attempts: transactions as far as they were received; facts of those that committed; what a chunk begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from .controls import Control, commit_lsn_of
from .positions import Position

Handle = TypeVar("Handle")


class TransactionFacts(NamedTuple):
    """The facts of a committed transaction. `sequence` is its commit_lsn, or else its csn, or else its number."""

    sequence: int
    xid: int | None
    csn: int | None
    commit_lsn: int | None
    commit_time: Any
    username: str | None
    origin: str | None


def facts_of(begin: Control, end: Control, number: int) -> TransactionFacts:
    """Returns the facts of a transaction. A field of its end record takes precedence over the same field of its BEGIN.

    number   its number among the committed transactions of the stream, from 1
    """
    commit_lsn = commit_lsn_of(end)
    csn = begin.csn if end.csn is None else end.csn
    return TransactionFacts(
        commit_lsn if commit_lsn is not None else csn if csn is not None else number,
        begin.xid if end.xid is None else end.xid,
        csn,
        commit_lsn,
        begin.commit_time if end.commit_time is None else end.commit_time,
        begin.username if end.username is None else end.username,
        begin.origin if end.origin is None else end.origin,
    )


@dataclass(eq=False, slots=True)
class Attempt(Generic[Handle]):
    """A transaction as far as it was received. If it is sent again after a restart, that is another attempt.

    begin     the record that began it, with the fields that later records added
    handles   handles of its rows and control records, in input order, each with its number of delivered rows
    undone    xids of subtransactions that were rolled back; their rows are not delivered
    before    the number of delivered rows before the first handle, in an earlier chunk of the stream
    """

    begin: Control
    handles: list[tuple[Handle, int]] = field(default_factory=list)
    undone: set[int] | frozenset[int] = frozenset()  # a set of its own only where one is needed: it has 216 bytes
    before: int = 0

    @property
    def delivered(self) -> int:
        """The number of rows so far that are delivered if the transaction is."""
        return self.before + sum(count for _, count in self.handles)

    def undo(self, xid: int) -> None:
        """Notes that a subtransaction was rolled back."""
        if isinstance(self.undone, frozenset):
            self.undone = {*self.undone}
        self.undone.add(xid)

    def is_undone(self, xid: int | None) -> bool:
        """Whether a row with this xid belongs to a rolled-back subtransaction. A row without an xid does not."""
        return xid in self.undone


Fate = tuple[Attempt[Handle], TransactionFacts | None]
"""An attempt that has ended: delivered with these facts, or dropped if they are None. This is not a NamedTuple, since
NamedTuples cannot be generic before Python 3.11."""


AttemptKey = int | str | None
"""What identifies an open attempt: the xid of a streamed one, the gid of a prepared one, None of a plain one."""


def key_of(stage: str, gid: str | None, attempt: Attempt[Any]) -> AttemptKey:
    """Returns what identifies an attempt that `OpenAttempts.staged` gives."""
    return None if stage == "plain" else gid if stage == "prepared" else attempt.begin.xid


STAGES = ("plain", "block", "streamed", "prepared")
"""The stages of an attempt that has not ended: plain; streamed, in or between blocks; prepared. They are saved."""


class OpenAttempts(Generic[Handle]):
    """The attempts that have not ended.

    _plain      the one between its BEGIN and its end
    _block      the streamed one in whose block the stream is
    _streamed   the streamed ones by xid, with that of the block
    _prepared   the prepared ones by gid
    _touched    those that got handles since `take_touched` was called last
    """

    def __init__(self) -> None:
        self._plain: Attempt[Handle] | None
        self._block: Attempt[Handle] | None
        self._streamed: dict[int, Attempt[Handle]]
        self._prepared: dict[str, Attempt[Handle]]
        self._touched: dict[Attempt[Handle], None]
        self.forget()

    def forget(self) -> None:
        """Forgets all open transactions."""
        self._plain = self._block = None
        self._streamed = {}
        self._prepared = {}
        self._touched = {}

    @property
    def open(self) -> Iterator[Attempt[Handle]]:
        """The attempts that have not ended."""
        if self._plain is not None:
            yield self._plain
        yield from self._streamed.values()
        yield from self._prepared.values()

    def staged(self) -> Iterator[tuple[str, str | None, Attempt[Handle]]]:
        """Yields the attempts that have not ended, each with its stage, and with its gid if it is prepared."""
        if self._plain is not None:
            yield "plain", None, self._plain
        for attempt in self._streamed.values():
            yield "block" if attempt is self._block else "streamed", None, attempt
        for gid, attempt in self._prepared.items():
            yield "prepared", gid, attempt

    def restore_open(self, open: Iterable[tuple[str, str | None, Attempt[Handle]]]) -> None:
        """Restores the attempts that `staged` returned."""
        for stage, gid, attempt in open:
            if stage == "plain":
                self._plain = attempt
            elif stage == "prepared":
                self._prepared[str(gid)] = attempt
            else:
                self._streamed[int(attempt.begin.xid or 0)] = attempt
                if stage == "block":
                    self._block = attempt

    def take_touched(self) -> list[Attempt[Handle]]:
        """Returns the attempts that have not ended and got handles since the last call."""
        touched, self._touched = self._touched, {}
        return [*touched]

    def keys_of(self, attempts: Iterable[Attempt[Handle]], gids: Iterable[str]) -> list[AttemptKey]:
        """Returns what identifies each of these attempts that have not ended; `gids` has those of the prepared ones."""
        keys: dict[Attempt[Handle], AttemptKey] = {self._prepared[gid]: gid for gid in gids if gid in self._prepared}
        if self._plain is not None:
            keys[self._plain] = None
        return [keys.get(attempt, attempt.begin.xid) for attempt in attempts]

    def _add(self, attempt: Attempt[Handle], handle: Handle | None, count: int = 0) -> None:
        if handle is not None:
            attempt.handles.append((handle, count))
            self._touched[attempt] = None

    @property
    def _current(self) -> Attempt[Handle] | None:
        return self._plain if self._block is None else self._block


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
