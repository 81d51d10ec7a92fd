"""Compiled functions that write pgoutput's times and binary values as text."""

from __future__ import annotations

import numpy as np

from ....times import FIRST_MICROS, LAST_MICROS, MICROS_OF_2000, MICROS_OF_DAY
from ...arrays import Array, Int
from ...ascii import COLON, DIGIT_0, DOT, MINUS, PLUS, SPACE
from ...jit.compiler import inner
from ..binary_text.forms import (
    BOOLEAN_FORM,
    DATE_FORM,
    INTEGER_FORM,
    LAST_WRITTEN_FORM,
    OID_FORM,
    SIZE_OF_FORM,
    TIMESTAMP_FORM,
)
from ..dictionary import COMMIT_TIME_KEY, token_entry
from ..notes import BINARY_LENGTH, TEXT_USED, TIME_KNOWN, TIME_TEXT, ScanArrays
from ..primitives import read_16, read_32, read_64, write_decimal
from ..row_notes import note_detail
from ..tokens import BOOLEANS

OUTPUT_TRUE, OUTPUT_FALSE = (token_entry(token) for token in BOOLEANS)
"""The texts of a boolean: that of a true one is `t`."""

FIRST_TIME, LAST_TIME = (micros - MICROS_OF_2000 for micros in (FIRST_MICROS, LAST_MICROS))
FIRST_DAY, LAST_DAY = (micros // MICROS_OF_DAY for micros in (FIRST_TIME, LAST_TIME))
"""The years 1 to 9999, in microseconds since 2000; other times are left to the declaration."""


@inner
def write_time(text: Array, used: Int, micros: Int) -> Int:
    """Write microseconds since 1970 as `2026-11-21 01:02:03.5+00`; returns the new end of the used text."""
    days = micros // MICROS_OF_DAY
    left = micros - days * MICROS_OF_DAY
    days += 719_468  # days from 0000-03-01, so that a leap day is the last of its year
    cycle = days // 146_097  # of 400 years
    day = days - cycle * 146_097
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    year += 400 * cycle
    month += 3
    if month > 12:
        month -= 12
        year += 1
    fraction = left % 1_000_000
    seconds = left // 1_000_000
    number = np.int64(0)
    for part in range(8):
        if part == 0:
            number = year // 100
        elif part == 1:
            number = year % 100
        elif part == 2:
            number = month
        elif part == 3:
            number = day
        elif part == 4:
            number = seconds // 3600
        elif part == 5:
            number = seconds // 60 % 60
        elif part == 6:
            number = seconds % 60
        else:
            break
        if part > 1:
            text[used] = MINUS if part < 4 else SPACE if part == 4 else COLON
            used += 1
        text[used] = DIGIT_0 + number // 10
        text[used + 1] = DIGIT_0 + number % 10
        used += 2
    if fraction > 0:
        text[used] = DOT
        used += 1
        step = 100_000
        while fraction > 0:
            text[used] = DIGIT_0 + fraction // step
            used += 1
            fraction %= step
            step //= 10
    text[used], text[used + 1], text[used + 2] = PLUS, DIGIT_0, DIGIT_0
    return used + 3


@inner
def binary_value(arrays: ScanArrays, at: Int, size: Int, used: Int, binary_form: Int) -> tuple[Int, Int]:
    """Returns the pair of a binary value, which may be written to text[used:], or is noted in its binary form.

    binary_form   the form and the size of the type's values, packed; see SIZE_OF_FORM
    """
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    if binary_form > LAST_WRITTEN_FORM or size != binary_form & SIZE_OF_FORM:
        return at, BINARY_LENGTH - size
    form = binary_form - size
    if form == BOOLEAN_FORM:
        entry = OUTPUT_TRUE if buffer[at] != 0 else OUTPUT_FALSE
        return np.int64(dictionary[entry, 0]), np.int64(dictionary[entry, 1])
    number = np.int64(0)
    if size == 2:
        number = read_16(buffer, at)
    elif size == 4:
        number = read_32(buffer, at)
    elif size == 8:
        number = read_64(buffer, at)
    if form == OID_FORM:
        return ~used, write_decimal(text, used, number, False) - used
    if size == 2 or size == 4:
        number -= (number >> (8 * size - 1)) << (8 * size)  # signed
    if form == INTEGER_FORM:
        return ~used, write_decimal(text, used, number, True) - used
    if form == DATE_FORM:
        if number < FIRST_DAY or number > LAST_DAY:
            return at, BINARY_LENGTH - size
        number *= MICROS_OF_DAY
    if number < FIRST_TIME or number > LAST_TIME:
        return at, BINARY_LENGTH - size
    end = write_time(text, used, number + MICROS_OF_2000)
    if form == DATE_FORM:
        end = used + 10
    elif form == TIMESTAMP_FORM:
        end -= 3
    return ~used, end - used


@inner
def note_time(arrays: ScanArrays, row: Int, key: Int, at: Int) -> bool:
    """Adds the time at `at` to the row's detail map; False for one that the declaration must read.

    key   COMMIT_TIME_KEY, which is also the row's commit time, or PREPARE_TIME_KEY
    """
    rows, text, cursor = arrays.rows, arrays.text, arrays.cursor
    micros = read_64(arrays.buffer, at)
    if micros < FIRST_TIME or micros > LAST_TIME:
        return False
    begin = cursor[TEXT_USED]
    end = write_time(text, begin, micros + MICROS_OF_2000)
    cursor[TEXT_USED] = end
    note_detail(arrays, row, key, ~begin, end - begin)
    if key == COMMIT_TIME_KEY:
        rows[TIME_TEXT, row] = micros + MICROS_OF_2000
        rows[TIME_TEXT + 1, row] = TIME_KNOWN
    return True
