"""Decodes sources with one engine: events or record batches, with messages counted through all sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ..arrow.columns.known_layouts import KnownLayouts
from ..arrow.columns.rows_from_events import build
from ..arrow.engine.choice import make_engine
from ..arrow.engine.scan_engine import ScanEngine
from ..arrow.noted.rows import NotedRows, noted_rows
from ..arrow.unread import HEADS, UNREAD, ReadSummary
from ..errors import DecodeError, add_hint
from ..formats.base import Format
from ..formats.guess import Guess, heads
from ..formats.pgoutput.relations import Relations
from ..options import ReadOptions
from ..stream.reader import Located
from ..stream.records_before import NOTHING_BEFORE, RecordsBefore
from .files import line_file_hint, text_file_hint
from .source import SourceMessages


class SourceDecoder:
    """Decodes the messages of sources in their order. A DecodeError names its source.

    messages    the number of messages so far, with those of `before`
    is_read     whether a record could be read
    steps_over  whether `rows` steps over row changes of other tables

    needed      options whose `tables` are those whose rows are needed: `rows` may step over others
    before      the records before the first message
    layouts     those that were read before, maybe by others; None for none
    """

    def __init__(
        self,
        format: Format,
        options: ReadOptions,
        *,
        engine: str = "scan",
        threads: int | None = None,
        needed: ReadOptions | None = None,
        before: RecordsBefore = NOTHING_BEFORE,
        layouts: KnownLayouts | None = None,
    ) -> None:
        self._options = options
        self._engine = make_engine(format, options, engine, threads, needed, before)
        self.steps_over = needed is not None and isinstance(self._engine, ScanEngine)
        self._separator_bytes = len(format.separator)
        self._format = format.name
        self.is_read = False
        self._heads: list[bytes] = []
        self.messages = 0 if before.held_rows is None else len(before.held_rows)
        self._layouts = layouts or KnownLayouts()

    @property
    def dropped(self) -> int:
        """The number of records that DROPMALFORMED has left out."""
        return self._engine.dropped

    def set_relations(self, relations: Relations) -> None:
        """See Engine.set_relations."""
        self._engine.set_relations(relations)

    def located(self, given: SourceMessages) -> Iterator[Located]:
        """Yields the events of some messages, with their positions."""
        with self._next(given) as first:
            for item in self._lost(given, first) if given.is_lost else self._engine.events(given.messages, first):
                yield item
                self.is_read = self.is_read or item.event.kind not in UNREAD

    def batches(self, given: SourceMessages, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of some messages, with the columns of the schema; `kind` must be one of them."""
        with self._next(given) as first:
            if given.is_lost:
                yield from build(self._lost(given, first), schema, self._options.heartbeat_factor)
            else:
                for batch in self._engine.batches(given.messages, schema, first):
                    yield batch
                    self.is_read = self.is_read or ReadSummary().and_of(batch).is_read

    def rows(self, given: SourceMessages, schema: pa.Schema) -> Iterator[pa.RecordBatch | NotedRows]:
        """Yields the rows of some messages as the scan noted them, or as `batches` does where no scan reads them.

        The notes are valid until the next rows are requested.
        """
        engine = self._engine
        if given.is_lost or not isinstance(engine, ScanEngine):
            yield from self.batches(given, schema)
            return
        with self._next(given) as first:
            for scanned in engine.scanned(given.messages, first):
                for rows in noted_rows(scanned, schema, self._options.heartbeat_factor, self._layouts):
                    yield rows
                    seen = ReadSummary()
                    seen = seen.and_of(rows) if isinstance(rows, pa.RecordBatch) else seen.and_of_source(rows)
                    self.is_read = self.is_read or seen.is_read

    @property
    def before_next(self) -> RecordsBefore:
        """See Engine.before_next."""
        return self._engine.before_next

    def held_rows(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that wait for later messages, at the end of a part of a stream, if those keep them."""
        from ..arrow.engine.transaction_filter import FilteredTransactions

        if isinstance(self._engine, FilteredTransactions):
            yield from self._engine.held_rows()

    def other_format(self) -> Guess | None:
        """Returns the format that the messages look like if none of them could be read and it is another format.

        Call it after the last message.
        """
        return ReadSummary(self.is_read, 0, self.messages, tuple(self._heads)).other_format(self._format)

    @contextmanager
    def _next(self, given: SourceMessages) -> Iterator[int]:
        """Counts the messages and yields the index of the first one. Adds the position in the source to errors."""
        first, self.messages = self.messages, self.messages + len(given.messages)
        try:
            yield first
            if not self.is_read and len(self._heads) < HEADS:
                self._heads += heads(given.messages)
        except DecodeError as error:
            part, index = given.part_of(-1 if error.message is None else error.message - first)
            error.add(source=part.source)
            if part.stream_offset == 0 and not (self.is_read or self._separator_bytes) and len(part.messages):
                hint = line_file_hint(part.messages[0], self._format) or text_file_hint(part.messages[0])
                if hint is not None:
                    add_hint(error, hint)
            if part.stream_offset is not None and index >= 0 and error.message_offset is not None:
                before = sum(len(one) + self._separator_bytes for one in part.messages[:index])
                error.add(stream_offset=part.stream_offset + before + error.message_offset)
            raise

    def _lost(self, given: SourceMessages, first: int) -> Iterator[Located]:
        offset = given.stream_offset or 0
        for index, raw in enumerate(given.messages, first):
            yield from self._engine.unframed(raw, index, offset, given.error)
            offset += len(raw)
