"""The scan of sql-decoding: follows wireformat/grammar/sql_text.py.

The bytes before a value are its pattern: `(` or `, ` in an INSERT, `name = ` or ` and name = ` in a DELETE.
"""

from __future__ import annotations

import re

import numpy as np

from ....grammar import sql_text
from ....grammar.sql_text import AND, COMMA, EQUALS, VALUES, WHERE
from ....grammar.tuple_text import NO_TUPLE
from ...arrays import Array, Int
from ...ascii import APOSTROPHE, CLOSE_PARENTHESIS, OPEN_PARENTHESIS, SEMICOLON, SPACE, UPPER_B
from ...jit.compiler import hot, inner
from ..dictionary import CELL_ENTRIES, CELL_FACTS, CELLS, COLUMNS, UNWANTED, token_entry
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
    OLD,
    PRESENT,
    STEPPED_OVER,
    TEXT_USED,
    TYPE,
    UNCHANGED_LENGTH,
    UNTYPED,
    UPDATE,
    VALUE,
    ScanArrays,
)
from ..primitives import same_bytes
from ..relations.recognise import expected_relation, learn, next_relation, note_complete, note_pattern
from ..tokens import COLUMN_NUMBERS, FORMS, LAST_COMMA
from .literals import (
    BAD_LENGTH,
    MOST_BYTES_TO_CHANGE,
    TOO_FEW_CELLS,
    find_table,
    literal,
    names_end,
    number_end,
    quoted_end,
    read_name,
    read_table,
    text_literal,
)
from .transaction_lines import close_record, open_message, read_line, record_needs, token_end

INSERT_ENTRY, DELETE_ENTRY, VALUES_ENTRY, WHERE_ENTRY, NO_TUPLE_ENTRY = (
    token_entry(token) for token in (sql_text.INSERT, sql_text.DELETE, VALUES, WHERE, NO_TUPLE)
)
COMMA_ENTRY, LAST_COMMA_ENTRY, AND_ENTRY, EQUALS_ENTRY = (
    token_entry(token) for token in (COMMA, LAST_COMMA, AND, EQUALS)
)
NULL_FORM, BOOLEAN_FORM, NUMBER_FORM, BITS_FORM, STRING_FORM, UNCHANGED_FORM = map(token_entry, FORMS)
FIRST_NUMBER, MOST_COLUMNS = token_entry(COLUMN_NUMBERS[0]), len(COLUMN_NUMBERS)

_WORD = np.array([re.fullmatch("[0-9A-Za-z+.-]", chr(byte)) is not None for byte in range(256)])
"""Whether a byte may be part of a literal without quotes."""


@hot
def read_value(arrays: ScanArrays, at: Int, stop: Int, map_index: Int, cell: Int) -> Int:
    """Notes the literal at `at` and its form; returns where it ends, or -1."""
    buffer, text, dictionary, cursor = arrays.buffer, arrays.text, arrays.dictionary, arrays.cursor
    image = arrays.cells[map_index]
    form = NUMBER_FORM
    end = number_end(buffer, at, stop)
    if at < stop and buffer[at] == APOSTROPHE:
        form = STRING_FORM
        start, length, end, cursor[TEXT_USED] = text_literal(buffer, at, stop, text, cursor[TEXT_USED], False)
        if end < 0:
            return -1
    elif end < 0 or (end < stop and _WORD[buffer[end]]):
        if at + 1 < stop and buffer[at] == UPPER_B and buffer[at + 1] == APOSTROPHE:
            form = BITS_FORM
            end = quoted_end(buffer, at + 1, stop)[0]
        else:
            end = at
            while end < stop and _WORD[buffer[end]]:
                end += 1
        if end < 0:
            return -1
        start, length = literal(buffer, at, end, text, dictionary)
        if length == BAD_LENGTH:
            return -1
        if length == UNCHANGED_LENGTH:
            form = UNCHANGED_FORM
        elif length < 0:
            form = NULL_FORM
        elif start < 0 and form == NUMBER_FORM:
            form = BOOLEAN_FORM
    else:
        start, length = at, end - at
    image[VALUE, cell, 0] = start
    image[VALUE, cell, 1] = length
    image[TYPE, cell, 0] = dictionary[form, 0]
    image[TYPE, cell, 1] = dictionary[form, 1]
    return end


