"""`Question`: what is asked about the messages of streams, and how their rows reach Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.chunks.saved import Settings
from wireformat.errors import counted

from ..chunks.groups import Group, GroupMessages, stream_key
from ..chunks.questions import Ask, limited
from ..workers import log_unknown_prepared

Stream = tuple[Any, ...]
"""The values of stream_by."""


@dataclass(frozen=True)
class Question:
    """A question about streams, pickled to the workers.

    options   of wf.Capture
    streams   the Arrow fields of stream_by
    order     the Arrow fields of order_by
    schema    of an answer
    """

    settings: Settings
    options: dict[str, Any]
    streams: tuple[pa.Field, ...]
    order: tuple[pa.Field, ...]
    ask: Ask
    schema: pa.Schema

    @property
    def keeps_state(self) -> bool:
        """Whether an answer depends on earlier messages."""
        settings = self.settings
        of_records = settings.strict or settings.skip_empty_xacts or settings.exclude_users
        return settings.question == "transactions" or settings.format == "pgoutput" or bool(of_records)

    @property
    def result(self) -> pa.Schema:
        """The schema of the rows for Spark: the columns stream_by, then an answer."""
        return pa.schema([*self.streams, *self.schema])

    def by_stream(self, batch: pa.RecordBatch) -> Iterator[tuple[Stream, pa.RecordBatch]]:
        """Yields the streams of a batch with the columns stream_by, order_by, message; each with the latter two."""
        names = [*[field.name for field in self.order], "message"]
        keys = batch.columns[: len(self.streams)]
        rows = pa.RecordBatch.from_arrays(batch.columns[len(keys) :], names=names)
        if not len(rows):
            return
        starts = np.zeros(len(rows), bool)
        starts[0] = True
        if keys:
            table = pa.table({str(index): key for index, key in enumerate(keys)})
            indices = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
            keys, rows = [key.take(indices) for key in keys], rows.take(indices)
        for key in keys:
            starts[1:] |= np.asarray(pc.not_equal(key[1:], key[:-1]))
        for start, stop in pairwise([*np.flatnonzero(starts).tolist(), len(rows)]):
            yield tuple(key[start].as_py() for key in keys), rows.slice(start, stop - start)

    def asked(self, stream: Stream, capture: Any, positions: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yields the answer about some messages; errors name the position of a message in place of its index."""
        group = Group(0, None, stream, self._messages(stream, positions))
        try:
            for rows in self.ask(capture, group):
                yield from limited(rows)
        except wf.WireformatError as error:
            raise group.messages.located(error) from None

    def name(self, stream: Stream, positions: pa.RecordBatch, message: int) -> str:
        """Returns what names a message in errors."""
        return self._messages(stream, positions).name(message)

    def _messages(self, stream: Stream, positions: pa.RecordBatch) -> GroupMessages:
        named = [(field.name, value) for field, value in zip(self.streams, stream, strict=True)]
        return GroupMessages.known(positions, named, self.settings.order_by)

    def columns(self, stream: Stream, rows: pa.RecordBatch) -> list[pa.Array]:
        """Returns the columns of rows of an answer for Spark."""
        own = (
            pa.repeat(pa.scalar(value, field.type), len(rows))
            for value, field in zip(stream, self.streams, strict=True)
        )
        return [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip([*own, *rows.columns], self.result, strict=True)
        ]

    def log(self, stream: Sequence[Any], unknown_prepared: Sequence[str], dropped: int) -> None:
        """Logs what a result has no column for."""
        log_unknown_prepared(unknown_prepared, f"stream {stream_key(stream)}")
        if dropped:
            logging.getLogger(__package__).warning(
                "stream %s: DROPMALFORMED left out %s", stream_key(stream), counted(dropped, "record")
            )
