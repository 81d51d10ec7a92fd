"""The walk over the rare records of GaussDB's and openGauss's serial plugins: DDL, and what rare_lines.py reads.

It follows wireformat/grammar/ddl_lines.py. What is odd is left to the grammar: numbers with zeros before them, commas
in a prefix, and a size that is not that of the content. Objects are kept as they are. They may contain what the module
`json` of Python reads, except for NaN, Infinity and very deep objects.
"""

from __future__ import annotations

import numpy as np

from ....grammar.lines import UNSIGNED, UNSIGNED_32
from ...arrays import Array, Int
from ...ascii import (
    APOSTROPHE,
    BACKSLASH,
    CASE_BIT,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    DIGIT_0,
    DIGIT_9,
    DOT,
    LOWER_E,
    LOWER_U,
    MINUS,
    OPEN_BRACE,
    OPEN_BRACKET,
    PLUS,
    QUOTE,
    SPACE,
)
from ...jit.compiler import inner
from ..dictionary import (
    CMDTYPE_KEY,
    CONTENT_KEY,
    OWNER_KEY,
    PREFIX_KEY,
    RELID_KEY,
    SIZE_KEY,
    SQL_KEY,
    token_entry,
)
from ..notes import DDL_KIND, DECLINED, GOOD, KIND, LSN, NEEDS, PRESENT, TEXT_NEEDED, TEXT_SLACK, TEXT_USED, ScanArrays
from ..rare_records import make_rare_walk
from ..row_notes import note_detail
from ..tokens import DDL_LINES, DDL_OBJECTS, DDL_OWNER, FALSE, NULL, TRUE
from .literals import special_at, undo
from .rare_lines import TABLE_ENTRY, read_prepared, read_truncate
from .transaction_lines import read_digits, record_needs, token_end

TRUE_ENTRY, FALSE_ENTRY, NULL_ENTRY = (token_entry(token) for token in (TRUE, FALSE, NULL))

MOST_DEPTH = 60
"""How deep objects and arrays may lie in each other: there is a bit for each."""

VALUE, FIRST_VALUE, KEY, FIRST_KEY, AFTER_VALUE = range(5)

IS_ESCAPED = np.zeros(256, np.bool_)
"""Which letters may follow a backslash, but for u and its digits."""
for _letter in b'"\\/bfnrt':
    IS_ESCAPED[_letter] = True

IS_HEX = np.zeros(256, np.bool_)
for _digit in b"0123456789abcdefABCDEF":
    IS_HEX[_digit] = True

IS_BLANK = np.zeros(256, np.bool_)
for _blank in b" \t\n\r":
    IS_BLANK[_blank] = True


@inner
def blank_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where the blanks at `at` end."""
    while at < stop and IS_BLANK[buffer[at]]:
        at += 1
    return at


@inner
def json_string_end(buffer: Array, at: Int, stop: Int) -> Int:
    """One past the string at `at`; -1 if there is none."""
    if at == stop or buffer[at] != QUOTE:
        return -1
    at += 1
    while at < stop:
        at = special_at(buffer, at, stop)
        if at == stop or buffer[at] < SPACE:
            return -1
        if buffer[at] == QUOTE:
            return at + 1
        if buffer[at] == BACKSLASH:
            at += 1
            if at < stop and buffer[at] == LOWER_U:
                for _ in range(4):
                    at += 1
                    if at >= stop or not IS_HEX[buffer[at]]:
                        return -1
            elif at == stop or not IS_ESCAPED[buffer[at]]:
                return -1
        at += 1
    return -1


@inner
def digits_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where the digits at `at` end; -1 if there are none."""
    begin = at
    while at < stop and buffer[at] >= DIGIT_0 and buffer[at] <= DIGIT_9:
        at += 1
    return at if at > begin else -1


