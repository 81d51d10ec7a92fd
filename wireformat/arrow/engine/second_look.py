"""Finishes single rows: binary values, and texts in other encodings that are not decoded together with others."""

from __future__ import annotations

import numpy as np

from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ...options import ReadOptions
from ...options.reading import KINDS
from ...pgtypes import type_oid
from ...pgtypes.binary import binary_text
from ..arrays import Array, unused
from ..scan.joined_texts import can_join
from ..scan.message_batches import MessageBatch
from ..scan.notes import (
    BINARY_LENGTH,
    BINARY_TEXT,
    BODY,
    CORRUPT,
    DETAIL,
    ENDS,
    ERROR,
    GOOD,
    KIND,
    LSN,
    MAPS,
    MESSAGE,
    NAME,
    NEEDS,
    NEW,
    OLD,
    PRESENT,
    RAW,
    RECORD,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_SLACK,
    TIME_TEXT,
    TRANSCODE,
    TYPE,
    VALUE,
)
from ..scan.row_notes import drop_cells
from .error_texts import NO_ERRORS, ErrorTexts

_NO_TEXTS = np.array([TABLE_SCHEMA + 1, TABLE_NAME + 1, TIME_TEXT + 1])


class SecondLook:
    """Finishes the notes of one message batch.

    text          the text of the notes, as far as it is used, which is copied; the finished texts are appended to it
    known_bytes   how many bytes at the beginning of the text are in UTF-8
    """

    def __init__(self, message_batch: MessageBatch, text: Array, known_bytes: int, options: ReadOptions) -> None:
        self._message_batch = message_batch
        self._text = bytearray(text)
        self._known_bytes, self._scanned_bytes = known_bytes, len(text)
        self._options = options
        self._is_strict_utf8 = options.encoding == "utf-8" and options.encoding_errors == "strict"
        self._corrupt: list[tuple[int, int, int]] = []
        self._all_corrupt, self._errors = NO_ERRORS.ends, NO_ERRORS

    def is_declined(self, rows: Array, unfinished: Array) -> Array:
        """Returns which of these rows the declaration must read, as far as that is known before texts are decoded."""
        is_declined: Array = rows[STATUS, unfinished] != GOOD
        if self._is_strict_utf8:
            is_declined |= rows[NEEDS, unfinished] & TRANSCODE != 0  # else the scan notes no need
        return is_declined

    def has_wrong_text(self, rows: Array, unfinished: Array) -> Array:
        """Returns which of these rows have, with few exceptions, a text that is not in the encoding: their texts were
        to be decoded together with others, and were not."""
        is_decoded = can_join(self._options) and self._options.encoding_errors == "strict"
        has_wrong_text: Array = is_decoded & (rows[NEEDS, unfinished] & TRANSCODE != 0)
        return has_wrong_text

    def finish(self, rows: Array, cells: Array, row: int) -> bool:
        """Writes the texts that the row still needs. Returns False if the declaration must read the record, and notes
        all texts as empty; see `empty_texts`."""
        needs = int(rows[NEEDS, row])
        begins = rows[ENDS : ENDS + len(MAPS), row - 1] if row else np.zeros(len(MAPS), np.int64)
        maps = [cells[map_index, :, begins[map_index] : rows[ENDS + map_index, row]] for map_index in range(len(MAPS))]
        try:
            if needs & TRANSCODE:
                self._transcode(rows[:, row], maps)
            if needs & BINARY_TEXT:
                self._write_binary_texts(maps)
        except ValueError:
            empty_texts(rows, cells, np.array([row]))
            return False
        return True

    def _transcode(self, row: Array, maps: list[Array]) -> None:
        """Rewrites the texts that are not ASCII in UTF-8; raises UnicodeDecodeError."""
        for field in (TABLE_SCHEMA, TABLE_NAME, TIME_TEXT):
            self._transcode_text(row[field : field + 2])
        for map_index, map_cells in enumerate(maps):
            for field in (NAME, VALUE) if map_index == DETAIL else (NAME, VALUE, TYPE):
                for pair in map_cells[field]:
                    self._transcode_text(pair)

    def _write_binary_texts(self, maps: list[Array]) -> None:
        """Writes binary values as text; raises ValueError for a type without a text form or a value not of its type."""
        for image in (maps[NEW], maps[OLD]):
            for cell in np.flatnonzero(image[VALUE, :, 1] <= BINARY_LENGTH).tolist():
                start, length = image[VALUE, cell].tolist()
                oid = type_oid(self._bytes(*image[TYPE, cell].tolist()).decode())
                data = self._bytes(start, BINARY_LENGTH - length)
                value = binary_text(oid, data, self._options.encoding, self._options.encoding_errors)
                if value is None:
                    raise ValueError("no text form")
                self._append(image[VALUE, cell], value)

    def add_corrupt(self, row: int, error: str) -> None:
        """Remembers why the record of a row is CORRUPT; see `note_corrupt`."""
        self._corrupt.append((row, *self._appended(error)))

    def add_all_corrupt(self, rows: Array, errors: ErrorTexts) -> None:
        """Remembers why the records of several rows are CORRUPT, once; see `note_corrupt`."""
        self._all_corrupt, self._errors = rows, errors

    def note_corrupt(self, rows: Array) -> None:
        """Notes all rows that are CORRUPT, and why. Those rows have no texts, or only empty ones. No more texts can be
        finished afterwards."""
        if self._corrupt:
            _note_corrupt(rows, *np.array(self._corrupt).T)
        if len(self._all_corrupt):
            starts = np.concatenate(([0], self._errors.ends[:-1]))
            _note_corrupt(rows, self._all_corrupt, ~(len(self._text) + starts), self._errors.ends - starts)

    def keeps(self, row: Array) -> bool:
        """Returns whether the filters keep a row. The scan could not tell if the name of its table was not UTF-8."""
        schema, table = (self._bytes(*row[field : field + 2].tolist()).decode() for field in (TABLE_SCHEMA, TABLE_NAME))
        return self._options.keeps(KINDS[row[KIND]], (schema, table) if row[TABLE_SCHEMA + 1] >= 0 else None)

    @property
    def is_full(self) -> bool:
        """Whether the text has grown so much that other rows must wait: numbers can become a thousand times longer."""
        return len(self._text) > self._scanned_bytes + BATCH_TEXT_BYTES

    def all_text(self) -> Array:
        """Returns the scan's text, followed by the finished texts. No more texts can be finished afterwards."""
        if not len(self._all_corrupt):
            self._text += bytes(TEXT_SLACK)
            return np.frombuffer(self._text, np.uint8)
        begin, end = len(self._text), len(self._text) + len(self._errors.data)
        text = unused(end + TEXT_SLACK, np.uint8)
        text[:begin], text[begin:end], text[end:] = self._text, self._errors.data, 0
        return text

    def _transcode_text(self, pair: Array) -> None:
        start, length = pair.tolist()
        data = self._bytes(start, length)
        if not data.isascii() and not -self._known_bytes <= start < 0:
            self._append(pair, data.decode(self._options.encoding, self._options.encoding_errors))

    def _append(self, pair: Array, text: str) -> None:
        """Appends a text and notes it in the pair; see `_appended`."""
        pair[:] = self._appended(text)

    def _appended(self, text: str) -> tuple[int, int]:
        """Appends a text and returns its pair; raises ValueError if its offset does not fit in an int32."""
        encoded = text.encode()
        if len(self._text) + len(encoded) > COLUMN_BYTES:
            raise ValueError("too much text")
        pair = ~len(self._text), len(encoded)
        self._text += encoded
        return pair

    def _bytes(self, start: int, length: int) -> bytes:
        if length < 0:
            return b""
        if start < 0:
            return bytes(self._text[~start : ~start + length])
        return self._message_batch.buffer[start : start + length].tobytes()


