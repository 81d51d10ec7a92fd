"""Runs declarations, and turns construct's failures into this package's errors, with byte and path.

construct reads from a `Window`, which remembers where its last read began.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from construct import Construct, ConstructError, Container

from ..errors import DecodeError, EncodeError, ShortData, TrailingBytes, counted
from ..limits import SPOT_BYTES
from ..tracing import Trace, active_trace


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


def parse(
    declaration: Construct, message: bytes, start: int, stop: int, *, encoding: str, errors: str, **known: Any
) -> Any:
    """Reads all of message[start:stop] by a declaration; raises DecodeError with byte and path.

    encoding, errors    as for bytes.decode
    known               facts that the declaration asks for, by their names
    """
    window = Window(message, start, stop, active_trace())
    try:
        found = declaration._parse(window, _context(encoding=encoding, errors=errors, **known), "(parsing)")
    except ConstructError as error:
        raise ShortData(
            counted(window.wanted, "byte"),
            f"{stop - window.last}, then the record ends",
            message_offset=window.last,
            path=field_path(error.path),
            spot=message[window.last : stop][:SPOT_BYTES],
        ) from None
    except DecodeError as error:
        raise error.add(path=field_path(error.path)) from None
    if window.left:
        raise TrailingBytes(
            "the end of the record",
            counted(window.left, "more byte"),
            message_offset=window.position,
        )
    return found


def _context(**known: Any) -> Container:
    """The outermost context of construct's `parse_stream`, without references to itself, which only the garbage
    collector would free."""
    flags = {"_parsing": True, "_building": False, "_sizing": False, "_root": None}
    return Container({**known, **flags, "_params": Container(known)})


def build(declaration: Construct, values: Any, *, encoding: str, **known: Any) -> bytes:
    """Writes values by a declaration; raises EncodeError with the path of what does not fit."""
    stream = io.BytesIO()
    try:
        declaration.build_stream(values, stream, encoding=encoding, **known)
    except ConstructError as error:
        path = field_path(error.path)
        got = ", got none: the field is missing" if _is_missing(values, path) else ""
        raise EncodeError(f"{path}: expected a number that fits the field{got}") from None
    except EncodeError as error:
        path, _, reason = str(error).partition(": ")
        raise EncodeError(f"{field_path(path)}: {reason}") from None
    return stream.getvalue()


def _is_missing(values: Any, path: str) -> bool:
    """Whether the value at a path is None."""
    for name in re.findall(r"\w+", path):
        if isinstance(values, Mapping):
            values = values.get(name)
        elif isinstance(values, Sequence) and name.isdigit():
            values = values[int(name)]
        else:
            values = getattr(values, name, values)
    return values is None