@inner
def json_number_end(buffer: Array, at: Int, stop: Int) -> Int:
    """One past the number at `at`; -1 if there is none."""
    if at < stop and buffer[at] == MINUS:
        at += 1
    if at < stop and buffer[at] == DIGIT_0:
        at += 1
    else:
        at = digits_end(buffer, at, stop)
    if at >= 0 and at < stop and buffer[at] == DOT:
        at = digits_end(buffer, at + 1, stop)
    if at >= 0 and at < stop and buffer[at] | CASE_BIT == LOWER_E:
        at += 1
        if at < stop and (buffer[at] == PLUS or buffer[at] == MINUS):
            at += 1
        at = digits_end(buffer, at, stop)
    return at


@inner
def scalar_end(arrays: ScanArrays, at: Int, stop: Int) -> Int:
    """One past the string, number, true, false or null at `at`; -1 if there is none."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    if buffer[at] == QUOTE:
        return json_string_end(buffer, at, stop)
    end = token_end(buffer, at, stop, text, dictionary, TRUE_ENTRY)
    if end < 0:
        end = token_end(buffer, at, stop, text, dictionary, FALSE_ENTRY)
    if end < 0:
        end = token_end(buffer, at, stop, text, dictionary, NULL_ENTRY)
    return end if end >= 0 else json_number_end(buffer, at, stop)


@inner
def json_object_end(arrays: ScanArrays, at: Int, stop: Int) -> Int:
    """One past the object at `at`; -1 if there is none."""
    buffer = arrays.buffer
    if at == stop or buffer[at] != OPEN_BRACE:
        return -1
    are_objects = np.int64(0)  # a bit for each open object or array, the last one lowest
    depth = 0
    state = VALUE
    while at >= 0:
        at = blank_end(buffer, at, stop)
        if at == stop:
            return -1
        byte = np.int64(buffer[at])
        closes = byte == (CLOSE_BRACE if are_objects & 1 else CLOSE_BRACKET)
        if closes and (state == FIRST_KEY or state == FIRST_VALUE or state == AFTER_VALUE):
            at += 1
            depth -= 1
            if depth == 0:
                return at
            are_objects >>= 1
            state = AFTER_VALUE
        elif state == AFTER_VALUE:
            if byte != COMMA:
                return -1
            at += 1
            state = KEY if are_objects & 1 else VALUE
        elif state == KEY or state == FIRST_KEY:
            at = json_string_end(buffer, at, stop)
            if at < 0:
                return -1
            at = blank_end(buffer, at, stop)
            if at == stop or buffer[at] != COLON:
                return -1
            at += 1
            state = VALUE
        elif byte == OPEN_BRACE or byte == OPEN_BRACKET:
            if depth == MOST_DEPTH:
                return -1
            is_object = byte == OPEN_BRACE
            are_objects = are_objects << 1 | is_object
            depth += 1
            at += 1
            state = FIRST_KEY if is_object else FIRST_VALUE
        else:
            at = scalar_end(arrays, at, stop)
            state = AFTER_VALUE
    return -1


FIELDS = ("prefix", "lsn", "relid", "cmdtype", "size")
"""The parts of a line, in their order; one of the lines has no LSN."""


def _marks() -> Array:
    """Returns, for each line, the tokens before its parts, its content and its statement; -1 if it has no such part."""
    marks = np.full((len(DDL_LINES), len(FIELDS) + 2), -1, np.int64)
    for line, of_line in zip(DDL_LINES, marks, strict=True):
        for part in line.parts:
            is_number = part.value in (UNSIGNED, UNSIGNED_32)
            assert part.required, "`read_ddl` declines lines without it"
            assert is_number == (part.field in ("lsn", "relid", "size")), "as `read_ddl` reads it"
            of_line[FIELDS.index(part.field)] = token_entry(part.before)
        of_line[len(FIELDS) :] = token_entry(line.content), token_entry(line.sql)
    return marks


MARKS = _marks()
LINE_COUNT = len(MARKS)
PREFIX_MARK, LSN_MARK, RELID_MARK, CMDTYPE_MARK, SIZE_MARK, CONTENT_MARK, SQL_MARK = range(len(FIELDS) + 2)
SQL_ENTRY, TEMPLATE_ENTRY = map(token_entry, DDL_OBJECTS)
OWNER_ENTRY = token_entry(DDL_OWNER)
OWNER_BYTES = len(DDL_OWNER)


@inner
def number_after(arrays: ScanArrays, at: Int, stop: Int, token: Int) -> tuple[Int, Int, Int]:
    """The number after a token: its value, where it begins and where it ends; -1 if it is not there or is odd."""
    begin = token_end(arrays.buffer, at, stop, arrays.text, arrays.dictionary, token) if at >= 0 else -1
    if begin < 0:
        return np.int64(0), begin, np.int64(-1)
    value, end = read_digits(arrays.buffer, begin, stop)
    if end == begin or (end - begin > 1 and arrays.buffer[begin] == DIGIT_0):
        end = np.int64(-1)
    return value, begin, end


@inner
def comma_after(arrays: ScanArrays, at: Int, stop: Int, token: Int) -> tuple[Int, Int]:
    """Where the text after a token begins, and its first comma, where it ends; -1 for what is not there."""
    begin = token_end(arrays.buffer, at, stop, arrays.text, arrays.dictionary, token) if at >= 0 else -1
    end = begin
    while end >= 0 and end < stop and arrays.buffer[end] != COMMA:
        end += 1
    return begin, end if end < stop else -1


@inner
def owner_mark(arrays: ScanArrays, at: Int, stop: Int) -> Int:
    """Where the last mark of an owner begins in buffer[at:stop], if the record ends as one with an owner; or `stop`."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    if stop > at and buffer[stop - 1] == CLOSE_BRACKET:
        for begin in range(stop - OWNER_BYTES, at - 1, -1):
            if buffer[begin] == COMMA and token_end(buffer, begin, stop, text, dictionary, OWNER_ENTRY) >= 0:
                return begin
    return stop


