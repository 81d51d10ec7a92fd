"""Compiled functions of the text styles: their framing, and the lines around transactions by the table of the grammar.

The table is wireformat/grammar/lines.py; `line_settings` makes plain numbers of it, which come after the first ones in
a scan's settings:

    how many lines; for each: kind, token of its word, how many parts; for each part: its PART_FIELDS
"""

from __future__ import annotations

import numpy as np

from ....framing import text_batch
from ....grammar import lines as grammar
from ....grammar.ddl_lines import DdlLine
from ....grammar.lines import Line, LinePart
from ....limits import RECORD_BYTES
from ....options.reading import KINDS
from ...arrays import Array, Int
from ...ascii import (
    CASE_BIT,
    COMMA,
    DIGIT_0,
    DIGIT_9,
    LOWER_A,
    LOWER_Z,
    MINUS,
    MOST_DIGITS,
    SLASH,
    SPACE,
    UPPER_A,
    UPPER_F,
)
from ...jit.compiler import hot, inner
from ..dictionary import COMMIT_TIME_KEY, FIRST_LSN, GID_KEY, ORIGIN, PREPARE_TIME_KEY, token_entry
from ..loop import DONE, LOST, MORE
from ..notes import (
    CSN,
    DECLINED,
    DETAILS_PER_ROW,
    EXTRA_ROW,
    GOOD,
    KIND,
    LINES,
    PRESENT,
    RARE,
    TIME_TEXT,
    TRUNCATE,
    UTF8,
    XID,
    ScanArrays,
)
from ..primitives import is_ascii, read_32, read_64, same_bytes, transcode_flag
from ..row_notes import note_detail
from ..tokens import DDL_OBJECT_WORDS, MESSAGE_WORDS, TABLE_WORD

FIRST_LETTER, LEAST_RECORD = text_batch.FIRST_LETTER, text_batch.LEAST_RECORD_BYTES
LINE_FIELDS = 3
PART_FIELDS = 6
"""Token, another or -1, how the value is read, its number or key, the token that closes it or -1, required."""

UNSIGNED, UNSIGNED_32, SIGNED, LSN, TEXT, RARE_VALUE = range(6)
_READERS = {
    grammar.UNSIGNED: UNSIGNED,
    grammar.UNSIGNED_32: UNSIGNED_32,
    grammar.SIGNED: SIGNED,
    grammar.LSN: LSN,
    grammar.TEXT: TEXT,
    grammar.GID: RARE_VALUE,
}
_NUMBERS_AND_KEYS = {
    "csn": CSN,
    "xid": XID,
    "first_lsn": FIRST_LSN,
    "origin": ORIGIN,
    "commit_time": COMMIT_TIME_KEY,
    "gid": GID_KEY,
    "prepare_time": PREPARE_TIME_KEY,
}


def line_settings(lines: tuple[Line, ...], messages: bool, truncates: bool, ddl: DdlLine | None) -> list[int]:
    """The numbers of a table of lines.

    messages    whether there are logical messages: lines of one part, which is RARE_VALUE
    truncates   the same of TRUNCATE
    ddl         the line of DDL, and those of GaussDB's objects; the same
    """
    words = [("MESSAGE", word) for word in MESSAGE_WORDS if messages]
    words += [("TRUNCATE", TABLE_WORD)] if truncates else []
    words += [("DDL", word) for word in (ddl.head.rstrip(), *DDL_OBJECT_WORDS)] if ddl else []
    numbers = [len(lines) + len(words)]
    for line in lines:
        details = [part for part in line.parts if part.value not in (grammar.UNSIGNED, grammar.UNSIGNED_32)]
        assert len(details) <= DETAILS_PER_ROW, "read_parts notes each of them without checking for space"
        numbers += [KINDS.index(line.event.kind), token_entry(line.word), len(line.parts)]
        for part in line.parts:
            numbers += _part_settings(part)
    for kind, word in words:
        numbers += [KINDS.index(kind), token_entry(word), 1, token_entry(word), -1, RARE_VALUE, 0, -1, 1]
    return numbers


