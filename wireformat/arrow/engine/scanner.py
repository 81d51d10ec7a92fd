"""The fast engine's first half: runs the scan over chunks, and treats what it gave back to the declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DecodeError
from ...formats.base import Format
from ...framing.frames import Frame
from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ...lsn import unsigned
from ...options import ReadOptions
from ...options.reading import KINDS
from ...pgtypes import type_oid
from ...pgtypes.binary import binary_text
from ...stream.reader import Located, Reader
from ..arrays import Array
from ..columns.complete_images import expand_complete_images
from ..columns.row_limits import rows_between
from ..scan.filters import make_filters
from ..scan.message_batches import MessageBatch, message_batches
from ..scan.notes import (
    BINARY_CELLS,
    BINARY_LENGTH,
    BODY,
    CURSOR_FIELDS,
    DETAIL,
    ENDS,
    KIND,
    LSN,
    MAPS,
    MESSAGE,
    NAME,
    NEW,
    NEXT_MESSAGE,
    OLD,
    PRESENT,
    READ_REST,
    RECORD,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_NEEDED,
    TEXT_SLACK,
    TEXT_USED,
    TIME_TEXT,
    TRANSCODE,
    TYPE,
    VALUE,
    WORD_TEXT,
    WORDS,
    Notes,
    ScanInput,
    ScannedRows,
)
from ..scan.registry import load_scan
from ..scan.scratch import return_scratch, take_scratch

if TYPE_CHECKING:
    from ..scan.kernels.pgoutput_relations import RelationTable


class Walk:
    """The scan of one chunk, as many rows at a time as there is room for; holds the room until it is closed.

    chunk   what is scanned
    notes   of the rows that the last step noted; valid until the next step
    """

    def __init__(
        self, scan: Callable[..., int], chunk: MessageBatch, known: ScanInput, filters: tuple[Array, Array]
    ) -> None:
        self._scan = scan
        self._known = known
        self._filters = filters
        self._cursor = np.zeros(CURSOR_FIELDS, np.int64)
        self._room: Notes | None = None
        self.chunk = chunk

    def step(self) -> int:
        """Scan on; how many rows were noted. None are when all is done, or when all rows were filtered out."""
        cursor, known = self._cursor, self._known
        text_begin = len(WORD_TEXT) + len(known.text)
        while not self.ended:
            self._room = room = take_scratch(self.chunk, self._room, int(cursor[TEXT_NEEDED]), len(known.text))
            room.text[len(WORD_TEXT) : text_begin] = np.frombuffer(known.text, np.uint8)
            cursor[TEXT_USED] = text_begin
            count = self._scan(*self.chunk, cursor, *room, known.words, known.settings, *self._filters)
            assert count >= 0, "a record took more room than text_needed or DETAILS_PER_ROW say"
            if count:  # else the next record needs more text than there was room for
                return int(count)
        return 0

    @property
    def ended(self) -> bool:
        """Whether the last message has been scanned."""
        return bool(self._cursor[NEXT_MESSAGE] >= len(self.chunk.starts))

    @property
    def room(self) -> Notes:
        """The notes of the last step."""
        if self._room is None:
            raise RuntimeError("there was no step, or the walk is closed")
        return self._room

    @property
    def words(self) -> Array:
        """See ScanInput."""
        return self._known.words

    @property
    def text_used(self) -> int:
        """Bytes of the room's text that the last step has used."""
        return int(self._cursor[TEXT_USED])

    def notes(self, count: int) -> ScannedRows:
        """The rows of the last step, whose notes must stay as they are."""
        return ScannedRows(self.room.rows, count, self.room.cells, self.room.text, self.chunk.buffer, self.words, {})

    def all_good(self, count: int) -> bool:
        """Whether no row of the last step needs a second look."""
        return not self.room.rows[STATUS, :count].any()

    def notes_stay(self, count: int) -> bool:
        """Whether a second look changes no note of the last step: it only reads records anew."""
        return bool((self.room.rows[STATUS, :count] <= READ_REST).all())

    def close(self) -> None:
        """Leave the room to others."""
        if self._room is not None:
            return_scratch(self._room)
            self._room = None


class Scanner:
    """Scans messages chunk by chunk.

    reader      reads what the scan gives back, and counts what it drops
    """

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self._scan, more = load_scan(format.name)
        self._options = options
        filters = make_filters(options)
        self._settings = [options.encoding == "utf-8", filters.kinds, *more]
        self._filters = (filters.patterns, filters.names)
        self.reader = Reader(format, options)
        self._relation_words: RelationTable | None = None  # kept from call to call: few relations are new

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
        format = self.reader.format
        if format.relations is not None:
            from ..scan.kernels.pgoutput_relations import RelationTable, find_relations

            if self._relation_words is None:
                self._relation_words = RelationTable(self._options)
            first_reader = format.fresh(format.relations.copy())  # runs ahead of the own one, and comes to the same
            for chunk in message_batches(messages, first):
                known = find_relations(chunk, first_reader, self._relation_words, self._settings, self._options)
                yield Walk(self._scan, chunk, known, self._filters)
        else:
            known = ScanInput(WORDS, np.array(self._settings, np.int64), b"")
            for chunk in message_batches(messages, first):
                yield Walk(self._scan, chunk, known, self._filters)

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
        chunk, (rows, cells, text) = walk.chunk, walk.room
        events: dict[int, list[Located]] = {}
        todo = (begin + np.flatnonzero(rows[STATUS, begin:count])).tolist()
        if not todo:
            return ScannedRows(rows, count, cells, text, chunk.buffer, walk.words, events), None
        if not walk.notes_stay(count):
            expand_complete_images(rows, count, cells, walk.words)
        again = SecondLook(chunk, text[: walk.text_used].tobytes(), self._options)
        error: DecodeError | None = None
        for row in todo:
            if again.is_full:
                count = row
                break
            try:
                if rows[STATUS, row] <= READ_REST or not again.finish(rows, cells, row):
                    events[row] = []
                    events[row].extend(self._read(chunk, rows[:, row], again))
                elif not again.keeps(rows[:, row]):
                    events[row] = []
            except DecodeError as found:  # where the framing is broken, after events of the same message
                count, error = row + 1, found
                break
        return ScannedRows(rows, count, cells, again.all_text(), chunk.buffer, walk.words, events), error

    def _read(self, chunk: MessageBatch, row: Array, again: SecondLook) -> Iterator[Located]:
        index, record, start, length = (int(row[field]) for field in (MESSAGE, RECORD, BODY, BODY + 1))
        place = int(np.searchsorted(chunk.indexes, index))
        message = again.message(place)
        if row[STATUS] == READ_REST:
            return self.reader.read(message, index, record)
        start -= int(chunk.starts[place])
        lsn = unsigned(int(row[LSN])) if row[PRESENT] >> LSN & 1 else None
        return self.reader.read_frame(message, Frame(record, start, start + length, lsn), index)


