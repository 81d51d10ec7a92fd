"""A second look at what the scan could not finish: other encodings, binary values, records for the declaration."""

from __future__ import annotations

import numpy as np

from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ...options import ReadOptions
from ...options.reading import KINDS
from ...pgtypes import type_oid
from ...pgtypes.binary import binary_text
from ..arrays import Array
from ..scan.message_batches import MessageBatch
from ..scan.notes import (
    BINARY_LENGTH,
    BINARY_TEXT,
    DETAIL,
    ENDS,
    KIND,
    MAPS,
    NAME,
    NEEDS,
    NEW,
    OLD,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_SLACK,
    TIME_TEXT,
    TRANSCODE,
    TYPE,
    VALUE,
)


class SecondLook:
    """The bytes of one message batch for a second look: by the declaration, or to transcode them."""

    def __init__(self, message_batch: MessageBatch, text: bytes, options: ReadOptions) -> None:
        self._message_batch = message_batch
        self._text = bytearray(text)
        self._begin = len(text)
        self._options = options
        self._message = (-1, b"")

    def message(self, batch_index: int) -> bytes:
        """One message, by its index in the batch. Keeps the last one, since a bad message has many bad records."""
        if self._message[0] != batch_index:
            self._message = batch_index, self._message_batch.message(batch_index)
        return self._message[1]

    def finish(self, rows: Array, cells: Array, row: int) -> bool:
        """Write the texts that the row needs; False if the declaration must read the record.

        The row then has no texts at all, so that what the gather makes of it is valid.
        """
        needs = int(rows[NEEDS, row])
        begins = rows[ENDS : ENDS + len(MAPS), row - 1] if row else np.zeros(len(MAPS), np.int64)
        maps = [cells[map_index, :, begins[map_index] : rows[ENDS + map_index, row]] for map_index in range(len(MAPS))]
        try:
            if needs & TRANSCODE:
                self._transcode(rows[:, row], maps)
            if needs & BINARY_TEXT:
                self._write_binary_texts(maps)
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
        for map_index, own in enumerate(maps):
            for field in (NAME, VALUE) if map_index == DETAIL else (NAME, VALUE, TYPE):
                for pair in own[field]:
                    self._encode(pair)

    def _write_binary_texts(self, maps: list[Array]) -> None:
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
        """Note a text of the pair's own; raises ValueError if an int32 cannot hold where it begins."""
        encoded = text.encode()
        if len(self._text) + len(encoded) > COLUMN_BYTES:
            raise ValueError("too much text")
        pair[:] = ~len(self._text), len(encoded)
        self._text += encoded

    def _bytes(self, start: int, length: int) -> bytes:
        if length < 0:
            return b""
        if start < 0:
            return bytes(self._text[~start : ~start + length])
        return self._message_batch.buffer[start : start + length].tobytes()