def _part_settings(part: LinePart) -> list[int]:
    also = token_entry(part.also[0]) if part.also else -1
    after = token_entry(part.after) if part.after else -1
    return [
        token_entry(part.before),
        also,
        _READERS[part.value],
        _NUMBERS_AND_KEYS[part.field],
        after,
        int(part.required),
    ]


@inner
def open_record(buffer: Array, start: Int, stop: Int, at: Int, record: Int) -> tuple[Int, Int, Int, bool]:
    """Where a record of a text style begins and ends, batched or not; see loop.py."""
    if start == stop or buffer[start] >= FIRST_LETTER:
        return start, stop if start < stop <= start + RECORD_BYTES else -1, np.int64(0), False
    if stop - at < 12:
        return at, -1, np.int64(0), True
    length = read_32(buffer, at)
    end = at + 4 + length
    if end > stop or length < LEAST_RECORD or length > RECORD_BYTES:
        end = -1
    return at + 12, end, read_64(buffer, at + 4), True


@inner
def close_record(buffer: Array, stop: Int, end: Int, has_lsn: bool) -> tuple[Int, Int]:
    """What follows the record of a text style; see loop.py."""
    if not has_lsn:
        return end, DONE
    if stop - end < 4:
        return end, LOST
    if read_32(buffer, end) != 0:
        return end, MORE
    return end, DONE if end + 4 == stop else LOST


@inner
def open_message(buffer: Array, start: Int, stop: Int, at: Int, record: Int) -> tuple[Int, Int, Int, bool]:
    """A record that is a whole message, as serial plugins send it; see loop.py."""
    return start, stop if start < stop <= start + RECORD_BYTES else -1, np.int64(0), False


@hot
def token_end(buffer: Array, at: Int, stop: Int, text: Array, dictionary: Array, token: Int) -> Int:
    """Where the token ends that begins at `at`; -1 for other bytes."""
    length = np.int64(dictionary[token, 1])
    if stop - at < length or not same_bytes(buffer, at, text, ~np.int64(dictionary[token, 0]), length):
        return -1
    return at + length


@inner
def record_needs(buffer: Array, at: Int, stop: Int, settings: Array) -> Int:
    """What the text of a record, or the rest of it, needs; see `transcode_flag`.

    A message without framing may be the first bytes of the buffer, where `is_ascii` must not look before them.
    """
    if stop >= 8 and is_ascii(buffer, at, stop - at):
        return 0
    return transcode_flag(buffer, at, stop - at, settings[UTF8] == 1)


@inner
def token_end_any_case(arrays: ScanArrays, at: Int, stop: Int, token: Int) -> Int:
    """The same, for small and capital letters alike."""
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    start, length = ~np.int64(dictionary[token, 0]), np.int64(dictionary[token, 1])
    if stop - at < length:
        return -1
    for offset in range(length):
        one, other = np.int64(buffer[at + offset]), np.int64(text[start + offset])
        if one != other and (one ^ CASE_BIT != other or one | CASE_BIT < LOWER_A or one | CASE_BIT > LOWER_Z):
            return -1
    return at + length


@inner
def read_digits(buffer: Array, at: Int, stop: Int) -> tuple[Int, Int]:
    """A decimal number and where it ends; that is `at` where there is none, -1 where it is too long."""
    value = np.int64(0)
    end = at
    while end < stop and buffer[end] >= DIGIT_0 and buffer[end] <= DIGIT_9:
        if end - at == MOST_DIGITS:
            return value, -1
        value = value * 10 + np.int64(buffer[end]) - DIGIT_0
        end += 1
    return value, end


