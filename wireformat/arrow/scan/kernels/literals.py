"""Compiled functions for quoted text, for SQL literals, in TEXT and inside JSON strings, and for names.

Names are plain or in double quotes.
"""

from __future__ import annotations

import re

import numpy as np

from ....grammar.names import TYPE_WORDS
from ....identifiers import PLAIN_NAME
from ....limits import NAME_BYTES
from ...arrays import Array, Int
from ...ascii import (
    APOSTROPHE,
    BACKSLASH,
    CASE_BIT,
    DIGIT_0,
    DIGIT_1,
    DIGIT_9,
    DOT,
    LOWER_E,
    LOWER_U,
    MINUS,
    PLUS,
    QUOTE,
    SPACE,
    UPPER_B,
)
from ...jit.compiler import hot, inner
from ...jit.intrinsics import BLOCK, copy_block, lowest_bit, special_marks
from ..dictionary import SCHEMA, TABLE, token_entry
from ..notes import RELATION, TABLE_NAME, TABLE_SCHEMA, TEXT_USED, UNCHANGED_LENGTH, ScanArrays
from ..relations.recognise import find_relation
from ..tokens import BOOLEANS, FALSE, LITERALS, NULL, TRUE, UNCHANGED
from .transaction_lines import token_end

FIRST_LITERAL = token_entry(LITERALS[0])
SQL_TRUE, SQL_FALSE, OUTPUT_TRUE, OUTPUT_FALSE = (token_entry(token) for token in (TRUE, FALSE, *BOOLEANS))
NULL_ENTRY, UNCHANGED_ENTRY = token_entry(NULL), token_entry(UNCHANGED)
LITERAL_COUNT = len(LITERALS)

BAD_LENGTH = -9
"""The length of what is no literal."""

TOO_FEW_CELLS = -2
"""The end of columns for which the scratch has too few cells."""

_NO_ESCAPE = 255
_ESCAPES = np.full(256, _NO_ESCAPE, np.uint8)
for _letter, _byte in zip(b'"\\bfnrt', b'"\\\b\f\n\r\t', strict=True):
    _ESCAPES[_letter] = _byte
_HEX = np.full(256, _NO_ESCAPE, np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)
_IS_SPECIAL = np.zeros(256, np.bool_)
for _byte in (*range(SPACE), QUOTE, APOSTROPHE, BACKSLASH):
    _IS_SPECIAL[_byte] = True
"""The bytes that `special_at` looks for."""


@hot
def special_at(buffer: Array, at: Int, stop: Int) -> Int:
    """The first quote, backslash or byte below 0x20 in buffer[at:stop]; stop if there is none."""
    while stop - at >= BLOCK:
        found = lowest_bit(special_marks(buffer, at) | 1 << BLOCK)
        at += found
        if found < BLOCK:
            return at
    while at < stop and not _IS_SPECIAL[buffer[at]]:
        at += 1
    return at


@inner
def undo(buffer: Array, at: Int, stop: Int, text: Array, used: Int, quote: Int, json: bool) -> tuple[Int, Int]:
    """Write buffer[at:stop] to text[used:] with JSON's escapes undone and, unless quote is 0, the quotes around it and
    the doubled ones inside.

    returns     (where it ended, the new end of the used text); -1 for what servers do not write
    """
    state = 1 if quote == 0 else 0  # 0 before the first quote, 1 inside, 2 after a quote that ends it or is doubled
    while at < stop:
        while state == 1 and quote != QUOTE and stop - at > 2 * BLOCK:
            copy_block(text, used, buffer, at)
            marks = special_marks(buffer, at)
            done = np.int64(0)
            while marks != 0:
                offset = lowest_bit(marks)
                first, second = np.int64(buffer[at + offset]), buffer[at + offset + 1]
                byte = np.int64(_ESCAPES[second]) if json and first == BACKSLASH else np.int64(_NO_ESCAPE)
                if quote != 0 and first == quote and second == first:
                    byte = first
                if byte == _NO_ESCAPE:
                    if json or first == quote:
                        break
                    marks &= marks - 1
                    continue
                used += offset - done
                text[used] = byte
                used += 1
                done = offset + 2
                copy_block(text, used, buffer, at + done)
                marks &= -1 << done
            end = lowest_bit(marks | 1 << BLOCK)
            used += max(end - done, 0)
            at += max(end, done)
            if marks != 0:
                break
        begin = at
        byte = np.int64(buffer[at])
        at += 1
        if json and byte == BACKSLASH:
            if at == stop:
                return -1, used
            byte = np.int64(_ESCAPES[buffer[at]])
            at += 1
            if byte == _NO_ESCAPE:
                if buffer[at - 1] != LOWER_U or stop - at < 4 or buffer[at] != DIGIT_0 or buffer[at + 1] != DIGIT_0:
                    return -1, used
                high, low = np.int64(_HEX[buffer[at + 2]]), np.int64(_HEX[buffer[at + 3]])
                if high > 7 or low > 15:
                    return -1, used
                byte = 16 * high + low
                at += 4
        elif json and byte != APOSTROPHE and _IS_SPECIAL[byte]:
            return begin if state == 2 else -1, used
        if state == 0:
            if byte != quote:
                return -1, used
            state = 1
        elif state == 1 and quote != 0 and byte == quote:
            state = 2
        elif state == 2 and byte != quote:
            return begin, used
        else:
            text[used] = byte
            used += 1
            state = 1
            while at < stop <= at + 2 * BLOCK and not _IS_SPECIAL[buffer[at]]:
                text[used] = buffer[at]
                at += 1
                used += 1
    return at if state == 2 or quote == 0 else -1, used


