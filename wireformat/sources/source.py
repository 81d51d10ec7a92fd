"""The interface of a source of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from ..errors import DecodeError


class SourceMessages(NamedTuple):
    """Some messages of a source, in order.

    source         name of the source
    messages       a list of bytes, or a pyarrow binary array
    read_bytes     how many bytes of the source they stand for
    stream_offset  byte of the source where the first message begins; None if the source has message bounds
    is_lost        the framing is broken, here or earlier: the bytes are as they came, and are no messages
    error          why, if it is broken here
    """

    source: str
    messages: Any
    read_bytes: int
    stream_offset: int | None = None
    is_lost: bool = False
    error: DecodeError | None = None


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
