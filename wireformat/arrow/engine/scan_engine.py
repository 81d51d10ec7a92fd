"""The fast engine: the compiled scan and the gather. The declaration reads the records that the scan cannot read.

The rows of both are joined in their order. Threads run ahead: compiled functions do not hold Python's global lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice, starmap
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ...errors import DecodeError
from ...formats.base import Format
from ...formats.pgoutput.relations import Relations
from ...limits import BATCH_TEXT_BYTES, TABLE_PARTS
from ...options import ReadOptions
from ...options.checks import number
from ...stream.reader import Located
from ...stream.records_before import NOTHING_BEFORE, RecordsBefore
from ..arrays import Array
from ..columns.events_from_notes import located_events
from ..columns.gather import record_batch, with_corrupt
from ..columns.row_limits import TooMuchText, in_ranges
from ..columns.rows_from_events import build
from ..scan.message_batches import BatchSizes, is_live, one_by_one
from ..scan.notes import ScannedRows
from .scanner import BatchScan, Scanner

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_KEPT = 4
"""Message batches are large while record batches have less than a quarter of the bytes that are read."""

SCANNED_ALONE_BYTES = 128
"""A message of a live source that is no longer than this is read by its declaration. To scan a single message takes as
long as to read this many bytes by the declaration."""


class ScanEngine:
    """The compiled scan and the gather. The declaration reads the records that the scan cannot read.

    threads   how many threads make record batches
    needed    options whose `tables` are those whose rows are needed: `scanned` steps over others, and counts them
    """

    def __init__(self, format: Format, options: ReadOptions, threads: int, needed: ReadOptions | None = None) -> None:
        self._scanner = Scanner(format, options, needed)
        self._factor = options.heartbeat_factor
        self._threads = threads
        self._is_filtered = options.tables is not None
        self._sizes = BatchSizes(TABLE_PARTS, threads, are_large=self._is_filtered)
        self._sizes_of_notes = BatchSizes(1, threads, are_large=needed is not None)

    def set_relations(self, relations: Relations) -> None:
        """See Engine.set_relations."""
        self._scanner.reader.set_relations(relations)

    @property
    def dropped(self) -> int:
        """See Engine.dropped."""
        return self._scanner.reader.dropped

    @property
    def before_next(self) -> RecordsBefore:
        """See Engine.before_next."""
        return NOTHING_BEFORE

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

    def unframed(
        self, data: bytes, index: int, stream_offset: int, error: DecodeError | None = None
    ) -> Iterator[Located]:
        """See Engine.unframed."""
        return self._scanner.reader.unframed(data, index, stream_offset, error)

    def batches(self, messages: Any, schema: pa.Schema, first: int = 0) -> Iterator[pa.RecordBatch]:
        """See Engine.batches."""
        scanner, sizes = self._scanner, self._sizes

        def good_batches(batch_scan: BatchScan) -> tuple[list[pa.RecordBatch], int, pa.RecordBatch | None]:
            """Returns the batches of all steps before the first one with an unfinished row, and about that step: how
            many rows it has, and their batch.

            That batch is None if the second look will change the notes of the step. If the batches have become large,
            the steps that remain are left for later, so that few large batches are in memory at once.
            """
            batches: list[pa.RecordBatch] = []
            batch_bytes, read_bytes = 0, len(batch_scan.message_batch.buffer)
            # A large batch was expected to keep few rows. If it keeps many, the rest is left for later.
            most_bytes = BATCH_TEXT_BYTES if read_bytes <= sizes.usual else read_bytes
            while not batch_scan.ended and batch_bytes < most_bytes:
                count = batch_scan.step()
                if not count:
                    continue
                batch = None
                if not batch_scan.needs_other_texts(count):
                    with suppress(TooMuchText):
                        batch = record_batch(batch_scan.scanned_rows(count), schema)
                if batch is None or batch_scan.needs_second_look(count):
                    sizes.are_large = False  # this thread does not read the rest of the message batch
                    return batches, count, batch
                batches.append(batch)
                batch_bytes += batch.nbytes
            sizes.are_large = self._is_filtered and MOST_KEPT * batch_bytes < read_bytes
            if batch_scan.ended:
                batch_scan.close()
            return batches, 0, None

        def all_batches(
            batch_scan: BatchScan, good: tuple[list[pa.RecordBatch], int, pa.RecordBatch | None]
        ) -> Iterator[pa.RecordBatch]:
            """Yields the batches of a scan, each of which is let go."""
            batches, count, gathered = good
            del good
            batches.reverse()
            while batches:
                yield batches.pop()
            try:  # in this thread, since the meaning of unfinished records may depend on the records before them
                if count:
                    for scanned in scanner.finished_rows(batch_scan, count):
                        yield from self._batches_of(scanned, schema, gathered)
                        gathered = None
                for scanned in scanner.remaining_rows(batch_scan):
                    yield from self._batches_of(scanned, schema, None)
            finally:
                batch_scan.close()

        batch_scans = scanner.batch_scans(messages, first, sizes=sizes)
        found = map_in_order(batch_scans, good_batches, self._threads)
        yield from chain.from_iterable(starmap(all_batches, found))  # which keeps none while it waits for the next one

    def scanned(self, messages: Any, first: int = 0) -> Iterator[ScannedRows]:
        """Yields the notes on all messages. They are valid until the next ones are requested.

        Raises the errors of `events`. The first notes of each message batch are made in threads.
        """
        for batch_scan, count in map_in_order(
            self._scanner.batch_scans(messages, first, counts=True, sizes=self._sizes_of_notes),
            BatchScan.step,
            self._threads,
        ):
            try:
                yield from self._scanner.finished_rows(batch_scan, count)
                yield from self._scanner.remaining_rows(batch_scan)
            finally:
                batch_scan.close()

    def _batches_of(
        self, scanned: ScannedRows, schema: pa.Schema, gathered: pa.RecordBatch | None
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows, with those that the declaration read in place of those that the scan could not read.

        gathered   the batch of all rows, if it has been made already
        """
        for batches in in_ranges(
            scanned, lambda rows: self._with_events(rows, schema, gathered if rows is scanned else None)
        ):
            yield from batches

    def _with_events(
        self, scanned: ScannedRows, schema: pa.Schema, gathered: pa.RecordBatch | None
    ) -> Iterable[pa.RecordBatch]:
        """See `_batches_of`; raises TooMuchText if the rows must be split."""
        if gathered is None:
            batch = record_batch(scanned, schema)
        else:
            batch = with_corrupt(gathered.slice(0, scanned.row_count), scanned)
        if not scanned.events and batch.num_rows == scanned.row_count:
            return [batch]
        events = scanned.events_in_order()
        if not events:
            return spliced(batch, None, scanned.origins())
        built_batches = build(events, schema, self._factor)
        built, second = next(built_batches), next(built_batches, None)
        if second is not None:
            if scanned.row_count > 1:
                raise TooMuchText
            return chain([built, second], built_batches)
        return spliced(batch, built, scanned.origins())


