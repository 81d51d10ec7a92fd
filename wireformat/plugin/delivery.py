"""The events that a plugin receives: a server decodes a transaction in pieces only for plugins that can take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import PluginError
from ..events import (
    Abort,
    Begin,
    Commit,
    CommitPrepared,
    Corrupt,
    Event,
    Heartbeat,
    Message,
    Origin,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamChange,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Type,
    aborts_whole,
    check_event,
)

GIVE, LEAVE_OUT, HOLD, ASK = range(4)
"""What becomes of a transaction's events: given as they come, left out, held until its end; or not known yet, since
the next event may name the origin."""


@dataclass
class _Transaction:
    """A transaction that is open, streamed or prepared.

    begin       its BEGIN, or the first STREAM_START
    held        its events, without BEGIN, the marks of blocks, and what was aborted
    undone      xids of subtransactions that were aborted
    """

    begin: Begin | StreamStart
    fate: int = ASK
    held: list[Event] = field(default_factory=list)
    undone: set[int | None] = field(default_factory=set)

    @property
    def gid(self) -> str | None:
        """What BEGIN says it will be prepared as."""
        return None if isinstance(self.begin, StreamStart) else self.begin.gid

    def is_undone(self, event: Event) -> bool:
        """Whether an event is of a subtransaction that was aborted, by the rule of `Attempt.is_undone`."""
        return getattr(event, "xid", None) in self.undone


class WholeTransactions(Iterator[Event]):
    """Iterates over what `whole_transactions` returns.

    unknown_prepared   gids of which an end came and no PREPARE, each once, in order; complete when all has been read
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._delivery = Delivery(streaming=False, two_phase=False)
        if not isinstance(events, Iterable):
            raise TypeError(f"events: expected an iterable of events, got {type(events).__name__}")
        self._events = self._delivery.deliver(map(check_event, events))

    def __next__(self) -> Event:
        """Returns the next event."""
        return next(self._events)

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """See above."""
        return tuple(self._delivery.unknown_prepared)


def whole_transactions(events: Iterable[Event]) -> WholeTransactions:
    """Returns the events that a server sends without streaming and two-phase commit: BEGIN, changes, COMMIT.

    Streamed and prepared transactions are held in memory until they are committed; what is rolled back is left out.
    COMMIT_PREPARED and ROLLBACK_PREPARED without a PREPARE deliver nothing; `unknown_prepared` of the result lists
    their gids. Iterating raises PluginError if the blocks of a streamed transaction precede the first event, or if the
    stream counts changed rows without showing them.
    """
    return WholeTransactions(events)


