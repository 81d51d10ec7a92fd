"""Events to the changes of committed transactions, in the order of their commits."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import OrderError
from ..events import Event, Message, RowChange, Truncate, TupleData
from ..limits import OPEN_TRANSACTIONS_BYTES
from .temporary_folder import TemporaryFolder
from .transactions import CONTROLS, DELIVERED, Attempt, Control, Facts, Fate, Machine, Position


class Sequence(NamedTuple):
    """Where a change stands in its stream: unique and sortable.

    commit_lsn   its transaction's; its csn where there is none, and where there is neither its number in the stream
    ordinal      its place among all changes of the transaction as they came, those of undone subtransactions too
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


class CommittedChanges(Iterator[CommittedChange]):
    """The changes of the committed transactions among events; raises OrderError at an event that cannot be there."""

    def __init__(
        self,
        events: Iterable[Event],
        *,
        two_phase: str = "commit",
        drop_resent: bool = True,
        memory_limit: int = OPEN_TRANSACTIONS_BYTES,
        after: Position | None = None,
    ) -> None:
        self._machine: Machine[_Here | _Spilled] = Machine(two_phase=two_phase, drop_resent=drop_resent, after=after)
        self._memory_limit = memory_limit
        self._bytes = 0
        self._files = 0
        self._folder = TemporaryFolder()
        self._changes = self._walk(events)

    def __next__(self) -> CommittedChange:
        """The next one."""
        return next(self._changes)

    @property
    def open(self) -> list[Event]:
        """The events of transactions that have not ended, control records too, in their order.

        Followed by the rest of the stream they give what the stream in one piece gives, `after` this position.
        """
        found = [item for attempt in self._machine.open for item in _items(attempt)]
        return [item.event for item in sorted(found, key=lambda item: item.place)]

    @property
    def position(self) -> Position:
        """How far the stream was delivered."""
        return self._machine.position

    def close(self) -> None:
        """Forget what is open, and remove the files."""
        self._changes.close()
        self._machine = Machine(after=self.position)
        self._folder.close()

    def _walk(self, events: Iterable[Event]) -> Generator[CommittedChange, None, None]:
        for place, event in enumerate(events):
            try:
                fates = self._take(place, event)
            except OrderError as error:
                raise error.add(note=f"event {place}") from None
            for attempt, facts in fates:
                self._bytes -= sum(handle.size for handle, _ in attempt.pieces if isinstance(handle, _Here))
                if facts is not None:
                    yield from _changes(attempt, facts)
            if self._bytes > self._memory_limit:
                self._spill()

    def _take(self, place: int, event: Event) -> list[Fate[_Here | _Spilled]]:
        if event.kind in DELIVERED:
            if isinstance(event, Message) and not event.transactional:
                return []
            handle = _Here(place, event, _size(event))
            self._bytes += handle.size
            count = len(event.tables) or 1 if isinstance(event, Truncate) else 1
            return self._machine.run(handle, count, isinstance(event, Message) and event.lsn is None)
        if event.kind in CONTROLS:
            handle = _Here(place, event, _size(event))
            self._bytes += handle.size
            return self._machine.control(_control(event), handle)
        if event.kind == "CORRUPT":
            raise corrupt_error(event.lsn)
        return []

    def _spill(self) -> None:
        """All that is held goes to a file, which is removed with the last that points at it."""
        whole = _File(self._folder.path / f"{self._files}.pickle")
        self._files += 1
        with whole.path.open("xb") as file:
            for attempt in self._machine.open:
                fresh = [piece for piece in attempt.pieces if isinstance(piece[0], _Here)]
                if fresh:
                    start = file.tell()
                    pickle.dump(fresh, file, pickle.HIGHEST_PROTOCOL)
                    count = sum(count for _, count in fresh)
                    attempt.pieces[-len(fresh) :] = [(_Spilled(whole, start), count)]
        self._bytes = 0


class _Here(NamedTuple):
    """An event in memory: its place in the input, and how many bytes it takes, about."""

    place: int
    event: Event
    size: int


class _File:
    """A file that goes when this object does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        weakref.finalize(self, path.unlink, missing_ok=True)


class _Spilled(NamedTuple):
    """Events in a file."""

    file: _File
    start: int


def _items(attempt: Attempt[_Here | _Spilled]) -> Iterator[_Here]:
    for handle, _ in attempt.pieces:
        if isinstance(handle, _Here):
            yield handle
        else:
            with handle.file.path.open("rb") as file:
                file.seek(handle.start)
                yield from (found for found, _ in pickle.load(file))


def _changes(attempt: Attempt[_Here | _Spilled], facts: Facts) -> Iterator[CommittedChange]:
    sequence, *rest = facts
    named = dict(zip(Facts._fields[1:], rest, strict=True))
    ordinal = 0
    for item in _items(attempt):
        if item.event.kind not in DELIVERED:
            continue
        is_undone = getattr(item.event, "xid", None) in attempt.undone
        for event in _parts(item.event):
            if not is_undone:
                yield CommittedChange(event=event, sequence=Sequence(sequence, ordinal), **named)
            ordinal += 1


def _parts(event: Event) -> Iterator[Event]:
    """A change a table."""
    if isinstance(event, Truncate) and len(event.tables) > 1:
        yield from (replace(event, tables=(table,)) for table in event.tables)
    else:
        yield event


def _control(event: Event) -> Control:
    names = _SAID.get(type(event))
    if names is None:
        names = _SAID[type(event)] = tuple(name for name in Control._fields if name in event.__dataclass_fields__)
    found: dict[str, Any] = {name: getattr(event, name) for name in names}
    if found.get("origin") is not None:
        found["origin"] = str(found["origin"])
    return Control(**found)


_SAID: dict[type[Event], tuple[str, ...]] = {}
"""Which fields of a Control a kind of event has."""


def corrupt_error(lsn: int | None, **place: Any) -> OrderError:
    """The error at a record that could not be read."""
    return OrderError(
        "records that could be read: a transaction with a hole is not whole. Decode in DROPMALFORMED, or leave CORRUPT "
        "records out, to deliver transactions without them",
        "CORRUPT",
        record_lsn=lsn,
        state="anywhere",
        **place,
    )


_EVENT_BYTES, _VALUE_BYTES = 400, 60
"""About what an event and a value take beside the text."""


def _size(event: Event) -> int:
    if isinstance(event, RowChange):
        return _EVENT_BYTES + _image_size(event.new) + _image_size(event.old)
    if isinstance(event, Message):
        return _EVENT_BYTES + len(event.content or "")
    return _EVENT_BYTES


def _image_size(image: TupleData | None) -> int:
    if image is None:
        return 0
    return sum(_VALUE_BYTES + len(value) for value in image.values if isinstance(value, str))
