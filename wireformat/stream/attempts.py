"""Attempts: transactions as far as they were received, and the facts of committed transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from .controls import Control, commit_lsn_of

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
