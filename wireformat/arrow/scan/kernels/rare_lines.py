"""The walk over the rare records of text styles: TRUNCATE; of test-decoding logical messages, and lines with the name
of a prepared transaction.

It follows wireformat/grammar/table_text.py, messages.py and lines.py.
"""

from __future__ import annotations

from ....grammar.lines import PREPARED_KINDS
from ....grammar.table_text import NO_FLAGS
from ....grammar.tuple_text import TABLE
from ....options.reading import KINDS
from ...arrays import Array, Int
from ...ascii import APOSTROPHE, BACKSLASH, COLON, COMMA, DIGIT_0, DIGIT_1, DIGIT_9, SPACE
from ...jit.compiler import inner
from ..dictionary import (
    CASCADE_KEY,
    GID_KEY,
    PREFIX_KEY,
    RESTART_IDENTITY_KEY,
    SIZE_KEY,
    TRANSACTIONAL_KEY,
    token_entry,
)
from ..notes import (
    DECLINED,
    DETAIL,
    ENDS,
    EXTRA_ROW,
    GOOD,
    KIND,
    MESSAGE_KIND,
    NAME,
    NEEDS,
    RELATION,
    TEXT_USED,
    TIME_TEXT,
    TRUNCATE,
    VALUE,
    ScanArrays,
)
from ..rare_records import begin_extra_row, make_rare_walk
from ..row_notes import is_utf8, note_detail, note_flag, note_message
from ..tokens import (
    MESSAGE_CONTENT,
    MESSAGE_HEAD,
    MESSAGE_PREFIX,
    MESSAGE_SIZE,
    STREAMED_MESSAGE_HEAD,
    TRUNCATE_FLAGS,
    TRUNCATE_MARK,
)
from .literals import names_end, read_table
from .transaction_lines import (
    LINE_FIELDS,
    PART_FIELDS,
    find_line,
    read_digits,
    read_parts,
    record_needs,
    token_end,
    token_end_any_case,
)

HEAD, STREAMED_HEAD, PREFIX, SIZE, CONTENT = (
    token_entry(token) for token in (MESSAGE_HEAD, STREAMED_MESSAGE_HEAD, MESSAGE_PREFIX, MESSAGE_SIZE, MESSAGE_CONTENT)
)
TABLE_ENTRY, TRUNCATE_ENTRY, NO_FLAGS_ENTRY = (token_entry(token) for token in (TABLE, TRUNCATE_MARK, NO_FLAGS))
RESTART_ENTRY, CASCADE_ENTRY = map(token_entry, TRUNCATE_FLAGS)
SIZE_BYTES = len(MESSAGE_SIZE)
MOST_SIZE_DIGITS = 10

PREPARED = sum(1 << KINDS.index(kind) for kind in PREPARED_KINDS)
"""Bits of the kinds whose time is that of the PREPARE, not of a commit."""


