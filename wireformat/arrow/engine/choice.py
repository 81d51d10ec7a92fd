"""The two engines behind one interface, and the one place that chooses between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from ...errors import DecodeError
from ...formats.base import Format
from ...formats.pgoutput.relations import Relations
from ...grammar.tuple_text import CHANGES
from ...limits import BATCH_TEXT_BYTES
from ...options import ReadOptions
from ...options.checks import one_of
from ...stream.reader import Located, Reader
from ..columns.events_from_notes import located_events
from ..columns.gather import record_batch
from ..columns.row_limits import TooMuchText, in_ranges
from ..columns.rows_from_events import build, row_count
from ..scan.message_batches import is_live, message_batches, one_by_one
from ..scan.notes import ScannedRows
from ..scan.registry import SCANS
from .order_check import OrderChecked
from .parallel import ahead, checked_threads
from .scanner import Scanner, Walk

SCANNED_ALONE_BYTES = 128
"""A message of a live source that is no longer than this is read by its declaration: a scan of one message takes as
long as the declaration takes for so many bytes."""

FEW_PARTS, MOST_PARTS = 8, 100
"""Up to how many parts rows stay where they are, and up to how many it is faster to copy parts than to gather rows."""


class Engine(Protocol):
    """Turns messages into events or record batches; both keep their state from call to call."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """The events of all messages; raises DecodeError in FAILFAST, after the events before it.

        Of messages whose number is not known, as in a generator, the events come before the next one is asked for.
        """

    def know(self, relations: Relations) -> None:
        """Go on as if this had been said about relations; formats without relations do not care."""

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """What to say of bytes of a stream in which no message can be found; raises DecodeError in FAILFAST."""

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows of all messages, some megabytes at a time; raises as `events`."""


