"""The scan of the TEXT styles: follows wireformat/grammar/tuple_text.py, quotes and brackets in mind.

Names of gaussdb-text have no quotes: of more than two words before the first mark, a known table tells where the schema
ends. Known tables are entries of the dictionary. Without one, the schema ends at the first blank, as the grammar
guesses. What cannot be read then is left to the grammar.
"""

from __future__ import annotations

import numpy as np

from ....formats.base import Format
from ....grammar.tuple_text import NEW_TUPLE, NO_TUPLE, OLD_KEY, TABLE
from ....options import ReadOptions
from ...arrays import Array, Int
from ...ascii import (
    APOSTROPHE,
    CLOSE_BRACKET,
    COLON,
    OPEN_BRACKET,
    QUOTE,
    SPACE,
    UPPER_B,
)
from ...jit.compiler import hot, inner
from ..dictionary import CELL_ENTRIES, CELL_FACTS, CELLS, COLUMNS, DICTIONARY, DICTIONARY_TEXT, UNWANTED, token_entry
from ..loop import make_scan
from ..notes import (
    DECLINED,
    DELETE,
    ENDS,
    FIRST_LEARNED,
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
    STEPPED_OVER,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_USED,
    TYPE,
    UNCHANGED_LENGTH,
    UPDATE,
    VALUE,
    ScanArrays,
    ScanInput,
)
from ..primitives import is_ascii, same_bytes
from ..registry import FindInput
from ..relations.recognise import expected_relation, learn, next_relation, note_complete, note_pattern
from ..tokens import CHANGE_MARKS
from .literals import (
    BAD_LENGTH,
    BYTES,
    MOST_BYTES_TO_CHANGE,
    TOO_FEW_CELLS,
    TYPE_WORD,
    find_table,
    literal,
    names_end,
    number_end,
    quoted_end,
    read_name,
    read_table,
    text_literal,
)
from .transaction_lines import close_record, open_message, open_record, read_line, record_needs, token_end

FIRST_KNOWN, KNOWN_ENTRIES = len(DICTIONARY), 2
"""From FIRST_KNOWN on, for each table: the pair of `schema table`, and the length of the schema, which is no pair."""

NO_LENGTH = (1 << 31) - 1
"""The length of a name that no bytes may equal: the scan then leaves names that are not ASCII to the grammar."""


class KnownTables:
    """The known tables whose names contain blanks; see Preparation."""

    def __init__(self, settings: Array, options: ReadOptions) -> None:
        names = [
            (schema.encode(), table.encode()) for schema, table in options.known_tables if " " in f"{schema}{table}"
        ]
        entries, text = [], bytearray()
        for schema, table in sorted(names, key=lambda name: len(name[0])):  # the shortest schema first
            joined = schema + b" " + table
            is_comparable = options.encoding == "utf-8" or joined.isascii()
            length = len(joined) if is_comparable else NO_LENGTH
            entries += [(~(len(DICTIONARY_TEXT) + len(text)), length), (len(schema), 0)]
            text += joined
        dictionary = np.concatenate([DICTIONARY, np.array(entries, np.int32).reshape(-1, 2)])
        self._input = ScanInput(dictionary, settings, bytes(text))

    def begin(self, format: Format) -> FindInput:
        """See Preparation.begin."""
        return lambda message_batch: self._input


TABLE_ENTRY, OLD_ENTRY, NEW_ENTRY, NO_TUPLE_ENTRY = (
    token_entry(token) for token in (TABLE, OLD_KEY, NEW_TUPLE, NO_TUPLE)
)
FIRST_CHANGE = token_entry(CHANGE_MARKS[0])


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
def value_end(buffer: Array, at: Int, stop: Int) -> tuple[Int, bool]:
    """Where the literal ends that begins at `at`, which is no text in single quotes, or -1; and whether it is a number,
    which has been checked."""
    if at + 1 < stop and buffer[at] == UPPER_B and buffer[at + 1] == APOSTROPHE:
        return quoted_end(buffer, at + 1, stop)[0], False
    end = number_end(buffer, at, stop)
    if end >= 0 and (end == stop or buffer[end] == SPACE):
        return end, True
    while at < stop and buffer[at] != SPACE:
        at += 1
    return at, False


