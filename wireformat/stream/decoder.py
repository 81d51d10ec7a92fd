"""A decoder for bytes that come cut anywhere: feed it, take its events, close it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ..errors import DecodeError
from ..events import Event
from ..formats.base import Format
from ..framing.buffer import MessageBuffer
from .reader import Located


class EventSource(Protocol):
    """What the decoder needs of an engine."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""

    def events(self, messages: list[bytes], first: int = 0) -> Iterator[Located]:
        """The events of some messages, the first of which has this index."""

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """What to say of bytes in which no message can be found: this error, or that the framing broke before."""


class Decoder:
    """Turns bytes into events, for formats whose messages say where they end.

    Once the framing is broken, the end of no later message can be found: FAILFAST raises, the other modes take all
    bytes that follow as corrupt. Raises OptionError for a format whose messages never say where they end.
    """

    def __init__(self, format: Format, source: EventSource) -> None:
        format.find_end(b"", 0, 0)  # so that a format that cannot do it says so before anything is fed
        self._source = source
        self._buffer = MessageBuffer(format.find_end, format.separator)
        self._separator_bytes = len(format.separator)
        self._events: list[Event] = []
        self._messages = 0
        self._stream_offset = 0

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""
        return self._source.dropped

    def feed(self, data: bytes) -> None:
        """Add bytes. Raises DecodeError in FAILFAST; the events before it can still be taken."""
        if self._buffer.lost is not None:
            self._lose(bytes(data))
            return
        self._take(self._buffer.feed(data))

    def events(self) -> list[Event]:
        """Take the events of all messages that are complete, each once."""
        taken, self._events = self._events, []
        return taken

    def close(self) -> None:
        """Say that no bytes follow. What is left of a message is treated as bad input; then take the last events."""
        self._take(self._buffer.close())

    def _take(self, messages: list[bytes]) -> None:
        unframed = messages.pop() if messages and self._buffer.is_unframed else b""
        self._decode(messages)
        self._lose(unframed, self._buffer.lost)

    def _lose(self, data: bytes, error: DecodeError | None = None) -> None:
        if data:
            start, self._stream_offset = self._stream_offset, self._stream_offset + len(data)
            index, self._messages = self._messages, self._messages + 1
            self._events += (located.event for located in self._source.lost(data, index, start, error))

    def _decode(self, messages: list[bytes]) -> None:
        first, self._messages = self._messages, self._messages + len(messages)
        starts = [self._stream_offset]
        for message in messages:
            starts.append(starts[-1] + len(message) + self._separator_bytes)
        self._stream_offset = starts[-1]
        try:
            self._events += (located.event for located in self._source.events(messages, first))
        except DecodeError as error:
            if error.message is not None and error.message_offset is not None:
                error.add(stream_offset=starts[error.message - first] + error.message_offset)
            raise
