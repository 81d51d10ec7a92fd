"""Compiled functions that every scan uses: numbers, text checks, identifiers, and text that the scan writes itself.

Positions are int64. Single bytes are widened before any arithmetic: uint8 would wrap, and int64 mixed with uint64 would
become a float. Callers have checked that what is read is inside the buffer. Few functions: each one costs time at
every cold start.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Int
from ..ascii import DIGIT_0, MINUS, QUOTE, UPPER_A
from ..jit.byte_ranges import same_bytes
from ..jit.compiler import hot, inner
from ..jit.intrinsics import read_16, read_32, read_64
from .notes import TRANSCODE

__all__ = ["is_ascii", "read_16", "read_32", "read_64", "same_bytes", "transcode_flag", "unquote", "write_decimal"]

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # of eight bytes, as int64

_ONES, _LOW_BITS = 0x0101010101010101, 0x7F7F7F7F7F7F7F7F
"""In each of eight bytes: the lowest bit, and all bits but the highest."""

_COLONS = int.from_bytes(b":" * 7, "little")
_SEVEN_LOW, _SEVEN_HIGH = 0x7F7F7F7F7F7F7F, 0x80808080808080  # of seven bytes: the low bits, the high bits

_START, _ONE_MORE, _TWO_MORE, _THREE_MORE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4, _NO_TEXT = range(9)


def _make_utf8() -> Array:
    """uint8[state, byte]: the next state of a walk over UTF-8 as Python's strict decoder takes it."""
    table = np.full((9, 256), _NO_TEXT, np.uint8)
    for state, first, last, following in (
        (_START, 0x00, 0x7F, _START),
        (_START, 0xC2, 0xDF, _ONE_MORE),
        (_START, 0xE0, 0xEF, _TWO_MORE),
        (_START, 0xE0, 0xE0, _AFTER_E0),  # no longer forms of what fits in two bytes
        (_START, 0xED, 0xED, _AFTER_ED),  # no surrogates
        (_START, 0xF0, 0xF4, _THREE_MORE),
        (_START, 0xF0, 0xF0, _AFTER_F0),  # no longer forms of what fits in three bytes
        (_START, 0xF4, 0xF4, _AFTER_F4),  # nothing above U+10FFFF
        (_ONE_MORE, 0x80, 0xBF, _START),
        (_TWO_MORE, 0x80, 0xBF, _ONE_MORE),
        (_THREE_MORE, 0x80, 0xBF, _TWO_MORE),
        (_AFTER_E0, 0xA0, 0xBF, _ONE_MORE),
        (_AFTER_ED, 0x80, 0x9F, _ONE_MORE),
        (_AFTER_F0, 0x90, 0xBF, _TWO_MORE),
        (_AFTER_F4, 0x80, 0x8F, _TWO_MORE),
    ):
        table[state, first : last + 1] = following
    return table


UTF8_STATES = _make_utf8()


@inner
def zero_at(buffer: Array, at: Int, stop: Int) -> Int:
    """The first zero byte from `at` on, or `stop`."""
    while at < stop and buffer[at] != 0:
        at += 1
    return at


@hot
def is_ascii(data: Array, start: Int, length: Int) -> bool:
    """Whether no byte has its high bit set. Eight bytes at a time, the last ones together with bytes before the text:
    no text begins in the first eight bytes of a buffer."""
    seen = read_64(data, start + length - 8)
    if length < 8:
        return seen & ~(-1 << 8 * length) & _HIGH_BITS == 0
    for at in range(start, start + length - 8, 8):
        seen |= read_64(data, at)
    return seen & _HIGH_BITS == 0


@inner
def is_ascii_block(data: Array, at: Int) -> bool:
    """Whether no byte of the eight at `at` has its high bit set."""
    return read_64(data, at) & _HIGH_BITS == 0


@hot
def not_plain(word: Int) -> Int:
    """Bits of which the highest of a byte is set if one of these eight bytes is not ASCII, or zero."""
    return word | ((word & _LOW_BITS) - _ONES)  # a byte of zero borrows


@hot
def is_plain(word: Int) -> bool:
    """Whether none of eight bytes is `not_plain`; the bits may be those of several words."""
    return word & _HIGH_BITS == 0


