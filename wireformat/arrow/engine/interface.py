"""What an engine is: messages to events or record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from ...errors import DecodeError
from ...formats.pgoutput.relations import Relations
from ...stream.reader import Located


class Engine(Protocol):
    """Turns messages into events or record batches; both keep their state from call to call."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """The events of all messages; raises DecodeError in FAILFAST, after the events before it.

        Of messages whose number is not known, as in a generator, the events come before the next one is asked for.
        """

    def set_relations(self, relations: Relations) -> None:
        """Continue with these relations; formats without relations ignore them."""

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """What to say of bytes of a stream in which no message can be found; raises DecodeError in FAILFAST."""

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows of all messages, some megabytes at a time; raises as `events`."""
