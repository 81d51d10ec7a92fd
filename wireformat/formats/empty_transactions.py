"""The rule of skip-empty-xacts, for what is written and for what is read: transactions without changes are left out.

The opening of a transaction or streamed block waits for a change. If none comes, its end is left out as well. The end
of a streamed transaction is left out if all its blocks were.
Sources: the test_decoding of PostgreSQL 17 and of openGauss; pgoutput since PostgreSQL 15.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from .record_facts import RecordFacts, aborts_whole

Record = TypeVar("Record")

ENDS = frozenset({"COMMIT", "ABORT", "PREPARE"})
"""The kinds that end a transaction which is sent in one piece."""

_STREAM_ENDS = frozenset({"STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE"})
_ELSEWHERE = frozenset({"HEARTBEAT", "COMMIT_PREPARED", "ROLLBACK_PREPARED"})


def is_outside(facts: RecordFacts) -> bool:
    """Whether a record belongs to no open transaction, whatever surrounds it."""
    return facts.kind in _ELSEWHERE or (facts.kind == "MESSAGE" and facts.transactional is False)


class EmptyTransactions(Generic[Record]):
    """Takes the records of a stream in order, and decides which are kept.

    held          an opening that waits for a change, and its ORIGIN
    block         the xid of the block whose opening is held
    has_changes   whether there were changes, by xid of streamed transactions

    pgoutput always sends the opening of a streamed block and of a transaction to be prepared: later blocks and COMMIT
    PREPARED refer to them. Only its records tell the first block, and the gid in BEGIN, so these are the ones to keep.
    A record that cannot be read may be a change, so it counts as one.
    """

    def __init__(self) -> None:
        self.held: tuple[Record, ...] = ()
        self.block: int | None = None
        self.has_changes: dict[int, bool] = {}

    def drop_held(self) -> None:
        """Drops what waits, as any opening does."""
        self.held, self.block = (), None

    def take(self, facts: RecordFacts, record: Record) -> tuple[Record, ...]:
        """Returns the records that are kept, now that this one is known."""
        kind = facts.kind
        if kind in ("BEGIN", "STREAM_START"):
            return self._open(facts, record)
        if is_outside(facts):
            return (record,)
        if kind in _STREAM_ENDS:
            return self._stream_end(facts, record)
        if not self.held:
            return (record,)
        if kind == "ORIGIN":
            self.held += (record,)
            return ()
        held, self.held = self.held, ()
        if kind in ENDS or kind == "STREAM_STOP":
            return ()
        if self.block is not None:
            self.has_changes[self.block] = True
        return *held, record

    def _open(self, facts: RecordFacts, record: Record) -> tuple[Record, ...]:
        self.drop_held()
        if facts.gid is not None or facts.first_segment is not None:
            return (record,)
        self.held = (record,)
        if facts.kind == "STREAM_START" and facts.xid is not None:
            self.block = facts.xid
            self.has_changes.setdefault(facts.xid, False)
        return ()

    def _stream_end(self, facts: RecordFacts, record: Record) -> tuple[Record, ...]:
        """The end of blocks without an xid is always kept: it may be the end of any of them."""
        if facts.xid is None:
            return (record,)
        is_whole = aborts_whole(facts.xid, facts.subxid)
        found = self.has_changes.pop(facts.xid, True) if is_whole else self.has_changes.get(facts.xid, True)
        return (record,) if found else ()
