"""The state machine of transactions: takes control records and ranges of rows, and returns which rows are delivered.

Events, Arrow batches and summaries of chunks use the same machine. It never reads a row, only handles of row ranges.
Sources: PostgreSQL manual, "Logical Streaming Replication Protocol", "Streaming of Large Transactions for Logical
Decoding", "Two-phase Commit Support for Logical Decoding"; captures of openGauss and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from ..errors import OptionError, OrderError
from ..events import aborts_whole
from ..options.checks import flag, one_of, shown
from .attempts import Attempt, ChunkStart, Fate, Handle, OpenAtStart, OpenAttempts, TransactionFacts, facts_of
from .controls import Control, agree, commit_lsn_of, is_of_earlier, updated
from .positions import Position

TWO_PHASE = ("commit", "prepare")
"""When a prepared transaction is delivered."""


_NO_TRANSACTION = (
    "the stream starts inside a transaction, was decoded with a `kinds` filter, or comes from "
    "pg_logical_get_area_changes: decode all kinds, from the BEGIN of a transaction"
)
"""Why rows can be outside a transaction, and what to do."""

_ENDS = (
    "COMMIT",
    "ABORT",
    "PREPARE",
    "COMMIT_PREPARED",
    "ROLLBACK_PREPARED",
    "STREAM_COMMIT",
    "STREAM_PREPARE",
)
"""The records whose LSNs and CSNs say how far an input reaches."""


class CountedTransactions(NamedTuple):
    """Plain transactions that follow each other, each from its BEGIN to its COMMIT, only counted.

    begin           the BEGIN of the first transaction
    transactions    the number of transactions
    lsn, csn        the highest commit_lsn and csn
    """

    begin: Control
    transactions: int
    lsn: int | None
    csn: int | None


class TransactionMachine(OpenAttempts[Handle]):
    """Takes a stream in order by its methods `take_…`. Each returns the fates it settles.

    unknown_prepared   gids that ended without a known PREPARE, each once, in the order of their end records

    Raises OrderError. Do not use the machine after an error.
    """

    def __init__(self, *, two_phase: str = "commit", drop_resent: bool = True, after: Position | None = None) -> None:
        one_of("two_phase", two_phase, TWO_PHASE)
        flag("drop_resent", drop_resent)
        if after is not None and not isinstance(after, Position):
            raise OptionError(f"option after: expected a Position, got {shown(after)}")
        self.two_phase = two_phase
        self._delivers_at_prepare = two_phase == "prepare"
        self.drop_resent = drop_resent
        super().__init__()
        self.continue_after(Position() if after is None else after)
        self._settled: list[Fate[Handle]] = []
        self._unknown_prepared: dict[str, None] = {}

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """See the class."""
        return tuple(self._unknown_prepared)

    def continue_after(self, after: Position, open_xids: Collection[int | None] | None = None) -> None:
        """Continues a stream that has been delivered up to this position. Call it before anything is taken.

        open_xids   the xids of the streamed transactions that were open there, if they are known. Later blocks may
                    then come without their first one, and are dropped: the transaction ended before the position, or
                    was sent again, and its first block comes later
        """
        self._position = after
        self._ended = Position()
        self._delivered_at_prepare = dict(after.prepared)
        self._open_before = open_xids
        self.without_first_block: set[int] = set()

    def restore(self, open: Iterable[tuple[str, str | None, Attempt[Handle]]], unknown_prepared: Iterable[str]) -> None:
        """Restores the attempts that `staged` returned, and the unknown gids. Call it before anything is taken."""
        self._unknown_prepared = dict.fromkeys(unknown_prepared)
        self.restore_open(open)

    @property
    def position(self) -> Position:
        """How far the stream has been delivered."""
        return self._position._replace(prepared=tuple(self._delivered_at_prepare.items()))

    def is_behind(self, position: Position) -> bool:
        """Whether all that was taken comes before this position of the stream, which has later ends of transactions.

        False if that cannot be told: a streamed transaction has no commit LSN before it ends.
        """
        ended = self._ended
        is_ended_covered = position.covers(ended.lsn, ended.csn)
        reaches_it = (
            ended.lsn == position.lsn if ended.csn is None or position.csn is None else ended.csn == position.csn
        )
        begin = None if self._plain is None else self._plain.begin
        if begin is not None and (begin.commit_lsn is not None or begin.csn is not None):
            if ended.transactions and not is_ended_covered:
                return False  # this one is sent again, after others that come later
            is_covered = position.covers(commit_lsn_of(begin), begin.csn)
            return is_covered and (begin.commit_lsn is not None or not reaches_it)
        return is_ended_covered and not reaches_it

    def begin_of_chunk(self, xids: Collection[int], gids: Collection[str]) -> ChunkStart:
        """Returns what a machine needs to take a chunk from here, whose records name only these transactions."""
        found: list[tuple[str, str | None, Attempt[Handle] | None]] = [("plain", None, self._plain)]
        streamed = {xid: self._streamed.get(xid) for xid in xids}
        if self._block is not None:
            streamed[int(self._block.begin.xid or 0)] = self._block
        found += [("block" if one is self._block else "streamed", None, one) for one in streamed.values()]
        found += [("prepared", gid, self._prepared.get(gid)) for gid in gids]
        prepared = [(gid, self._delivered_at_prepare[gid]) for gid in gids if gid in self._delivered_at_prepare]
        return ChunkStart(
            self._position._replace(prepared=tuple(prepared)),
            tuple(
                OpenAtStart(stage, gid, one.begin, one.delivered, frozenset(one.undone))
                for stage, gid, one in found
                if one is not None
            ),
            None if self._open_before is None else frozenset(xid for xid in xids if xid in self._open_before),
            frozenset(xid for xid in xids if xid in self.without_first_block),
        )

    def start_chunk(self, start: ChunkStart) -> None:
        """Takes on what `begin_of_chunk` returned. Call it before anything is taken."""
        self.continue_after(start.position, start.open_before)
        self.without_first_block = {*start.without_first_block}
        self.restore([(one.stage, one.gid, Attempt(one.begin, [], one.undone, one.before)) for one in start.open], ())

    def take_rows(self, handle: Handle | None, count: int, lone: bool = False) -> list[Fate[Handle]]:
        """Takes a range of rows of one transaction.

        handle  None: rows that are not read, which count with the handle before
        count   how many of the rows are delivered if the transaction is
        lone    whether the range is one transactional message, which may be sent without BEGIN and COMMIT
        """
        attempt = self._current
        if attempt is not None and handle is None:
            if attempt.handles:
                last, counted = attempt.handles[-1]
                attempt.handles[-1] = last, counted + count
            else:
                attempt.before += count
        elif attempt is not None:
            self._add(attempt, handle, count)
        elif lone and handle is not None:
            # test_decoding before 17 with skip-empty-xacts prints messages without their BEGIN and COMMIT.
            self._committed(Attempt(Control("MESSAGE"), [(handle, count)]), Control("MESSAGE"))
        else:
            raise self._error("BEGIN or STREAM_START before rows", "rows outside a transaction", hint=_NO_TRANSACTION)
        return self._take_settled()

    def take_control(self, record: Control, handle: Handle | None = None) -> list[Fate[Handle]]:
        """Takes a control record. Its transaction keeps the handle as long as it is open."""
        _STEPS[record.kind](self, record, handle)
        if record.kind in _ENDS:
            self._ended = self._ended.advanced(commit_lsn_of(record), record.csn)
        return self._take_settled()

    @property
    def streamed_xids(self) -> set[int]:
        """The xids of streamed transactions of which something is known."""
        return self._streamed.keys() | self.without_first_block

    def take_transactions(self, counted: CountedTransactions, sent_again: Iterable[int] = ()) -> list[Fate[Handle]]:
        """Takes plain transactions that the caller delivers by itself, after comparing them with `position`.

        sent_again   the xids of those among them that are in `streamed_xids`
        """
        self._handle_restart(counted.begin)
        for xid in sent_again:
            if xid in self._streamed:  # else the restart has dropped it
                self._settle(self._streamed.pop(xid), None)
            self.without_first_block.discard(xid)
        self._position = self._position.advanced(counted.lsn, counted.csn, counted.transactions)
        self._ended = self._ended.advanced(counted.lsn, counted.csn)
        return self._take_settled()

    def _take_settled(self) -> list[Fate[Handle]]:
        settled = self._settled
        if settled:
            self._settled = []
        return settled

    def _settle(self, attempt: Attempt[Handle], facts: TransactionFacts | None) -> None:
        self._touched.pop(attempt, None)
        self._settled.append((attempt, facts))

    def _error(self, expected: str, got: object, lsn: int | None = None, hint: str | None = None) -> OrderError:
        current = self._current
        state = "between transactions" if current is None else "in a transaction" if self._plain else "in a block"
        return OrderError(
            expected,
            str(got),
            record_lsn=lsn,
            state=state,
            open=None if current is None else str(current.begin),
            streamed=tuple(f"xid {xid}" for xid in self._streamed),
            hint=hint,
        )

    def _handle_restart(self, record: Control) -> None:
        """Drops the open transaction at a record that begins or names another one: the connection was restarted.

        The server sends the open transaction again, and all streamed transactions, since it does not know which blocks
        it had sent. Raises OrderError if the positions show that it does not: the end of the transaction was lost.
        """
        attempt = self._current
        if attempt is None:
            return
        if self._is_first_delivery(record, attempt.begin):
            raise self._error("the end of the open transaction, or its BEGIN again after a restart", record, record.lsn)
        if self._plain is not None:
            self._settle(self._plain, None)
        for streamed in self._streamed.values():
            self._settle(streamed, None)
        self._plain = self._block = None
        self._streamed = {}

    def _is_first_delivery(self, record: Control, begin: Control) -> bool:
        """Whether a record that follows this BEGIN is sent for the first time, and not again after a restart.

        CSNs are nearly always ascending, so a record whose csn is above the BEGIN's and the position's is new.
        """
        if record.commit_lsn is not None and begin.commit_lsn is not None:
            return record.commit_lsn > begin.commit_lsn
        if record.csn is not None and begin.csn is not None:
            return record.csn > max(begin.csn, self._position.csn or 0)
        return False

    def _begin(self, record: Control, handle: Handle | None) -> None:
        self._handle_restart(record)
        if record.xid is not None and record.xid in self._streamed:  # sent again, now as a plain transaction
            self._settle(self._streamed.pop(record.xid), None)
        self.without_first_block.discard(record.xid)
        self._plain = Attempt(record)
        self._add(self._plain, handle)

    def _end_plain(self, record: Control) -> Attempt[Handle] | None:
        """Returns the plain transaction that a record ends; None if the record has been sent before."""
        attempt = self._plain
        if attempt is None:
            if self._block is None and self._position.covers(commit_lsn_of(record), record.csn):
                return None
            raise self._error("BEGIN before an end record", record, record.lsn)
        if not agree(attempt.begin, record):
            raise self._error("the end of the open transaction", record, record.lsn)
        self._plain = None
        self._ended = self._ended.advanced(None, attempt.begin.csn)  # of GaussDB's parallel styles only BEGIN has it
        return attempt

    def _commit(self, record: Control, handle: Handle | None) -> None:
        attempt = self._end_plain(record)
        if attempt is not None:
            if attempt.begin.gid is not None:
                raise self._error("PREPARE, since BEGIN has a gid", record, record.lsn)
            self._committed(attempt, record)

    def _abort(self, record: Control, handle: Handle | None) -> None:
        attempt = self._end_plain(record)
        if attempt is not None:
            self._settle(attempt, None)

    def _prepare(self, record: Control, handle: Handle | None) -> None:
        if self._plain is None or is_of_earlier(record, self._plain.begin):
            self._handle_restart(record)
            # PostgreSQL 18 sends no BEGIN for an empty transaction.
            self._hold_prepared(Attempt(record), record, handle)
            return
        attempt = self._end_plain(record)
        if attempt is not None:
            self._hold_prepared(attempt, record, handle)

    def _hold_prepared(self, attempt: Attempt[Handle], record: Control, handle: Handle | None) -> None:
        """Holds a prepared transaction. An earlier one with the same gid is the same transaction, and is dropped."""
        if record.gid is None:
            raise self._error("a PREPARE with a gid", record, record.lsn)
        old = self._prepared.pop(record.gid, None)
        if old is not None:
            self._settle(old, None)
        is_covered = self.drop_resent and self._position.covers(record.lsn, record.csn)
        if record.lsn is not None and self._delivered_at_prepare.get(record.gid) == record.lsn:
            self._settle(attempt, None)
        elif self._delivers_at_prepare and not is_covered:
            self._delivered_at_prepare[record.gid] = record.lsn
            self._committed(attempt, record._replace(commit_lsn=record.lsn, commit_time=record.prepare_time))
        else:
            # Deliver at COMMIT PREPARED: either that is the option, or this PREPARE was resent or predates two-phase
            # decoding.
            attempt.begin = updated(attempt.begin, record)
            self._add(attempt, handle)
            self._prepared[record.gid] = attempt

    def _commit_prepared(self, record: Control, handle: Handle | None) -> None:
        attempt, was_delivered = self._take_prepared(record)
        if attempt is not None:
            self._committed(attempt, record)
            return
        if not was_delivered and not self._position.covers(record.commit_lsn, record.csn):
            self._unknown_prepared[str(record.gid)] = None
        if self._delivers_at_prepare or was_delivered:
            # It has been delivered, and from now on only the position can show that its PREPARE is sent again.
            self._position = self._position.advanced(record.commit_lsn, record.csn, transactions=0)

    def _rollback_prepared(self, record: Control, handle: Handle | None) -> None:
        attempt, was_delivered = self._take_prepared(record)
        if attempt is not None:
            self._settle(attempt, None)
        elif not was_delivered:
            self._unknown_prepared[str(record.gid)] = None

    def _take_prepared(self, record: Control) -> tuple[Attempt[Handle] | None, bool]:
        """Returns the held transaction with this gid, if any, and whether it has been delivered at its PREPARE."""
        self._handle_restart(record)
        gid, lsn = str(record.gid), commit_lsn_of(record)
        was_delivered = gid in self._delivered_at_prepare
        prepared_at = self._delivered_at_prepare.get(gid)
        is_earlier = lsn is not None and prepared_at is not None and lsn < prepared_at  # it had the same gid
        if not is_earlier:
            self._delivered_at_prepare.pop(gid, None)
        return self._prepared.pop(gid, None), was_delivered

    def _stream_start(self, record: Control, handle: Handle | None) -> None:
        self._handle_restart(record)
        if record.xid is None:
            raise self._error("STREAM_START with an xid", record, record.lsn)
        if record.first_segment and record.xid in self._streamed:
            self._settle(self._streamed.pop(record.xid), None)
        if record.first_segment is False and record.xid not in self._streamed:
            if self._open_before is None:
                raise self._error("the first block of this transaction before the others", record, record.lsn)
            self.without_first_block.add(record.xid)
        elif record.first_segment:
            self.without_first_block.discard(record.xid)
        self._block = self._streamed.setdefault(record.xid, Attempt(record))
        self._add(self._block, handle)

    def _stream_stop(self, record: Control, handle: Handle | None) -> None:
        if self._block is None or not agree(self._block.begin, record):
            raise self._error("STREAM_START of this block before its end", record, record.lsn)
        self._add(self._block, handle)
        self._block = None

    def _stream_abort(self, record: Control, handle: Handle | None) -> None:
        is_whole = aborts_whole(record.xid, record.subxid)
        if is_whole:
            self._check_nothing_is_open(record)
        else:  # PostgreSQL 18 may send it without any block, so it may be the first record after a restart
            self._handle_restart(record)
        attempt = None if record.xid is None else self._streamed.get(record.xid)
        if attempt is None:  # none of its rows was sent
            return
        if is_whole:
            del self._streamed[attempt.begin.xid]  # type: ignore[arg-type]
            self._settle(attempt, None)
        elif record.subxid is not None:
            attempt.undo(record.subxid)
            self._add(attempt, handle)

    def _end_streamed(self, record: Control) -> Attempt[Handle] | None:
        self._check_nothing_is_open(record)
        attempt = None if record.xid is None else self._streamed.pop(record.xid, None)
        is_partial = record.xid in self.without_first_block
        is_covered = self._position.covers(commit_lsn_of(record), record.csn)
        # by a rollback before the position, which moves no position; if it was open there, it must be sent again
        may_have_ended = record.kind == "STREAM_PREPARE" and self._open_before is not None
        if not is_covered and (attempt is None or is_partial) and not may_have_ended:
            raise self._error("the blocks of this transaction before its end", record, record.lsn)
        if attempt is not None and is_partial:
            self._settle(attempt, None)
            return None
        return attempt

    def _stream_commit(self, record: Control, handle: Handle | None) -> None:
        attempt = self._end_streamed(record)
        if attempt is not None:
            self._committed(attempt, record)

    def _stream_prepare(self, record: Control, handle: Handle | None) -> None:
        attempt = self._end_streamed(record)
        if attempt is not None:
            self._hold_prepared(attempt, record, handle)

    def _origin(self, record: Control, handle: Handle | None) -> None:
        attempt = self._current
        if attempt is None:
            raise self._error("BEGIN or STREAM_START before ORIGIN", record, record.lsn)
        attempt.begin = attempt.begin._replace(origin=record.origin)
        self._add(attempt, handle)

    def _check_nothing_is_open(self, record: Control) -> None:
        if self._current is not None:
            raise self._error("the end of the open transaction", record, record.lsn)

    def _committed(self, attempt: Attempt[Handle], end: Control) -> None:
        facts = facts_of(attempt.begin, end, self._position.transactions + 1)
        resent = self.drop_resent and self._position.covers(facts.commit_lsn, facts.csn)
        self._position = self._position.advanced(facts.commit_lsn, facts.csn)
        self._settle(attempt, None if resent else facts)


_STEPS: dict[str, Callable[[TransactionMachine[Any], Control, Any], None]] = {
    "BEGIN": TransactionMachine._begin,
    "COMMIT": TransactionMachine._commit,
    "ABORT": TransactionMachine._abort,
    "PREPARE": TransactionMachine._prepare,
    "COMMIT_PREPARED": TransactionMachine._commit_prepared,
    "ROLLBACK_PREPARED": TransactionMachine._rollback_prepared,
    "STREAM_START": TransactionMachine._stream_start,
    "STREAM_STOP": TransactionMachine._stream_stop,
    "STREAM_ABORT": TransactionMachine._stream_abort,
    "STREAM_COMMIT": TransactionMachine._stream_commit,
    "STREAM_PREPARE": TransactionMachine._stream_prepare,
    "ORIGIN": TransactionMachine._origin,
}