@inner
def may_have_colon(data: Array, at: Int) -> bool:
    """Whether one of the seven bytes after `at` is a colon, or one with its high bit set."""
    differences = (read_64(data, at) ^ _COLONS) & _SEVEN_LOW
    return (differences + _SEVEN_LOW) & _SEVEN_HIGH != _SEVEN_HIGH  # the high bit of each byte that differs is set


@hot
def is_ascii_anywhere(data: Array, start: Int, length: Int) -> bool:
    """As `is_ascii`, also of a text in the first bytes of a buffer."""
    if start + length >= 8:
        return is_ascii(data, start, length)
    for at in range(start, start + length):
        if data[at] >= 0x80:
            return False
    return True


@inner
def transcode_flag(data: Array, start: Int, length: Int, utf8: bool) -> Int:
    """What a text that is not ASCII needs: nothing if it is UTF-8 and the encoding is, else TRANSCODE."""
    if not utf8:
        return TRANSCODE
    state = np.int64(0)
    at, stop = start, start + length
    while at < stop and state != _NO_TEXT:
        character = np.int64(0)  # how many bytes are known to be whole characters
        if state == _START and stop - at >= 8:
            word = read_32(data, at)
            if is_ascii_block(data, at):
                character = np.int64(8)
            # a character of three bytes (the word is big-endian), but not E0 80 to 9F, nor ED A0 to BF
            elif word & 0xF0C0C000 == 0xE0808000 and word & 0x0F200000 != 0 and word & 0x0F200000 != 0x0D200000:
                character = np.int64(3)
        if character == 0:
            state = np.int64(UTF8_STATES[state, data[at]])
            character = np.int64(1)
        at += character
    return 0 if state == _START else TRANSCODE


@inner
def unquote(data: Array, start: Int, length: Int, text: Array, used: Int) -> tuple[Int, Int]:
    """The pair of an identifier that begins with a double quote; its length is -1 if the quotes are wrong.

    Only a name with a doubled quote in it needs `text`, from `used` on.
    """
    first, last = start + 1, start + length - 1
    if length < 2 or data[last] != QUOTE:
        return 0, -1
    at = first
    while at < last and data[at] != QUOTE:
        at += 1
    if at == last:
        return first, last - first
    to = used
    at = first
    while at < last:
        if data[at] == QUOTE:
            at += 1
            if at >= last or data[at] != QUOTE:
                return 0, -1
        text[to] = data[at]
        to += 1
        at += 1
    return ~used, to - used


_LARGEST = np.array([10**digits - 1 for digits in range(20)] + [2**64 - 1] * 12, np.uint64)
"""The largest number with `index` digits."""

PAIRS = np.frombuffer(b"".join(b"%02d" % pair for pair in range(100)), np.uint8)


@inner
def write_decimal(text: Array, used: Int, value: Int, signed: bool) -> Int:
    """Writes a number; if it is not signed, the one with the bits of an int64. Returns the new end of the used text."""
    left = np.uint64(value)
    if signed and value < 0:
        text[used] = MINUS
        used += 1
        left = ~left + np.uint64(1)
    digits = 1
    if left > _LARGEST[4]:
        for step in (16, 8, 4, 2, 1):
            if left > _LARGEST[digits - 1 + step]:
                digits += step
    else:  # most numbers, without branches
        for fewer in range(1, 4):
            digits += left > _LARGEST[fewer]
    end = to = used + digits
    while left > np.uint64(99):
        pair = 2 * np.int64(left % np.uint64(100))
        left //= np.uint64(100)
        to -= 2
        text[to], text[to + 1] = PAIRS[pair], PAIRS[pair + 1]
    if left > np.uint64(9):
        text[to - 2], text[to - 1] = PAIRS[2 * np.int64(left)], PAIRS[2 * np.int64(left) + 1]
    else:
        text[to - 1] = DIGIT_0 + np.int64(left)
    return end


@inner
def write_hexadecimal(text: Array, used: Int, value: Int) -> Int:
    """Writes a number that is not negative, in upper case. Returns the new end of the used text."""
    digits = 1
    while value >> 4 * digits:
        digits += 1
    for index in range(digits):
        digit = value >> 4 * (digits - 1 - index) & 0xF
        text[used + index] = digit + (DIGIT_0 if digit < 10 else UPPER_A - 10)
    return used + digits