@inner
def read_ddl(arrays: ScanArrays, at: Int, stop: Int, row: Int, line: Int) -> Int:
    """One of openGauss's lines; returns the row's status."""
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    marks = MARKS[line]
    has_lsn = marks[LSN_MARK] >= 0
    if has_lsn and record_needs(buffer, at, stop, arrays.settings) != 0:
        return DECLINED  # its text may be wrong, and the error would have the LSN of the line
    prefix, prefix_end = comma_after(arrays, at, stop, marks[PREFIX_MARK])
    at = prefix_end
    lsn = np.int64(0)
    if has_lsn:
        lsn, _, at = number_after(arrays, at, stop, marks[LSN_MARK])
    relid, relid_at, relid_end = number_after(arrays, at, stop, marks[RELID_MARK])
    if relid > 0xFFFFFFFF:
        return DECLINED
    cmdtype, cmdtype_end = comma_after(arrays, relid_end, stop, marks[CMDTYPE_MARK])
    size, size_at, size_end = number_after(arrays, cmdtype_end, stop, marks[SIZE_MARK])
    content = token_end(buffer, size_end, stop, text, dictionary, marks[CONTENT_MARK]) if size_end >= 0 else -1
    if content < 0 or size == 0 or size - 1 > stop - content:
        return DECLINED
    end = content + size - 1
    if end < stop:
        sql = token_end(buffer, end, stop, text, dictionary, marks[SQL_MARK])
        if sql < 0:
            return DECLINED
        sql_end = owner_mark(arrays, sql, stop)
        note_detail(arrays, row, SQL_KEY, sql, sql_end - sql)
    else:
        sql_end = stop
    note_detail(arrays, row, CONTENT_KEY, content, size - 1)
    note_detail(arrays, row, PREFIX_KEY, prefix, prefix_end - prefix)
    note_detail(arrays, row, RELID_KEY, relid_at, relid_end - relid_at)
    note_detail(arrays, row, CMDTYPE_KEY, cmdtype, cmdtype_end - cmdtype)
    note_detail(arrays, row, SIZE_KEY, size_at, size_end - size_at)
    if sql_end < stop:
        owner = sql_end + OWNER_BYTES
        note_detail(arrays, row, OWNER_KEY, owner, stop - 1 - owner)
    if has_lsn:
        rows[LSN, row] = lsn
        rows[PRESENT, row] |= 1 << LSN
    return GOOD