@hot
def quoted_end(buffer: Array, at: Int, stop: Int) -> tuple[Int, bool]:
    """One past the quote that closes what the quote at `at` opens, or -1, and whether there are doubled ones inside."""
    quote = buffer[at]
    doubled = False
    at = special_at(buffer, at + 1, stop)
    while at < stop:
        if buffer[at] == quote:
            if at + 1 == stop or buffer[at + 1] != quote:
                return at + 1, doubled
            doubled = True
            at += 1
            while stop - at > 2 and buffer[at + 1] == quote and buffer[at + 2] == quote:
                at += 2
        else:
            while stop - at > 1 and buffer[at + 1] != quote and _IS_SPECIAL[buffer[at + 1]]:
                at += 1
        at = special_at(buffer, at + 1, stop)
    return -1, doubled


@hot
def number_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where a number as the servers print it ends, but for NaN and Infinity, or -1 if there is none at `at`."""
    if at < stop and buffer[at] == MINUS:
        at += 1
    digits = 0
    while at < stop and buffer[at] >= DIGIT_0 and buffer[at] <= DIGIT_9:
        at += 1
        digits += 1
    if at < stop and buffer[at] == DOT:
        at += 1
        while at < stop and buffer[at] >= DIGIT_0 and buffer[at] <= DIGIT_9:
            at += 1
            digits += 1
    if digits == 0:
        return -1
    if at < stop and (buffer[at] | CASE_BIT) == LOWER_E:
        at += 1
        if at < stop and (buffer[at] == PLUS or buffer[at] == MINUS):
            at += 1
        digits = at
        while at < stop and buffer[at] >= DIGIT_0 and buffer[at] <= DIGIT_9:
            at += 1
        if at == digits:
            return -1
    return at


@hot
def text_literal(buffer: Array, at: Int, stop: Int, text: Array, used: Int, json: bool) -> tuple[Int, Int, Int, Int]:
    """The pair of the text in single quotes that begins at `at`, where it ends, or -1, and the new end of the used
    text."""
    end = special_at(buffer, at + 1, stop)
    while not json and end < stop and buffer[end] != APOSTROPHE:
        while stop - end > 1 and buffer[end + 1] != APOSTROPHE and _IS_SPECIAL[buffer[end + 1]]:
            end += 1
        end = special_at(buffer, end + 1, stop)
    if end < stop and buffer[end] == APOSTROPHE and (end + 1 == stop or buffer[end + 1] != APOSTROPHE):
        return at + 1, end - at - 1, end + 1, used
    end, after = undo(buffer, at, stop, text, used, APOSTROPHE, json)
    return ~used, after - used, end, after


@inner
def literal(buffer: Array, at: Int, end: Int, text: Array, dictionary: Array) -> tuple[Int, Int]:
    """The pair of the literal that buffer[at:end] is, which is no text in single quotes; BAD_LENGTH if it is none."""
    length = end - at
    if length > 0 and buffer[at] <= DIGIT_9 and number_end(buffer, at, end) == end:
        return at, length
    if length > 2 and buffer[at] == UPPER_B and buffer[at + 1] == APOSTROPHE and buffer[end - 1] == APOSTROPHE:
        for digit_at in range(at + 2, end - 1):
            if buffer[digit_at] != DIGIT_0 and buffer[digit_at] != DIGIT_1:
                return at, BAD_LENGTH
        return at + 2, length - 3
    for entry in range(FIRST_LITERAL, FIRST_LITERAL + LITERAL_COUNT):
        if dictionary[entry, 1] == length and token_end(buffer, at, end, text, dictionary, entry) >= 0:
            if entry == NULL_ENTRY:
                return at, -1
            if entry == UNCHANGED_ENTRY:
                return at, UNCHANGED_LENGTH
            if entry == SQL_TRUE:
                return np.int64(dictionary[OUTPUT_TRUE, 0]), 1
            if entry == SQL_FALSE:
                return np.int64(dictionary[OUTPUT_FALSE, 0]), 1
            return at, length
    return at, BAD_LENGTH


MOST_BYTES_TO_CHANGE = 2 * NAME_BYTES + 1

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


@inner
def read_table(arrays: ScanArrays, at: Int, stop: Int, row: Int, close: Int) -> Int:
    """`schema.table`, each plain or in quotes, and the byte `close`; returns where that byte ends, or -1."""
    buffer, rows = arrays.buffer, arrays.rows
    for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
        at, start, length = read_name(arrays, at, stop)
        if at < 0 or at == stop or buffer[at] != (DOT if field == TABLE_SCHEMA else close):
            return -1
        rows[field, row] = start
        rows[field + 1, row] = length
        at += 1
    return at


@hot
def names_end(buffer: Array, at: Int, stop: Int, close: Int) -> Int:
    """Where the first byte `close` outside of quotes ends, which may be beyond `stop`; -1 if a quote is not closed."""
    while at < stop and buffer[at] != close:
        at = quoted_end(buffer, at, stop)[0] if buffer[at] == QUOTE else at + 1
        if at < 0:
            return -1
    return at + 1


@hot
def find_table(arrays: ScanArrays, at: Int, end: Int, row: Int) -> Int:
    """The first relation of the table that buffer[at:end] names, whose names are noted; 0 if it is not known."""
    first = find_relation(arrays.buffer, at, end, arrays.text, arrays.dictionary, arrays.cursor)
    if first > 0:
        note_table(arrays, row, first)
    return first


@hot
def note_table(arrays: ScanArrays, row: Int, relation: Int) -> None:
    """Notes a relation and the names of its table in a row."""
    rows, dictionary = arrays.rows, arrays.dictionary
    rows[RELATION, row] = relation
    for part in range(2):
        rows[TABLE_SCHEMA + part, row] = dictionary[relation + SCHEMA, part]
        rows[TABLE_NAME + part, row] = dictionary[relation + TABLE, part]
