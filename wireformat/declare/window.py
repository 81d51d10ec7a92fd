"""A view of part of a message that construct reads from, and that remembers where its last read began."""

from __future__ import annotations

from typing import Any

from ..tracing import Trace


class Window:
    """The bytes message[start:stop] as a stream whose positions are those of the message.

    trace   where fields note what they read; mostly None
    """

    def __init__(self, message: bytes, start: int, stop: int, trace: Trace | None = None) -> None:
        self.trace = trace
        self.message = message
        self.position = start
        self.stop = stop
        self.last = start
        """Where the last read began."""
        self.wanted = 0
        """How many bytes it asked for."""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, all that is left if negative; fewer at the end."""
        self.last = begin = self.position
        self.wanted = size if size >= 0 else self.stop - begin
        self.position = end = min(begin + self.wanted, self.stop)
        return self.message[begin:end]

    def note(self, start: int, path: str, rule: str, value: Any = None) -> None:
        """Notes the bytes from `start` to here in the trace, which must exist. The path is construct's."""
        if self.trace is not None:
            self.trace.note(start, self.position, field_path(path), rule, value)

    def tell(self) -> int:
        """The position in the message."""
        return self.position

    @property
    def left(self) -> int:
        """How many bytes follow."""
        return self.stop - self.position


def field_path(path: str | None) -> str:
    """construct's `(parsing) -> new -> cells[3] -> value` as `new.cells[3].value`."""
    return ".".join((path or "").split(" -> ")[1:])