class ScanEngine:
    """Compiled scan and gather; the declaration reads what the scan gives back.

    threads     how many of them make record batches
    """

    def __init__(self, format: Format, options: ReadOptions, threads: int) -> None:
        self._scanner = Scanner(format, options)
        self._factor = options.heartbeat_factor
        self._threads = threads

    def know(self, relations: Relations) -> None:
        """See Engine.know."""
        self._scanner.reader.know(relations)

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._scanner.reader.dropped

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """See Engine.events."""
        if not is_live(messages):
            yield from self._scanned_events(messages, first)
            return
        for index, message in one_by_one(messages, first):
            if len(message) <= SCANNED_ALONE_BYTES:
                yield from self._scanner.reader.read(message, index)
            else:
                yield from self._scanned_events([message], index)

    def _scanned_events(self, messages: Any, first: int) -> Iterator[Located]:
        for scanned in self._scanner.scan(messages, first):
            yield from located_events(scanned)

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """See Engine.lost."""
        return self._scanner.reader.lost(data, index, stream_offset, error)

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        scanner = self._scanner

        def good_rows(walk: Walk) -> tuple[list[pa.RecordBatch], int, pa.RecordBatch | None]:
            """Batches up to the first step in which a row is given back, how many rows that has, and their batch.

            There is a batch of them if their notes stay as they are; it is empty where a row was given back. Steps
            whose texts are many are left, so that few batches of them are held at once.
            """
            batches: list[pa.RecordBatch] = []
            held = 0
            while not walk.ended and held < BATCH_TEXT_BYTES:
                count = walk.step()
                if not count:
                    continue
                batch = None
                if walk.notes_stay(count):
                    with suppress(TooMuchText):
                        batch = record_batch(walk.notes(count), schema)
                if batch is None or not walk.all_good(count):
                    return batches, count, batch
                batches.append(batch)
                held += batch.nbytes
            if walk.ended:
                walk.close()
            return batches, 0, None

        for walk, (batches, count, gathered) in ahead(scanner.walks(messages, first), good_rows, self._threads):
            yield from batches
            try:  # in this thread: what rows mean that are given back may depend on those before them
                if count:
                    for scanned in scanner.settled(walk, count):
                        yield from self._merged(scanned, schema, gathered)
                        gathered = None
                for scanned in scanner.rest(walk):
                    yield from self._merged(scanned, schema, None)
            finally:
                walk.close()

    def _merged(
        self, scanned: ScannedRows, schema: pa.Schema, gathered: pa.RecordBatch | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, those that the scan gave back replaced by what the declaration made of them.

        gathered    the batch of all rows, if there is one already
        """
        if gathered is not None and not scanned.events and gathered.num_rows == scanned.row_count:
            yield gathered
            return
        for batches in in_ranges(
            scanned, lambda part: self._replaced(part, schema, gathered if part is scanned else None)
        ):
            yield from batches

    def _replaced(
        self, scanned: ScannedRows, schema: pa.Schema, gathered: pa.RecordBatch | None
    ) -> Iterable[pa.RecordBatch]:
        """See `_merged`; raises TooMuchText where the rows should be split."""
        batch = record_batch(scanned, schema) if gathered is None else gathered
        if not scanned.events and batch.num_rows == scanned.row_count:
            return [batch]
        read = [item for row in sorted(scanned.events) for item in scanned.events[row]]
        building = build(read, schema, self._factor)
        built, more = next(building), next(building, None)
        if more is not None:
            if scanned.row_count > 1:
                raise TooMuchText
            return chain([built, more], building)
        parts: list[tuple[pa.RecordBatch, int, int]] = []
        begin = done = 0
        for row in sorted(scanned.events):
            more = row_count(scanned.events[row])
            parts += [(batch, begin, row), (built, done, done + more)]
            begin, done = row + 1, done + more
        parts.append((batch, begin, scanned.row_count))
        return _spliced(_joined([part for part in parts if part[1] < part[2]]), batch, built)


RowRange = tuple[pa.RecordBatch, int, int]
"""Rows of a batch, from, to."""


def _joined(parts: list[RowRange]) -> list[RowRange]:
    """The same parts, those that follow each other in one batch as one."""
    joined: list[RowRange] = []
    for source, start, stop in parts:
        if joined and joined[-1][0] is source and joined[-1][2] == start:
            joined[-1] = (source, joined[-1][1], stop)
        else:
            joined.append((source, start, stop))
    return joined


def _spliced(parts: list[RowRange], batch: pa.RecordBatch, built: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Parts of two batches in their order: few as they are, others in one batch."""
    if len(parts) <= FEW_PARTS:
        yield from (source.slice(start, stop - start) for source, start, stop in parts)
        return
    schema = batch.schema
    if len(parts) <= MOST_PARTS:
        pieces = [source.slice(start, stop - start) for source, start, stop in parts]
        columns = [pa.concat_arrays([piece.column(place) for piece in pieces]) for place in range(len(schema))]
    else:
        shift = batch.num_rows
        order = [place + (shift if source is built else 0) for source, *rows in parts for place in range(*rows)]
        indices = pa.array(order, pa.int64())
        whole = [pa.concat_arrays([batch.column(place), built.column(place)]) for place in range(len(schema))]
        columns = [column.take(indices) for column in whole]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


class DeclarationEngine:
    """The construct declaration alone: slow, plain, and what the scan is tested against."""

    def __init__(self, format: Format, options: ReadOptions, threads: int) -> None:
        self._reader = Reader(format, options)
        self._factor = options.heartbeat_factor

    def know(self, relations: Relations) -> None:
        """See Engine.know."""
        self._reader.know(relations)

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._reader.dropped

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """See Engine.events."""
        all_messages = (pair for chunk in message_batches(messages, first) for pair in chunk.messages())
        for index, message in one_by_one(messages, first) if is_live(messages) else all_messages:
            yield from self._reader.read(message, index)

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """See Engine.lost."""
        return self._reader.lost(data, index, stream_offset, error)

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        for chunk in message_batches(messages, first):
            located: list[Located] = []
            error: DecodeError | None = None
            try:
                for index, message in chunk.messages():
                    located.extend(self._reader.read(message, index))
            except DecodeError as found:
                error = found
            yield from build(located, schema, self._factor)
            if error is not None:
                raise error


ENGINES: dict[str, type[ScanEngine] | type[DeclarationEngine]] = {"scan": ScanEngine, "declaration": DeclarationEngine}


_MARKS = tuple(mark.decode() for mark in CHANGES)


def make_engine(format: Format, options: ReadOptions, name: str = "scan", threads: int | None = 1) -> Engine:
    """The engine of this name: scan, unless somebody wants to compare. Raises OptionError.

    threads     how many of them the scan may use to make record batches; None: as many as Arrow

    A format without a scan is read by its declaration, whatever the name; so is gaussdb-text where a known table is
    named like a mark, since the scan takes the first mark for one.
    """
    one_of("engine", name, tuple(ENGINES))
    odd = any(mark in f" {table} " for names in options.known_tables for table in names for mark in _MARKS)
    engine = ENGINES["declaration" if odd or format.name not in SCANS else name]
    count = checked_threads(threads)
    if not (options.strict or options.exclude_users or options.skip_empty_xacts):
        return engine(format, options, count)
    from .transaction_filter import FilteredTransactions  # loads pyarrow.compute

    whole = engine(format, options.all_kinds(), count)
    return FilteredTransactions(OrderChecked(whole, format.name) if options.strict else whole, options)
