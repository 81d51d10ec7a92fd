"""Transactions as far as they came, and the facts of those that were committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from .controls import Control, commit_lsn_of

Handle = TypeVar("Handle")


class TransactionFacts(NamedTuple):
    """The facts of a committed transaction. `sequence` is never None: commit_lsn, else csn, else its number."""

    sequence: int
    xid: int | None
    csn: int | None
    commit_lsn: int | None
    commit_time: Any
    username: str | None
    origin: str | None


def facts_of(begin: Control, end: Control, number: int) -> TransactionFacts:
    """The facts of the `number`th committed transaction: a field of its end counts before that of its beginning."""
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
    """A transaction as far as it came: once more after a restart is another attempt, and no two are equal.

    begin    the record that began it, with the fields that later records added
    pieces   handles in input order, each with the number of rows that count; of control records it is 0
    undone   xids of subtransactions whose rows do not count
    """

    begin: Control
    pieces: list[tuple[Handle, int]] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)

    def is_undone(self, xid: int | None) -> bool:
        """Whether a row with this xid is of a subtransaction that was undone; a row without one never is."""
        return xid in self.undone

    def firsts(self) -> Iterator[tuple[Handle, int]]:
        """Each handle with the ordinal of its first row."""
        first = 0
        for handle, count in self.pieces:
            yield handle, first
            first += count


Fate = tuple[Attempt[Handle], TransactionFacts | None]
"""What became of an attempt: delivered with these facts, or dropped where they are None. No NamedTuple: before Python
3.11 those cannot be generic."""
