"""Compiled functions that fill rows and cells, note logical messages, and apply the filters; all scans share them."""

from __future__ import annotations

import numpy as np

from ...times import FIRST_MICROS, LAST_MICROS, MILLIS_BELOW, SECONDS_BELOW, UNITS
from ..arrays import Array, Int
from ..ascii import BACKSLASH, DIGIT_0, LOWER_A, LOWER_X, SLASH
from ..jit.compiler import compiled, inner
from .dictionary import (
    BINARY_KEY,
    COLUMNS,
    CONTENT_KEY,
    FIRST_KEY,
    PREFIX_KEY,
    TIME_KEY,
    TRANSACTIONAL_KEY,
    UNDECIDED,
    UNWANTED,
    WANTED,
    token_entry,
)
from .filters import has_pattern
from .notes import (
    BODY,
    CELL_FIELDS,
    DECLINED,
    DETAIL,
    ENDS,
    GIVEN,
    GOOD,
    GROWTH_PER_CELL,
    HEARTBEAT_FACTOR,
    KIND,
    KINDS_WANTED,
    LEAST_GROWING_CELL,
    MAPS,
    MESSAGE,
    NAME,
    NEEDS,
    OF_ANY_TABLE,
    PRESENT,
    RAW,
    RECORD,
    RELATION,
    ROW_FIELDS,
    STATUS,
    STEPPED,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_NEEDED,
    TEXT_PER_RECORD,
    TEXT_SLACK,
    TEXT_USED,
    TIME_KNOWN,
    TIME_TEXT,
    UTF8,
    VALUE,
    ScanArrays,
)
from .primitives import is_ascii, read_32, transcode_flag, write_decimal, write_hexadecimal
from .tokens import CONTENT_IS_BINARY, FALSE, TRUE

TRUE_ENTRY, FALSE_ENTRY = token_entry(TRUE), token_entry(FALSE)
"""Dictionary entries of the texts `true` and `false`."""

SECOND, MILLISECOND, MICROSECOND = (UNITS[unit] for unit in ("s", "ms", "us"))


