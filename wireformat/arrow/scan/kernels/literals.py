"""Compiled bricks for what stands in quotes and for SQL literals, in TEXT and inside JSON strings."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...jit.compiler import hot, inner
from ...jit.intrinsics import BLOCK, find_special
from ..dictionary import mark_word
from ..marks import FALSE, LITERALS, NULL, TRUE, UNCHANGED
from ..notes import UNCHANGED_LENGTH
from .transaction_lines import sees

FIRST_LITERAL = mark_word(LITERALS[0])
TRUE_WORD, FALSE_WORD, T_WORD, F_WORD = (mark_word(mark) for mark in (TRUE, FALSE, b"t", b"f"))
NULL_WORD, UNCHANGED_WORD = mark_word(NULL), mark_word(UNCHANGED)
LITERAL_COUNT = len(LITERALS)

BAD_LENGTH = -9
"""The length of what is no literal."""

_NO_ESCAPE = 255
_ESCAPES = np.full(256, _NO_ESCAPE, np.uint8)
for _letter, _byte in zip(b'"\\bfnrt', b'"\\\b\f\n\r\t', strict=True):
    _ESCAPES[_letter] = _byte
_HEX = np.full(256, _NO_ESCAPE, np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


@inner
def undo(buffer: Array, at: Int, stop: Int, text: Array, used: Int, quote: Int, json: bool) -> tuple[Int, Int]:
    """Write buffer[at:stop] to text[used:] with JSON's escapes undone and, unless quote is 0, the quotes around it and
    the doubled ones inside.

    returns     (where it ended, how much of text is used); -1 for what servers do not write
    """
    state = 1 if quote == 0 else 0  # 0 before the first quote, 1 inside, 2 behind a quote that ends it or is doubled
    while at < stop:
        begin = at
        byte = np.int64(buffer[at])
        at += 1
        if json and byte == 92:
            if at == stop:
                return -1, used
            byte = np.int64(_ESCAPES[buffer[at]])
            at += 1
            if byte == _NO_ESCAPE:
                if buffer[at - 1] != 117 or stop - at < 4 or buffer[at] != 48 or buffer[at + 1] != 48:  # \u00
                    return -1, used
                high, low = np.int64(_HEX[buffer[at + 2]]), np.int64(_HEX[buffer[at + 3]])
                if high > 7 or low > 15:
                    return -1, used
                byte = 16 * high + low
                at += 4
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
    return at if state == 2 or quote == 0 else -1, used


@hot
def special_at(buffer: Array, at: Int, stop: Int) -> Int:
    """The first quote, backslash or byte below 0x20 in buffer[at:stop]; stop if there is none."""
    while stop - at >= BLOCK:
        found = find_special(buffer, at)
        at += found
        if found < BLOCK:
            return at
    while at < stop and buffer[at] >= 32 and buffer[at] != 34 and buffer[at] != 39 and buffer[at] != 92:
        at += 1
    return at


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
        at = special_at(buffer, at + 1, stop)
    return -1, doubled


@hot
def number_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where a number as the servers print it ends, but for NaN and Infinity, or -1 if there is none at `at`."""
    if at < stop and buffer[at] == 45:
        at += 1
    digits = 0
    while at < stop and buffer[at] >= 48 and buffer[at] <= 57:
        at += 1
        digits += 1
    if at < stop and buffer[at] == 46:
        at += 1
        while at < stop and buffer[at] >= 48 and buffer[at] <= 57:
            at += 1
            digits += 1
    if digits == 0:
        return -1
    if at < stop and (buffer[at] | 32) == 101:  # e
        at += 1
        if at < stop and (buffer[at] == 43 or buffer[at] == 45):
            at += 1
        digits = at
        while at < stop and buffer[at] >= 48 and buffer[at] <= 57:
            at += 1
        if at == digits:
            return -1
    return at


@inner
def literal(
    buffer: Array, at: Int, end: Int, escaped: bool, quotes: Int, text: Array, words: Array, used: Int, json: bool
) -> tuple[Int, Int, Int]:
    """The pair of the literal that buffer[at:end] is, and how much of text is used; BAD_LENGTH if it is none.

    escaped     it holds a backslash of JSON
    quotes      how many single quotes it holds, more than two if it is not known
    """
    length = end - at
    first = np.int64(buffer[at]) if length > 0 else 0
    if first == 39:
        if not escaped and quotes == 2:
            return at + 1, length - 2 if buffer[end - 1] == 39 else BAD_LENGTH, used
        stopped, after = undo(buffer, at, end, text, used, 39, json)
        return ~used, after - used if stopped == end else BAD_LENGTH, after
    if not escaped and first < 58 and number_end(buffer, at, end) == end:
        return at, length, used
    if escaped:
        return at, BAD_LENGTH, used
    if first == 66:  # B
        if length < 3 or quotes != 2 or buffer[at + 1] != 39 or buffer[end - 1] != 39:
            return at, BAD_LENGTH, used
        for place in range(at + 2, end - 1):
            if buffer[place] != 48 and buffer[place] != 49:
                return at, BAD_LENGTH, used
        return at + 2, length - 3, used
    for word in range(FIRST_LITERAL, FIRST_LITERAL + LITERAL_COUNT):
        if words[word, 1] == length and sees(buffer, at, end, text, words, word) >= 0:
            if word == NULL_WORD:
                return at, -1, used
            if word == UNCHANGED_WORD:
                return at, UNCHANGED_LENGTH, used
            if word == TRUE_WORD:
                return np.int64(words[T_WORD, 0]), 1, used
            if word == FALSE_WORD:
                return np.int64(words[F_WORD, 0]), 1, used
            return at, length, used
    return at, BAD_LENGTH, used
