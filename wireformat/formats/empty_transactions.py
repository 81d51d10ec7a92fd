"""What the servers' option skip-empty-xacts does: a transaction in which nothing happens is not written.

A BEGIN, or the opening of a streamed block, waits until something happens in it. If nothing does, its end is left out
too: COMMIT, ABORT or PREPARE of a transaction, the closing of a block, and what ends a streamed transaction if all its
blocks were empty. Source: PostgreSQL's and openGauss's test_decoding.
"""

from __future__ import annotations

from ..events import (
    Abort,
    Begin,
    Commit,
    Event,
    Heartbeat,
    Message,
    Prepare,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
)

_ENDS = (Commit, Abort, Prepare)


class EmptyTransactions:
    """Takes events in the order of the stream, and says which of them are written."""

    def __init__(self) -> None:
        self._held: Begin | StreamStart | None = None
        self._happened: dict[int | None, bool] = {}  # of each streamed transaction, whether something was written

    def take(self, event: Event) -> tuple[Event, ...]:
        """The events that are written, now that this one is known."""
        if isinstance(event, StreamStart):
            self._happened.setdefault(event.xid, False)
        if isinstance(event, (Begin, StreamStart)):
            self._held = event
            return ()
        if isinstance(event, Heartbeat) or (isinstance(event, Message) and not event.transactional):
            return (event,)
        if isinstance(event, (StreamAbort, StreamCommit, StreamPrepare)):
            return (event,) if self._happened.pop(event.xid, True) else ()
        held, self._held = self._held, None
        if held is None:
            return (event,)
        if isinstance(event, (*_ENDS, StreamStop)):
            return ()
        if isinstance(held, StreamStart):
            self._happened[held.xid] = True
        return held, event
