"""Makes the changes of committed transactions from events, in commit order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..errors import OrderError, StateError
from ..events import Ddl, Event, Message, RowChange, Truncate, TupleData, check_event
from ..limits import OPEN_TRANSACTIONS_BYTES
from ..options.checks import number
from .attempts import Attempt, Fate, TransactionFacts
from .controls import CONTROL_KINDS, DELIVERED_KINDS, Control
from .judged import judged_input
from .positions import Position
from .transactions import TransactionMachine


class Sequence(NamedTuple):
    """The position of a change in its stream. It is unique, and changes sort by it.

    commit_lsn   the commit LSN of its transaction. Despite the name: its csn if the stream sends no commit LSN (the
                 serial plugins, and gaussdb-json and gaussdb-text without batches), and without either (test-decoding)
                 its number in the stream, from 1
    ordinal      its index among all changes of its transaction, including those that were rolled back
    """

    commit_lsn: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedChange:
    """A committed change, with the facts of its transaction. Numbers are unsigned.

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
    """Stores lists of objects that can be pickled, in files. The files are removed by `close` or with the store."""

    def put(self, lists: Iterable[list[Any]]) -> list[Any]:
        """Stores lists, and returns a handle for each."""

    def get(self, handle: Any) -> Iterator[Any]:
        """Returns the objects of a stored list, which stays stored."""

    def drop(self, handle: Any) -> None:
        """Removes a stored list."""

    def close(self) -> None:
        """Removes everything."""


class CommittedChanges(Iterator[CommittedChange]):
    """Yields the changes of the committed transactions; raises OrderError at an event that is out of order.

    make_store   called once, when more than memory_limit bytes are in memory for the first time
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
        self._machine: TransactionMachine[_InMemory | _Stored] = TransactionMachine(
            two_phase=two_phase, drop_resent=drop_resent, after=after
        )
        self._memory_limit = number("memory_limit", memory_limit, 0)
        self._bytes = 0
        self._is_closed = False
        self._make_store = make_store
        self._store: EventStore | None = None
        if not isinstance(events, Iterable):
            raise TypeError(f"events: expected an iterable of events, got {type(events).__name__}")
        self._changes = self._committed_changes(judged_input(events))

    def __next__(self) -> CommittedChange:
        """Returns the next change."""
        return next(self._changes)

    @property
    def open(self) -> list[Event]:
        """The events of transactions that have not ended, including control records, in input order.

        Followed by the rest of the stream, with `after` set to this position, they give the same changes as the
        undivided stream. Raises StateError after `close`.
        """
        if self._is_closed:
            raise StateError("open: expected open transactions, but they were closed; read it before")
        found = [item for attempt in self._machine.open for item in self._items(attempt)]
        return [item.event for item in sorted(found, key=lambda item: item.event_index)]

    @property
    def position(self) -> Position:
        """How far the stream has been delivered: after the transaction whose changes are being yielded."""
        return self._machine.position

    @property
    def unknown_prepared(self) -> tuple[str, ...]:
        """The gids of prepared transactions that ended without a known PREPARE; see docs/transactions.md.

        Complete when all events were read.
        """
        return self._machine.unknown_prepared

    def close(self) -> None:
        """Drops the open transactions and removes the files."""
        self._is_closed = True
        self._changes.close()
        self._machine.forget()
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> CommittedChanges:
        """Returns the object, which is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Closes the object."""
        self.close()

    def _committed_changes(self, events: Iterable[Event]) -> Generator[CommittedChange, None, None]:
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
            return self._machine.take_rows(handle, count, isinstance(event, Message) and event.lsn is None)
        if event.kind in CONTROL_KINDS:
            handle = _InMemory(index, event, _size(event))
            self._bytes += handle.size
            return self._machine.take_control(_control(event), handle)
        if event.kind == "CORRUPT":
            raise corrupt_error(event.lsn)
        return []

    def _spill(self) -> None:
        """Moves the open events in memory to the store if they alone, without dropped ones, exceed the limit."""
        in_memory: list[tuple[Attempt[_InMemory | _Stored], list[tuple[_InMemory, int]]]] = []
        for attempt in self._machine.open:
            items = [(handle, count) for handle, count in attempt.handles if isinstance(handle, _InMemory)]
            if items:
                in_memory.append((attempt, items))
        self._bytes = sum(handle.size for _, items in in_memory for handle, _ in items)
        if self._bytes <= self._memory_limit:
            return
        if self._store is None:
            self._store = self._make_store()
        stored = self._store.put([handle for handle, _ in items] for _, items in in_memory)
        for (attempt, items), handle in zip(in_memory, stored, strict=True):
            attempt.handles[-len(items) :] = [(_Stored(handle), sum(count for _, count in items))]
        self._bytes = 0

    def _items(self, attempt: Attempt[_InMemory | _Stored]) -> Iterator[_InMemory]:
        for handle, _ in attempt.handles:
            if isinstance(handle, _InMemory):
                yield handle
            elif self._store is not None:
                yield from self._store.get(handle.handle)

    def _drop(self, attempt: Attempt[_InMemory | _Stored]) -> None:
        for handle, _ in attempt.handles:
            if isinstance(handle, _InMemory):
                self._bytes -= handle.size
            elif self._store is not None:
                self._store.drop(handle.handle)

    def _changes_of(self, attempt: Attempt[_InMemory | _Stored], facts: TransactionFacts) -> Iterator[CommittedChange]:
        sequence, *others = facts
        fields = dict(zip(TransactionFacts._fields[1:], others, strict=True))
        ordinal = 0
        for item in self._items(attempt):
            if item.event.kind not in DELIVERED_KINDS:
                continue
            is_undone = attempt.is_undone(getattr(item.event, "xid", None))
            for event in _per_table(item.event):
                if not is_undone:
                    yield CommittedChange(event=event, sequence=Sequence(sequence, ordinal), **fields)
                ordinal += 1


class _InMemory(NamedTuple):
    """An event in memory: its index in the input, and about how many bytes it takes."""

    event_index: int
    event: Event
    size: int


class _Stored(NamedTuple):
    """Events in the store."""

    handle: Any


def _per_table(event: Event) -> Iterator[Event]:
    """Yields a TRUNCATE of several tables as one event per table, any other event as it is."""
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
    fields: dict[str, Any] = {name: getattr(event, name) for name in names}
    if fields.get("origin") is not None:
        fields["origin"] = str(fields["origin"])
    return Control(**fields)


_CONTROL_FIELDS: dict[type[Event], tuple[str, ...]] = {}
"""Each class of events to the fields of Control that it has."""


def corrupt_error(lsn: int | None, **position: Any) -> OrderError:
    """Returns the error for a record that could not be read."""
    return OrderError(
        "records that could be read",
        "CORRUPT",
        record_lsn=lsn,
        state="anywhere",
        hint="a transaction with an unreadable record is not complete; FAILFAST says what is wrong with the record; to "
        "deliver the rest, decode in DROPMALFORMED mode or filter CORRUPT records out",
        **position,
    )


_EVENT_BYTES, _VALUE_BYTES = 400, 60
"""About how many bytes an event and a value take in memory, without their texts."""


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
