"""Runs the scan over message batches, and finishes the rows that the scan could not finish."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import DecodeError
from ...events import Corrupt
from ...formats.base import Format
from ...framing.frames import Frame
from ...lsn import unsigned
from ...options import ReadOptions
from ...stream.reader import Located, MessageReader
from ..arrays import Array
from ..columns.complete_images import expand_complete_images
from ..columns.row_limits import rows_between
from ..scan.dictionary import DICTIONARY_TEXT
from ..scan.filters import make_change_filters, make_filters
from ..scan.joined_texts import can_join
from ..scan.message_batches import BatchSizes, MessageBatch, message_batches
from ..scan.notes import (
    BINARY_TEXT,
    BODY,
    CURSOR_FIELDS,
    DECLINED_REST,
    FIRST_STEPPED,
    FIRST_STEPPED_RECORD,
    FRAMING,
    GOOD,
    LSN,
    MAPS,
    MESSAGE,
    NEEDS,
    NEXT_MESSAGE,
    NONE_STEPPED,
    PRESENT,
    RARE_ROWS,
    RECORD,
    STATUS,
    STEPPED_ROWS,
    TEXT_NEEDED,
    TEXT_USED,
    TRANSCODE,
    Notes,
    ScanInput,
    ScannedRows,
    SteppedOver,
)
from ..scan.registry import learns, load_binary_writer, load_rare_walk, load_scan
from ..scan.relations.described import Described
from ..scan.row_notes import drop_unwanted
from ..scan.scratch import LearnedRelations, return_scratch, take_scratch
from ..scan.transcode import Transcoder
from .error_texts import ScanStep
from .faults import FaultFinder, Faults
from .second_look import SecondLook, drop_texts


class BatchScan:
    """Scans one message batch in steps. A step notes as many rows as fit in the scratch, which is held until `close`.

    message_batch   the messages to scan
    filters         the arrays of the filters; see `make_scan`
    counts          whether row changes that are stepped over are counted
    spare           what scans of this stream have learned and no scan uses now; None: the scan does not learn

    The notes of a step are valid until the next step.
    """

    def __init__(
        self,
        format: str,
        scan: Callable[..., int],
        message_batch: MessageBatch,
        scan_input: ScanInput,
        filters: tuple[Array, Array],
        options: ReadOptions,
        counts: bool,
        spare: deque[LearnedRelations] | None,
    ) -> None:
        self._format = format
        self._scan = scan
        self._input = scan_input
        self._filters = filters
        self._options = options
        self._transcoder: Transcoder | None = None
        self._spare = spare
        self._learned: LearnedRelations | None = None
        self._cursor = np.zeros(CURSOR_FIELDS, np.int64)
        if spare is not None:
            try:
                self._learned = spare.pop()
            except IndexError:
                self._learned = LearnedRelations(scan_input)
            self._learned.begin()
            self._cursor = self._learned.cursor
        self._scratch: Notes | None = None
        self._stepped_before = 0
        self._message = (-1, b"")
        self.message_batch = message_batch
        self.counts = counts
        self.learned = 0
        """How much of `described` the reader has learned."""

    def step(self) -> int:
        """Scans the next rows and returns how many it noted; 0 if the batch ended and the filters kept none of them."""
        cursor, scan_input, learned = self._cursor, self._input, self._learned
        self._stepped_before, cursor[FIRST_STEPPED_RECORD] = int(cursor[STEPPED_ROWS]), NONE_STEPPED
        while not self.ended:
            if learned is not None:
                learned.make_room()
            self._scratch = scratch = take_scratch(
                self.message_batch, self._scratch, int(cursor[TEXT_NEEDED]), self.known_bytes - len(DICTIONARY_TEXT)
            )
            after_dictionary = scratch.text[len(DICTIONARY_TEXT) :]
            after_dictionary[: len(scan_input.text)] = np.frombuffer(scan_input.text, np.uint8)
            if learned is not None:
                learned.lend(scratch.text)
            cursor[TEXT_USED] = self.known_bytes
            settings = scan_input.settings
            count = self._scan(*self.message_batch, cursor, *scratch, self.dictionary, settings, *self._filters)
            if learned is not None:
                learned.take_back(scratch.text)
            if cursor[RARE_ROWS] and count > 0:
                count = load_rare_walk(self._format)(
                    self.message_batch.buffer, *scratch, self.dictionary, cursor, settings, count
                )
            assert count >= 0, "a record used more scratch than max_text_bytes or DETAILS_PER_ROW allow"
            if count:  # otherwise the batch has ended, or the next record needs more text than fits in the scratch
                count = self._with_texts(count)
            if count:
                return int(count)
        return 0

    def _with_texts(self, count: int) -> int:
        """Transcodes the texts of the last step and writes its binary values as text, as far as this can be done for
        many rows at once.

        Returns how many rows are left: the filters are then applied to the finished rows.
        """
        options, buffer, cursor = self._options, self.message_batch.buffer, self._cursor
        needs = int(np.bitwise_or.reduce(self.notes.rows[NEEDS, :count]))
        if needs & TRANSCODE and can_join(options):
            if self._transcoder is None:
                self._transcoder = Transcoder(options)
            text, used = self._transcoder.transcode(self.notes, count, buffer, self.known_bytes, self.text_used)
            self._scratch, self._cursor[TEXT_USED] = self.notes._replace(text=text), used
        if needs & BINARY_TEXT:
            write = load_binary_writer(self._format)
            text, used = write(self.notes, count, buffer, self.dictionary, self.text_used, options.encoding == "utf-8")
            self._scratch, self._cursor[TEXT_USED] = self.notes._replace(text=text), used
        has_unfiltered = needs or (cursor[RARE_ROWS] and options.tables is not None)  # the rare walk knows no tables
        if not has_unfiltered or (options.tables is None and options.kinds is None):
            return count
        ends = np.zeros((2, len(MAPS)), np.int64)
        arrays = (self.message_batch.buffer, *self.notes, self.dictionary, self._cursor, self._input.settings)
        return int(drop_unwanted(*arrays, *self._filters, ends, count))

    def message(self, batch_index: int) -> bytes:
        """Returns one message by its batch index. The last one is kept for later steps: a bad message often has many
        bad records, and may be so large that each step sees only a part of it."""
        if self._message[0] != batch_index:
            self._message = batch_index, self.message_batch.message(batch_index)
        return self._message[1]

    @property
    def ended(self) -> bool:
        """Whether the last message has been scanned."""
        return bool(self._cursor[NEXT_MESSAGE] >= len(self.message_batch.starts))

    @property
    def notes(self) -> Notes:
        """The notes of the last step."""
        if self._scratch is None:
            raise RuntimeError("the scan has not begun, or is closed")
        return self._scratch

    @property
    def dictionary(self) -> Array:
        """See ScanArrays."""
        return self._input.dictionary if self._learned is None else self._learned.dictionary

    def noted(self) -> ScanStep:
        """What the last step has noted, for those who read its records again."""
        return ScanStep(
            self.message_batch, self.notes, self.dictionary, self._input.settings, self.described, self.known_bytes
        )

    @property
    def described(self) -> Described:
        """See ScanInput."""
        return self._input.described

    @property
    def known_bytes(self) -> int:
        """The length of the text of the dictionary and the relations, which the notes begin with. It is in UTF-8."""
        learned = self._learned.room if self._learned is not None else 0
        return len(DICTIONARY_TEXT) + len(self._input.text) + learned

    @property
    def text_used(self) -> int:
        """How many bytes of the scratch's text the last step has used."""
        return int(self._cursor[TEXT_USED])

    def scanned_rows(self, count: int) -> ScannedRows:
        """Returns the rows of the last step, as the scan noted them."""
        return ScannedRows(
            self.notes.rows,
            count,
            self.notes.cells,
            self.notes.text,
            self.message_batch.buffer,
            self.dictionary,
            {},
            self.stepped,
        )

    @property
    def stepped(self) -> SteppedOver:
        """The row changes that the last step has stepped over."""
        cursor = self._cursor
        return SteppedOver(
            self._stepped_before, *(int(cursor[field]) for field in (STEPPED_ROWS, FIRST_STEPPED, FIRST_STEPPED_RECORD))
        )

    def needs_second_look(self, count: int) -> bool:
        """Whether a row of the last step needs a second look."""
        return bool(self.notes.rows[STATUS : NEEDS + 1, :count].any())

    def needs_other_texts(self, count: int) -> bool:
        """Whether the second look changes noted texts of the last step, and does not only read records again."""
        return bool(self.notes.rows[NEEDS, :count].any())

    def close(self) -> None:
        """Returns the scratch, and what was learned, for other scans."""
        if self._scratch is not None:
            return_scratch(self._scratch)
            self._scratch = None
        if self._spare is not None and self._learned is not None:
            self._cursor = self._cursor[:CURSOR_FIELDS].copy()  # the next scan changes it
            self._spare.append(self._learned)
            self._spare = None


