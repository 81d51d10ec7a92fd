"""Reads messages by the declaration of their format, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import DecodeError, LimitExceeded
from ..events import Corrupt, Event, Insert, Relation, RowChange, Truncate, TupleData
from ..formats.base import Format
from ..formats.pgoutput.relations import Relations
from ..framing.frames import Frame
from ..limits import MESSAGE_BYTES
from ..options import ReadOptions


class Located(NamedTuple):
    """An event and its position: the index of its message in the input, and of its record in the message."""

    message: int
    record: int
    event: Event


BEFORE_ALL = -1
"""In place of the index of a message: before the first one."""


class MessageReader:
    """Reads one message at a time. The mode determines what happens with bad input.

    format    reads the records; it keeps the relations of earlier messages if later ones depend on them
    needed    options whose `tables` are those whose rows are needed: a row of another table that cannot be
              read is yielded as an INSERT without columns
    dropped   how many CORRUPT records DROPMALFORMED has dropped
    """

    def __init__(self, format: Format, options: ReadOptions, needed: ReadOptions | None = None) -> None:
        self.format = format.fresh()
        self._options = options
        self._needed = needed
        self.dropped = 0

    def set_relations(self, relations: Relations) -> None:
        """Continues with these relations; formats without relations ignore them."""
        self.format = self.format.fresh(relations)

    def read(self, message: bytes, index: int, first: int = 0, framed: tuple[int, int] = (0, 0)) -> Iterator[Located]:
        """Yields the events of one message that the options select; raises DecodeError in FAILFAST.

        first    index of the first record to read
        framed   where the framing of a record begins up to which it is good, and the index of that record
        """
        if len(message) > MESSAGE_BYTES:
            raise LimitExceeded(f"limits.MESSAGE_BYTES is {MESSAGE_BYTES}, message {index} has {len(message)} bytes")
        frames = self.format.frames(message, *framed)
        record = framed[1]
        while True:
            try:
                frame = next(frames)
            except StopIteration:
                return
            except DecodeError as error:
                error.add(record=record)
                yield from self._corrupt(error, message[error.message_offset :], index)
                return
            record = frame.record + 1
            if frame.record >= first:
                yield from self.read_frame(message, frame, index)

    def read_frame(self, message: bytes, frame: Frame, index: int) -> Iterator[Located]:
        """Yields the event of one frame, if the options select it; raises DecodeError in FAILFAST."""
        event = self.event(message, frame, index)
        if event is not None:
            yield Located(index, frame.record, event)

    def event(self, message: bytes, frame: Frame, index: int) -> Event | None:
        """The event of one frame, or None if the options do not select it; raises DecodeError in FAILFAST."""
        try:
            event = self.format.read(message, frame, self._options)
        except DecodeError as error:
            if error.names is not None and not self._options.keeps_table(error.names):
                return None  # filtered out: scans step over the row, too, and do not read its cells
            if error.names is not None and self._needed is not None and not self._needed.keeps_table(error.names):
                schema, table = error.names
                return Insert(lsn=frame.lsn, table_schema=schema, table_name=table, new=TupleData())
            raw = message[frame.start : frame.stop]
            return self._corrupt_event(error, frame.lsn, raw, index, record=frame.record, record_lsn=frame.lsn)
        return selected(event, self._options)

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """Yields a CORRUPT event for bytes in which no message can be found; raises DecodeError in FAILFAST.

        error   the reason; None if the framing broke before these bytes
        """
        reason = error or DecodeError("a message", "bytes after broken framing")
        return self._corrupt(reason.add(stream_offset=stream_offset), data, index)

    def _corrupt(self, error: DecodeError, raw: bytes, index: int) -> Iterator[Located]:
        event = self._corrupt_event(error, None, raw, index)
        if event is not None:
            yield Located(index, error.record or 0, event)

    def _corrupt_event(
        self, error: DecodeError, lsn: int | None, raw: bytes, index: int, **where: int | None
    ) -> Corrupt | None:
        error.add(format=self.format.name, message=index, **where)
        if self._options.mode == "FAILFAST":
            raise error
        if self._options.mode == "DROPMALFORMED":
            self.dropped += 1
            return None
        return Corrupt(lsn=lsn, error=str(error), raw=raw)


def selected(event: Event, options: ReadOptions) -> Event | None:
    """Returns what the filters keep of an event: all, nothing, or some of a TRUNCATE's tables."""
    if isinstance(event, Truncate) and event.tables:
        kept = [index for index, table in enumerate(event.tables) if options.keeps(event.kind, table)]
        return event.of_tables(kept) if kept else None
    table = (event.table_schema, event.table_name) if isinstance(event, (RowChange, Relation)) else None
    return event if options.keeps(event.kind, table) else None
