"""Compiled functions that find the end of an object of JSON, whose text is kept as it is.

They accept what the module `json` of Python reads, except for NaN, Infinity and very deep objects.
"""

from __future__ import annotations

import numpy as np

from ....arrays import Array, Int
from ....ascii import (
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
from ....jit.compiler import inner
from ...dictionary import token_entry
from ...notes import ScanArrays
from ...tokens import FALSE, NULL, TRUE
from ..literals import special_at
from ..transaction_lines import token_end

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
