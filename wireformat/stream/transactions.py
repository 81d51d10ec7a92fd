"""The transactions of one stream: control records and runs of rows in, what becomes of the runs out.

One machine for events, Arrow batches and summaries of chunks: it never looks at a row, only at handles of runs.
Sources: PostgreSQL manual, "Logical Streaming Replication Protocol", "Streaming of Large Transactions for Logical
Decoding", "Two-phase Commit Support for Logical Decoding"; captures of openGauss and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple

from ..errors import OptionError, OrderError
from ..options.checks import flag, one_of, shown
from .attempts import Attempt, Fate, Handle, TransactionFacts, facts_of
from .controls import Control, agree, commit_lsn_of, filled, is_behind
from .positions import Position

STAGES = ("plain", "block", "streamed", "prepared")
"""How far an attempt is that has not ended: a plain transaction; a streamed one in and outside of a block; prepared."""

TWO_PHASE = ("commit", "prepare")
"""When a prepared transaction is delivered."""


class Whole(NamedTuple):
    """Some plain transactions in a row, each from its BEGIN to its COMMIT, with no row between them.

    begin           the BEGIN of the first one
    transactions    how many
    lsn, csn        the highest commit_lsn and csn of them
    """

    begin: Control
    transactions: int
    lsn: int | None
    csn: int | None


class Machine(Generic[Handle]):
    """Takes what a stream has, in its order: `control`, `run`, `whole`; each returns the fates that it settles.

    unknown_prepared   gids of which an end came and no PREPARE, each once, in the order of their ends

    Raises OrderError; it is not to be used after that.
    """

    def __init__(self, *, two_phase: str = "commit", drop_resent: bool = True, after: Position | None = None) -> None:
        one_of("two_phase", two_phase, TWO_PHASE)
        flag("drop_resent", drop_resent)
        if after is not None and not isinstance(after, Position):
            raise OptionError(f"option after: expected a Position, got {shown(after)}")
        self.two_phase = two_phase
        self._at_prepare = two_phase == "prepare"
        self.drop_resent = drop_resent
        self._plain: Attempt[Handle] | None
        self._block: Attempt[Handle] | None
        self._streamed: dict[int, Attempt[Handle]]
        self._prepared: dict[str, Attempt[Handle]]
        self._touched: dict[Attempt[Handle], None]
        self.forget()
        self.go_on(Position() if after is None else after)
        self._settled: list[Fate[Handle]] = []
        self._unknown: dict[str, None] = {}

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """See above."""
        return tuple(self._unknown)

    def take_unknown_prepared(self) -> tuple[str, ...]:
        """The same, and forget them."""
        gids, self._unknown = tuple(self._unknown), {}
        return gids

    def go_on(self, after: Position) -> None:
        """Nothing was taken yet: the stream was delivered up to there before."""
        self._position = after
        self._delivered = dict(after.prepared)

    def forget(self) -> None:
        """Nothing is open any longer."""
        self._plain = self._block = None
        self._streamed = {}
        self._prepared = {}
        self._touched = {}

    def go_on_with(
        self, open: Iterable[tuple[str, str | None, Attempt[Handle]]], unknown_prepared: Iterable[str]
    ) -> None:
        """Nothing was taken yet: these were open before, as `staged` gave them, and these gids were unknown."""
        self._unknown = dict.fromkeys(unknown_prepared)
        for stage, gid, attempt in open:
            if stage == "plain":
                self._plain = attempt
            elif stage == "prepared":
                self._prepared[str(gid)] = attempt
            else:
                self._streamed[int(attempt.begin.xid or 0)] = attempt
                if stage == "block":
                    self._block = attempt

    @property
    def position(self) -> Position:
        """Behind what was delivered so far."""
        return self._position._replace(prepared=tuple(self._delivered.items()))

    @property
    def open(self) -> Iterator[Attempt[Handle]]:
        """The attempts that have not ended."""
        if self._plain is not None:
            yield self._plain
        yield from self._streamed.values()
        yield from self._prepared.values()

    def staged(self) -> Iterator[tuple[str, str | None, Attempt[Handle]]]:
        """The attempts that have not ended, each with its stage and, if it is prepared, the gid of that."""
        if self._plain is not None:
            yield "plain", None, self._plain
        for attempt in self._streamed.values():
            yield "block" if attempt is self._block else "streamed", None, attempt
        for gid, attempt in self._prepared.items():
            yield "prepared", gid, attempt

    def touched(self) -> list[Attempt[Handle]]:
        """Those that have not ended and got pieces since this was asked before."""
        touched, self._touched = self._touched, {}
        return [*touched]

    def run(self, handle: Handle, count: int, lone: bool = False) -> list[Fate[Handle]]:
        """Rows that count, one after the other, of one transaction.

        lone    they are one transactional message that may stand for itself: without BEGIN and COMMIT
        """
        attempt = self._current
        if attempt is not None:
            self._keep(attempt, handle, count)
        elif lone:  # test_decoding before 17 with skip-empty-xacts prints messages without their BEGIN and COMMIT
            self._committed(Attempt(Control("MESSAGE"), [(handle, count)]), Control("MESSAGE"))
        else:
            raise self._error(
                "BEGIN or STREAM_START before rows: what begins in the middle of a transaction, was read without all "
                "kinds, or as an area of the log, does not say which rows belong together",
                "rows",
            )
        return self._taken()

    def control(self, record: Control, handle: Handle | None = None) -> list[Fate[Handle]]:
        """A control record; the handle is kept with its transaction as long as that is open."""
        _STEPS[record.kind](self, record, handle)
        return self._taken()

    def whole(self, found: Whole) -> list[Fate[Handle]]:
        """Plain transactions that the caller delivers by itself, all of them behind `position` as it is before."""
        self._restarted(found.begin)
        self._position = self._position.behind(found.lsn, found.csn, found.transactions)
        return self._taken()

    def _taken(self) -> list[Fate[Handle]]:
        settled = self._settled
        if settled:
            self._settled = []
        return settled

    def _settle(self, attempt: Attempt[Handle], facts: TransactionFacts | None) -> None:
        self._touched.pop(attempt, None)
        self._settled.append((attempt, facts))

    def _keep(self, attempt: Attempt[Handle], handle: Handle | None, count: int = 0) -> None:
        if handle is not None:
            attempt.pieces.append((handle, count))
            self._touched[attempt] = None

    @property
    def _current(self) -> Attempt[Handle] | None:
        return self._plain if self._block is None else self._block

    def _error(self, expected: str, got: object, lsn: int | None = None) -> OrderError:
        current = self._current
        state = "between transactions" if current is None else "in a transaction" if self._plain else "in a block"
        return OrderError(
            expected,
            str(got),
            record_lsn=lsn,
            state=state,
            open=None if current is None else str(current.begin),
            streamed=tuple(f"xid {xid}" for xid in self._streamed),
        )

    def _restarted(self, record: Control) -> None:
        """Before a record that begins or names another transaction: what is half there comes again, so it is dropped.

        So does all that is streamed: a server that starts again knows nothing of blocks that it sent.
        Raises OrderError where the positions say that it does not come again: then its end was lost.
        """
        attempt = self._current
        if attempt is None:
            return
        if self._is_ahead(record, attempt.begin):
            raise self._error("the end of what is open, or it again after a restart", record, record.lsn)
        if self._plain is not None:
            self._settle(self._plain, None)
        for streamed in self._streamed.values():
            self._settle(streamed, None)
        self._plain = self._block = None
        self._streamed = {}

    def _is_ahead(self, record: Control, begin: Control) -> bool:
        """Whether a record is not among those that are sent again when a connection broke behind this beginning.

        csn    rises too, or nearly: what has a higher one and is sent again was there before
        """
        if record.commit_lsn is not None and begin.commit_lsn is not None:
            return record.commit_lsn > begin.commit_lsn
        if record.csn is not None and begin.csn is not None:
            return record.csn > max(begin.csn, self._position.csn or 0)
        return False

    def _begin(self, record: Control, handle: Handle | None) -> None:
        self._restarted(record)
        if record.xid is not None and record.xid in self._streamed:  # sent again after a restart, in one piece
            self._settle(self._streamed.pop(record.xid), None)
        self._plain = Attempt(record)
        self._keep(self._plain, handle)

    def _end(self, record: Control) -> Attempt[Handle] | None:
        """The plain transaction that this ends; None if it is an end that was sent before."""
        attempt = self._plain
        if attempt is None:
            if self._block is None and self._position.covers(commit_lsn_of(record), record.csn):
                return None
            raise self._error("BEGIN before an end", record, record.lsn)
        if not agree(attempt.begin, record):
            raise self._error("the end of what is open", record, record.lsn)
        self._plain = None
        return attempt

    def _commit(self, record: Control, handle: Handle | None) -> None:
        attempt = self._end(record)
        if attempt is not None:
            if attempt.begin.gid is not None:
                raise self._error("PREPARE of what is prepared", record, record.lsn)
            self._committed(attempt, record)

    def _abort(self, record: Control, handle: Handle | None) -> None:
        attempt = self._end(record)
        if attempt is not None:
            self._settle(attempt, None)

    def _prepare(self, record: Control, handle: Handle | None) -> None:
        if self._plain is None or is_behind(record, self._plain.begin):
            self._restarted(record)
            self._hold(Attempt(record), record, handle)  # PostgreSQL 18 sends no BEGIN where nothing is in it
            return
        attempt = self._end(record)
        if attempt is not None:
            self._hold(attempt, record, handle)

    def _hold(self, attempt: Attempt[Handle], record: Control, handle: Handle | None) -> None:
        """A transaction is prepared: one of that name that was prepared before is the same one, sent again."""
        if record.gid is None:
            raise self._error("a PREPARE with a gid", record, record.lsn)
        old = self._prepared.pop(record.gid, None)
        if old is not None:
            self._settle(old, None)
        is_late = self.drop_resent and self._position.covers(record.lsn, record.csn)
        if self._at_prepare and record.lsn is not None and self._delivered.get(record.gid) == record.lsn:
            self._settle(attempt, None)
        elif self._at_prepare and not is_late:
            self._delivered[record.gid] = record.lsn
            self._committed(attempt, record._replace(commit_lsn=record.lsn, commit_time=record.prepare_time))
        else:  # late: sent again with its end, or prepared before the slot had two phases and sent only now
            attempt.begin = filled(attempt.begin, record)
            self._keep(attempt, handle)
            self._prepared[record.gid] = attempt

    def _commit_prepared(self, record: Control, handle: Handle | None) -> None:
        attempt, was_delivered = self._prepared_before(record)
        if attempt is not None:
            self._committed(attempt, record)
            return
        if not was_delivered and not self._position.covers(record.commit_lsn, record.csn):
            self._unknown[str(record.gid)] = None
        if self._at_prepare:  # delivered, but from here on its PREPARE, sent again, is known by the position alone
            self._position = self._position.behind(record.commit_lsn, record.csn, transactions=0)

    def _rollback_prepared(self, record: Control, handle: Handle | None) -> None:
        attempt, was_delivered = self._prepared_before(record)
        if attempt is not None:
            self._settle(attempt, None)
        elif not was_delivered:
            self._unknown[str(record.gid)] = None

    def _prepared_before(self, record: Control) -> tuple[Attempt[Handle] | None, bool]:
        """The transaction of this gid, if it waits for its end; and whether it was delivered at its PREPARE."""
        self._restarted(record)
        gid = str(record.gid)
        was_delivered = gid in self._delivered
        self._delivered.pop(gid, None)
        return self._prepared.pop(gid, None), was_delivered

    def _stream_start(self, record: Control, handle: Handle | None) -> None:
        self._restarted(record)
        if record.xid is None:
            raise self._error("streamed blocks that say their xid", record, record.lsn)
        if record.first_segment and record.xid in self._streamed:
            self._settle(self._streamed.pop(record.xid), None)
        if record.first_segment is False and record.xid not in self._streamed:
            raise self._error("the first block of this transaction before", record, record.lsn)
        self._block = self._streamed.setdefault(record.xid, Attempt(record))
        self._keep(self._block, handle)

    def _stream_stop(self, record: Control, handle: Handle | None) -> None:
        if self._block is None or not agree(self._block.begin, record):
            raise self._error("STREAM_START of this block before", record, record.lsn)
        self._keep(self._block, handle)
        self._block = None

    def _stream_abort(self, record: Control, handle: Handle | None) -> None:
        is_whole = record.subxid is None or record.subxid == record.xid
        if is_whole:
            self._check_between(record)
        else:  # PostgreSQL 18 sends it without any block, so it may be the first after a restart
            self._restarted(record)
        attempt = None if record.xid is None else self._streamed.get(record.xid)
        if attempt is None:  # of a subtransaction that nobody named, or of what never came
            return
        if is_whole:
            del self._streamed[attempt.begin.xid]  # type: ignore[arg-type]
            self._settle(attempt, None)
        elif record.subxid is not None:
            attempt.undone.add(record.subxid)
            self._keep(attempt, handle)

    def _stream_end(self, record: Control) -> Attempt[Handle] | None:
        self._check_between(record)
        attempt = None if record.xid is None else self._streamed.pop(record.xid, None)
        if attempt is None and not self._position.covers(commit_lsn_of(record), record.csn):
            raise self._error("the blocks of this transaction before", record, record.lsn)
        return attempt

    def _stream_commit(self, record: Control, handle: Handle | None) -> None:
        attempt = self._stream_end(record)
        if attempt is not None:
            self._committed(attempt, record)

    def _stream_prepare(self, record: Control, handle: Handle | None) -> None:
        attempt = self._stream_end(record)
        if attempt is not None:
            self._hold(attempt, record, handle)

    def _origin(self, record: Control, handle: Handle | None) -> None:
        attempt = self._current
        if attempt is None:
            raise self._error("BEGIN or STREAM_START before it", record, record.lsn)
        attempt.begin = attempt.begin._replace(origin=record.origin)
        self._keep(attempt, handle)

    def _check_between(self, record: Control) -> None:
        if self._current is not None:
            raise self._error("the end of what is open", record, record.lsn)

    def _committed(self, attempt: Attempt[Handle], end: Control) -> None:
        facts = facts_of(attempt.begin, end, self._position.transactions + 1)
        resent = self.drop_resent and self._position.covers(facts.commit_lsn, facts.csn)
        self._position = self._position.behind(facts.commit_lsn, facts.csn)
        self._settle(attempt, None if resent else facts)


_STEPS: dict[str, Callable[[Machine[Any], Control, Any], None]] = {
    "BEGIN": Machine._begin,
    "COMMIT": Machine._commit,
    "ABORT": Machine._abort,
    "PREPARE": Machine._prepare,
    "COMMIT_PREPARED": Machine._commit_prepared,
    "ROLLBACK_PREPARED": Machine._rollback_prepared,
    "STREAM_START": Machine._stream_start,
    "STREAM_STOP": Machine._stream_stop,
    "STREAM_ABORT": Machine._stream_abort,
    "STREAM_COMMIT": Machine._stream_commit,
    "STREAM_PREPARE": Machine._stream_prepare,
    "ORIGIN": Machine._origin,
}
