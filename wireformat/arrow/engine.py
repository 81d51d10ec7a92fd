"""The two engines behind one interface, and the one place that chooses between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from ..errors import DecodeError, OptionError
from ..formats.base import Format
from ..formats.relations import Relations
from ..grammar.tuple_text import CHANGES
from ..options import ReadOptions
from ..options.table import nearest
from ..stream.reader import Located, Reader
from .builder import build, row_count
from .event_rows import located_events
from .gather import record_batch
from .messages import chunks
from .ordered import Ordered
from .scanner import Scanned, Scanner
from .scans import SCANS

MOST_PARTS = 100
"""Up to so many parts it is faster to copy them one by one than to gather all rows."""


class Engine(Protocol):
    """Turns messages into events or record batches; both keep their state from call to call."""

    @property
    def dropped(self) -> int:
        """How many records DROPMALFORMED has left out."""

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """The events of all messages; raises DecodeError in FAILFAST, after the events before it."""

    def know(self, relations: Relations) -> None:
        """Go on as if this had been said about relations; formats without relations do not care."""

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """What to say of bytes of a stream in which no message can be found; raises DecodeError in FAILFAST."""

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows of all messages, some megabytes at a time; raises as `events`."""


class ScanEngine:
    """Compiled scan and gather; the declaration reads what the scan gives back."""

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self._scanner = Scanner(format, options)
        self._factor = options.heartbeat_factor

    def know(self, relations: Relations) -> None:
        """See Engine.know."""
        self._scanner.reader.know(relations)

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._scanner.reader.dropped

    def events(self, messages: Any, first: int = 0) -> Iterator[Located]:
        """See Engine.events."""
        for scanned in self._scanner.scan(messages, first):
            yield from located_events(scanned)

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """See Engine.lost."""
        return self._scanner.reader.lost(data, index, stream_offset, error)

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        for scanned in self._scanner.scan(messages, first):
            batch = record_batch(scanned, schema, self._factor)
            yield self._merged(batch, scanned, schema) if scanned.events else batch

    def _merged(self, batch: pa.RecordBatch, scanned: Scanned, schema: pa.Schema) -> pa.RecordBatch:
        """The batch with the rows that the scan gave back replaced by what the declaration made of them."""
        read = [item for row in sorted(scanned.events) for item in scanned.events[row]]
        built = build(read, schema, self._factor)
        parts: list[tuple[pa.RecordBatch, int, int]] = []
        begin = done = 0
        for row in sorted(scanned.events):
            more = row_count(scanned.events[row])
            parts += [(batch, begin, row), (built, done, done + more)]
            begin, done = row + 1, done + more
        parts.append((batch, begin, scanned.row_count))
        return _spliced([part for part in parts if part[1] < part[2]], batch, built)


def _spliced(
    parts: list[tuple[pa.RecordBatch, int, int]], batch: pa.RecordBatch, built: pa.RecordBatch
) -> pa.RecordBatch:
    """One batch of parts (batch, start, stop) of two batches, in their order."""
    schema = batch.schema
    if len(parts) <= MOST_PARTS:
        pieces = [source.slice(start, stop - start) for source, start, stop in parts] or [batch.slice(0, 0)]
        columns = [pa.concat_arrays([piece.column(place) for piece in pieces]) for place in range(len(schema))]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    shift = batch.num_rows
    order = [place + (shift if source is built else 0) for source, *rows in parts for place in range(*rows)]
    indices = pa.array(order, pa.int64())
    whole = [pa.concat_arrays([batch.column(place), built.column(place)]) for place in range(len(schema))]
    return pa.RecordBatch.from_arrays([column.take(indices) for column in whole], schema=schema)


class DeclarationEngine:
    """The construct declaration alone: slow, plain, and what the scan is tested against."""

    def __init__(self, format: Format, options: ReadOptions) -> None:
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
        for chunk in chunks(messages, first):
            for place, index in enumerate(chunk.indexes.tolist()):
                yield from self._reader.read(chunk.message(place), index)

    def lost(self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None) -> Iterator[Located]:
        """See Engine.lost."""
        return self._reader.lost(data, index, stream_offset, error)

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        for chunk in chunks(messages, first):
            located: list[Located] = []
            error: DecodeError | None = None
            try:
                for place, index in enumerate(chunk.indexes.tolist()):
                    located.extend(self._reader.read(chunk.message(place), index))
            except DecodeError as found:
                error = found
            yield build(located, schema, self._factor)
            if error is not None:
                raise error


ENGINES: dict[str, type[ScanEngine] | type[DeclarationEngine]] = {"scan": ScanEngine, "declaration": DeclarationEngine}


_MARKS = tuple(mark.decode() for mark in CHANGES)


def make_engine(format: Format, options: ReadOptions, name: str = "scan") -> Engine:
    """The engine of this name: scan, unless somebody wants to compare. Raises OptionError.

    A format without a scan is read by its declaration, whatever the name; so is gaussdb-text where a known table is
    named like a mark, since the scan takes the first mark for one.
    """
    if name not in ENGINES:
        raise OptionError(f"option engine: expected {', '.join(ENGINES)}; got {name!r}{nearest(name, ENGINES)}")
    odd = any(mark in f" {table} " for names in options.known_tables for table in names for mark in _MARKS)
    engine = ENGINES["declaration" if odd or format.name not in SCANS else name]
    if not (options.strict or options.exclude_users or options.skip_empty_xacts):
        return engine(format, options)
    from .whole_transactions import WholeTransactions  # loads pyarrow.compute

    whole = engine(format, options.all_kinds())
    return WholeTransactions(Ordered(whole, format.name) if options.strict else whole, options)