MOST_SLICES = 8
"""Up to this number of ranges, each range becomes a record batch of its own, and no row is copied."""

MOST_COPIED_RANGES = 100
"""Up to this number of ranges it is faster to copy whole ranges than to gather single rows."""


def spliced(scanned: pa.RecordBatch, built: pa.RecordBatch | None, origins: Array) -> Iterator[pa.RecordBatch]:
    """Yields rows of two batches: a few ranges as slices, more of them as one batch.

    scanned, built   the rows that the scan and the declaration read
    origins          int64[n]: for each row, its row in `scanned`, or ~ its row in `built`
    """
    batches = [scanned] if built is None else [scanned, built]
    signs = np.where(origins < 0, -1, 1)  # the rows of a range follow each other in the same batch
    is_first = np.diff(origins, prepend=0) != signs
    is_first[:1] = True
    is_first[1:] |= signs[1:] != signs[:-1]
    firsts = np.flatnonzero(is_first)
    if len(firsts) <= MOST_COPIED_RANGES:
        counts = np.diff(firsts, append=len(origins))
        slices = [
            (scanned if first >= 0 else batches[-1]).slice(max(first, ~first), count)
            for first, count in zip(origins[firsts].tolist(), counts.tolist(), strict=True)
        ]
        if len(slices) <= MOST_SLICES:
            yield from slices
            return
        yield pa.concat_batches(slices)
    else:
        order = np.where(origins < 0, scanned.num_rows + ~origins, origins)
        indices = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)])
        yield pa.concat_batches(batches).take(indices)


def checked_threads(threads: object) -> int:
    """Returns how many threads to use; None means as many as Arrow uses (`pyarrow.cpu_count`). Raises OptionError."""
    if threads is None:
        return int(pa.cpu_count())
    return number("threads", threads, 1)


def map_in_order(items: Iterator[Item], work: Callable[[Item], Result], threads: int) -> Iterator[tuple[Item, Result]]:
    """Yields each item with the result of its work, in order. No more than `threads` results are computed ahead. What
    was yielded is not kept.

    An error of `items` is raised after the results of the items before it.

    With a single item or a single thread, the work runs in the calling thread. The threads end soon after the iterator:
    they are not waited for, since the garbage collector may close the iterator in any thread, also in one that is being
    started, and Python's lock for the shutdown of thread pools is then held by the thread that starts it.
    """
    errors: list[Exception] = []
    items = _until_error(items, errors)

    def worked(item: Item) -> tuple[Item, Result]:
        return item, work(item)

    begun = deque(islice(items, 2))
    if threads == 1 or len(begun) < 2:
        yield from map(worked, chain(_taken(begun), items))
    else:
        yield from _in_threads(chain(_taken(begun), items), work, threads)
    if errors:
        raise errors[0]


def _taken(items: deque[Item]) -> Iterator[Item]:
    """Yields the items, which are taken out of the queue."""
    while items:
        yield items.popleft()


def _until_error(items: Iterator[Item], errors: list[Exception]) -> Iterator[Item]:
    """Yields the items, and keeps the error that ends them."""
    try:
        yield from items
    except Exception as error:
        errors.append(error)


def _in_threads(items: Iterator[Item], work: Callable[[Item], Result], threads: int) -> Iterator[tuple[Item, Result]]:
    """See `map_in_order`."""
    pool = ThreadPoolExecutor(threads)
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(work, item)))
            del item
            if len(waiting) > threads:
                yield _result(waiting)
        while waiting:
            yield _result(waiting)
    finally:
        for _, future in waiting:
            future.cancel()


def _result(waiting: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    """Takes the first item out of the queue, and returns it with its result."""
    item, future = waiting.popleft()
    return item, future.result()
