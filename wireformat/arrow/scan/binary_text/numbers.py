"""Numbers to text, as PostgreSQL 12 and newer print them: of a float, the shortest decimal that is nearest to it alone.

A float and the middles between it and its neighbours are divided by a power of ten of which at most one multiple of the
tenfold lies between the middles; see Raffaello Giulietti, "The Schubfach way to render doubles". The middles themselves
are never taken, as in PostgreSQL.
"""

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
from ...ascii import DIGIT_0, DOT, LOWER_E, MINUS, PLUS
from ...jit.compiler import inner
from ...jit.intrinsics import product
from ..primitives import read_16, read_32, read_64, write_decimal
from .forms import BAD, SIZE_OF_FORM, write_word

LEAST_POWER, MOST_POWER = -324, 292
"""The range of the powers of ten by which floats of 64 bits are divided."""

_MOST = np.uint64(0xFFFFFFFFFFFFFFFF)


def _make_inverses() -> Array:
    """uint64[617, 2]: 1 / 10**power, rounded up to 128 bits, the first of which is 1: its higher and its lower half."""
    found = np.empty((MOST_POWER - LEAST_POWER + 1, 2), np.uint64)
    for power in range(LEAST_POWER, MOST_POWER + 1):
        if power <= 0:
            exact = 10**-power
            shift = exact.bit_length() - 128
            number = (exact >> shift if shift >= 0 else exact << -shift) + 1
        else:
            exact = 10**power
            number = (1 << (127 + exact.bit_length())) // exact
            number = (1 << (126 + exact.bit_length())) // exact if number >> 128 else number
            number += 1
        found[power - LEAST_POWER] = number >> 64, number & ((1 << 64) - 1)
    return found


INVERSES = _make_inverses()

NAN, INFINITY = (np.frombuffer(word, np.uint8) for word in (b"NaN", b"Infinity"))


@inner
def _divided(number: Int, index: Int) -> Int:
    """The number times an inverse, without its lowest 128 bits; the last bit is set if any of these is."""
    factor = np.uint64(number)
    carried, _ = product(INVERSES[index, 1], factor)
    high, low = product(INVERSES[index, 0], factor)
    if low > _MOST - carried:
        high += np.uint64(1)
        low = carried - (_MOST - low) - np.uint64(1)
    else:
        low += carried
    return np.int64(high) | np.int64(low > np.uint64(1))


@inner
def shortest(mantissa: Int, exponent: Int, is_uneven: bool) -> tuple[Int, Int]:
    """The digits and the power of ten of mantissa * 2**exponent; the digits may end with zeros.

    is_uneven   whether the lower neighbour is half as far away as the higher one
    """
    # floor(log10(2**exponent)), or of three quarters of it, and floor(log2(10**-power)): true for all floats
    power = (exponent * 1262611 - (524031 if is_uneven else 0)) >> 22
    shift = exponent + (-power * 1741647 >> 19) + 1
    index = power - LEAST_POWER
    middle = _divided(4 * mantissa << shift, index)
    least = _divided(4 * mantissa - (1 if is_uneven else 2) << shift, index) + 1
    most = _divided(4 * mantissa + 2 << shift, index) - 1
    digits = middle >> 2
    tenth = digits // 10
    is_above, is_below = 40 * tenth >= least, 40 * tenth + 40 <= most
    if is_above != is_below:
        return tenth + is_below, power + 1
    is_above, is_below = 4 * digits >= least, 4 * digits + 4 <= most
    if is_above != is_below:
        return digits + is_below, power
    half = 4 * digits + 2
    return digits + (middle > half or (middle == half and digits & 1 == 1)), power


@inner
def write_float(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> Int:
    """Writes a float of 4 or 8 bytes; see forms.py. At most 32 bytes are used."""
    if size != form & SIZE_OF_FORM:
        return BAD
    bits = read_64(data, at) if size == 8 else read_32(data, at)
    digits_of_mantissa = 52 if size == 8 else 23
    most_exponent = 0x7FF if size == 8 else 0xFF
    plain = 15 if size == 8 else 6  # from this power of ten on there is an exponent
    is_negative = bits >> (8 * size - 1) & 1 == 1
    exponent = bits >> digits_of_mantissa & most_exponent
    mantissa = bits & ((np.int64(1) << digits_of_mantissa) - 1)
    if exponent == most_exponent and mantissa != 0:
        return write_word(text, to, NAN)
    if is_negative:
        text[to] = MINUS
        to += 1
    if exponent == most_exponent:
        return write_word(text, to, INFINITY)
    if exponent == 0 and mantissa == 0:
        text[to] = DIGIT_0
        return to + 1
    is_uneven = mantissa == 0 and exponent > 1
    if exponent == 0:
        exponent = 1
    else:
        mantissa |= np.int64(1) << digits_of_mantissa
    digits, power = shortest(mantissa, exponent - (most_exponent >> 1) - digits_of_mantissa, is_uneven)
    while digits % 10 == 0:
        digits //= 10
        power += 1
    start = to + 1  # most floats have few digits before the point: these are moved, the others stay
    end = write_decimal(text, start, digits, False)
    count = end - start
    exponent = count - 1 + power
    if exponent < -4 or exponent >= plain:
        text[to] = text[start]
        if count > 1:
            text[start] = DOT
        else:
            end = start
        text[end] = LOWER_E
        text[end + 1] = MINUS if exponent < 0 else PLUS
        exponent = abs(exponent)
        end += 2
        if exponent < 10:
            text[end] = DIGIT_0
            end += 1
        return write_decimal(text, end, exponent, False)
    shift = max(1 - power - count, 0)  # zeros before the digits: one of them is before the point
    if shift > 0:
        for digit in range(end - 1, start - 1, -1):
            text[digit + shift] = text[digit]
        for digit in range(to, start + shift):
            text[digit] = DIGIT_0
        text[start] = DOT
        return end + shift
    whole = min(count + power, count)
    for digit in range(to, to + whole):
        text[digit] = text[digit + 1]
    if power < 0:
        text[to + whole] = DOT
        return end
    for digit in range(end - 1, end - 1 + power):
        text[digit] = DIGIT_0
    return end - 1 + power


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
