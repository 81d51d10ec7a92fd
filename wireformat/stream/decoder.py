"""A decoder for a live stream: whole messages one at a time, or bytes that come cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ..errors import DecodeError, OptionError
from ..events import Event
from ..formats.base import Format
from ..framing.buffer import MessageBuffer
from .reader import Located


class EventSource(Protocol):
    """What the decoder needs of an engine."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """The events of some messages, the first of which has this index."""

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """What to say of bytes in which no message can be found: this error, or that the framing broke before."""


class Decoder:
    """Turns a live stream into events, and remembers what later messages need.

    `decode` takes whole messages of any format; `feed`, `events` and `close` take bytes cut anywhere, of formats whose
    messages say where they end. One decoder does one or the other: an OptionError says so.

    Once the framing of fed bytes is broken, the end of no later message can be found: FAILFAST raises, the other modes
    take all bytes that follow as corrupt.
    """

    def __init__(self, format: Format, source: EventSource) -> None:
        self._source = source
        self._format = format
        self._buffer: MessageBuffer | None = None
        self._separator_bytes = len(format.separator)
        self._events: list[Event] = []
        self._messages = 0
        self._stream_offset = 0

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""
        return self._source.dropped

    def decode(self, message: Any) -> list[Event]:
        """The events of one whole message, a bytes-like object; None has no events.

        Raises DecodeError in FAILFAST and OrderError with strict; `events` then gives those before the error.
        """
        if self._buffer is not None:
            raise OptionError(
                "Decoder.decode: expected a decoder that only takes whole messages, got one that bytes were fed to; "
                "use another Decoder"
            )
        index, self._messages = self._messages, self._messages + 1
        self._events += (located.event for located in self._source.events(iter([message]), index))
        return self.events()

    def feed(self, data: bytes) -> None:
        """Add bytes.

        Raises DecodeError in FAILFAST and OrderError with strict; the events before it can still be taken. Raises
        OptionError for a format whose messages do not say where they end.
        """
        try:
            memoryview(data)
        except TypeError:
            raise TypeError(f"data: expected a bytes-like object, got {type(data).__name__}") from None
        buffer = self._own_buffer()
        if buffer.lost is not None:
            self._lose(bytes(data))
            return
        self._take(buffer, buffer.feed(data))

    def events(self) -> list[Event]:
        """Take the events that were read and not taken yet, each once."""
        taken, self._events = self._events, []
        return taken

    def close(self) -> None:
        """Say that no bytes follow. What is left of a message is treated as bad input; then take the last events."""
        if self._buffer is not None:
            self._take(self._buffer, self._buffer.close())

    def _own_buffer(self) -> MessageBuffer:
        if self._buffer is None:
            if self._messages:
                raise OptionError(
                    "Decoder.feed: expected a decoder that only takes bytes cut anywhere, got one that decodes whole "
                    "messages; use another Decoder"
                )
            self._format.find_end(b"", 0, 0)  # a format that cannot do it says so before anything is fed
            self._buffer = MessageBuffer(self._format.find_end, self._format.separator)
        return self._buffer

    def _take(self, buffer: MessageBuffer, messages: list[bytes]) -> None:
        unframed = messages.pop() if messages and buffer.is_unframed else b""
        self._decode(messages)
        self._lose(unframed, buffer.lost)

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
