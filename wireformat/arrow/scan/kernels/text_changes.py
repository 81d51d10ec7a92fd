"""The scan of the TEXT styles: follows wireformat/grammar/tuple_text.py, quotes and brackets in mind.

Names of gaussdb-text have no quotes: of more than two words before the first mark, a known table tells where the schema
ends. Without one, it ends at the first blank, as the grammar guesses. What cannot be read then is left to the grammar.
"""

from __future__ import annotations

import re

import numpy as np

from ....grammar.names import TYPE_WORDS
from ....grammar.tuple_text import NEW_TUPLE, NO_TUPLE, OLD_KEY
from ....identifiers import PLAIN_NAME
from ....limits import NAME_BYTES
from ...arrays import Array, Int
from ...ascii import (
    APOSTROPHE,
    CLOSE_BRACKET,
    COLON,
    DOT,
    OPEN_BRACKET,
    QUOTE,
    SPACE,
    UPPER_B,
)
from ...jit.compiler import hot, inner
from ..dictionary import token_entry
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
    QUOTED,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TYPE,
    UNCHANGED_LENGTH,
    UPDATE,
    VALUE,
    ScanArrays,
)
from ..primitives import is_ascii
from ..tokens import ROW_CHANGES, TABLE
from .known_tables import FIRST_KNOWN, KNOWN_ENTRIES
from .literals import BAD_LENGTH, literal, number_end, quoted_end, undo
from .transaction_lines import close_record, open_message, open_record, read_line, record_needs, token_end

TABLE_ENTRY, OLD_ENTRY, NEW_ENTRY, NO_TUPLE_ENTRY = (
    token_entry(token) for token in (TABLE, OLD_KEY, NEW_TUPLE, NO_TUPLE)
)
FIRST_CHANGE = token_entry(ROW_CHANGES[0])
MOST_BYTES_TO_CHANGE = 2 * NAME_BYTES + 1

TOO_FEW_CELLS = -2
"""The end of columns for which there are too few cells."""


PLAIN, FIRST, TYPE_WORD = 1, 2, 4
BYTES = np.zeros(256, np.uint8)
"""What each byte may be part of: a plain name, also as its first byte; the words of a type."""
for _bit, _pattern, _before in ((PLAIN, PLAIN_NAME, "a"), (FIRST, PLAIN_NAME, ""), (TYPE_WORD, TYPE_WORDS, "")):
    for _byte in range(128):
        if re.fullmatch(_pattern, _before + chr(_byte)):
            BYTES[_byte] |= _bit


@hot
def name_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where a plain name ends that begins at `at`; `at` itself if there is none."""
    if at < stop and not BYTES[buffer[at]] & FIRST:
        return at
    while at < stop and BYTES[buffer[at]] & PLAIN:
        at += 1
    return at


@hot
def read_name(arrays: ScanArrays, at: Int, stop: Int) -> tuple[Int, Int, Int]:
    """A name, plain or in quotes: where it ends, or -1, and its pair."""
    buffer, text, cursor = arrays.buffer, arrays.text, arrays.cursor
    if at == stop or buffer[at] != QUOTE:
        end = name_end(buffer, at, stop)
        return end if end > at else -1, at, end - at
    end, doubled = quoted_end(buffer, at, stop)
    if not doubled or end < 0:
        return end, at + 1, end - at - 2
    used = cursor[TEXT_USED]
    _, after = undo(buffer, at, end, text, used, QUOTE, False)
    cursor[TEXT_USED] = after
    return end, ~used, after - used


@hot
def type_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where the name of a type ends that begins at `at`, before its bracket; -1 for what is odd."""
    while at < stop:
        byte = buffer[at]
        if byte == QUOTE:
            at, _ = quoted_end(buffer, at, stop)
            if at < 0:
                return -1
        elif byte == OPEN_BRACKET:
            if at + 1 == stop or buffer[at + 1] != CLOSE_BRACKET:
                return -1
            at += 2
        elif BYTES[byte] & TYPE_WORD:
            at += 1
        else:
            return at
    return -1


@hot
def value_end(buffer: Array, at: Int, stop: Int) -> tuple[Int, Int]:
    """Where the literal ends that begins at `at`, or -1, and how many single quotes it holds, three for more; -1 for a
    number, which has been checked."""
    begin = at
    if at + 1 < stop and buffer[at] == UPPER_B and buffer[at + 1] == APOSTROPHE:
        begin += 1
    if begin < stop and buffer[begin] == APOSTROPHE:
        end, doubled = quoted_end(buffer, begin, stop)
        return end, 3 if doubled else 2
    end = number_end(buffer, at, stop)
    if end >= 0 and (end == stop or buffer[end] == SPACE):
        return end, -1
    while at < stop and buffer[at] != SPACE:
        at += 1
    return at, 0


