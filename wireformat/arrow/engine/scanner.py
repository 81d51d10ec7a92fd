"""The fast engine's first half: runs the scan over message batches, and gives the declaration what the scan left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import DecodeError
from ...formats.base import Format
from ...framing.frames import Frame
from ...lsn import unsigned
from ...options import ReadOptions
from ...stream.reader import Located, Reader
from ..arrays import Array
from ..columns.complete_images import expand_complete_images
from ..columns.row_limits import rows_between
from ..scan.dictionary import DICTIONARY_TEXT
from ..scan.filters import make_filters
from ..scan.message_batches import MessageBatch, message_batches
from ..scan.notes import (
    BODY,
    CURSOR_FIELDS,
    GOOD,
    LSN,
    MESSAGE,
    NEEDS,
    NEXT_MESSAGE,
    PRESENT,
    READ_REST,
    RECORD,
    STATUS,
    TEXT_NEEDED,
    TEXT_USED,
    Notes,
    ScanInput,
    ScannedRows,
)
from ..scan.registry import load_scan
from ..scan.scratch import return_scratch, take_scratch
from .second_look import SecondLook


class Walk:
    """The scan of one message batch, as many rows at a time as the scratch holds; holds the scratch until it is closed.

    message_batch   the messages that it scans
    notes           of the rows that the last step noted; valid until the next step
    """

    def __init__(
        self, scan: Callable[..., int], message_batch: MessageBatch, known: ScanInput, filters: tuple[Array, Array]
    ) -> None:
        self._scan = scan
        self._known = known
        self._filters = filters
        self._cursor = np.zeros(CURSOR_FIELDS, np.int64)
        self._scratch: Notes | None = None
        self.message_batch = message_batch

    def step(self) -> int:
        """Scan on; how many rows were noted. None are when all is done, or when all rows were filtered out."""
        cursor, known = self._cursor, self._known
        text_begin = len(DICTIONARY_TEXT) + len(known.text)
        while not self.ended:
            self._scratch = scratch = take_scratch(
                self.message_batch, self._scratch, int(cursor[TEXT_NEEDED]), len(known.text)
            )
            scratch.text[len(DICTIONARY_TEXT) : text_begin] = np.frombuffer(known.text, np.uint8)
            cursor[TEXT_USED] = text_begin
            count = self._scan(*self.message_batch, cursor, *scratch, known.dictionary, known.settings, *self._filters)
            assert count >= 0, "a record took more scratch than text_needed or DETAILS_PER_ROW say"
            if count:  # else the next record needs more text than the scratch has
                return int(count)
        return 0

    @property
    def ended(self) -> bool:
        """Whether the last message has been scanned."""
        return bool(self._cursor[NEXT_MESSAGE] >= len(self.message_batch.starts))

    @property
    def scratch(self) -> Notes:
        """The notes of the last step."""
        if self._scratch is None:
            raise RuntimeError("the walk has not begun, or is closed")
        return self._scratch

    @property
    def dictionary(self) -> Array:
        """See ScanInput."""
        return self._known.dictionary

    @property
    def text_used(self) -> int:
        """Bytes of the scratch's text that the last step has used."""
        return int(self._cursor[TEXT_USED])

    def notes(self, count: int) -> ScannedRows:
        """The rows of the last step, whose notes must stay as they are."""
        return ScannedRows(
            self.scratch.rows,
            count,
            self.scratch.cells,
            self.scratch.text,
            self.message_batch.buffer,
            self.dictionary,
            {},
        )

    def all_good(self, count: int) -> bool:
        """Whether no row of the last step needs a second look."""
        return not self.scratch.rows[STATUS : NEEDS + 1, :count].any()

    def notes_stay(self, count: int) -> bool:
        """Whether a second look changes no note of the last step: it only reads records anew."""
        return not self.scratch.rows[NEEDS, :count].any()

    def close(self) -> None:
        """Return the scratch, for other walks."""
        if self._scratch is not None:
            return_scratch(self._scratch)
            self._scratch = None


