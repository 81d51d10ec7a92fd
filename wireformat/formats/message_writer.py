"""Records to messages, as a sender packs them: which transactions are left out, and where a batch ends.

By skip-empty-xacts, transactions without changes are left out; readers follow the same rule. The opening of a
transaction or streamed block waits for a change. If none comes, its end is left out as well. The end of a streamed
transaction is left out if all its blocks were.
Sources: the test_decoding of PostgreSQL 17 and of openGauss; pgoutput since PostgreSQL 15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ..errors import EncodeError, LimitExceeded
from ..events import Event, RecordFacts, RowChange, aborts_whole
from ..limits import RECORD_BYTES
from .direct.layouts import REFUSALS, ByteLayout, Layouts
from .direct.records import RecordForm

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


XLOG_DATA_HEADER_BYTES = 25
"""'w' and three 8-byte numbers: the sender counts them when it compares a batch with its limit (seen in captures)."""

OPTION_OF_FIELD = {
    "xid": "include-xids",
    "commit_time": "include-timestamp",
    "prepare_time": "include-timestamp",
    "origin": "include-originid",
    "username": "include-user",
}
"""Fields of BEGIN and COMMIT that are written only with an option."""


class Packing(NamedTuple):
    """How a message holds records.

    record      LSN and body to a framed record; None: the body alone
    separator   between records
    full, rest  what ends a message that is closed by size, and one that is closed by timeout
    """

    record: Callable[[int, bytes], bytes] | None = None
    separator: bytes = b""
    full: bytes = b""
    rest: bytes = b""


ALONE = Packing()
"""A message is the body of one record."""


class MessageWriter:
    """Writes events as a sender does.

    name, options   of the format; without the option sending-batch each record is a message
    body            the bytes of one event without framing; raises EncodeError
    whole           the message of an event that is one by itself, framing and all; None for all others
    layouts         of row changes whose body is written from a layout
    form            of the bodies of events of a type that are written by their declaration alone
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, bool | int],
        packing: Packing,
        batch_bytes: int,
        body: Callable[[Event], bytes],
        whole: Callable[[Event], bytes | None] = lambda event: None,
        layouts: Layouts | None = None,
        form: Callable[[type[Event]], RecordForm | None] = lambda event: None,
    ) -> None:
        self._name = name
        self._empty: EmptyTransactions[Event] | None = EmptyTransactions() if options.get("skip-empty-xacts") else None
        self._packing = packing
        self._batch_bytes = batch_bytes if options.get("sending-batch") else 0
        self._body = body
        self._whole = whole
        self._layouts = layouts
        self.form = form
        self._records: list[bytes] = []
        self._bytes = 0

    def write(self, event: Event) -> list[bytes]:
        """See Writer.write."""
        empty = self._empty
        if empty is None:
            return self._messages(*self._made(event))
        held = empty.held
        kept = empty.take(RecordFacts.of(event), event)
        try:
            made = [self._made(one) for one in kept]
        except Exception:
            empty.held = held  # a refused event releases nothing
            raise
        return [message for one in made for message in self._messages(*one)]

    def flush(self) -> list[bytes]:
        """See Writer.flush."""
        return self._send(self._packing.rest) if self._records else []

    def layout(self, event: RowChange) -> tuple[ByteLayout, None] | None:
        """The layout of the bodies of rows like this one; None if they have none. It belongs to no relation."""
        try:
            layout = None if self._layouts is None else self._layouts.layout(event)
        except REFUSALS:
            return None
        return None if layout is None else (layout, None)

    def _messages(self, made: bytes, is_whole: bool) -> list[bytes]:
        """Returns the messages that are complete with one that is whole, or with a record."""
        if is_whole:
            return [*self.flush(), made]
        packing = self._packing
        if packing.record is None:
            return [made]
        self._records.append(made)
        self._bytes += len(made) + len(packing.separator)
        full = XLOG_DATA_HEADER_BYTES + self._bytes - len(packing.separator) > self._batch_bytes
        return self._send(packing.full) if full else []

    def _made(self, event: Event) -> tuple[bytes, bool]:
        """Returns the bytes of an event, and whether they are a message by themselves. It changes nothing."""
        whole = self._whole(event)
        if whole is not None:
            return whole, True
        record = self._packing.record
        try:
            body = self._body(event)
        except EncodeError as error:
            raise EncodeError(f"{self._name} {event.kind}: {error}") from None
        if len(body) > RECORD_BYTES - 8:
            raise LimitExceeded(f"limits.RECORD_BYTES is {RECORD_BYTES}, the record has {len(body) + 8} bytes")
        if record is None:
            return body, False
        if event.lsn is None or not 0 <= event.lsn < 1 << 64:
            raise EncodeError(f"{self._name} {event.kind}: expected an lsn of 64 bits, got {event.lsn}")
        return record(event.lsn, body), False

    def _send(self, end: bytes) -> list[bytes]:
        message = self._packing.separator.join(self._records) + end
        self._records, self._bytes = [], 0
        return [message]