class Delivery:
    """Turns the events of a stream into those that a plugin is given.

    streaming           whether the plugin takes blocks. Else a streamed transaction comes whole, at its end
    two_phase           whether it takes prepared transactions. Else they come as ordinary ones, once they are committed
    filter_by_origin    asked once for each transaction, with the origin or None; True: nothing of it is delivered
    filter_prepare      asked with xid and gid; True: as without two_phase
    unknown_prepared    gids of transactions that would come whole, but whose PREPARE never came. Before 18, PostgreSQL
                        sends none for a transaction that only locked rows, so their ends deliver nothing
    RELATION and TYPE are facts about the session, unless they stand in a block: they are delivered in any case.
    """

    def __init__(
        self,
        *,
        streaming: bool,
        two_phase: bool,
        filter_by_origin: Callable[[int | str | None], bool] | None = None,
        filter_prepare: Callable[[int | None, str], bool] | None = None,
    ) -> None:
        self._streaming = streaming
        self._two_phase = two_phase
        self._filter_by_origin = filter_by_origin
        self._filter_prepare = filter_prepare
        self._open: _Transaction | None = None
        self._streamed: dict[int | None, _Transaction] = {}
        self._prepared: dict[str, _Transaction] = {}
        self.unknown_prepared: dict[str, None] = {}

    @property
    def is_all(self) -> bool:
        """Whether every event is delivered as it is."""
        return self._streaming and self._two_phase and self._filter_by_origin is None and self._filter_prepare is None

    def deliver(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events that are delivered. Raises PluginError for a transaction that cannot be delivered as a whole."""
        for event in events:
            if isinstance(event, (Heartbeat, Corrupt)) or (isinstance(event, Message) and not event.transactional):
                yield event  # of no transaction, or an error in any case
                continue
            yield from self._decided(event.origin if isinstance(event, Origin) else None)
            yield from _STEPS.get(type(event), Delivery._content)(self, event)
        yield from self._decided(None)

    def _decided(self, origin: str | None) -> Iterator[Event]:
        if self._open is not None and self._open.fate == ASK:
            yield from self._decide(self._open, origin)

    def _content(self, event: Event) -> Iterator[Event]:
        """Yields everything between the marks."""
        open = self._open
        session = isinstance(event, (Relation, Type)) and not (open and isinstance(open.begin, StreamStart))
        if open is None or open.fate == GIVE or session:
            yield event
        elif open.fate == HOLD:
            if isinstance(event, StreamChange):
                raise PluginError(
                    "STREAM_CHANGE: the stream does not say which row changed; a plugin needs stream_change to take it"
                )
            if not open.is_undone(event):
                open.held.append(event)

    def _decide(self, found: _Transaction, origin: int | str | None) -> Iterator[Event]:
        begin = found.begin
        if self._filter_by_origin is not None and self._filter_by_origin(origin):
            found.fate = LEAVE_OUT
        elif isinstance(begin, StreamStart):
            found.fate = GIVE if self._streaming else HOLD
        else:
            found.fate = GIVE if begin.gid is None or self._takes_prepared(begin.xid, begin.gid) else HOLD
        if found.fate == GIVE:
            yield begin

    def _takes_prepared(self, xid: int | None, gid: str) -> bool:
        return self._two_phase and not (self._filter_prepare is not None and self._filter_prepare(xid, gid))

    def _begin(self, event: Begin) -> Iterator[Event]:
        self._open = _Transaction(event)
        if self._filter_by_origin is None or event.origin is not None:
            yield from self._decide(self._open, event.origin)

    def _end(self, event: Commit | Abort) -> Iterator[Event]:
        found, self._open = self._open, None
        if found is None or found.fate == GIVE:
            yield event

    def _prepare(self, event: Prepare) -> Iterator[Event]:
        found, self._open = self._open, None
        if found is not None and found.fate != GIVE:
            if event.gid is not None:
                self._prepared[event.gid] = found
        elif event.gid is None:
            if self._two_phase:  # else as ABORT: both come only where an area of the log is decoded
                yield event
        elif (found is not None and found.gid is not None) or self._takes_prepared(event.xid, event.gid):
            yield event
        elif found is None:  # PostgreSQL 18 sends no BEGIN where nothing is in it
            self._prepared[event.gid] = _Transaction(Begin(xid=event.xid, gid=event.gid), HOLD)
        else:
            raise PluginError(
                "PREPARE: the plugin takes no prepared transactions, or filters this one; its BEGIN, which did not say "
                "that it would be prepared, was delivered already"
            )

    def _stream_start(self, event: StreamStart) -> Iterator[Event]:
        found = self._streamed.get(event.xid)
        if found is None:
            found = self._open = self._streamed[event.xid] = _Transaction(event)
            if self._filter_by_origin is None:
                yield from self._decide(found, None)
        else:
            self._open = found
            if found.fate == GIVE:
                yield event

    def _stream_stop(self, event: StreamStop) -> Iterator[Event]:
        found, self._open = self._open, None
        if self._streaming and (found is None or found.fate == GIVE):
            yield event

    def _stream_abort(self, event: StreamAbort) -> Iterator[Event]:
        is_whole = aborts_whole(event.xid, event.subxid)
        found = self._streamed.pop(event.xid, None) if is_whole else self._streamed.get(event.xid)
        if self._streaming and (found is None or found.fate == GIVE):
            yield event
        elif found is not None and not is_whole:
            found.undone.add(event.subxid)
            found.held = [held for held in found.held if not found.is_undone(held)]

    def _stream_commit(self, event: StreamCommit) -> Iterator[Event]:
        found = self._streamed.pop(event.xid, None)
        if self._streaming:
            if found is None or found.fate == GIVE:
                yield event
        else:
            yield from _whole(found, event)

    def _stream_prepare(self, event: StreamPrepare) -> Iterator[Event]:
        found = self._streamed.pop(event.xid, None)
        if found is None and self._streaming:
            found = _Transaction(StreamStart(xid=event.xid), GIVE)
        if found is not None and (found.fate == LEAVE_OUT or not self._takes_prepared(event.xid, event.gid)):
            self._prepared[event.gid] = found
        elif self._streaming:
            yield event
        else:
            facts = _facts(event, "lsn", "xid", "end_lsn", "prepare_time", "gid")
            yield from (Begin(**facts), *_changes(found, event), Prepare(**facts))

    def _commit_prepared(self, event: CommitPrepared) -> Iterator[Event]:
        found = self._prepared.pop(event.gid, None)
        if found is None:
            yield from self._end_of_unknown(event)
        elif found.fate == GIVE:  # its blocks have been delivered, its prepare has not
            yield StreamCommit(**_facts(event, "lsn", "xid", "commit_lsn", "end_lsn", "commit_time"))
        else:
            yield from _whole(found, event)

    def _rollback_prepared(self, event: RollbackPrepared) -> Iterator[Event]:
        found = self._prepared.pop(event.gid, None)
        if found is None:
            yield from self._end_of_unknown(event)
        elif found.fate == GIVE:
            yield StreamAbort(subxid=event.xid, **_facts(event, "xid", "commit_time"))

    def _end_of_unknown(self, event: CommitPrepared | RollbackPrepared) -> Iterator[Event]:
        """Its PREPARE has been delivered as it came, or the stream has none."""
        if self._takes_prepared(event.xid, event.gid):
            yield event
        else:
            self.unknown_prepared[event.gid] = None


_STEPS: dict[type[Event], Callable[..., Iterator[Event]]] = {
    Begin: Delivery._begin,
    Commit: Delivery._end,
    Abort: Delivery._end,
    Prepare: Delivery._prepare,
    StreamStart: Delivery._stream_start,
    StreamStop: Delivery._stream_stop,
    StreamAbort: Delivery._stream_abort,
    StreamCommit: Delivery._stream_commit,
    StreamPrepare: Delivery._stream_prepare,
    CommitPrepared: Delivery._commit_prepared,
    RollbackPrepared: Delivery._rollback_prepared,
}
"""What each mark does; all other events are content."""


def _whole(found: _Transaction | None, event: StreamCommit | CommitPrepared) -> Iterator[Event]:
    """A transaction that was held, as an ordinary one; as in `pgoutput`, its COMMIT does not say the xid."""
    if found is not None and found.fate == LEAVE_OUT:
        return
    said = (
        {}
        if found is None or isinstance(found.begin, StreamStart)
        else _facts(found.begin, "csn", "origin", "username")
    )
    begin = Begin(**said, **_facts(event, "xid", "commit_lsn", "commit_time"))
    commit = Commit(**_facts(event, "lsn", "commit_lsn", "end_lsn", "commit_time"))
    yield from (begin, *_changes(found, event), commit)


def _changes(found: _Transaction | None, event: StreamCommit | StreamPrepare | CommitPrepared) -> Iterator[Event]:
    """What was held. Outside of a block, records do not say their transaction."""
    if found is None:
        raise PluginError(
            f"{event.kind}: a plugin that takes its transaction only as a whole needs all of it; it began before the "
            "first event"
        )
    for held in found.held:
        in_block = isinstance(found.begin, StreamStart) and getattr(held, "xid", None) is not None
        yield replace(held, xid=None) if in_block else held  # type: ignore[call-arg]


def _facts(event: Event, *names: str) -> dict[str, Any]:
    return {name: getattr(event, name) for name in names}