@hot
def list_end(buffer: Array, at: Int, stop: Int, text: Array, dictionary: Array, is_new: bool) -> Int:
    """Where the values end of which one ends at `at`; -1 if another one follows."""
    if not is_new:
        return at if at < stop and buffer[at] == SEMICOLON else -1
    if at < stop and buffer[at] == CLOSE_PARENTHESIS:
        return at + 1
    return token_end(buffer, at, stop, text, dictionary, LAST_COMMA_ENTRY)


@hot
def read_pattern(arrays: ScanArrays, at: Int, stop: Int, map_index: Int, cell: Int, column: Int) -> Int:
    """What comes before the value of a column, whose name is noted; returns where it ends, or -1."""
    buffer, text, dictionary, image = arrays.buffer, arrays.text, arrays.dictionary, arrays.cells[map_index]
    if map_index == NEW:
        if column == MOST_COLUMNS:
            return -1
        image[NAME, cell, 0] = dictionary[FIRST_NUMBER + column, 0]
        image[NAME, cell, 1] = dictionary[FIRST_NUMBER + column, 1]
        if column > 0:
            return token_end(buffer, at, stop, text, dictionary, COMMA_ENTRY)
        return at + 1 if at < stop and buffer[at] == OPEN_PARENTHESIS else -1
    if column > 0:
        at = token_end(buffer, at, stop, text, dictionary, AND_ENTRY)
        if at < 0:
            return -1
    end, start, length = read_name(arrays, at, stop)
    if end < 0:
        return -1
    image[NAME, cell, 0] = start
    image[NAME, cell, 1] = length
    return token_end(buffer, end, stop, text, dictionary, EQUALS_ENTRY)


@hot
def columns(arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, relation: Int) -> Int:
    """The values of a statement into the map `map_index`.

    relation   the relation whose columns are expected, or 0: any columns, whose patterns are noted
    returns    where they end; TOO_FEW_CELLS where the cells have none; -1 for other columns, or for what is odd
    """
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    image = arrays.cells[map_index]
    first = cell = rows[ENDS + map_index, row]
    last = first + np.int64(dictionary[relation + COLUMNS, 0]) if relation > 0 else image.shape[1]
    if last > image.shape[1]:
        return TOO_FEW_CELLS
    column = relation + CELLS + CELL_FACTS
    has_unchanged = False
    end = np.int64(-1)
    while end < 0:
        if cell == last:
            return -1 if relation > 0 else TOO_FEW_CELLS
        begin = at
        if relation > 0:
            size = np.int64(dictionary[column, 1])
            if stop - at < size or not same_bytes(buffer, at, text, ~np.int64(dictionary[column, 0]), size):
                return -1
            begin += size
            column += CELL_ENTRIES
        else:
            begin = read_pattern(arrays, at, stop, map_index, cell, cell - first)
            if begin < 0:
                return -1
            note_pattern(arrays, cell - first, at, begin)
        at = read_value(arrays, begin, stop, map_index, cell)
        if at < 0:
            return -1
        has_unchanged = has_unchanged or image[VALUE, cell, 1] == UNCHANGED_LENGTH
        cell += 1
        end = list_end(buffer, at, stop, text, dictionary, map_index == NEW)
    if relation > 0 and cell != last:
        return -1
    rows[PRESENT, row] |= 1 << UNTYPED | np.int64(has_unchanged) << HAS_UNCHANGED
    if relation > 0:
        note_complete(arrays, row, map_index, relation, first)
    else:
        rows[ENDS + map_index, row] = cell
        rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    return end