def _note_corrupt(rows: Array, indexes: Array, starts: Array, lengths: Array) -> None:
    """Notes that these rows are CORRUPT, and the texts of their errors."""
    rows[KIND, indexes] = CORRUPT
    rows[PRESENT, indexes] &= 1 << MESSAGE | 1 << RECORD | 1 << LSN
    rows[_NO_TEXTS[:, np.newaxis], indexes] = -1
    rows[RAW, indexes], rows[RAW + 1, indexes] = rows[BODY, indexes], rows[BODY + 1, indexes]
    rows[ERROR, indexes], rows[ERROR + 1, indexes] = starts, lengths


def drop_texts(rows: Array, cells: Array, indexes: Array, count: int) -> None:
    """Drops all texts of these rows, of the first `count` rows, which are all that the step has noted."""
    if len(indexes):
        rows[_NO_TEXTS[:, np.newaxis], indexes] = 0
        is_dropped = np.zeros(count, np.bool_)
        is_dropped[indexes] = True
        drop_cells(rows, cells, is_dropped)


def empty_texts(rows: Array, cells: Array, indexes: Array) -> None:
    """Notes all texts of these rows as empty, so that columns can be built of the notes."""
    rows[_NO_TEXTS[:, np.newaxis], indexes] = 0
    for map_index in range(len(MAPS)):
        ends = rows[ENDS + map_index]
        stops, begins = ends[indexes], np.where(indexes > 0, ends[indexes - 1], 0)
        counts = stops - begins
        chosen = np.arange(counts.sum()) + np.repeat(stops - np.cumsum(counts), counts)
        cells[map_index, :, chosen, 1] = 0
