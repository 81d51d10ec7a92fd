"""Compiled: decimal digits to numbers, eight bytes at a time.

A word is eight bytes of the buffer as a big-endian int64. Callers have checked that what is read is inside the buffer.
Numbers never overflow, since the same functions run uncompiled. All functions are inlined, so that numba compiles one
version of each.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Int
from ..ascii import DIGIT_0, DOT, MINUS, MOST_DIGITS
from ..jit.compiler import hot
from ..jit.intrinsics import read_64

POWERS = np.array([10**exponent for exponent in range(MOST_DIGITS + 1)], np.int64)

ZEROS = 0x3030303030303030
HIGH_NIBBLES = -0x0F0F0F0F0F0F0F10
_SIXES = 0x0606060606060606
_CARRIES = 0x1010101010101010
_BYTES = 0x00FF00FF00FF00FF
_PAIRS = 0x0000FFFF0000FFFF
_HALF = 0xFFFFFFFF

_LARGEST_REST = (1 << 63) - 1 - 9 * 10**MOST_DIGITS
"""What follows the 9 of the largest int64."""

_CHUNK = 9
"""How many digits go into a decimal of 128 bits at a time: their products with 32 bits fit in an int64."""


@hot
def are_digits(word: Int, zero_bits: Int) -> bool:
    """Whether all bytes of a word, from which ZEROS was taken by ^, are 0 to 9.

    zero_bits   HIGH_NIBBLES, and the other bits that must be zero, too
    """
    return word & zero_bits == 0 and (word + _SIXES) & _CARRIES == 0


@hot
def number_of(word: Int) -> Int:
    """The number of eight digits, each 0 to 9."""
    word = (word >> 8 & _BYTES) * 10 + (word & _BYTES)
    word = (word >> 16 & _PAIRS) * 100 + (word & _PAIRS)
    return (word >> 32) * 10_000 + (word & _HALF)


@hot
def digits(data: Array, start: Int, length: Int) -> Int:
    """The number that up to MOST_DIGITS digits are, 0 for none; -1 if they are not all digits."""
    end = start + length
    number = 0
    unit = 1
    while end > start:
        skipped = 64 - 8 * (end - start) if end - start < 8 else 0
        word = 0
        if end >= 8:
            word = read_64(data, end - 8)
        else:
            for at in range(end):
                word = word << 8 | np.int64(data[at])
        word = (word ^ ZEROS) << skipped >> skipped  # a high bit fills the word and is found here
        if not are_digits(word, HIGH_NIBBLES):
            return -1
        number += number_of(word) * unit
        unit = 100_000_000 if unit == 1 else 10_000_000_000_000_000
        end -= 8
    return number


@hot
def integer(data: Array, start: Int, length: Int, largest: Int) -> tuple[bool, Int]:
    """Whether the text is an integer from -largest - 1 to largest, and the integer. The least int64 is not taken."""
    negative = data[start] == MINUS
    first = start + 1 if negative else start
    count = start + length - first
    top = 0
    if count > MOST_DIGITS:
        top = np.int64(data[first]) - DIGIT_0
        first += 1
    number = digits(data, first, start + length - first) if count < 20 else -1
    if top != 0:
        if top < 0 or top > 9 or (top == 9 and number > _LARGEST_REST) or number < 0:
            return False, 0
        number += top * 1_000_000_000_000_000_000
    is_usual = (number >= 0) & (number - negative <= largest) & (count > 0)
    return is_usual, -number if negative else number


@hot
def decimal(data: Array, start: Int, length: Int, whole: Int, scale: Int, values: Array, at: Int) -> bool:
    """Whether the text is a decimal with at most `whole` digits before the point and `scale` after it.

    Writes values[at : at + 2]: the number in units of its last digit, as the 128 bits of an Arrow decimal.
    """
    sign = -1 if data[start] == MINUS else 1
    first = start + 1 if sign < 0 else start
    end = start + length
    dot = end - scale - 1
    dot = dot if dot > first else first + 1
    while dot < end - 1 and data[dot] != DOT:
        dot += 1
    dot = dot if dot < end - 1 else end
    before = dot - first
    after = end - dot - 1 if dot < end else 0
    if before < 1 or (before > whole and (before > 1 or data[first] != DIGIT_0)):
        return False
    if before + scale <= MOST_DIGITS:
        number = digits(data, first, before)
        fraction = digits(data, end - after, after)
        values[at] = sign * (number * POWERS[scale] + fraction * POWERS[scale - after])
        values[at + 1] = values[at] >> 63
        return number >= 0 and fraction >= 0
    # Each step appends digits: those before the point, those after it, and zeros up to the scale.
    values[at], values[at + 1] = 0, 0
    begin = first
    last = end + scale - after
    while begin < last:
        stop = dot if begin < dot else (end if begin < end else last)
        count = stop - begin if stop - begin < _CHUNK else _CHUNK
        number = digits(data, begin, count) if begin < end else 0
        if number < 0:
            return False
        append(values, at, POWERS[count], sign * number)
        begin += count
        if begin == dot and dot < end:
            begin += 1
    return True


@hot
def append(values: Array, at: Int, unit: Int, number: Int) -> None:
    """Multiplies the 128 bits in values[at : at + 2] by a unit and adds a number, both of up to nine digits."""
    low, high = values[at], values[at + 1]
    one = (low & _HALF) * unit + number
    two = (low >> 32 & _HALF) * unit + (one >> 32)
    three = (high & _HALF) * unit + (two >> 32)
    four = (high >> 32) * unit + (three >> 32)
    values[at] = (one & _HALF) | two << 32
    values[at + 1] = (three & _HALF) | four << 32
