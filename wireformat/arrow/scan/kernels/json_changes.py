"""The scan of the JSON styles: follows wireformat/grammar/json_text.py for objects as servers write them.

Keys in the servers' order, no blanks, the servers' escapes: the rest is left to the grammar, and gives the same rows.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...ascii import APOSTROPHE, BACKSLASH, CLOSE_BRACKET, COMMA, DOT, OPEN_BRACE, QUOTE
from ...jit.compiler import hot, inner
from ..dictionary import FIRST_KIND, token_entry
from ..loop import make_scan
from ..notes import (
    BODY,
    DECLINED,
    DELETE,
    ENDS,
    FULL,
    GIVEN,
    GOOD,
    HAS_UNCHANGED,
    INSERT,
    KIND,
    NAME,
    NEEDS,
    NEW,
    PRESENT,
    SEEN,
    SEEN_FIELDS,
    SEEN_SLOTS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TYPE,
    UNCHANGED_LENGTH,
    VALUE,
    ScanArrays,
)
from ..primitives import is_ascii, read_64, same_bytes
from ..tokens import JSON_ARRAYS, JSON_END, JSON_HEAD, JSON_KIND
from .literals import BAD_LENGTH, literal, number_end, special_at, undo
from .transaction_lines import close_record, open_message, open_record, read_line, record_needs, token_end

HEAD, OPERATION, END = (token_entry(token) for token in (JSON_HEAD, JSON_KIND, JSON_END))
FIRST_ARRAY = token_entry(JSON_ARRAYS[0])
FIELDS = np.array([NAME, TYPE, VALUE])
"""What the arrays of one row image hold, in their order."""

KIND_BYTES = len("INSERT")  # as long as the other two
LEAST_OBJECT = len(JSON_HEAD + JSON_KIND + b"".join(JSON_ARRAYS) + JSON_END) + KIND_BYTES

TOO_FEW_CELLS = -2
"""The end of an array for which there are too few cells."""


@hot
def string_end(buffer: Array, at: Int, stop: Int) -> tuple[Int, bool, Int]:
    """Where the string whose content begins at `at` is closed, or -1; whether a backslash and how many single quotes
    are in it."""
    escaped = False
    quotes = 0
    at = special_at(buffer, at, stop)
    while at < stop:
        byte = buffer[at]
        if byte == QUOTE:
            return at, escaped, quotes
        if byte == APOSTROPHE:
            quotes += 1
        elif byte == BACKSLASH:
            escaped = True
            at += 1
        else:
            return -1, escaped, quotes
        at = special_at(buffer, at + 1, stop)
    return -1, escaped, quotes


@inner
def read_array(
    buffer: Array,
    at: Int,
    stop: Int,
    image: Array,
    field: Int,
    cell: Int,
    text: Array,
    dictionary: Array,
    cursor: Array,
) -> tuple[Int, Int, bool]:
    """Strings into a field of the cells from `cell` on: (where the array is closed, cell after them, whether a value
    was not sent). The first is TOO_FEW_CELLS if there are too few, and -1 for what is odd."""
    used = cursor[TEXT_USED]
    unchanged = False
    while at < stop and buffer[at] != CLOSE_BRACKET:
        if buffer[at] != QUOTE:
            return -1, cell, unchanged
        if cell == image.shape[1]:
            return TOO_FEW_CELLS, cell, unchanged
        start = at + 1
        escaped, quotes = False, 0
        end = number_end(buffer, start, stop) if field == VALUE else -1
        is_number = end >= 0 and end < stop and buffer[end] == QUOTE
        if not is_number:
            end, escaped, quotes = string_end(buffer, start, stop)
            if end < 0:
                return -1, cell, unchanged
        length = end - start
        if is_number:
            pass
        elif field == VALUE:
            start, length, used = literal(buffer, start, end, escaped, quotes, text, dictionary, used, True)
            unchanged = unchanged or length == UNCHANGED_LENGTH
        elif escaped:
            stopped, after = undo(buffer, start, end, text, used, QUOTE if field == NAME else 0, True)
            start, length = ~used, after - used if stopped == end else BAD_LENGTH
            used = after
        if length == BAD_LENGTH:
            return -1, cell, unchanged
        image[field, cell, 0] = start
        image[field, cell, 1] = length
        cell += 1
        at = end + 1
        if at < stop and buffer[at] == COMMA:
            at += 1
            if at < stop and buffer[at] == CLOSE_BRACKET:
                return -1, cell, unchanged
        elif at < stop and buffer[at] != CLOSE_BRACKET:
            return -1, cell, unchanged
    cursor[TEXT_USED] = used
    return at, cell, unchanged


@hot
def read_table(arrays: ScanArrays, at: Int, end: Int, row: Int) -> bool:
    """Schema and table of the string buffer[at:end], each plain or quoted; False for what is odd."""
    buffer, rows, text, cursor = arrays.buffer, arrays.rows, arrays.text, arrays.cursor
    used = cursor[TEXT_USED]
    for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
        begin = at
        if at < end and buffer[at] == BACKSLASH:
            at, after = undo(buffer, at, end, text, used, QUOTE, True)
            if at < 0:
                return False
            rows[field, row] = ~used
            rows[field + 1, row] = after - used
            used = after
        else:
            while at < end and buffer[at] != DOT and buffer[at] != BACKSLASH:
                at += 1
            if at == begin:
                return False
            rows[field, row] = begin
            rows[field + 1, row] = at - begin
        if field == TABLE_SCHEMA:
            if at == end or buffer[at] != DOT:
                return False
            at += 1
    cursor[TEXT_USED] = used
    return at == end


@inner
def seen_slot(buffer: Array, at: Int) -> Int:
    """Where the cursor may remember a row like the one at `at`: by 24 bytes after the head, which name the table."""
    mixed = read_64(buffer, at + 15) ^ (read_64(buffer, at + 23) << 5) ^ (read_64(buffer, at + 31) << 11)
    mixed ^= mixed >> 32
    mixed ^= mixed >> 16
    mixed ^= mixed >> 8
    return SEEN + (mixed & (SEEN_SLOTS - 1)) * SEEN_FIELDS


@hot
def copy_head(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> tuple[Int, Int, bool]:
    """Table, names and types of a row like one that was seen, which most rows are.

    Returns where the values begin, the cell after them, and whether the head is ASCII; -1 if there is none: the row
    that the cursor remembers is not of this table, has other columns, or is no longer there because the filters dropped
    it. That row says where its parts lie in the buffer: so this one's head is compared with its, not read.
    """
    buffer, rows, cells, cursor = arrays.buffer, arrays.rows, arrays.cells, arrays.cursor
    slot = seen_slot(buffer, at)
    like, body, kind_at, values_at = cursor[slot] - 1, cursor[slot + 1], cursor[slot + 2], cursor[slot + 3]
    if like < 0 or like >= row or rows[BODY, like] != body or stop - at < values_at:
        return -1, -1, False
    after_kind = kind_at + KIND_BYTES
    if not (
        same_bytes(buffer, at, buffer, body, kind_at)
        and same_bytes(buffer, at + after_kind, buffer, body + after_kind, values_at - after_kind)
    ):
        return -1, -1, False
    kind = read_kind(arrays, at + kind_at, stop)
    begin = rows[ENDS + NEW, row]
    first = rows[ENDS + NEW, like - 1] if like > 0 else 0
    count = rows[ENDS + NEW, like] - first
    if kind < 0 or begin + count > cells.shape[2]:
        return -1, -1, False
    rows[KIND, row] = kind
    for field in range(TABLE_SCHEMA, TABLE_NAME + 2):
        rows[field, row] = rows[field, like]
    image = cells[NEW]
    for cell in range(count):
        image[NAME, begin + cell, 0] = image[NAME, first + cell, 0]
        image[NAME, begin + cell, 1] = image[NAME, first + cell, 1]
        image[TYPE, begin + cell, 0] = image[TYPE, first + cell, 0]
        image[TYPE, begin + cell, 1] = image[TYPE, first + cell, 1]
    return at + values_at, begin + count, cursor[slot + 4] == 1


@inner
def read_kind(arrays: ScanArrays, at: Int, stop: Int) -> Int:
    """The kind whose name begins at `at`, or -1."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    for kind in range(INSERT, DELETE + 1):
        if token_end(buffer, at, stop, text, dictionary, FIRST_KIND + kind) >= 0:
            return kind
    return -1


