"""The scan of the JSON styles: follows wireformat/grammar/json_text.py for objects as servers write them.

Keys in the servers' order, no blanks, the servers' escapes: the rest is left to the grammar, and gives the same rows.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...ascii import APOSTROPHE, BACKSLASH, CLOSE_BRACKET, COMMA, DOT, LOWER_A, OPEN_BRACE, QUOTE
from ...jit.compiler import hot, inner
from ..dictionary import COLUMNS, FIRST_KIND, SCHEMA, TABLE, TAIL, UNWANTED, token_entry
from ..loop import make_scan
from ..notes import (
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
    RELATION,
    STEPPED_OVER,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TYPE,
    UNCHANGED_LENGTH,
    VALUE,
    ScanArrays,
)
from ..primitives import same_bytes
from ..relations.recognise import expected_relation, find_relation, learn, next_relation, note_complete, note_pattern
from ..tokens import JSON_ARRAYS, JSON_END, JSON_HEAD, JSON_KIND, KIND_BYTES
from .literals import BAD_LENGTH, TOO_FEW_CELLS, literal, number_end, special_at, text_literal, undo
from .transaction_lines import close_record, open_message, open_record, read_line, record_needs, token_end

HEAD_ENTRY, OPERATION, END = (token_entry(token) for token in (JSON_HEAD, JSON_KIND, JSON_END))
FIRST_ARRAY = token_entry(JSON_ARRAYS[0])
FIELDS = np.array([NAME, TYPE, VALUE])
"""What the arrays of one row image hold, in their order."""

LEAST_OBJECT = len(JSON_HEAD + JSON_KIND + b"".join(JSON_ARRAYS) + JSON_END) + KIND_BYTES


@hot
def string_end(buffer: Array, at: Int, stop: Int) -> tuple[Int, bool]:
    """Where the string whose content begins at `at` is closed, or -1, and whether a backslash is in it."""
    escaped = False
    at = special_at(buffer, at, stop)
    while at < stop:
        byte = buffer[at]
        if byte == QUOTE:
            return at, escaped
        if byte == BACKSLASH:
            escaped = True
            at += 1
            while stop - at > 2 and buffer[at + 1] == BACKSLASH:
                at += 2
        elif byte != APOSTROPHE:
            return -1, escaped
        at = special_at(buffer, at + 1, stop)
    return -1, escaped


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
        end = number_end(buffer, start, stop) if field == VALUE else -1
        is_number = end >= 0 and end < stop and buffer[end] == QUOTE
        length = end - start
        if is_number:
            pass
        elif field == VALUE and start < stop and buffer[start] == APOSTROPHE:
            start, length, end, used = text_literal(buffer, start, stop, text, used, True)
            if end < 0 or end == stop or buffer[end] != QUOTE:
                return -1, cell, unchanged
        else:
            end, escaped = string_end(buffer, start, stop)
            if end < 0:
                return -1, cell, unchanged
            length = end - start
            if field == VALUE:
                start, length = literal(buffer, start, end, text, dictionary)
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
def read_kind(arrays: ScanArrays, at: Int, stop: Int) -> Int:
    """The kind whose name begins at `at`, or -1."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    for kind in range(INSERT, DELETE + 1):
        if token_end(buffer, at, stop, text, dictionary, FIRST_KIND + kind) >= 0:
            return kind
    return -1


@hot
def tail_end(arrays: ScanArrays, at: Int, stop: Int, relation: Int) -> Int:
    """Where the values of the new image begin, if what comes before them at `at` is that of the relation; or -1."""
    dictionary = arrays.dictionary
    length = np.int64(dictionary[relation + TAIL, 1])
    if stop - at < length or not same_bytes(
        arrays.buffer, at, arrays.text, ~np.int64(dictionary[relation + TAIL, 0]), length
    ):
        return -1
    return at + length


