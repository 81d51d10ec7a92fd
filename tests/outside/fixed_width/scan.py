"""The scan of `fixed-width`: notes where the texts are. What is odd, or not ASCII, is left to the declaration."""

from __future__ import annotations

import numpy as np

from wireformat.arrow.jit.compiler import inner
from wireformat.arrow.scan import notes
from wireformat.arrow.scan.kernels.transaction_lines import close_record, open_message, read_line, record_needs
from wireformat.arrow.scan.loop import make_scan
from wireformat.arrow.scan.notes import DECLINED, ENDS, FULL, GIVEN, GOOD, NEW, OLD, PRESENT
from wireformat.arrow.scan.primitives import is_ascii

from .declaration import COLUMN_BYTES, HEAD_BYTES, KINDS, NAME_BYTES, TYPE_BYTES, VALUE_BYTES

WORDS = np.frombuffer(b"".join(KINDS), np.uint8)
BLANK, PLUS, MINUS, EQUALS, TILDE = (ord(letter) for letter in " +-=~")


@inner
def find_kind(buffer, at, stop):
    """0 INSERT, 1 UPDATE, 2 DELETE, 3 any other record."""
    for kind in range(3 if stop - at >= 7 else 0):
        same = 0
        while same < 7 and buffer[at + same] == WORDS[7 * kind + same]:
            same += 1
        if same == 7:
            return kind
    return 3


@inner
def text_length(buffer, at, width):
    """The length of a text that is padded with blanks."""
    while width > 0 and buffer[at + width - 1] == BLANK:
        width -= 1
    return width


@inner
def read_record(arrays, at, stop, row):
    """One record; see wireformat/arrow/scan/loop.py."""
    buffer, rows, cells = arrays.buffer, arrays.rows, arrays.cells
    kind = find_kind(buffer, at, stop)
    if kind == 3:
        status = read_line(arrays, at, stop, row)
        if status == GOOD:
            rows[notes.NEEDS, row] = record_needs(buffer, at, stop, arrays.settings)
        return status
    size = stop - at - HEAD_BYTES
    if size < 0 or size % COLUMN_BYTES or not is_ascii(buffer, at, stop - at):
        return DECLINED
    rows[notes.KIND, row] = notes.INSERT + kind
    for field in range(2):
        start = at + 7 + field * NAME_BYTES
        length = text_length(buffer, start, NAME_BYTES)
        rows[notes.TABLE_SCHEMA + 2 * field, row] = start
        rows[notes.TABLE_SCHEMA + 2 * field + 1, row] = length
        if length == 0:
            return DECLINED
    for column in range(at + HEAD_BYTES, stop, COLUMN_BYTES):
        side, state = buffer[column], buffer[column + COLUMN_BYTES - VALUE_BYTES - 1]
        if (side != PLUS and side != MINUS) or (state != EQUALS and state != TILDE):
            return DECLINED
        image = NEW if side == PLUS else OLD
        cell = rows[ENDS + image, row]
        if cell == cells.shape[2]:
            return FULL
        name, type_name, value = column + 1, column + 1 + NAME_BYTES, column + COLUMN_BYTES - VALUE_BYTES
        pairs = cells[image, :, cell]
        pairs[notes.NAME, 0], pairs[notes.NAME, 1] = name, text_length(buffer, name, NAME_BYTES)
        pairs[notes.TYPE, 0], pairs[notes.TYPE, 1] = type_name, text_length(buffer, type_name, TYPE_BYTES)
        length = text_length(buffer, value, VALUE_BYTES)
        if pairs[notes.NAME, 1] == 0 or pairs[notes.TYPE, 1] == 0 or (state == TILDE and length > 0):
            return DECLINED
        pairs[notes.VALUE, 0], pairs[notes.VALUE, 1] = value, -1 if state == TILDE else length
        rows[ENDS + image, row] = cell + 1
        rows[PRESENT, row] |= 1 << (GIVEN + image)
    return GOOD


scan_fixed_width = make_scan("scan_fixed_width", open_message, close_record, read_record)