@inner
def read_columns(arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, to_new: bool) -> Int:
    """One tuple into the map `map_index`, to the end of the record or to the mark of the new tuple.

    Returns where it ends, TOO_FEW_CELLS where the cells have none, and -1 for what is odd.
    """
    buffer, rows, cells = arrays.buffer, arrays.rows, arrays.cells
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    image = cells[map_index]
    cell = rows[ENDS + map_index, row]
    if not to_new and token_end(buffer, at, stop, text, dictionary, NO_TUPLE_ENTRY) == stop:
        return stop
    while at < stop and not (to_new and token_end(buffer, at, stop, text, dictionary, NEW_ENTRY) >= 0):
        if cell == image.shape[1]:
            return TOO_FEW_CELLS
        if buffer[at] != SPACE:
            return -1
        end, start, length = read_name(arrays, at + 1, stop)
        if end < 0 or end == stop or buffer[end] != OPEN_BRACKET:
            return -1
        image[NAME, cell, 0] = start
        image[NAME, cell, 1] = length
        begin = end + 1
        end = type_end(buffer, begin, stop)
        if end <= begin or stop - end < 2 or buffer[end] != CLOSE_BRACKET or buffer[end + 1] != COLON:
            return -1
        image[TYPE, cell, 0] = begin
        image[TYPE, cell, 1] = end - begin
        begin = end + 2
        at, quotes = value_end(buffer, begin, stop)
        if at < 0:
            return -1
        start, length = begin, at - begin
        if quotes >= 0:
            start, length, used = literal(buffer, begin, at, False, quotes, text, dictionary, cursor[TEXT_USED], False)
            if length == BAD_LENGTH:
                return -1
            cursor[TEXT_USED] = used
        if length == UNCHANGED_LENGTH:
            rows[PRESENT, row] |= 1 << HAS_UNCHANGED
        image[VALUE, cell, 0] = start
        image[VALUE, cell, 1] = length
        cell += 1
    rows[ENDS + map_index, row] = cell
    rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    return at


@inner
def read_images(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """The mark at `at` and the row images after it, to the end of the record; returns the row's status."""
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    kind = INSERT
    end = -1
    for change in range(3):
        if end < 0:
            end = token_end(buffer, at, stop, text, dictionary, FIRST_CHANGE + change)
            kind = INSERT + change
    if end < 0:
        return DECLINED
    rows[KIND, row] = kind
    map_index = OLD if kind == DELETE else NEW
    begin = token_end(buffer, end, stop, text, dictionary, OLD_ENTRY) if kind == UPDATE else -1
    if begin >= 0:
        end = read_columns(arrays, begin, stop, row, OLD, True)
        if end >= 0:
            end = token_end(buffer, end, stop, text, dictionary, NEW_ENTRY)
    if end >= 0:
        end = read_columns(arrays, end, stop, row, map_index, False)
    if end == TOO_FEW_CELLS:
        return FULL
    return GOOD if end == stop else DECLINED


@inner
def schema_end(arrays: ScanArrays, start: Int, blank: Int, stop: Int) -> Int:
    """Where the schema ends in `schema table` of gaussdb-text, which has more than one blank; -1 for what is odd.

    blank   the first of them, where it ends if the table is not known; more than eight bytes precede `stop`
    """
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    for entry in range(FIRST_KNOWN, dictionary.shape[0], KNOWN_ENTRIES):
        if token_end(buffer, start, stop, text, dictionary, entry) == stop:
            return start + np.int64(dictionary[entry + 1, 0])
    if dictionary.shape[0] > FIRST_KNOWN and not is_ascii(buffer, start, stop - start):
        return -1
    return blank


@inner
def read_unquoted(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Schema and table of gaussdb-text; returns where the mark after them begins, or -1."""
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    start = at
    first = last = -1  # blanks
    while at < stop and at - start <= MOST_BYTES_TO_CHANGE:
        if buffer[at] == SPACE and at > start:
            for change in range(3):
                if first >= 0 and token_end(buffer, at, stop, text, dictionary, FIRST_CHANGE + change) >= 0:
                    blank = first if first == last else schema_end(arrays, start, first, at)
                    rows[TABLE_SCHEMA, row] = start
                    rows[TABLE_SCHEMA + 1, row] = blank - start
                    rows[TABLE_NAME, row] = blank + 1
                    rows[TABLE_NAME + 1, row] = at - blank - 1
                    return at if blank > start and at > blank + 1 else -1
            if first < 0:
                first = at
            last = at
        at += 1
    return -1


@inner
def read_quoted(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """`schema.table:`, each plain or in quotes; returns where the mark after them begins, or -1."""
    buffer, rows = arrays.buffer, arrays.rows
    for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
        at, start, length = read_name(arrays, at, stop)
        if at < 0 or at == stop or buffer[at] != (DOT if field == TABLE_SCHEMA else COLON):
            return -1
        rows[field, row] = start
        rows[field + 1, row] = length
        at += 1
    return at


@inner
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, rows = arrays.buffer, arrays.rows
    text, dictionary, settings = arrays.text, arrays.dictionary, arrays.settings
    begin = token_end(buffer, at, stop, text, dictionary, TABLE_ENTRY)
    if begin < 0:
        status = read_line(arrays, at, stop, row)
    else:
        begin = read_quoted(arrays, begin, stop, row) if settings[QUOTED] else read_unquoted(arrays, begin, stop, row)
        status = DECLINED
        if begin >= 0:
            status = read_images(arrays, begin, stop, row)
    if status == GOOD:
        rows[NEEDS, row] = record_needs(buffer, at, stop, settings)
    return status


scan_gaussdb_text = make_scan("scan_gaussdb_text", open_record, close_record, read_record)
scan_opengauss_text = make_scan("scan_opengauss_text", open_message, close_record, read_record)
