"""The interface of an engine, and the engine that reads every record by the declaration of its format.

That one is slow and plain, the scan's reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from ...errors import DecodeError
from ...formats.base import Format
from ...formats.pgoutput.relations import Relations
from ...options import ReadOptions
from ...stream.reader import Located, MessageReader
from ...stream.records_before import NOTHING_BEFORE, RecordsBefore
from ..columns.rows_from_events import build
from ..scan.message_batches import is_live, message_batches, one_by_one


class Engine(Protocol):
    """Turns messages into events or record batches. Each of the two keeps its state from call to call."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has dropped."""

    @property
    def before_next(self) -> RecordsBefore:
        """What the rows so far mean for those of later messages."""

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """Yields the events of all messages; raises DecodeError in FAILFAST, after the events before the error.

        first   index of the first message

        If the number of messages is not known, as with a generator, the events of a message are yielded before the
        next message is requested.
        """

    def set_relations(self, relations: Relations) -> None:
        """Continues with these relations; formats without relations ignore them."""

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """Yields a CORRUPT event for bytes in which no message can be found; raises DecodeError in FAILFAST.

        error   the reason; None if the framing broke before these bytes
        """

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """Yields the rows of all messages, a few megabytes at a time; raises the errors of `events`."""


class DeclarationEngine:
    """Reads every record by its declaration. The scan engine is tested against it."""

    def __init__(self, format: Format, options: ReadOptions, threads: int, needed: ReadOptions | None = None) -> None:
        self._reader = MessageReader(format, options, needed)
        self._factor = options.heartbeat_factor

    def set_relations(self, relations: Relations) -> None:
        """See Engine.set_relations."""
        self._reader.set_relations(relations)

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._reader.dropped

    @property
    def before_next(self) -> RecordsBefore:
        """See Engine.before_next."""
        return NOTHING_BEFORE

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """See Engine.events."""
        all_messages = (pair for message_batch in message_batches(messages, first) for pair in message_batch.messages())
        for index, message in one_by_one(messages, first) if is_live(messages) else all_messages:
            yield from self._reader.read(message, index)

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """See Engine.unframed."""
        return self._reader.unframed(data, index, stream_offset, error)

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        for message_batch in message_batches(messages, first):
            located: list[Located] = []
            error: DecodeError | None = None
            try:
                for index, message in message_batch.messages():
                    located.extend(self._reader.read(message, index))
            except DecodeError as found:
                error = found
            yield from build(located, schema, self._factor)
            if error is not None:
                raise error