@inner
def string_end(buffer: Array, at: Int, stop: Int) -> tuple[Int, bool]:
    """The quote that closes the string of JSON whose text begins at `at`, or -1, and whether it has escapes."""
    has_escapes = False
    while at < stop:
        at = special_at(buffer, at, stop)
        if at == stop or buffer[at] == QUOTE:
            break
        if buffer[at] == BACKSLASH:
            has_escapes = True
            at += 1
        elif buffer[at] != APOSTROPHE:
            return -1, has_escapes
        at += 1
    return at if at < stop else -1, has_escapes


@inner
def read_object(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """GaussDB's object with a statement, from the string on; returns the row's status."""
    buffer, text, cursor = arrays.buffer, arrays.text, arrays.cursor
    if at == stop or buffer[at] != QUOTE:
        return DECLINED
    begin = at + 1
    end, has_escapes = string_end(buffer, begin, stop)
    if end < 0:
        return DECLINED
    after = blank_end(buffer, end + 1, stop)
    if after + 1 != stop or buffer[after] != CLOSE_BRACE:
        return DECLINED
    if has_escapes:
        used = cursor[TEXT_USED]
        if end - begin > cursor[TEXT_NEEDED] - TEXT_SLACK:
            return DECLINED
        done, written = undo(buffer, begin, end, text, used, 0, True)
        if done != end:
            return DECLINED
        cursor[TEXT_USED] = written
        note_detail(arrays, row, SQL_KEY, ~used, written - used)
    else:
        note_detail(arrays, row, SQL_KEY, begin, end - begin)
    return GOOD


@inner
def read_template(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """GaussDB's object with a template, from the template on; returns the row's status."""
    end = json_object_end(arrays, at, stop)
    if end < 0:
        return DECLINED
    after = blank_end(arrays.buffer, end, stop)
    if after == stop or arrays.buffer[after] != CLOSE_BRACE or blank_end(arrays.buffer, after + 1, stop) != stop:
        return DECLINED
    note_detail(arrays, row, CONTENT_KEY, at, end - at)
    return GOOD


@inner
def read_serial_rare(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """Notes one record; see rare_records.py."""
    buffer, rows, text, dictionary = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary
    begin = token_end(buffer, at, stop, text, dictionary, TABLE_ENTRY)
    if begin >= 0:
        return read_truncate(arrays, begin, stop, row)
    status = DECLINED
    rows[KIND, row] = DDL_KIND
    begin = token_end(buffer, at, stop, text, dictionary, SQL_ENTRY)
    template = token_end(buffer, at, stop, text, dictionary, TEMPLATE_ENTRY)
    line = 0
    while line < LINE_COUNT and token_end(buffer, at, stop, text, dictionary, MARKS[line, PREFIX_MARK]) < 0:
        line += 1
    if begin >= 0:
        status = read_object(arrays, begin, stop, row)
    elif template >= 0:
        status = read_template(arrays, template, stop, row)
    elif line < LINE_COUNT:
        status = read_ddl(arrays, at, stop, row, line)
    else:
        status = read_prepared(arrays, at, stop, row)
    if status == GOOD:
        rows[NEEDS, row] = record_needs(buffer, at, stop, arrays.settings)
    return status


walk_serial_lines = make_rare_walk("walk_serial_lines", read_serial_rare)