@hot
def columns(arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, to_new: bool, relation: Int) -> Int:
    """Columns into the map `map_index`, to the end of the record or to the mark of the new tuple.

    relation   the relation whose columns are expected, or 0: any columns, whose patterns are noted
    returns    where they end; TOO_FEW_CELLS where the cells have none; -1 for other columns, or for what is odd
    """
    buffer, rows, cells = arrays.buffer, arrays.rows, arrays.cells
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    image = cells[map_index]
    first = cell = rows[ENDS + map_index, row]
    last = first + np.int64(dictionary[relation + COLUMNS, 0]) if relation > 0 else image.shape[1]
    if last > image.shape[1]:
        return TOO_FEW_CELLS
    column = relation + CELLS + CELL_FACTS
    has_unchanged = False
    while at < stop and not (to_new and token_end(buffer, at, stop, text, dictionary, NEW_ENTRY) >= 0):
        if cell == last:
            return -1 if relation > 0 else TOO_FEW_CELLS
        if relation > 0:
            size = np.int64(dictionary[column, 1])
            if stop - at < size or not same_bytes(buffer, at, text, ~np.int64(dictionary[column, 0]), size):
                return -1
            column += CELL_ENTRIES
            begin = at + size
        else:
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
            note_pattern(arrays, cell - first, at, begin)
        if begin < stop and buffer[begin] == APOSTROPHE:
            start, length, at, cursor[TEXT_USED] = text_literal(buffer, begin, stop, text, cursor[TEXT_USED], False)
        else:
            at, is_number = value_end(buffer, begin, stop)
            start, length = begin, at - begin
            if at >= 0 and not is_number:
                start, length = literal(buffer, begin, at, text, dictionary)
        if at < 0 or length == BAD_LENGTH:
            return -1
        has_unchanged = has_unchanged or length == UNCHANGED_LENGTH
        image[VALUE, cell, 0] = start
        image[VALUE, cell, 1] = length
        cell += 1
    if has_unchanged:
        rows[PRESENT, row] |= 1 << HAS_UNCHANGED
    if relation > 0:
        if cell != last:
            return -1
        note_complete(arrays, row, map_index, relation, first)
    else:
        rows[ENDS + map_index, row] = cell
        rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    return at


@inner
def read_columns(
    arrays: ScanArrays, at: Int, stop: Int, row: Int, map_index: Int, to_new: bool, first: Int, head: Int, head_end: Int
) -> tuple[Int, Int]:
    """One tuple of a table into the map `map_index`: where it ends, as `columns` says, and the table's relation."""
    text, dictionary, cursor = arrays.text, arrays.dictionary, arrays.cursor
    if not to_new and token_end(arrays.buffer, at, stop, text, dictionary, NO_TUPLE_ENTRY) == stop:
        return stop, first
    begin, used = arrays.rows[ENDS + map_index, row], cursor[TEXT_USED]
    relation = expected_relation(arrays, row, first, head_end - head)
    while True:
        end = columns(arrays, at, stop, row, map_index, to_new, relation)
        if end != -1 or relation == 0:
            break
        relation = next_relation(dictionary, relation, first)
        cursor[TEXT_USED] = used
    if end >= 0 and (relation == 0 or first == 0):
        first = learn(arrays, row, map_index, begin, relation, first, head, head_end, at, at)
    return end, first


@hot
def mark_end(arrays: ScanArrays, at: Int, stop: Int) -> tuple[Int, Int]:
    """Where the mark of a row change ends that begins at `at`, or -1, and its kind."""
    for change in range(3):
        end = token_end(arrays.buffer, at, stop, arrays.text, arrays.dictionary, FIRST_CHANGE + change)
        if end >= 0:
            return end, np.int64(INSERT + change)
    return np.int64(-1), np.int64(INSERT)


