"""The fast engine's first half: runs the scan over chunks, and treats what it gave back to the declaration."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ..errors import DecodeError
from ..formats.base import Format
from ..formats.pgoutput import PgOutput
from ..framing.frames import Frame
from ..limits import CHUNK_BYTES, CHUNK_CELLS, CHUNK_ROWS
from ..lsn import unsigned
from ..options import ReadOptions
from ..options.reading import KINDS
from ..stream.reader import Located, Reader
from .filters import make_filters
from .messages import Chunk, chunks
from .scans import load_scan
from .spans import (
    BODY,
    CURSOR_FIELDS,
    DETAIL,
    ENDS,
    GOOD,
    KIND,
    LSN,
    MAPS,
    MESSAGE,
    NAME,
    NEXT_MESSAGE,
    PRESENT,
    READ_REST,
    RECORD,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_NEEDED,
    TEXT_PER_BYTE,
    TEXT_PER_RECORD,
    TEXT_SLACK,
    TEXT_USED,
    TIME_TEXT,
    TRANSCODE,
    TYPE,
    VALUE,
    WORD_TEXT,
    WORDS,
    Known,
    Spans,
    make_spans,
)

Array = np.ndarray[Any, Any]


LEAST_ROW_BYTES = 5  # of BEGIN alone, the smallest record of any style
LEAST_CELL_BYTES = 7  # of a column as TEXT prints it, the smallest of any style


SPARE_TEXT_BYTES = 2 * TEXT_PER_BYTE * CHUNK_BYTES
"""Room for more text than this was made for a huge record: it is not kept."""

_spare: deque[Spans] = deque(maxlen=1)
"""The room of the last scan that ended, for the next one: the first touch of fresh memory is slow."""


class Scanned(NamedTuple):
    """Rows of one call of the scan: notes on those it read, events for those that the declaration read."""

    rows: Array
    """int64[ROW_FIELDS, n or more]"""
    row_count: int
    """n"""
    cells: Array
    """int32[maps, CELL_FIELDS, cells, 2]"""
    text: Array
    """uint8[k]"""
    source: Array
    """uint8[m]: the buffer that was scanned"""
    events: dict[int, list[Located]]
    """What stands in the place of a row: any number of events; rows that are not here are good."""


class Scanner:
    """Scans messages; keeps its room from chunk to chunk, and leaves it to the next scanner.

    reader      reads what the scan gives back, and counts what it drops
    """

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self._scan, more = load_scan(format.name)
        self._options = options
        filters = make_filters(options)
        self._settings = [options.encoding == "utf-8", filters.kinds, *more]
        self._filters = (filters.patterns, filters.names)
        self._spans: Spans | None = None  # held while a scan runs
        self.reader = Reader(format, options)

    def scan(self, messages: Any, first: int = 0) -> Iterator[Scanned]:
        """The rows of all messages, in order; what is yielded is valid until the next step.

        Raises DecodeError in FAILFAST, after the rows before it.
        """
        with suppress(IndexError):
            self._spans = _spare.pop()
        try:
            for chunk in chunks(messages, first):
                yield from self._chunk(chunk)
        finally:
            if self._spans is not None and len(self._spans.text) <= SPARE_TEXT_BYTES:
                _spare.append(self._spans)
            self._spans = None

    def _chunk(self, chunk: Chunk) -> Iterator[Scanned]:
        cursor = np.zeros(CURSOR_FIELDS, np.int64)
        known = self._known(chunk)
        text_begin = len(WORD_TEXT) + len(known.text)
        while cursor[NEXT_MESSAGE] < len(chunk.starts):
            spans = self._room(chunk, int(cursor[TEXT_NEEDED]), len(known.text))
            spans.text[len(WORD_TEXT) : text_begin] = np.frombuffer(known.text, np.uint8)
            cursor[TEXT_USED] = text_begin
            count = self._scan(*chunk, cursor, *spans, known.words, known.settings, *self._filters)
            if count == 0:  # the next record needs more text than there is room for
                continue
            scanned, error = self._settled(chunk, spans, count, int(cursor[TEXT_USED]))
            yield scanned
            if error is not None:
                raise error

    def _known(self, chunk: Chunk) -> Known:
        """What the scan has to know beside the chunk; where messages depend on earlier ones, what those said."""
        if isinstance(self.reader.format, PgOutput):
            from .known_relations import known_relations

            return known_relations(chunk, self.reader.format.relations, self._settings, self._options)
        return Known(WORDS, np.array(self._settings, np.int64), b"")

    def _room(self, chunk: Chunk, text_needed: int, known_text: int) -> Spans:
        """Notes with room for the chunk, never for more than CHUNK_ROWS and CHUNK_CELLS at once."""
        size = len(chunk.buffer)
        rows = min(size // LEAST_ROW_BYTES + len(chunk.starts) + 2, CHUNK_ROWS)
        cells = min(size // LEAST_CELL_BYTES + 1, CHUNK_CELLS)
        text = TEXT_PER_BYTE * min(size, CHUNK_BYTES) + TEXT_PER_RECORD
        text = max(text, text_needed) + TEXT_SLACK + known_text
        held = self._spans
        if (
            held is None
            or held.rows.shape[1] < rows
            or held.cells.shape[2] < cells
            or len(held.text) < len(WORD_TEXT) + text
        ):
            held = self._spans = make_spans(rows, cells, text)
        return held

    def _settled(self, chunk: Chunk, spans: Spans, count: int, text_used: int) -> tuple[Scanned, DecodeError | None]:
        """Transcode the rows that ask for it, and read by declaration those that the scan gave back.

        With an error come the rows before it.
        """
        rows, cells = spans.rows, spans.cells
        events: dict[int, list[Located]] = {}
        todo = np.flatnonzero(rows[STATUS, :count] != GOOD).tolist()
        if not todo:
            return Scanned(rows, count, cells, spans.text, chunk.buffer, events), None
        again = _Again(chunk, spans.text[:text_used].tobytes(), self._options)
        error: DecodeError | None = None
        for row in todo:
            try:
                if rows[STATUS, row] != TRANSCODE or not again.transcode(rows, cells, row):
                    events[row] = list(self._read(chunk, rows[:, row], again))
                elif not again.keeps(rows[:, row]):
                    events[row] = []
            except DecodeError as found:
                count, error = row, found
                break
        return Scanned(rows, count, cells, again.all_text(), chunk.buffer, events), error

    def _read(self, chunk: Chunk, row: Array, again: _Again) -> Iterator[Located]:
        index, record, start, length = (int(row[field]) for field in (MESSAGE, RECORD, BODY, BODY + 1))
        place = int(np.searchsorted(chunk.indexes, index))
        message = again.message(place)
        if row[STATUS] == READ_REST:
            return self.reader.read(message, index, record)
        start -= int(chunk.starts[place])
        lsn = unsigned(int(row[LSN])) if row[PRESENT] >> LSN & 1 else None
        return self.reader.read_frame(message, Frame(record, start, start + length, lsn), index)


class _Again:
    """The bytes of one chunk for a second look: by the declaration, or to transcode them."""

    def __init__(self, chunk: Chunk, text: bytes, options: ReadOptions) -> None:
        self._chunk = chunk
        self._source = chunk.buffer.tobytes()
        self._text = bytearray(text)
        self._options = options
        self._message = (-1, b"")

    def message(self, place: int) -> bytes:
        """One message; the last one is kept, since a bad message has many bad records."""
        if self._message[0] != place:
            self._message = place, self._source[self._chunk.starts[place] : self._chunk.stops[place]]
        return self._message[1]

    def transcode(self, rows: Array, cells: Array, row: int) -> bool:
        """Put the row's texts that are not ASCII into the text as UTF-8; False if one is no text in the encoding.

        The row then has no texts, so that what the gather makes of it is valid.
        """
        bounds = [
            (int(rows[ENDS + place, row - 1]) if row else 0, int(rows[ENDS + place, row])) for place in range(len(MAPS))
        ]
        try:
            for field in (TABLE_SCHEMA, TABLE_NAME, TIME_TEXT):
                self._encode(rows[field : field + 2, row], *rows[field : field + 2, row].tolist())
            for place, (begin, end) in enumerate(bounds):
                for field in (NAME, VALUE) if place == DETAIL else (NAME, VALUE, TYPE):
                    for pair in cells[place, field, begin:end]:
                        self._encode(pair, *pair.tolist())
        except UnicodeDecodeError:
            rows[[TABLE_SCHEMA + 1, TABLE_NAME + 1, TIME_TEXT + 1], row] = 0
            for place, (begin, end) in enumerate(bounds):
                cells[place, :, begin:end, 1] = 0
            return False
        return True

    def keeps(self, row: Array) -> bool:
        """The filters, for a row that the scan could not ask: its table's name may be no UTF-8."""
        schema, table = (self._bytes(*row[field : field + 2].tolist()).decode() for field in (TABLE_SCHEMA, TABLE_NAME))
        return self._options.keeps(KINDS[row[KIND]], (schema, table) if row[TABLE_SCHEMA + 1] >= 0 else None)

    def all_text(self) -> Array:
        """The scan's text with what was transcoded behind it."""
        return np.frombuffer(self._text + bytes(TEXT_SLACK), np.uint8)

    def _encode(self, pair: Array, start: int, length: int) -> None:
        data = self._bytes(start, length)
        if not data.isascii():
            encoded = data.decode(self._options.encoding, self._options.encoding_errors).encode()
            pair[:] = ~len(self._text), len(encoded)
            self._text += encoded

    def _bytes(self, start: int, length: int) -> bytes:
        if length < 0:
            return b""
        return self._source[start : start + length] if start >= 0 else bytes(self._text[~start : ~start + length])