@inner
def read_tuple(
    arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, first: Int, head: Int, head_end: Int
) -> tuple[Int, Int]:
    """One tuple and its semicolon: where they end, or as `columns` says, and the first relation of the table.

    first            the first relation of the table, or 0
    head, head_end   the bytes that name the table
    """
    buffer, rows, text, dictionary, cursor = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary, arrays.cursor
    end = token_end(buffer, at, stop, text, dictionary, NO_TUPLE_ENTRY)
    if end < 0 and at < stop and buffer[at] == SEMICOLON:
        rows[PRESENT, row] |= 1 << (GIVEN + map_index)
        end = at
    if end < 0:
        begin, used = rows[ENDS + map_index, row], cursor[TEXT_USED]
        relation = expected_relation(arrays, row, first, head_end - head)
        while True:
            end = columns(arrays, at, stop, row, map_index, relation)
            if end != -1 or relation == 0:
                break
            relation = next_relation(dictionary, relation, first)
            cursor[TEXT_USED] = used
        if end >= 0 and (relation == 0 or first == 0):
            first = learn(arrays, row, map_index, begin, relation, first, head, head_end, at, at)
    if end >= 0:
        end = end + 1 if end < stop and buffer[end] == SEMICOLON else -1
    return end, first


@inner
def read_statements(arrays: ScanArrays, head: Int, stop: Int, row: Int, kind: Int) -> Int:
    """An INSERT, a DELETE, or both, from the table's name at `head` to the end of the record; returns its status."""
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    mark = names_end(buffer, head, stop, SPACE)
    if mark < 0 or mark > stop:
        return DECLINED
    first = np.int64(0)
    if mark - head <= MOST_BYTES_TO_CHANGE:
        first = find_table(arrays, head, mark, row)
    if first == 0 and read_table(arrays, head, stop, row, SPACE) != mark:
        return DECLINED
    map_index = NEW if kind == INSERT else OLD
    at = token_end(buffer, mark - 1, stop, text, dictionary, VALUES_ENTRY if kind == INSERT else WHERE_ENTRY)
    if at < 0:
        return DECLINED
    if first > 0 and dictionary[first + COLUMNS, 1] == UNWANTED:
        return STEPPED_OVER
    at, first = read_tuple(arrays, at, stop, row, map_index, first, head, mark)
    if map_index == OLD and at >= 0 and at < stop:
        kind = UPDATE
        begin = token_end(buffer, at, stop, text, dictionary, INSERT_ENTRY)
        if begin < 0 or stop - begin < mark - head or not same_bytes(buffer, head, buffer, begin, mark - head):
            return DECLINED
        at = token_end(buffer, begin + mark - head - 1, stop, text, dictionary, VALUES_ENTRY)
        if at < 0:
            return DECLINED
        end = rows[ENDS + NEW, row]
        at, first = read_tuple(arrays, at, stop, row, NEW, first, head, mark)
        if rows[PRESENT, row] >> (GIVEN + NEW) & 1 and rows[ENDS + NEW, row] == end:
            return DECLINED  # the new tuple has no forms of literals, but the old one may have some; see UNTYPED
    if at == TOO_FEW_CELLS:
        return FULL
    rows[KIND, row] = kind
    return GOOD if at == stop else DECLINED


@hot
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    kind = INSERT
    head = token_end(buffer, at, stop, text, dictionary, INSERT_ENTRY)
    if head < 0:
        kind = DELETE
        head = token_end(buffer, at, stop, text, dictionary, DELETE_ENTRY)
    status = read_line(arrays, at, stop, row) if head < 0 else read_statements(arrays, head, stop, row, kind)
    if status == GOOD:
        arrays.rows[NEEDS, row] = record_needs(buffer, at, stop, arrays.settings)
    return status


scan_sql_decoding = make_scan("scan_sql_decoding", open_message, close_record, read_record)