@hot
def read_images(arrays: ScanArrays, at: Int, end: Int, kind: Int, stop: Int, row: Int, first: Int, head: Int) -> Int:
    """The row images after the mark of this kind, buffer[at:end], to the end of the record; returns the row's status.

    first, head   the first relation of the table, or 0, and the bytes up to `at` that name it
    """
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    if first > 0 and dictionary[first + COLUMNS, 1] == UNWANTED:
        return STEPPED_OVER
    rows[KIND, row] = kind
    begin = token_end(buffer, end, stop, text, dictionary, OLD_ENTRY) if kind == UPDATE else -1
    has_old = begin >= 0
    for image in range(0 if has_old else 1, 2):
        is_old = image == 0
        map_index = OLD if is_old or kind == DELETE else NEW
        if is_old:
            end = begin
        elif has_old and end >= 0:
            end = token_end(buffer, end, stop, text, dictionary, NEW_ENTRY)
        if end >= 0:
            end, first = read_columns(arrays, end, stop, row, map_index, is_old, first, head, at)
    if end == TOO_FEW_CELLS:
        return FULL
    return GOOD if end == stop else DECLINED


@inner
def schema_end(arrays: ScanArrays, start: Int, blank: Int, stop: Int) -> Int:
    """Where the schema ends in `schema table` of gaussdb-text, which has more than one blank; -1 for what is odd.

    blank   the first of them, where it ends if the table is not known; more than eight bytes precede `stop`
    """
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    known_end = arrays.cursor[FIRST_LEARNED]
    for entry in range(FIRST_KNOWN, known_end, KNOWN_ENTRIES):
        if token_end(buffer, start, stop, text, dictionary, entry) == stop:
            return start + np.int64(dictionary[entry + 1, 0])
    if known_end > FIRST_KNOWN and not is_ascii(buffer, start, stop - start):
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


@hot
def known_head(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> tuple[Int, Int]:
    """Where the mark after schema and table begins, and the table's first relation; 0 if the table is not known."""
    buffer = arrays.buffer
    end = at
    if arrays.settings[QUOTED]:
        end = names_end(buffer, at, stop, COLON)
    else:
        for _ in range(2):
            while end < stop and buffer[end] != SPACE:
                end += 1
            end += 1
        end -= 1
    if end < 0 or end >= stop or end - at > MOST_BYTES_TO_CHANGE:
        return at, np.int64(0)
    return end, find_table(arrays, at, end, row)


@hot
def read_record(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see loop.py."""
    buffer, rows = arrays.buffer, arrays.rows
    text, dictionary, settings = arrays.text, arrays.dictionary, arrays.settings
    head = token_end(buffer, at, stop, text, dictionary, TABLE_ENTRY)
    end, kind = np.int64(-1), np.int64(INSERT)
    mark, first = np.int64(-1), np.int64(0)
    if head >= 0:
        mark, first = known_head(arrays, head, stop, row)
        if first > 0:
            end, kind = mark_end(arrays, mark, stop)
        if first == 0 and settings[QUOTED]:
            mark = read_table(arrays, head, stop, row, COLON)
            if mark >= 0:
                end, kind = mark_end(arrays, mark, stop)
        elif end < 0 and not settings[QUOTED]:  # a name has blanks
            mark = read_unquoted(arrays, head, stop, row)
            if mark >= 0:
                first = find_table(arrays, head, mark, row)
                end, kind = mark_end(arrays, mark, stop)
    if end >= 0:
        status = read_images(arrays, mark, end, kind, stop, row, first, head)
    else:
        status = read_line(arrays, at, stop, row)
    if status == GOOD:
        rows[NEEDS, row] = record_needs(buffer, at, stop, settings)
    return status


scan_gaussdb_text = make_scan("scan_gaussdb_text", open_record, close_record, read_record)
scan_opengauss_text = make_scan("scan_opengauss_text", open_message, close_record, read_record)
