"""A decoder for a live stream of whole messages, or of bytes that are cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ..errors import DecodeError, OptionError, OrderError, counted
from ..events import Event
from ..formats.base import Format
from ..framing.buffer import MessageBuffer
from .reader import Located


class EventSource(Protocol):
    """The part of an engine that the decoder uses."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has dropped."""

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """Yields the events of messages. `first` is the index of the first message."""

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """Yields a CORRUPT event for bytes in which no message can be found; raises DecodeError in FAILFAST."""


class Decoder:
    """Turns a live stream into events, and keeps what later messages depend on.

    Pass whole messages of any format to `decode`. Pass bytes that are cut anywhere to `feed`, and read them with
    `events`; this works for formats in which the end of a message can be found. A decoder that was used in one way
    raises OptionError if it is used in the other.

    Once the framing of the bytes is broken, no later message can be found. FAILFAST raises; the other modes treat all
    bytes that follow as corrupt.
    """

    def __init__(self, format: Format, source: EventSource) -> None:
        self._source = source
        self._format = format
        self._buffer: MessageBuffer | None = None
        self._separator_bytes = len(format.separator)
        self._waiting: list[bytes] = []
        self._unframed: list[tuple[bytes, DecodeError | None]] = []
        self._events: list[Event] = []
        self._messages = 0
        self._stream_offset = 0

    def __repr__(self) -> str:
        return f"<wireformat.Decoder of {self._format.name}, {counted(self._messages, 'message', ',')} decoded>"

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has dropped."""
        return self._source.dropped

    def decode(self, message: Any) -> list[Event]:
        """Returns the events of one whole message, a bytes-like object; None has no events.

        Raises DecodeError (FAILFAST) and OrderError (strict); `events` then returns the events before the error. Raises
        TypeError, LimitExceeded, and OptionError after a call of `feed`.
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
        """Adds bytes to the stream.

        Raises DecodeError (FAILFAST) and OrderError (strict); `events` then returns the events before the error. What
        comes after the message with the error is read by the next call of `feed` or `close`. Raises OptionError for a
        format in which the end of a message cannot be found, and after a call of `decode`; TypeError, LimitExceeded.
        """
        try:
            memoryview(data)
        except TypeError:
            raise TypeError(f"data: expected a bytes-like object, got {type(data).__name__}") from None
        buffer = self._opened_buffer()
        if buffer.lost is None:
            self._add(buffer, buffer.feed(data))
        elif data:
            self._unframed.append((bytes(data), None))
        self._read()

    def events(self) -> list[Event]:
        """Returns the events that were read since the last call."""
        taken, self._events = self._events, []
        return taken

    def close(self) -> None:
        """Ends the stream: an incomplete message is bad input. Call `events` afterwards for the last events.

        Raises as `feed`; a further call then reads what comes after the error.
        """
        if self._buffer is not None:
            self._add(self._buffer, self._buffer.close())
            self._read()

    def _opened_buffer(self) -> MessageBuffer:
        if self._buffer is None:
            if self._messages:
                raise OptionError(
                    "Decoder.feed: expected a decoder that only takes bytes cut anywhere, got one that decodes whole "
                    "messages; use another Decoder"
                )
            self._format.find_end(b"", 0, 0)  # raises at once for a format in which no end can be found
            self._buffer = MessageBuffer(self._format.find_end, self._format.separator)
        return self._buffer

    def _add(self, buffer: MessageBuffer, messages: list[bytes]) -> None:
        self._waiting += messages
        if messages and buffer.is_unframed:
            self._unframed.append((self._waiting.pop(), buffer.lost))

    def _read(self) -> None:
        """Reads what waits, up to an error: what comes after it in a piece is read with the next one."""
        self._decode()
        while self._unframed:
            data, error = self._unframed.pop(0)
            start, self._stream_offset = self._stream_offset, self._stream_offset + len(data)
            index, self._messages = self._messages, self._messages + 1
            self._events += (located.event for located in self._source.unframed(data, index, start, error))

    def _decode(self) -> None:
        messages, self._waiting = self._waiting, []
        first, starts = self._messages, [self._stream_offset]
        for message in messages:
            starts.append(starts[-1] + len(message) + self._separator_bytes)
        done = len(messages)
        try:
            self._events += (located.event for located in self._source.events(messages, first))
        except (DecodeError, OrderError) as error:
            if error.message is not None:
                done = error.message - first + 1
                self._waiting = messages[done:]
                if isinstance(error, DecodeError) and error.message_offset is not None:
                    error.add(stream_offset=starts[done - 1] + error.message_offset)
            raise
        finally:
            self._messages, self._stream_offset = first + done, starts[done]
