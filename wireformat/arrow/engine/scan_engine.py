"""The fast engine: compiled scan and gather; the declaration reads what the scan gives back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import pyarrow as pa

from ...errors import DecodeError
from ...formats.base import Format
from ...formats.pgoutput.relations import Relations
from ...limits import BATCH_TEXT_BYTES
from ...options import ReadOptions
from ...stream.reader import Located
from ..columns.events_from_notes import located_events
from ..columns.gather import record_batch
from ..columns.row_limits import TooMuchText, in_ranges
from ..columns.rows_from_events import build, row_count
from ..scan.message_batches import is_live, one_by_one
from ..scan.notes import ScannedRows
from .parallel import map_in_order
from .scanner import Scanner, Walk
from .splice import joined, spliced

SCANNED_ALONE_BYTES = 128
"""A message of a live source that is no longer than this is read by its declaration: a scan of one message takes as
long as the declaration takes for so many bytes."""


class ScanEngine:
    """Compiled scan and gather; the declaration reads what the scan gives back.

    threads     how many of them make record batches
    """

    def __init__(self, format: Format, options: ReadOptions, threads: int) -> None:
        self._scanner = Scanner(format, options)
        self._factor = options.heartbeat_factor
        self._threads = threads

    def set_relations(self, relations: Relations) -> None:
        """See Engine.set_relations."""
        self._scanner.reader.set_relations(relations)

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

        for walk, (batches, count, gathered) in map_in_order(scanner.walks(messages, first), good_rows, self._threads):
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
        built, second = next(building), next(building, None)
        if second is not None:
            if scanned.row_count > 1:
                raise TooMuchText
            return chain([built, second], building)
        parts: list[tuple[pa.RecordBatch, int, int]] = []
        begin = done = 0
        for row in sorted(scanned.events):
            count = row_count(scanned.events[row])
            parts += [(batch, begin, row), (built, done, done + count)]
            begin, done = row + 1, done + count
        parts.append((batch, begin, scanned.row_count))
        return spliced(joined([part for part in parts if part[1] < part[2]]), batch, built)
