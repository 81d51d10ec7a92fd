"""The reference engine: reads messages by the declaration of their format, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import DecodeError, LimitExceeded
from ..events import Corrupt, Event
from ..formats.base import Format
from ..formats.pgoutput.relations import Relations
from ..framing.frames import Frame
from ..limits import MESSAGE_BYTES
from ..options import ReadOptions


class Located(NamedTuple):
    """An event and its position: index of the message in the input, index of the record in the message."""

    message: int
    record: int
    event: Event


class Reader:
    """Reads one message at a time; bad input is treated as the mode says.

    format      reads the records; where messages depend on earlier ones, it has learned from those read so far
    dropped     how many CORRUPT records DROPMALFORMED has left out
    """

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self.format = format.fresh()
        self._options = options
        self.dropped = 0

    def set_relations(self, relations: Relations) -> None:
        """Continue with these relations; formats without relations ignore them."""
        self.format = self.format.fresh(relations)

    def read(self, message: bytes, index: int, first: int = 0) -> Iterator[Located]:
        """The events of one message that the options ask for; raises DecodeError in FAILFAST.

        first   records before this one are stepped over
        """
        if len(message) > MESSAGE_BYTES:
            raise LimitExceeded(f"limits.MESSAGE_BYTES is {MESSAGE_BYTES}, message {index} has {len(message)} bytes")
        frames = self.format.frames(message)
        record = 0
        while True:
            try:
                frame = next(frames)
            except StopIteration:
                return
            except DecodeError as error:
                error.add(record=record)
                yield from self._corrupt(error, None, message[error.message_offset :], index)
                return
            record = frame.record + 1
            if frame.record >= first:
                yield from self.read_frame(message, frame, index)

    def read_frame(self, message: bytes, frame: Frame, index: int) -> Iterator[Located]:
        """The event of one frame, or nothing where the options leave it out; raises DecodeError in FAILFAST."""
        try:
            event = self.format.read(message, frame, self._options)
        except DecodeError as error:
            error.add(record=frame.record, record_lsn=frame.lsn)
            yield from self._corrupt(error, frame.lsn, message[frame.start : frame.stop], index)
            return
        selected = self._options.select(event)
        if selected is not None:
            yield Located(index, frame.record, selected)

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """Bytes of a stream in which no message can be found; raises DecodeError in FAILFAST.

        error   why; else that the framing broke before them
        """
        found = error or DecodeError("a message", "bytes after broken framing")
        return self._corrupt(found.add(stream_offset=stream_offset), None, data, index)

    def _corrupt(self, error: DecodeError, lsn: int | None, raw: bytes, index: int) -> Iterator[Located]:
        error.add(format=self.format.name, message=index)
        if self._options.mode == "FAILFAST":
            raise error
        if self._options.mode == "DROPMALFORMED":
            self.dropped += 1
            return
        record = error.record or 0
        yield Located(index, record, Corrupt(lsn=lsn, error=str(error), raw=raw))