class Scanner:
    """Scans messages, one message batch at a time.

    reader      reads what the scan gives back, and counts what it drops
    """

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self._options = options
        filters = make_filters(options)
        self._scan, self._preparation = load_scan(format.name, [options.encoding == "utf-8", filters.kinds], options)
        self._filters = (filters.patterns, filters.names)
        self.reader = Reader(format, options)

    def scan(self, messages: Any, first: int = 0) -> Iterator[ScannedRows]:
        """The rows of all messages, in order; what is yielded is valid until the next step.

        Raises DecodeError in FAILFAST, after the rows before it.
        """
        for walk in self.walks(messages, first):
            try:
                yield from self.rest(walk)
            finally:
                walk.close()

    def walks(self, messages: Any, first: int = 0) -> Iterator[Walk]:
        """A walk for each chunk. They can be done at the same time; what they give back is settled in their order."""
        find_input = self._preparation.begin(self.reader.format)
        for chunk in message_batches(messages, first):
            yield Walk(self._scan, chunk, find_input(chunk), self._filters)

    def rest(self, walk: Walk) -> Iterator[ScannedRows]:
        """The rows that a walk has not noted yet; see `scan`."""
        while not walk.ended:
            count = walk.step()
            if count:
                yield from self.settled(walk, count)

    def settled(self, walk: Walk, count: int) -> Iterator[ScannedRows]:
        """The rows of the walk's last step after a second look at those that need it; see `scan`."""
        begin = 0
        while begin < count:
            scanned, error = self._settled(walk, begin, count)
            yield rows_between(scanned, begin, scanned.row_count) if begin else scanned
            if error is not None:
                raise error
            begin = scanned.row_count

    def _settled(self, walk: Walk, begin: int, count: int) -> tuple[ScannedRows, DecodeError | None]:
        """Transcode the rows that ask for it, and read by declaration those that the scan gave back.

        begin   the first row that is looked at
        With an error come the rows before it, and the events before it in its own message. Rows end earlier too where
        their texts become many.
        """
        message_batch, (rows, cells, text) = walk.message_batch, walk.scratch
        events: dict[int, list[Located]] = {}
        todo = (begin + np.flatnonzero(rows[STATUS, begin:count] | rows[NEEDS, begin:count])).tolist()
        if not todo:
            return ScannedRows(rows, count, cells, text, message_batch.buffer, walk.dictionary, events), None
        if not walk.notes_stay(count):
            expand_complete_images(rows, count, cells, walk.dictionary)
        again = SecondLook(message_batch, text[: walk.text_used].tobytes(), self._options)
        error: DecodeError | None = None
        for row in todo:
            if again.is_full:
                count = row
                break
            try:
                if rows[STATUS, row] != GOOD or not again.finish(rows, cells, row):
                    events[row] = []
                    events[row].extend(self._read(message_batch, rows[:, row], again))
                elif not again.keeps(rows[:, row]):
                    events[row] = []
            except DecodeError as found:  # where the framing is broken, after events of the same message
                count, error = row + 1, found
                break
        return ScannedRows(rows, count, cells, again.all_text(), message_batch.buffer, walk.dictionary, events), error

    def _read(self, message_batch: MessageBatch, row: Array, again: SecondLook) -> Iterator[Located]:
        index, record, start, length = (int(row[field]) for field in (MESSAGE, RECORD, BODY, BODY + 1))
        batch_index = int(np.searchsorted(message_batch.indexes, index))
        message = again.message(batch_index)
        if row[STATUS] == READ_REST:
            return self.reader.read(message, index, record)
        start -= int(message_batch.starts[batch_index])
        lsn = unsigned(int(row[LSN])) if row[PRESENT] >> LSN & 1 else None
        return self.reader.read_frame(message, Frame(record, start, start + length, lsn), index)
