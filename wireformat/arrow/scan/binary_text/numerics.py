"""Values of type numeric in binary form to text."""

from __future__ import annotations

import numpy as np

from ....pgtypes.binary_numbers import (
    GROUP_DIGITS,
    INFINITE,
    MAX_IMPLIED_ZEROS,
    MINUS_INFINITE,
    MOST_GROUP,
    NEGATIVE,
    POSITIVE,
)
from ....pgtypes.binary_numbers import NAN as NAN_SIGN
from ...arrays import Array, Int
from ...ascii import DIGIT_0, DOT, MINUS
from ...jit.compiler import inner
from ..primitives import read_16
from .floats import INFINITY, NAN
from .outcomes import BAD, write_word


@inner
def write_numeric(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> Int:
    """A count of groups of four digits, weight of the first one, sign, digits after the point; then the groups."""
    if size < 8:
        return BAD
    count, weight, sign, scale = (
        read_16(data, at),
        read_16(data, at + 2),
        read_16(data, at + 4),
        read_16(data, at + 6),
    )
    groups = at + 8
    if size != 8 + 2 * count:
        return BAD
    if sign == NAN_SIGN:
        return write_word(text, to, NAN)
    if sign == INFINITE or sign == MINUS_INFINITE:
        if sign == MINUS_INFINITE:
            text[to] = MINUS
            to += 1
        return write_word(text, to, INFINITY)
    if sign != POSITIVE and sign != NEGATIVE:
        return BAD
    weight -= (weight >> 15) << 16  # signed
    before = (weight + 1) * GROUP_DIGITS  # digits before the point; negative: zeros just after it
    known = count * GROUP_DIGITS
    if (
        before - known > MAX_IMPLIED_ZEROS
        or min(-before, scale) > MAX_IMPLIED_ZEROS
        or scale - max(known - before, 0) > MAX_IMPLIED_ZEROS
    ):
        return BAD
    any_digit = np.int64(0)
    for group in range(count):
        number = read_16(data, groups + 2 * group)
        if number > MOST_GROUP:
            return BAD
        any_digit |= number
    if any_digit != 0 and sign == NEGATIVE:
        text[to] = MINUS
        to += 1
    begin = to
    for digit in range(before):
        number = _digit(data, groups, known, digit)
        if number != 0 or to > begin:
            text[to] = DIGIT_0 + number
            to += 1
    if to == begin:
        text[to] = DIGIT_0
        to += 1
    if scale > 0:
        text[to] = DOT
        to += 1
        for digit in range(before, before + scale):
            text[to] = DIGIT_0 + _digit(data, groups, known, digit)
            to += 1
    for digit in range(max(before + scale, 0), known):
        if _digit(data, groups, known, digit) != 0:
            return BAD
    return to


@inner
def _digit(data: Array, groups: Int, known: Int, digit: Int) -> Int:
    """A digit of a numeric, counted from the first of the first group; 0 before and after the groups."""
    if digit < 0 or digit >= known:
        return np.int64(0)
    number = read_16(data, groups + 2 * (digit // GROUP_DIGITS))
    left = GROUP_DIGITS - 1 - digit % GROUP_DIGITS
    if left >= 2:
        number //= 100
        left -= 2
    if left == 1:
        number //= 10
    return number % 10