@hot
def read_object(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> tuple[Int, Int]:
    """A row change, to the end of the record: the row's status, and from where on its bytes may be other than ASCII."""
    buffer, rows, cells = arrays.buffer, arrays.rows, arrays.cells
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    body = at
    if stop - body < LEAST_OBJECT:
        return DECLINED, body
    head = token_end(buffer, body, stop, text, dictionary, HEAD_ENTRY)
    head_end = string_end(buffer, head, stop)[0] if head >= 0 else -1
    if head_end < 0:
        return DECLINED, body
    first = find_relation(buffer, head, head_end, text, dictionary, cursor)
    if first > 0:
        if dictionary[first + COLUMNS, 1] == UNWANTED:
            return STEPPED_OVER, stop
        rows[RELATION, row] = first
        for part in range(2):
            rows[TABLE_SCHEMA + part, row] = dictionary[first + SCHEMA, part]
            rows[TABLE_NAME + part, row] = dictionary[first + TABLE, part]
    elif not read_table(arrays, head, head_end, row):
        return DECLINED, body
    at = token_end(buffer, head_end, stop, text, dictionary, OPERATION)
    rows[KIND, row] = read_kind(arrays, at, stop) if at >= 0 else -1
    if rows[KIND, row] < 0:
        return DECLINED, body
    at += KIND_BYTES
    tail, values = at, np.int64(-1)
    relation = expected_relation(arrays, row, first, head_end - head)
    while relation > 0:
        values = tail_end(arrays, tail, stop, relation)
        if values >= 0:
            break
        relation = next_relation(dictionary, relation, first)
    next_array = 0  # of the six arrays, the one to read next
    if relation > 0:
        next_array = 2
        at = values
    last = rows[ENDS + NEW, row] + (np.int64(dictionary[relation + COLUMNS, 0]) if relation > 0 else 0)
    for array in range(next_array, 6):
        map_index, field = array // 3, FIELDS[array % 3]
        begin = rows[ENDS + map_index, row]
        if relation == 0 or array > 2:
            at = token_end(buffer, at, stop, text, dictionary, FIRST_ARRAY + array)
        if at < 0:
            return DECLINED, body
        if array == 2:
            values = at
        at, end, unchanged = read_array(buffer, at, stop, cells[map_index], field, begin, text, dictionary, cursor)
        if at < 0:
            return FULL if at == TOO_FEW_CELLS else DECLINED, body
        if field == NAME:
            last = end
        elif end != last:
            return DECLINED, body
        if unchanged:
            rows[PRESENT, row] |= 1 << HAS_UNCHANGED
        if array == 2 and relation > 0:
            if end > begin:
                note_complete(arrays, row, NEW, relation, begin)
        elif field == VALUE and end > begin:
            rows[ENDS + map_index, row] = end
            rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    if token_end(buffer, at, stop, text, dictionary, END) != stop:
        return DECLINED, body
    if relation == 0 or first == 0:
        count = rows[ENDS + NEW, row] - (rows[ENDS + NEW, row - 1] if row > 0 else 0)
        for column in range(count if relation == 0 else 0):
            note_pattern(arrays, column, body, body)
        learn(arrays, row, NEW, rows[ENDS + NEW, row] - count, relation, first, head, head_end, tail, values)
        return GOOD, body
    return GOOD, values


@hot
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, rows, settings = arrays.buffer, arrays.rows, arrays.settings
    is_ddl = stop - at > 2 and buffer[at + 2] < LOWER_A  # {"TDDL"; the first key of a row is in small letters
    if buffer[at] == OPEN_BRACE and not is_ddl:
        status, at = read_object(arrays, at, stop, row)
    else:
        status = read_line(arrays, at, stop, row)
    if status == GOOD:
        rows[NEEDS, row] = record_needs(buffer, at, stop, settings)
    return status


scan_gaussdb_json = make_scan("scan_gaussdb_json", open_record, close_record, read_record)
scan_mppdb_json = make_scan("scan_mppdb_json", open_message, close_record, read_record)