@inner
def max_text_bytes(size: Int, cells: Int) -> Int:
    """Returns how much text a scan writes at most for a record of `size` bytes, if each map has `cells` cells."""
    return size + GROWTH_PER_CELL * min(size // LEAST_GROWING_CELL, 2 * cells) + TEXT_PER_RECORD


@inner
def begin_row(rows: Array, row: Int, message: Int, record: Int, start: Int, length: Int, status: Int) -> None:
    """Begins a row: which message and record it is, and where the record (or the message) begins and ends."""
    for field in range(ENDS, ENDS + len(MAPS)):
        rows[field, row] = rows[field, row - 1] if row > 0 else 0
    rows[KIND, row] = rows[RELATION, row] = 0
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
def note_number(arrays: ScanArrays, row: Int, key: Int, number: Int, signed: bool) -> None:
    """Writes a number and adds it to the row's detail map; see `write_decimal`."""
    begin = arrays.cursor[TEXT_USED]
    end = write_decimal(arrays.text, begin, number, signed)
    arrays.cursor[TEXT_USED] = end
    note_detail(arrays, row, key, ~begin, end - begin)


@inner
def note_flag(arrays: ScanArrays, row: Int, key: Int, flag: bool) -> None:
    """Adds a flag to the row's detail map."""
    entry = TRUE_ENTRY if flag else FALSE_ENTRY
    note_detail(arrays, row, key, np.int64(arrays.dictionary[entry, 0]), np.int64(arrays.dictionary[entry, 1]))


@inner
def note_lsn(arrays: ScanArrays, row: Int, key: Int, at: Int) -> None:
    """Writes the LSN whose eight bytes are at `at`, as `0/CFE5C80`, and adds it to the row's detail map."""
    buffer, text = arrays.buffer, arrays.text
    begin = arrays.cursor[TEXT_USED]
    end = write_hexadecimal(text, begin, read_32(buffer, at))
    text[end] = SLASH
    end = write_hexadecimal(text, end + 1, read_32(buffer, at + 4))
    arrays.cursor[TEXT_USED] = end
    note_detail(arrays, row, key, ~begin, end - begin)


@inner
def note_heartbeat_time(arrays: ScanArrays, row: Int, time: Int) -> None:
    """Notes a heartbeat's number as detail, and the time that it means, as `heartbeat_micros` and `table_time` do."""
    rows = arrays.rows
    note_number(arrays, row, TIME_KEY, time, True)
    size = time if time >= 0 else ~time
    factor = arrays.settings[HEARTBEAT_FACTOR]
    if factor == 0:
        factor = SECOND if size < SECONDS_BELOW else MILLISECOND if size < MILLIS_BELOW else MICROSECOND
    if size <= LAST_MICROS // factor:  # otherwise the product may not fit in 64 bits
        micros = time * factor
        if micros >= FIRST_MICROS and micros <= LAST_MICROS:
            rows[TIME_TEXT, row] = micros
            rows[TIME_TEXT + 1, row] = TIME_KNOWN


@inner
def is_wanted(arrays: ScanArrays, row: Int, patterns: Array, names: Array) -> bool:
    """Whether the filters keep a good row."""
    rows, dictionary = arrays.rows, arrays.dictionary
    wanted = arrays.settings[KINDS_WANTED] >> rows[KIND, row]
    if not wanted & 1:
        return False
    if len(patterns) == 0 or rows[TABLE_NAME + 1, row] < 0 or wanted >> OF_ANY_TABLE & 1:
        return True
    relation = rows[RELATION, row]
    if relation > 0 and dictionary[relation + COLUMNS, 1] != UNDECIDED:
        return dictionary[relation + COLUMNS, 1] == WANTED
    matches = has_pattern(arrays, row, patterns, names)
    if relation > 0:
        dictionary[relation + COLUMNS, 1] = WANTED if matches else UNWANTED
    return matches


@inner
def _move_cells(cells: Array, map_index: Int, begin: Int, end: Int, to: Int) -> None:
    """Moves the cells of a row to the front, where those of other rows were removed."""
    if to < begin:
        for field in range(CELL_FIELDS):
            for cell in range(begin, end):
                cells[map_index, field, to + cell - begin, 0] = cells[map_index, field, cell, 0]
                cells[map_index, field, to + cell - begin, 1] = cells[map_index, field, cell, 1]


@compiled
def drop_cells(rows: Array, cells: Array, is_dropped: Array) -> None:
    """Removes the cells of some rows; is_dropped is bool[n], of the first n rows."""
    for map_index in range(len(MAPS)):
        begin = to = np.int64(0)
        for row in range(len(is_dropped)):
            end = rows[ENDS + map_index, row]
            if not is_dropped[row]:
                _move_cells(cells, map_index, begin, end, to)
                to += end - begin
            rows[ENDS + map_index, row] = to
            begin = end


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
                _move_cells(cells, map_index, begin, end, to)
                ends[1, map_index] = to + end - begin
        if is_kept:
            for field in range(ENDS):
                rows[field, kept] = rows[field, row]
            for map_index in range(len(MAPS)):
                rows[ENDS + map_index, kept] = ends[1, map_index]
            for field in range(STEPPED, ROW_FIELDS):
                rows[field, kept] = rows[field, row]
            kept += 1
    return kept


CONTENT_IS_BINARY_ENTRY = token_entry(CONTENT_IS_BINARY)


@inner
def write_hex(data: Array, start: Int, length: Int, text: Array, used: Int) -> Int:
    """Writes bytes as `\\x` and hexadecimal digits; returns the new end of the used text."""
    text[used], text[used + 1] = BACKSLASH, LOWER_X
    used += 2
    for at in range(start, start + length):
        for shift in range(4, -1, -4):
            digit = data[at] >> shift & 15
            text[used] = digit + (DIGIT_0 if digit < 10 else LOWER_A - 10)
            used += 1
    return used


@inner
def is_utf8(arrays: ScanArrays, start: Int, length: Int) -> bool:
    """Whether a text needs no transcoding. It begins after the first eight bytes of the buffer; see `is_ascii`."""
    utf8 = arrays.settings[UTF8] == 1
    return is_ascii(arrays.buffer, start, length) or transcode_flag(arrays.buffer, start, length, utf8) == 0


@inner
def note_message(
    arrays: ScanArrays, row: Int, transactional: bool, prefix: Int, prefix_length: Int, content: Int, length: Int
) -> Int:
    """Notes a message with its content; returns the row's status.

    A content that is no text is written in hexadecimal digits. In encodings other than UTF-8, the declaration reads the
    messages that are not ASCII: their content may be text or not, and the row may have the message's own LSN already.
    """
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    if not is_utf8(arrays, prefix, prefix_length):
        return DECLINED
    is_text = is_utf8(arrays, content, length)
    if is_text:
        note_detail(arrays, row, CONTENT_KEY, content, length)
    else:
        if arrays.settings[UTF8] == 0 or 2 * length + 2 > cursor[TEXT_NEEDED] - TEXT_SLACK:
            return DECLINED
        begin = cursor[TEXT_USED]
        end = write_hex(arrays.buffer, content, length, text, begin)
        cursor[TEXT_USED] = end
        note_detail(arrays, row, CONTENT_KEY, ~begin, end - begin)
    note_detail(arrays, row, PREFIX_KEY, prefix, prefix_length)
    note_flag(arrays, row, TRANSACTIONAL_KEY, transactional)
    if not is_text:
        start, size = dictionary[CONTENT_IS_BINARY_ENTRY, 0], dictionary[CONTENT_IS_BINARY_ENTRY, 1]
        note_detail(arrays, row, BINARY_KEY, start, size)
    return GOOD