@inner
def read_with_content(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Flag, prefix and content. The prefix ends where the size after it is that of what follows: at one place only."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    if at == stop or (buffer[at] != DIGIT_0 and buffer[at] != DIGIT_1):
        return DECLINED
    prefix = token_end(buffer, at + 1, stop, text, dictionary, PREFIX)
    if prefix < 0:
        return DECLINED
    prefix_end = content = -1
    for end in range(prefix, stop):
        begin = token_end(buffer, end, stop, text, dictionary, SIZE) if buffer[end] == COMMA else -1
        if begin >= 0:
            size, after = read_digits(buffer, begin, stop)
            if after > begin and after <= begin + MOST_SIZE_DIGITS:
                after = token_end(buffer, after, stop, text, dictionary, CONTENT)
                if after >= 0 and stop - after == size:
                    if content >= 0:
                        return DECLINED
                    prefix_end, content = end, after
    if content < 0:
        return DECLINED
    return note_message(arrays, row, buffer[at] == DIGIT_1, prefix, prefix_end - prefix, content, stop - content)


@inner
def read_size_only(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Prefix and size of a message in a streamed block, whose content is not sent."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    digits = stop
    while digits > at and buffer[digits - 1] >= DIGIT_0 and buffer[digits - 1] <= DIGIT_9:
        digits -= 1
    length = stop - digits
    end = digits - SIZE_BYTES
    if end < at or token_end(buffer, end, stop, text, dictionary, SIZE) < 0:
        return DECLINED
    if length == 0 or length > MOST_SIZE_DIGITS or (length > 1 and buffer[digits] == DIGIT_0):
        return DECLINED
    if not is_utf8(arrays, at, end - at):
        return DECLINED
    note_detail(arrays, row, PREFIX_KEY, at, end - at)
    note_detail(arrays, row, SIZE_KEY, digits, length)
    note_flag(arrays, row, TRANSACTIONAL_KEY, True)
    return GOOD


@inner
def gid_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where the name in single quotes that begins at `at` is closed; -1 if there is none.

    A name that holds quotes or backslashes is left to the grammar.
    """
    if at < 0 or at == stop or buffer[at] != APOSTROPHE:
        return -1
    at += 1
    while at < stop and buffer[at] != APOSTROPHE:
        if buffer[at] == BACKSLASH:
            return -1
        at += 1
    return at if at < stop and (at + 1 == stop or buffer[at + 1] != APOSTROPHE) else -1


@inner
def read_prepared(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """A line whose first part is a gid; returns the row's status."""
    buffer, rows, settings = arrays.buffer, arrays.rows, arrays.settings
    line, at = find_line(arrays, at, stop)
    if line < 0 or settings[line + 2] == 0:
        return DECLINED
    first = line + LINE_FIELDS
    begin = token_end_any_case(arrays, at, stop, settings[first])
    end = gid_end(buffer, begin, stop)
    if end < 0:
        return DECLINED
    rows[KIND, row] = settings[line]
    before = rows[ENDS + DETAIL, row]
    parts_end = first + settings[line + 2] * PART_FIELDS
    status = read_parts(arrays, end + 1, stop, row, first + PART_FIELDS, parts_end)
    if PREPARED >> settings[line] & 1:
        rows[TIME_TEXT + 1, row] = -1
        put_gid(arrays, row, before, begin + 1, end)
    else:
        note_detail(arrays, row, GID_KEY, begin + 1, end - begin - 1)
    return status


@inner
def put_gid(arrays: ScanArrays, row: Int, cell: Int, begin: Int, end: Int) -> None:
    """Adds the gid to the details of a row before the detail `cell`, if there is one: a prepare_time comes after it."""
    details, last = arrays.cells[DETAIL], arrays.rows[ENDS + DETAIL, row]
    note_detail(arrays, row, GID_KEY, begin, end - begin)
    if last > cell:
        for field in range(NAME, VALUE + 1):
            for part in range(2):
                earlier = details[field, cell, part]
                details[field, cell, part] = details[field, last, part]
                details[field, last, part] = earlier


@inner
def read_truncate(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """TRUNCATE, from the name of its first table to the end; returns the row's status, with the rows after it."""
    buffer, rows, cursor = arrays.buffer, arrays.rows, arrays.cursor
    text, dictionary = arrays.text, arrays.dictionary
    rows[KIND, row], rows[RELATION, row] = TRUNCATE, 0
    mark = names_end(buffer, at, stop, COLON)
    flags = token_end(buffer, mark, stop, text, dictionary, TRUNCATE_ENTRY) if 0 <= mark <= stop else -1
    if flags < 0:
        return DECLINED
    end = token_end(buffer, flags, stop, text, dictionary, NO_FLAGS_ENTRY)
    restarts = cascades = False
    if end < 0:
        end = token_end(buffer, flags, stop, text, dictionary, RESTART_ENTRY)
        restarts = end >= 0
        after = token_end(buffer, end if restarts else flags, stop, text, dictionary, CASCADE_ENTRY)
        cascades = after >= 0
        if cascades:
            end = after
    if end != stop:
        return DECLINED
    needs = record_needs(buffer, at, stop, arrays.settings)
    first, used = row, cursor[TEXT_USED]
    while True:
        end = read_table(arrays, at, stop, row, COMMA)
        is_last = end < 0
        if is_last:
            cursor[TEXT_USED] = used
            end = read_table(arrays, at, stop, row, COLON)
        elif needs != 0 or end == stop or buffer[end] != SPACE:
            return DECLINED
        note_flag(arrays, row, RESTART_IDENTITY_KEY, restarts)
        note_flag(arrays, row, CASCADE_KEY, cascades)
        rows[NEEDS, row] = needs
        if is_last:
            return GOOD + EXTRA_ROW * (row - first) if end == mark else DECLINED
        at, used = end + 1, cursor[TEXT_USED]
        row = begin_extra_row(rows, row)


@inner
def read_rare(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see rare_records.py."""
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    begin = token_end(buffer, at, stop, text, dictionary, TABLE_ENTRY)
    if begin >= 0:
        return read_truncate(arrays, begin, stop, row)
    rows[KIND, row] = MESSAGE_KIND
    begin = token_end(buffer, at, stop, text, dictionary, HEAD)
    if begin >= 0:
        return read_with_content(arrays, begin, stop, row)
    begin = token_end(buffer, at, stop, text, dictionary, STREAMED_HEAD)
    if begin >= 0:
        return read_size_only(arrays, begin, stop, row)
    status = read_prepared(arrays, at, stop, row)
    if status == GOOD:
        rows[NEEDS, row] = record_needs(buffer, at, stop, arrays.settings)
    return status


walk_rare_lines = make_rare_walk("walk_rare_lines", read_rare)