@inner
def read_object(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> tuple[Int, Int]:
    """A row change, to the end of the record: the row's status, and from where on its bytes may be other than ASCII."""
    buffer, rows, cells = arrays.buffer, arrays.rows, arrays.cells
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    body = at
    if stop - body < LEAST_OBJECT:
        return DECLINED, body
    first = 2  # of the six arrays, the one to read next
    kind_at = values_at = np.int64(0)
    at, last, head_is_ascii = copy_head(arrays, body, stop, row)
    values = at
    if at < 0:
        first = 0
        at = token_end(buffer, body, stop, text, dictionary, HEAD)
        end = string_end(buffer, at, stop)[0] if at >= 0 else -1
        if end < 0 or not read_table(arrays, at, end, row):
            return DECLINED, body
        at = token_end(buffer, end, stop, text, dictionary, OPERATION)
        kind_at = at - body
        rows[KIND, row] = read_kind(arrays, at, stop) if at >= 0 else -1
        if rows[KIND, row] < 0:
            return DECLINED, body
        at += KIND_BYTES
    for array in range(first, 6):
        map_index, field = array // 3, FIELDS[array % 3]
        begin = rows[ENDS + map_index, row]
        if array > first or first == 0:
            at = token_end(buffer, at, stop, text, dictionary, FIRST_ARRAY + array)
        if at < 0:
            return DECLINED, body
        if array == 2:
            values_at = at - body
        at, end, unchanged = read_array(buffer, at, stop, cells[map_index], field, begin, text, dictionary, cursor)
        if at < 0:
            return FULL if at == TOO_FEW_CELLS else DECLINED, body
        if field == NAME:
            last = end
        elif end != last:
            return DECLINED, body
        if unchanged:
            rows[PRESENT, row] |= 1 << HAS_UNCHANGED
        if field == VALUE and end > begin:
            rows[ENDS + map_index, row] = end
            rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    if token_end(buffer, at, stop, text, dictionary, END) != stop:
        return DECLINED, body
    if first == 0 and rows[PRESENT, row] >> (GIVEN + NEW) & 1:  # without a new image there is nothing to know again
        slot = seen_slot(buffer, body)
        cursor[slot], cursor[slot + 1], cursor[slot + 2], cursor[slot + 3] = row + 1, body, kind_at, values_at
        cursor[slot + 4] = is_ascii(buffer, body, values_at)
    return GOOD, values if head_is_ascii else body


@inner
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, rows, settings = arrays.buffer, arrays.rows, arrays.settings
    if buffer[at] == OPEN_BRACE:
        status, at = read_object(arrays, at, stop, row)
    else:
        status = read_line(arrays, at, stop, row)
    if status == GOOD:
        rows[NEEDS, row] = record_needs(buffer, at, stop, settings)
    return status


scan_gaussdb_json = make_scan("scan_gaussdb_json", open_record, close_record, read_record)
scan_mppdb_json = make_scan("scan_mppdb_json", open_message, close_record, read_record)