class SecondLook:
    """The bytes of one chunk for a second look: by the declaration, or to transcode them."""

    def __init__(self, chunk: MessageBatch, text: bytes, options: ReadOptions) -> None:
        self._chunk = chunk
        self._text = bytearray(text)
        self._begin = len(text)
        self._options = options
        self._message = (-1, b"")

    def message(self, place: int) -> bytes:
        """One message; the last one is kept, since a bad message has many bad records."""
        if self._message[0] != place:
            self._message = place, self._chunk.message(place)
        return self._message[1]

    def finish(self, rows: Array, cells: Array, row: int) -> bool:
        """Put the texts that the row's status asks for into the text; False if the declaration must read the record.

        The row then has no texts at all, so that what the gather makes of it is valid.
        """
        status = int(rows[STATUS, row])
        begins = rows[ENDS : ENDS + len(MAPS), row - 1] if row else np.zeros(len(MAPS), np.int64)
        maps = [cells[place, :, begins[place] : rows[ENDS + place, row]] for place in range(len(MAPS))]
        try:
            if status & TRANSCODE == TRANSCODE:
                self._transcode(rows[:, row], maps)
            if status & BINARY_CELLS:
                self._binary_cells(maps)
        except ValueError:
            rows[[TABLE_SCHEMA + 1, TABLE_NAME + 1, TIME_TEXT + 1], row] = 0
            for own in maps:
                own[:, :, 1] = 0
            return False
        return True

    def _transcode(self, row: Array, maps: list[Array]) -> None:
        """Texts that are not ASCII as UTF-8; raises UnicodeDecodeError."""
        for field in (TABLE_SCHEMA, TABLE_NAME, TIME_TEXT):
            self._encode(row[field : field + 2])
        for place, own in enumerate(maps):
            for field in (NAME, VALUE) if place == DETAIL else (NAME, VALUE, TYPE):
                for pair in own[field]:
                    self._encode(pair)

    def _binary_cells(self, maps: list[Array]) -> None:
        """The texts of binary values; raises ValueError if one has none, or is no value of its type."""
        for image in (maps[NEW], maps[OLD]):
            for cell in np.flatnonzero(image[VALUE, :, 1] <= BINARY_LENGTH).tolist():
                start, length = image[VALUE, cell].tolist()
                oid = type_oid(self._bytes(*image[TYPE, cell].tolist()).decode())
                data = self._bytes(start, BINARY_LENGTH - length)
                found = binary_text(oid, data, self._options.encoding, self._options.encoding_errors)
                if found is None:
                    raise ValueError("no text form")
                self._put(image[VALUE, cell], found)

    def keeps(self, row: Array) -> bool:
        """The filters, for a row that the scan could not ask: its table's name may be no UTF-8."""
        schema, table = (self._bytes(*row[field : field + 2].tolist()).decode() for field in (TABLE_SCHEMA, TABLE_NAME))
        return self._options.keeps(KINDS[row[KIND]], (schema, table) if row[TABLE_SCHEMA + 1] >= 0 else None)

    @property
    def is_full(self) -> bool:
        """Whether so much was put into the text that other rows should wait: numbers can be a thousand times longer."""
        return len(self._text) > self._begin + BATCH_TEXT_BYTES

    def all_text(self) -> Array:
        """The scan's text with what was transcoded behind it."""
        return np.frombuffer(self._text + bytes(TEXT_SLACK), np.uint8)

    def _encode(self, pair: Array) -> None:
        data = self._bytes(*pair.tolist())
        if not data.isascii():
            self._put(pair, data.decode(self._options.encoding, self._options.encoding_errors))

    def _put(self, pair: Array, text: str) -> None:
        """Note a text of the pair's own; raises ValueError where an int32 cannot say its place."""
        encoded = text.encode()
        if len(self._text) + len(encoded) > COLUMN_BYTES:
            raise ValueError("no room")
        pair[:] = ~len(self._text), len(encoded)
        self._text += encoded

    def _bytes(self, start: int, length: int) -> bytes:
        if length < 0:
            return b""
        if start < 0:
            return bytes(self._text[~start : ~start + length])
        return self._chunk.buffer[start : start + length].tobytes()
