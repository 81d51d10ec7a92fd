"""Events to the changes of committed transactions, in the order of their commits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..errors import OrderError
from ..events import Ddl, Event, Message, RowChange, Truncate, TupleData, check_event
from ..limits import OPEN_TRANSACTIONS_BYTES
from ..options.checks import number
from .attempts import Attempt, Fate, TransactionFacts
from .controls import CONTROL_KINDS, DELIVERED_KINDS, Control
from .judged import judged_input
from .positions import Position
from .transactions import Machine


class Sequence(NamedTuple):
    """The position of a change in its stream: unique and sortable.

    commit_lsn   its transaction's; its csn where there is none, and where there is neither its number in the stream
    ordinal      its index among all changes of the transaction as they came, those of undone subtransactions too
    """

    commit_lsn: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedChange:
    """A change that holds, and the facts of its transaction. Numbers are unsigned.

    event         Insert, Update, Delete, Ddl, a transactional Message, StreamChange, or a Truncate of one table
    xid           of the transaction, not of a subtransaction
    commit_time   as sent
    origin        a name, or a number as text
    """

    event: Event
    sequence: Sequence
    xid: int | None
    csn: int | None
    commit_lsn: int | None
    commit_time: str | None
    username: str | None
    origin: str | None


class EventStore(Protocol):
    """Keeps lists of what can be pickled in files, which are removed with `close` or with the store."""

    def put(self, pieces: Iterable[list[Any]]) -> list[Any]:
        """Keep these lists, and return a handle to each."""

    def get(self, handle: Any) -> Iterator[Any]:
        """What is in the list of a handle; it stays kept."""

    def drop(self, handle: Any) -> None:
        """Forget the list of a handle."""

    def close(self) -> None:
        """Forget everything."""


class CommittedChanges(Iterator[CommittedChange]):
    """The changes of the committed transactions among events; raises OrderError at an event that cannot be there.

    make_store   called once, when more than memory_limit bytes are held for the first time
    """

    def __init__(
        self,
        events: Iterable[Event],
        *,
        make_store: Callable[[], EventStore],
        two_phase: str = "commit",
        drop_resent: bool = True,
        memory_limit: int = OPEN_TRANSACTIONS_BYTES,
        after: Position | None = None,
    ) -> None:
        self._machine: Machine[_InMemory | _Stored] = Machine(two_phase=two_phase, drop_resent=drop_resent, after=after)
        self._memory_limit = number("memory_limit", memory_limit, 0)
        self._bytes = 0
        self._make_store = make_store
        self._store: EventStore | None = None
        if not isinstance(events, Iterable):
            raise TypeError(f"events: expected an iterable of events, got {type(events).__name__}")
        self._changes = self._walk(judged_input(events))

    def __next__(self) -> CommittedChange:
        """The next one."""
        return next(self._changes)

    @property
    def open(self) -> list[Event]:
        """The events of transactions that have not ended, control records too, in their order.

        Followed by the rest of the stream they give what the stream in one piece gives, `after` this position.
        """
        found = [item for attempt in self._machine.open for item in self._items(attempt)]
        return [item.event for item in sorted(found, key=lambda item: item.number)]

    @property
    def position(self) -> Position:
        """How far the stream was delivered: behind the transaction whose changes are being given."""
        return self._machine.position

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """The gids of prepared transactions whose end came, and which the events have not prepared; see
        docs/transactions.md. Known when all was read."""
        return self._machine.unknown_prepared

    def close(self) -> None:
        """Forget what is open, and remove the files."""
        self._changes.close()
        self._machine.forget()
        if self._store is not None:
            self._store.close()

    def _walk(self, events: Iterable[Event]) -> Generator[CommittedChange, None, None]:
        for index, event in enumerate(map(check_event, events)):
            try:
                fates = self._take(index, event)
            except OrderError as error:
                raise error.add(note=f"event {index}") from None
            for attempt, facts in fates:
                if facts is not None:
                    yield from self._changes_of(attempt, facts)
                self._drop(attempt)
            if self._bytes > self._memory_limit:
                self._spill()

    def _take(self, index: int, event: Event) -> list[Fate[_InMemory | _Stored]]:
        if event.kind in DELIVERED_KINDS:
            if isinstance(event, Message) and not event.transactional:
                return []
            handle = _InMemory(index, event, _size(event))
            self._bytes += handle.size
            count = len(event.tables) or 1 if isinstance(event, Truncate) else 1
            return self._machine.run(handle, count, isinstance(event, Message) and event.lsn is None)
        if event.kind in CONTROL_KINDS:
            handle = _InMemory(index, event, _size(event))
            self._bytes += handle.size
            return self._machine.control(_control(event), handle)
        if event.kind == "CORRUPT":
            raise corrupt_error(event.lsn)
        return []

    def _spill(self) -> None:
        """All that is held goes to the store, if it is too much: what was counted and is not held, as ends, is not."""
        fresh: list[tuple[Attempt[_InMemory | _Stored], list[tuple[_InMemory, int]]]] = []
        for attempt in self._machine.open:
            pieces = [(handle, count) for handle, count in attempt.pieces if isinstance(handle, _InMemory)]
            if pieces:
                fresh.append((attempt, pieces))
        self._bytes = sum(handle.size for _, pieces in fresh for handle, _ in pieces)
        if self._bytes <= self._memory_limit:
            return
        if self._store is None:
            self._store = self._make_store()
        handles = self._store.put([handle for handle, _ in pieces] for _, pieces in fresh)
        for (attempt, pieces), handle in zip(fresh, handles, strict=True):
            attempt.pieces[-len(pieces) :] = [(_Stored(handle), sum(count for _, count in pieces))]
        self._bytes = 0

    def _items(self, attempt: Attempt[_InMemory | _Stored]) -> Iterator[_InMemory]:
        for handle, _ in attempt.pieces:
            if isinstance(handle, _InMemory):
                yield handle
            elif self._store is not None:
                yield from self._store.get(handle.handle)

    def _drop(self, attempt: Attempt[_InMemory | _Stored]) -> None:
        for handle, _ in attempt.pieces:
            if isinstance(handle, _InMemory):
                self._bytes -= handle.size
            elif self._store is not None:
                self._store.drop(handle.handle)

    def _changes_of(self, attempt: Attempt[_InMemory | _Stored], facts: TransactionFacts) -> Iterator[CommittedChange]:
        sequence, *rest = facts
        named = dict(zip(TransactionFacts._fields[1:], rest, strict=True))
        ordinal = 0
        for item in self._items(attempt):
            if item.event.kind not in DELIVERED_KINDS:
                continue
            is_undone = attempt.is_undone(getattr(item.event, "xid", None))
            for event in _parts(item.event):
                if not is_undone:
                    yield CommittedChange(event=event, sequence=Sequence(sequence, ordinal), **named)
                ordinal += 1


class _InMemory(NamedTuple):
    """An event in memory: its index in the input, and about how many bytes it takes."""

    number: int
    event: Event
    size: int


class _Stored(NamedTuple):
    """Events in the store."""

    handle: Any


def _parts(event: Event) -> Iterator[Event]:
    """A change a table."""
    if isinstance(event, Truncate) and len(event.tables) > 1:
        yield from (event.of_tables([index]) for index in range(len(event.tables)))
    else:
        yield event


def _control(event: Event) -> Control:
    names = _CONTROL_FIELDS.get(type(event))
    if names is None:
        names = _CONTROL_FIELDS[type(event)] = tuple(
            name for name in Control._fields if name in event.__dataclass_fields__
        )
    found: dict[str, Any] = {name: getattr(event, name) for name in names}
    if found.get("origin") is not None:
        found["origin"] = str(found["origin"])
    return Control(**found)


_CONTROL_FIELDS: dict[type[Event], tuple[str, ...]] = {}
"""The fields of Control that each class of events has."""


def corrupt_error(lsn: int | None, **position: Any) -> OrderError:
    """The error at a record that could not be read."""
    return OrderError(
        "records that could be read",
        "CORRUPT",
        record_lsn=lsn,
        state="anywhere",
        hint="a transaction with a hole is not whole: decode in DROPMALFORMED, or leave CORRUPT records out, to "
        "deliver transactions without them",
        **position,
    )


_EVENT_BYTES, _VALUE_BYTES = 400, 60
"""About what an event and a value take beside the text."""


def _size(event: Event) -> int:
    if isinstance(event, RowChange):
        return _EVENT_BYTES + _image_size(event.new) + _image_size(event.old)
    if isinstance(event, (Message, Ddl)):
        return _EVENT_BYTES + len(event.content or "")
    if isinstance(event, Truncate):
        return _EVENT_BYTES + _VALUE_BYTES * len(event.tables)
    return _EVENT_BYTES


def _image_size(image: TupleData | None) -> int:
    if image is None:
        return 0
    return sum(_VALUE_BYTES + len(value) for value in image.values if isinstance(value, str))
