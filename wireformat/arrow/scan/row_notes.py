"""Compiled functions that fill rows and cells, and apply the filters; all scans share them."""

from __future__ import annotations

from ..arrays import Array, Int
from ..jit.compiler import compiled, inner
from .dictionary import FIRST_KEY
from .notes import (
    BODY,
    CELL_FIELDS,
    DETAIL,
    ENDS,
    GIVEN,
    GOOD,
    GROWTH_PER_CELL,
    KIND,
    KINDS_WANTED,
    LEAST_GROWING_CELL,
    MAPS,
    MESSAGE,
    NAME,
    NEEDS,
    PRESENT,
    RAW,
    RECORD,
    ROW_FIELDS,
    STATUS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_PER_RECORD,
    TIME_TEXT,
    VALUE,
    ScanArrays,
)


@inner
def max_text_bytes(size: Int, cells: Int) -> Int:
    """Returns how much text a scan writes at most for a record of `size` bytes, if each map has `cells` cells."""
    return size + GROWTH_PER_CELL * min(size // LEAST_GROWING_CELL, 2 * cells) + TEXT_PER_RECORD


@inner
def begin_row(rows: Array, row: Int, message: Int, record: Int, start: Int, length: Int, status: Int) -> None:
    """Begins a row: which message and record it is, and where the record (or the message) begins and ends."""
    for field in range(ENDS, ROW_FIELDS):
        rows[field, row] = rows[field, row - 1] if row > 0 else 0
    rows[KIND, row] = 0
    rows[TABLE_SCHEMA + 1, row] = rows[TABLE_NAME + 1, row] = rows[RAW + 1, row] = rows[TIME_TEXT + 1, row] = -1
    rows[MESSAGE, row] = message
    rows[RECORD, row] = record
    rows[PRESENT, row] = 1 << MESSAGE | 1 << RECORD
    rows[BODY, row] = start
    rows[BODY + 1, row] = length
    rows[STATUS, row] = status
    rows[NEEDS, row] = 0


@inner
def note_detail(arrays: ScanArrays, row: Int, key: Int, start: Int, length: Int) -> None:
    """Adds an entry to the row's detail map; there are cells for DETAILS_PER_ROW entries a row."""
    rows, cells, dictionary = arrays.rows, arrays.cells, arrays.dictionary
    cell = rows[ENDS + DETAIL, row]
    cells[DETAIL, NAME, cell, 0] = dictionary[FIRST_KEY + key, 0]
    cells[DETAIL, NAME, cell, 1] = dictionary[FIRST_KEY + key, 1]
    cells[DETAIL, VALUE, cell, 0] = start
    cells[DETAIL, VALUE, cell, 1] = length
    rows[ENDS + DETAIL, row] = cell + 1
    rows[PRESENT, row] |= 1 << (GIVEN + DETAIL)


@inner
def is_wanted(arrays: ScanArrays, row: Int, patterns: Array, names: Array) -> bool:
    """Whether the filters keep a good row; a pattern is two pairs, a length of -1 is *."""
    buffer, rows, text = arrays.buffer, arrays.rows, arrays.text
    kinds = arrays.settings[KINDS_WANTED]
    kind = rows[KIND, row]
    if not kinds >> kind & 1:
        return False
    if len(patterns) == 0 or rows[TABLE_NAME + 1, row] < 0:
        return True
    for pattern in range(len(patterns)):
        matches = True
        for part in range(0, 4, 2):
            start, length = patterns[pattern, part], patterns[pattern, part + 1]
            own = rows[TABLE_SCHEMA + part, row]
            if length >= 0 and length != rows[TABLE_SCHEMA + part + 1, row]:
                matches = False
            elif matches:
                for at in range(length):
                    if (buffer[own + at] if own >= 0 else text[~own + at]) != names[start + at]:
                        matches = False
                        break
        if matches:
            return True
    return False


@compiled
def drop_unwanted(
    buffer: Array,
    rows: Array,
    cells: Array,
    text: Array,
    dictionary: Array,
    cursor: Array,
    settings: Array,
    patterns: Array,
    names: Array,
    ends: Array,
    count: Int,
) -> Int:
    """Removes the finished rows that the filters do not keep. Returns how many rows are left.

    ends   int64[2, maps]: memory for the last ends of maps, before and after rows were removed; zeros
    """
    arrays = ScanArrays(buffer, rows, cells, text, dictionary, cursor, settings)
    kept = 0
    for row in range(count):
        is_kept = rows[STATUS, row] != GOOD or rows[NEEDS, row] != 0 or is_wanted(arrays, row, patterns, names)
        for map_index in range(len(MAPS)):
            begin, end, to = ends[0, map_index], rows[ENDS + map_index, row], ends[1, map_index]
            ends[0, map_index] = end
            if is_kept:
                if to < begin:
                    for field in range(CELL_FIELDS):
                        for cell in range(begin, end):
                            cells[map_index, field, to + cell - begin, 0] = cells[map_index, field, cell, 0]
                            cells[map_index, field, to + cell - begin, 1] = cells[map_index, field, cell, 1]
                ends[1, map_index] = to + end - begin
        if is_kept:
            for field in range(ENDS):
                rows[field, kept] = rows[field, row]
            for map_index in range(len(MAPS)):
                rows[ENDS + map_index, kept] = ends[1, map_index]
            kept += 1
    return kept