class Scanner:
    """Scans messages, one message batch at a time.

    needed   options whose `tables` are those whose rows are needed: others may be stepped over, but are counted
    reader   reads the records that the scan could not read, and counts the records that are dropped
    """

    def __init__(self, format: Format, options: ReadOptions, needed: ReadOptions | None = None) -> None:
        self._options = options
        filters = make_filters(options) if needed is None else make_change_filters(needed)
        self._scan, self._preparation = load_scan(
            format.name, [options.encoding == "utf-8", filters.kinds, options.heartbeat_factor, 0], options
        )
        self._filters = (make_filters(options) if needed else filters)[1:]
        self._filters_of_needed = filters[1:]
        self._spare: deque[LearnedRelations] | None = deque() if learns(format.name) else None
        self.reader = MessageReader(format, options, needed)
        self._fault_finder = FaultFinder(format, options, needed)

    def scan(self, messages: Any, first: int = 0) -> Iterator[ScannedRows]:
        """Yields the rows of all messages, in order. Yielded rows are valid until the next ones are requested.

        Raises DecodeError in FAILFAST, after the rows before the error.
        """
        for batch_scan in self.batch_scans(messages, first):
            try:
                yield from self.remaining_rows(batch_scan)
            finally:
                batch_scan.close()

    def batch_scans(
        self, messages: Any, first: int = 0, *, counts: bool = False, sizes: BatchSizes | None = None
    ) -> Iterator[BatchScan]:
        """Yields a scan for each message batch. They may run at the same time; their rows must be finished in order.

        counts         whether row changes of which only the number is asked for, see `needed`, are stepped over
        sizes          see `message_batches`
        """
        input_of = self._preparation.begin(self.reader.format)
        for message_batch in message_batches(messages, first, sizes):
            scan_input = input_of(message_batch)
            yield BatchScan(
                self.reader.format.name,
                self._scan,
                message_batch,
                scan_input,
                self._filters_of_needed if counts else self._filters,
                self._options,
                counts,
                self._spare,
            )

    def remaining_rows(self, batch_scan: BatchScan) -> Iterator[ScannedRows]:
        """Yields the rows that a scan has not noted yet; see `scan`."""
        while not batch_scan.ended:
            yield from self.finished_rows(batch_scan, batch_scan.step())
        self._learn(batch_scan, len(batch_scan.message_batch.starts))

    def finished_rows(self, batch_scan: BatchScan, count: int) -> Iterator[ScannedRows]:
        """Yields the rows of a scan's last step, after the second look at the rows that need it; see `scan`."""
        begin = 0
        if not count and batch_scan.counts:
            yield batch_scan.scanned_rows(0)
        while begin < count:
            scanned, error = self._finish(batch_scan, begin, count)
            yield rows_between(scanned, begin, scanned.row_count) if begin else scanned
            if error is not None:
                raise error
            begin = scanned.row_count

    def _finish(self, batch_scan: BatchScan, begin: int, count: int) -> tuple[ScannedRows, DecodeError | None]:
        """Transcodes the texts that need it, and reads the records that the scan could not read by their declaration.

        begin   the first row to finish

        Returns fewer rows if the texts have grown too much, and at an error. The last row then has the events that
        precede the error in its message.
        """
        rows, cells, text = batch_scan.notes
        events: dict[int, Sequence[Located]] = {}
        unfinished = begin + np.flatnonzero(rows[STATUS, begin:count] | rows[NEEDS, begin:count])
        if not len(unfinished):
            return batch_scan.scanned_rows(count), None
        if batch_scan.needs_other_texts(count):
            expand_complete_images(rows, count, cells, batch_scan.dictionary)
        known_text = text[: batch_scan.text_used]
        second_look = SecondLook(batch_scan.message_batch, known_text, batch_scan.known_bytes, self._options)
        is_declined = second_look.is_declined(rows, unfinished)
        is_suspect = (is_declined | second_look.has_wrong_text(rows, unfinished)) & (
            (rows[STATUS, unfinished] != DECLINED_REST) | (rows[BODY + 1, unfinished] == 0)
        )
        faults = self._fault_finder.find(batch_scan.noted(), unfinished[is_suspect])
        has_fault = faults.are_of(unfinished, count)
        without_texts = unfinished[(is_declined | has_fault) & (rows[STATUS, unfinished] == GOOD)]
        end = faults.stop(count) if len(faults.rows) else count
        if len(faults.rows):
            is_left = ~has_fault & (unfinished < end)
            unfinished, is_declined = unfinished[is_left], is_declined[is_left]
        end, error = self._finish_rows(batch_scan, unfinished, is_declined, second_look, events, end)
        drop_texts(rows, cells, without_texts[without_texts < end], count)  # those after them are looked at again
        if len(faults.rows):
            self._add_corrupt(batch_scan.noted(), faults.chosen(faults.rows < end), second_look, events)
        second_look.note_corrupt(rows)
        stepped = batch_scan.stepped.between(rows, count, 0, end)
        scanned = batch_scan.scanned_rows(end)
        return scanned._replace(text=second_look.all_text(), events=events, stepped=stepped), error

    def _finish_rows(
        self,
        batch_scan: BatchScan,
        unfinished: Array,
        is_declined: Array,
        second_look: SecondLook,
        events: dict[int, Sequence[Located]],
        end: int,
    ) -> tuple[int, DecodeError | None]:
        """Finishes rows one by one. Returns the end, or the row before which it stopped, and the error there.

        unfinished, is_declined   the rows, and whether each must be read by the declaration
        events                    gets those of the rows that become events
        """
        rows, cells, _ = batch_scan.notes
        records = _records(batch_scan.message_batch, rows[:, unfinished])
        for row, must_read, record in zip(unfinished.tolist(), is_declined.tolist(), records, strict=True):
            if second_look.is_full:
                return row, None
            try:
                if must_read or not second_look.finish(rows, cells, row):
                    self._read(batch_scan, rows, row, record, second_look, events)
                elif not second_look.keeps(rows[:, row]):
                    events[row] = ()
            except DecodeError as error:  # events[row] has the events before it: `extend` appends them one by one
                return row + 1, error
        return end, None

    def _add_corrupt(
        self, step: ScanStep, faults: Faults, second_look: SecondLook, events: dict[int, Sequence[Located]]
    ) -> None:
        """Remembers what is wrong with the records of some rows, or leaves those rows out."""
        finder = self._fault_finder
        if self._options.tables is not None:
            is_kept = finder.tables(faults, step).kept(self._options)
            events.update(dict.fromkeys(faults.rows[~is_kept].tolist(), ()))
            faults = faults.chosen(is_kept)
        if self._options.mode == "DROPMALFORMED":
            self.reader.dropped += len(faults.rows)
            events.update(dict.fromkeys(faults.rows.tolist(), ()))
        elif len(faults.rows):
            second_look.add_all_corrupt(faults.rows, finder.texts(faults, finder.tables(faults, step), step))

    def _learn(self, batch_scan: BatchScan, message: int) -> None:
        """Lets the reader learn what messages of the batch before this one say, if the scan has read them."""
        relations = self.reader.format.relations
        if relations is not None:
            batch_scan.learned = batch_scan.described.learn(relations, batch_scan.learned, message)

    def _read(
        self,
        batch_scan: BatchScan,
        rows: Array,
        row: int,
        record: _Record,
        second_look: SecondLook,
        events: dict[int, Sequence[Located]],
    ) -> None:
        """Reads the record of a row, or its message from this record on, into `events`, or notes that it is CORRUPT."""
        message = batch_scan.message(record.batch_index)
        self._learn(batch_scan, record.batch_index)
        events[row] = ()  # one object for all rows that become nothing
        if record.status == DECLINED_REST:
            found = events[row] = []
            at, framed = rows[FRAMING : FRAMING + 2, row].tolist()
            found.extend(self.reader.read(message, record.message, record.frame.record, (at, framed)))
            return
        event = self.reader.event(message, record.frame, record.message)
        if isinstance(event, Corrupt):
            second_look.add_corrupt(row, event.error)
            del events[row]
        elif event is not None:
            events[row] = (Located(record.message, record.frame.record, event),)


class _Record(NamedTuple):
    """The record of a row that the scan could not finish: status of the row, index of its message, and frame."""

    status: int
    batch_index: int
    message: int
    frame: Frame


def _records(message_batch: MessageBatch, rows: Array) -> Iterator[_Record]:
    """Yields the records of these rows."""
    batch_indexes = message_batch.positions(rows[MESSAGE])
    starts = rows[BODY] - message_batch.starts[batch_indexes]
    facts = (rows[STATUS], batch_indexes, rows[MESSAGE], rows[RECORD], starts, rows[BODY + 1], rows[LSN])
    has_lsn = (rows[PRESENT] >> LSN & 1).tolist()
    for (status, batch_index, message, record, start, size, lsn), with_lsn in zip(
        np.stack(facts, axis=1).tolist(), has_lsn, strict=True
    ):
        frame = Frame(record, start, start + size, unsigned(lsn) if with_lsn else None)
        yield _Record(status, batch_index, message, frame)