@inner
def lsn_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where an LSN as the server prints it ends, or -1: two numbers in capitals, without zeros before them."""
    for half in range(2):
        begin = at
        while at < stop and (
            (buffer[at] >= DIGIT_0 and buffer[at] <= DIGIT_9) or (buffer[at] >= UPPER_A and buffer[at] <= UPPER_F)
        ):
            at += 1
        if at == begin or at - begin > 8 or (at - begin > 1 and buffer[begin] == DIGIT_0):
            return -1
        if half == 0:
            if at == stop or buffer[at] != SLASH:
                return -1
            at += 1
    return at


@inner
def text_end(arrays: ScanArrays, at: Int, stop: Int, part: Int, parts_end: Int) -> Int:
    """Where the text of a part ends: at the last token that closes it, at the token of a later part, or with
    the line; -1 if it is not closed."""
    buffer, text, dictionary, settings = arrays.buffer, arrays.text, arrays.dictionary, arrays.settings
    after = settings[part + 4]
    if after >= 0:
        end = stop - 1
        while end >= at and token_end(buffer, end, stop, text, dictionary, after) < 0:
            end -= 1
        return end if end >= at else -1
    for end in range(at, stop):
        if buffer[end] == SPACE:
            for later in range(part + PART_FIELDS, parts_end, PART_FIELDS):
                if token_end(buffer, end, stop, text, dictionary, settings[later]) >= 0:
                    return end
    return stop


@inner
def find_line(arrays: ScanArrays, at: Int, stop: Int) -> tuple[Int, Int]:
    """The line of the table whose word is at `at`, as its index in the settings, and where the word ends; or -1."""
    buffer, settings = arrays.buffer, arrays.settings
    line = LINES + 1
    for _ in range(settings[LINES]):
        end = token_end_any_case(arrays, at, stop, settings[line + 1])
        if end >= 0 and (end == stop or buffer[end] == SPACE):
            return line, end
        line += LINE_FIELDS + settings[line + 2] * PART_FIELDS
    return -1, at


@inner
def read_line(arrays: ScanArrays, at: Int, stop: Int, row: Int) -> Int:
    """A line of the table, to the end of the record; returns the row's status. What is odd is left to the grammar."""
    buffer, settings = arrays.buffer, arrays.settings
    line, end = find_line(arrays, at, stop)
    if line < 0:
        return DECLINED
    first = line + LINE_FIELDS
    if settings[line + 2] > 0 and settings[first + 2] == RARE_VALUE:
        tables = np.int64(0)  # after the first one, if that is what the commas are between
        if settings[line] == TRUNCATE:
            for comma in range(end, stop):
                tables += buffer[comma] == COMMA
        return RARE + EXTRA_ROW * tables
    arrays.rows[KIND, row] = settings[line]
    return read_parts(arrays, end, stop, row, first, first + settings[line + 2] * PART_FIELDS)


@inner
def read_parts(arrays: ScanArrays, at: Int, stop: Int, row: Int, first: Int, parts_end: Int) -> Int:
    """The parts of a line, in their order; returns the row's status."""
    buffer, rows, dictionary, settings = arrays.buffer, arrays.rows, arrays.dictionary, arrays.settings
    for part in range(first, parts_end, PART_FIELDS):
        begin = token_end_any_case(arrays, at, stop, settings[part])
        if begin < 0 and settings[part + 1] >= 0:
            begin = token_end_any_case(arrays, at, stop, settings[part + 1])
        reader, field = settings[part + 2], settings[part + 3]
        value, end = np.int64(0), begin
        if begin >= 0:
            if reader == LSN:
                end = lsn_end(buffer, begin, stop)
            elif reader == TEXT:
                end = text_end(arrays, begin, stop, part, parts_end)
            else:
                minus = reader == SIGNED and begin < stop and buffer[begin] == MINUS
                value, end = read_digits(buffer, begin + minus, stop)
                if end == begin + minus:
                    begin = end = -1  # a token counts only with its number
                elif (
                    end < 0
                    or (reader == UNSIGNED_32 and (value > 0xFFFFFFFF or end - begin > 10))
                    or (
                        reader == SIGNED
                        and (value > 0x7FFFFFFF + minus or (buffer[begin + minus] == DIGIT_0 and end - begin > 1))
                    )
                ):
                    return DECLINED
            if begin >= 0 and end < 0:
                return DECLINED
        if begin < 0:
            if settings[part + 5]:
                return DECLINED
        elif reader == UNSIGNED or reader == UNSIGNED_32:
            rows[field, row] = value
            rows[PRESENT, row] |= 1 << field
            at = end
        else:
            note_detail(arrays, row, field, begin, end - begin)
            at = end
            if reader == TEXT:
                rows[TIME_TEXT, row] = begin
                rows[TIME_TEXT + 1, row] = end - begin
                at += dictionary[settings[part + 4], 1] if settings[part + 4] >= 0 else 0
    return GOOD if at == stop else DECLINED
