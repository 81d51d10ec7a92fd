"""The interface of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from ...errors import DecodeError
from ...formats.pgoutput.relations import Relations
from ...stream.reader import Located
from ...stream.records_before import RecordsBefore


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
