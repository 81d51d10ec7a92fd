"""The interface of a source of messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from ..errors import DecodeError


class SourceMessages(NamedTuple):
    """Some messages of a source, in order.

    source         name of the source
    messages       a pyarrow chunked array, or a list or another collection of bytes, of which some may be None
    read_bytes     the number of bytes of the source that they take
    stream_offset  byte of the source where the first message begins; None if the source has message bounds
    is_lost        the framing is broken, here or earlier: these are the bytes as they came, not messages
    error          why, if it is broken here
    parts          what these were put together from; the other fields are those of the first part
    """

    source: str
    messages: Any
    read_bytes: int
    stream_offset: int | None = None
    is_lost: bool = False
    error: DecodeError | None = None
    parts: tuple[SourceMessages, ...] = ()

    def part_of(self, index: int) -> tuple[SourceMessages, int]:
        """Returns the part that has a message, and the index of the message in it; the first part if it is negative."""
        for part in self.parts:
            if index < len(part.messages):
                return part, index
            index -= len(part.messages)
        return self, index


def message_bytes(message: Any) -> bytes | None:
    """Returns one of `SourceMessages.messages` as bytes; None for a null, which has no records."""
    found: bytes | None = message if isinstance(message, bytes) else message.as_py()
    return found


class Source(Protocol):
    """A source of messages."""

    @property
    def name(self) -> str:
        """The name that errors use: the path of a file, or what the data are."""

    @property
    def size(self) -> int | None:
        """The size in bytes; None if it is not known before the end."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be read more than once."""

    def read(self) -> Iterator[SourceMessages]:
        """Yields its messages, a few megabytes at a time. Raises OSError if it cannot be read."""


@contextmanager
def errors_of(name: str, *others: type[Exception]) -> Iterator[None]:
    """Raises errors of reading a source that was found as OSError with the name of the source.

    others   the errors of the library that reads it, if it is a Parquet file
    """
    kinds: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except kinds as error:
        raise OSError(f"{name}: {_explained(error, is_parquet=bool(others))}") from None


def _explained(error: Exception, *, is_parquet: bool) -> str:
    """Returns what is wrong, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return "No such file or directory; it was there when it was looked at first: put it back, or leave it out"
    text: str = getattr(error, "strerror", None) or str(error).splitlines()[0].split(". ")[0].removesuffix(".")
    is_of_the_system = isinstance(error, OSError) and error.errno is not None
    if is_of_the_system or not is_parquet or not isinstance(error, (OSError, ValueError)):
        return text
    return f"expected a complete Parquet file, got one that is cut or damaged ({text}): write it again, or leave it out"
