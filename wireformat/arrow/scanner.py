"""The fast engine's first half: runs the scan over chunks, and treats what it gave back to the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import DecodeError
from ..formats.base import Format
from ..framing.frames import Frame
from ..limits import CHUNK_BYTES, CHUNK_CELLS, CHUNK_ROWS
from ..lsn import unsigned
from ..options import ReadOptions
from ..stream.reader import Located, Reader
from .filters import make_wanted
from .messages import Chunk, chunks
from .scans import SCANS
from .spans import (
    BODY,
    CURSOR_SIZE,
    DETAIL,
    GOOD,
    KIND,
    LSN,
    MESSAGE,
    NEW,
    NEXT_MESSAGE,
    OLD,
    READ_REST,
    RECORD,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_NEEDED,
    TEXT_SLACK,
    TEXT_USED,
    TRANSCODE,
    WORDS,
    Spans,
    make_spans,
)

Array = np.ndarray[Any, Any]


LEAST_ROW_BYTES = 14  # of a record with its framing, the smallest of any style
LEAST_CELL_BYTES = 10  # of a cell of two empty texts, the smallest of any style


class Scanned(NamedTuple):
    """Rows of one call of the scan: notes on those it read, events for those that the declaration read."""

    spans: Spans
    rows: int
    source: Array
    """uint8[n]: the buffer that start positions of the notes mean"""
    events: dict[int, list[Located]]
    """row to what stands in its place: any number of events; rows that are not here are good"""


class Scanner:
    """Scans messages; keeps its room from chunk to chunk.

    reader      reads what the scan gives back, and counts what it drops
    """

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self._scan = SCANS[format.name]
        self._options = options
        self._wanted = make_wanted(options)
        self._text = np.array([options.encoding == "utf-8", options.heartbeat_factor], np.int64)
        self._spans: Spans | None = None
        self.reader = Reader(format, options)

    def scan(self, messages: Any, first: int = 0) -> Iterator[Scanned]:
        """The rows of all messages, in order; what is yielded is valid until the next step.

        Raises DecodeError in FAILFAST, after the rows before it.
        """
        for chunk in chunks(messages, first):
            cursor = np.zeros(CURSOR_SIZE, np.int64)
            while cursor[NEXT_MESSAGE] < len(chunk.starts):
                spans = self._room(chunk, int(cursor[TEXT_NEEDED]))
                cursor[TEXT_USED] = len(WORDS.text)
                rows = self._scan(
                    chunk.buffer,
                    chunk.starts,
                    chunk.stops,
                    chunk.indexes,
                    cursor,
                    spans,
                    WORDS,
                    self._wanted,
                    self._text,
                )
                scanned, error = self._settled(chunk, spans, rows, int(cursor[TEXT_USED]))
                yield scanned
                if error is not None:
                    raise error

    def _room(self, chunk: Chunk, text_needed: int) -> Spans:
        """Notes with room for the chunk, never for more than CHUNK_ROWS and CHUNK_CELLS at once."""
        size = len(chunk.buffer)
        rows = min(size // LEAST_ROW_BYTES + len(chunk.starts) + 2, CHUNK_ROWS)
        cells = min(size // LEAST_CELL_BYTES + 1, CHUNK_CELLS)
        text = max(min(4 * size, 4 * CHUNK_BYTES), text_needed) + TEXT_SLACK
        held = self._spans
        if held is None or len(held.status) < rows or len(held.new) < cells or len(held.text) < len(WORDS.text) + text:
            held = self._spans = make_spans(rows, cells, text)
        return held

    def _settled(self, chunk: Chunk, spans: Spans, rows: int, text_used: int) -> tuple[Scanned, DecodeError | None]:
        """Transcode the rows that ask for it, and read by declaration those that the scan gave back.

        With an error come the rows before it.
        """
        events: dict[int, list[Located]] = {}
        todo = np.flatnonzero(spans.status[:rows] != GOOD).tolist()
        if not todo:
            return Scanned(spans, rows, chunk.buffer, events), None
        text = bytearray(spans.text[:text_used].tobytes())
        error: DecodeError | None = None
        for row in todo:
            try:
                if spans.status[row] != TRANSCODE or not self._transcode(chunk, spans, row, text):
                    events[row] = list(self._read(chunk, spans, row))
                elif not self._keeps(chunk, spans, row, text):
                    events[row] = []
            except DecodeError as found:
                rows, error = row, found
                break
        text += bytes(TEXT_SLACK)
        return Scanned(spans._replace(text=np.frombuffer(text, np.uint8)), rows, chunk.buffer, events), error

    def _read(self, chunk: Chunk, spans: Spans, row: int) -> Iterator[Located]:
        index, record = int(spans.numbers[MESSAGE, row]), int(spans.numbers[RECORD, row])
        place = int(np.searchsorted(chunk.indexes, index))
        message = chunk.message(place)
        if spans.status[row] == READ_REST:
            return self.reader.read(message, index, record)
        start, length = spans.texts[BODY, row].tolist()
        start -= int(chunk.starts[place])
        lsn = unsigned(int(spans.numbers[LSN, row])) if spans.present[LSN, row] else None
        return self.reader.read_frame(message, Frame(record, start, start + length, lsn), index)

    def _transcode(self, chunk: Chunk, spans: Spans, row: int, text: bytearray) -> bool:
        """Put the row's texts that are not ASCII into `text` as UTF-8; False if one is no text in the encoding."""
        for pair in _pairs(spans, row):
            start, length = pair.tolist()
            data = b"" if length < 0 else _bytes(chunk, text, start, length)
            if data.isascii():
                continue
            try:
                encoded = data.decode(self._options.encoding, self._options.encoding_errors).encode()
            except UnicodeDecodeError:
                return False
            pair[:] = ~len(text), len(encoded)
            text += encoded
        return True

    def _keeps(self, chunk: Chunk, spans: Spans, row: int, text: bytearray) -> bool:
        """The filters, for a row that the scan could not ask: its table's name may be no UTF-8."""
        kind, schema, table = (
            None if length < 0 else _bytes(chunk, text, start, length).decode()
            for start, length in spans.texts[[KIND, TABLE_SCHEMA, TABLE_NAME], row].tolist()
        )
        return self._options.keeps(str(kind), None if schema is None or table is None else (schema, table))


def _bytes(chunk: Chunk, text: bytearray, start: int, length: int) -> bytes:
    return bytes(chunk.buffer[start : start + length]) if start >= 0 else bytes(text[~start : ~start + length])


def _pairs(spans: Spans, row: int) -> Iterator[Array]:
    """Every text of a row that may not be ASCII, as a view of (start, length) that can be changed."""
    yield spans.texts[TABLE_SCHEMA, row]
    yield spans.texts[TABLE_NAME, row]
    for place, cells in ((NEW, spans.new), (OLD, spans.old), (DETAIL, spans.detail)):
        begin = int(spans.ends[place, row - 1]) if row else 0
        for cell in cells[begin : int(spans.ends[place, row])]:
            yield cell[0:2]
            yield cell[2:4]
