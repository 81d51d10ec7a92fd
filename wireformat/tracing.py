"""A trace of how a record was read: which bytes each rule of a format took. The inspector uses it.

A trace is active inside `traced()`. Declarations and grammars note there what they read; without an active trace they
note nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Note(NamedTuple):
    """Some bytes of a message and what they are.

    start, stop  first byte in the message, one past the last
    path         the field in the record, such as `new.cells[3].value.length`; a word of the grammar has the path of
                 what surrounds it
    rule         the rule of the format that took the bytes
    value        what they say; None for NULL and for a word of the grammar
    """

    start: int
    stop: int
    path: str
    rule: str
    value: Any = None


class Trace:
    """What was noted of one record, in the order of its bytes.

    notes   the smallest parts; between them may be bytes that no rule named
    wholes  by path: what a field of several parts says, and its rule
    """

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.wholes: dict[str, tuple[Any, str]] = {}

    def note(self, start: int, stop: int, path: str, rule: str, value: Any = None) -> None:
        """Notes some bytes. What was noted from `start` on is dropped: a reader went back, or knows more now."""
        while self.notes and self.notes[-1].start >= start:
            self.notes.pop()
        if stop > start:
            self.notes.append(Note(start, stop, path, rule, value))

    def whole(self, path: str, rule: str, value: Any) -> None:
        """Notes the value of a whole field, which consists of parts."""
        self.wholes[path] = value, rule

    def within(self, start: int, prefix: str) -> None:
        """Moves the notes from `start` on into a field."""
        index = len(self.notes)
        while index and self.notes[index - 1].start >= start:
            index -= 1
            note = self.notes[index]
            self.notes[index] = note._replace(path=f"{prefix}.{note.path}" if note.path else prefix)

    def words(self, start: int, path: str) -> None:
        """Sets the path of the field to which the words of the grammar from `start` on belong."""
        for index, note in enumerate(self.notes):
            if note.start >= start and not note.path:
                self.notes[index] = note._replace(path=path)

    def covers(self, at: int) -> bool:
        """Whether a byte was noted, or one after it."""
        return bool(self.notes) and self.notes[-1].stop > at

    def means(self, at: int, value: Any) -> None:
        """Sets the value of the part that contains a byte to the meaning of its text."""
        for index in range(len(self.notes) - 1, -1, -1):
            note = self.notes[index]
            if note.start <= at < note.stop:
                self.notes[index] = note._replace(value=value)
                return


_ACTIVE: ContextVar[Trace | None] = ContextVar("trace", default=None)


def active_trace() -> Trace | None:
    """Returns the trace that the current reading fills; None if no trace was asked for."""
    return _ACTIVE.get()


@contextmanager
def traced() -> Iterator[Trace]:
    """Makes a new trace the active one for a while."""
    trace = Trace()
    token = _ACTIVE.set(trace)
    try:
        yield trace
    finally:
        _ACTIVE.reset(token)
