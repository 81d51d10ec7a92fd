"""Dates, times and intervals in binary form to text, in the styles ISO and postgres, in UTC."""

from __future__ import annotations

import numpy as np

from ....pgtypes.binary import DATES, INT32, INT64, TIMESTAMPS, ZONES
from ....times import DAYS_TO_2000, MICROS_OF_DAY
from ...arrays import Array, Int
from ...ascii import COLON, DIGIT_0, DOT, MINUS, PLUS, SPACE
from ...jit.compiler import inner
from ..primitives import PAIRS, read_32, read_64, write_decimal
from .forms import BAD, DATE_FORM, INTERVAL_FORM, SIZE_OF_FORM, TIME_FORM, TIMESTAMPTZ_FORM, TIMETZ_FORM, write_word

FIRST_DATE, LAST_DATE = DATES[0], DATES[-1]
FIRST_TIMESTAMP, LAST_TIMESTAMP = TIMESTAMPS[0], TIMESTAMPS[-1]
MOST_WEST = ZONES[-1]

(LEAST_32, MOST_32), (LEAST_64, MOST_64) = INT32, INT64

_INFINITY, _BC, _YEAR, _MONTH, _DAY = (
    np.frombuffer(word, np.uint8) for word in (b"infinity", b" BC", b" year", b" mon", b" day")
)


@inner
def write_time_value(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> Int:
    """Writes a date, a time, a timestamp or an interval; see forms.py."""
    if form == INTERVAL_FORM:
        return _write_interval(data, at, text, to) if size == 16 else BAD
    if size != form & SIZE_OF_FORM:
        return BAD
    form -= size
    if form == DATE_FORM:
        number = read_32(data, at)
        return _write_any_moment(text, to, number - ((number >> 31) << 32), form)
    number = read_64(data, at)
    if form == TIME_FORM:
        return _write_time(text, to, number, np.int64(0), False)
    if form == TIMETZ_FORM:
        west = read_32(data, at + 8)
        return _write_time(text, to, number, west - ((west >> 31) << 32), True)
    return _write_any_moment(text, to, number, form)


@inner
def _write_infinity(text: Array, to: Int, is_negative: bool) -> Int:
    """Writes `infinity` or `-infinity`; returns the new end of the text, as the other functions do."""
    if is_negative:
        text[to] = MINUS
        to += 1
    return write_word(text, to, _INFINITY)


@inner
def _write_pair(text: Array, to: Int, number: Int) -> Int:
    """Writes a number below 100 with two digits."""
    text[to], text[to + 1] = PAIRS[2 * number], PAIRS[2 * number + 1]
    return to + 2


@inner
def _write_clock(text: Array, to: Int, micros: Int) -> Int:
    """Writes microseconds, a uint64, as `01:02:03.5`."""
    seconds = np.int64(micros // np.uint64(1_000_000))
    fraction = np.int64(micros % np.uint64(1_000_000))
    minutes = seconds // 60
    hours = minutes // 60
    to = _write_pair(text, to, hours) if hours < 100 else write_decimal(text, to, hours, False)
    text[to] = COLON
    to = _write_pair(text, to + 1, minutes - 60 * hours)
    text[to] = COLON
    to = _write_pair(text, to + 1, seconds - 60 * minutes)
    if fraction > 0:
        text[to] = DOT
        to = _write_pair(text, to + 1, fraction // 10_000)
        to = _write_pair(text, to, fraction // 100 % 100)
        to = _write_pair(text, to, fraction % 100)
        while text[to - 1] == DIGIT_0:
            to -= 1
    return to


@inner
def _write_any_moment(text: Array, to: Int, number: Int, form: Int) -> Int:
    """Writes a date or a timestamp; returns BAD if it is out of range."""
    is_date = form == DATE_FORM
    least, most = (LEAST_32, MOST_32) if is_date else (LEAST_64, MOST_64)
    if number == least or number == most:
        return _write_infinity(text, to, number == least)
    first, last = (FIRST_DATE, LAST_DATE) if is_date else (FIRST_TIMESTAMP, LAST_TIMESTAMP)
    return write_moment(text, to, number, form) if first <= number <= last else BAD


@inner
def write_moment(text: Array, to: Int, number: Int, form: Int) -> Int:
    """Writes a date, in days since 2000, or a timestamp, in microseconds.

    Source: Cassio Neri and Lorenz Schneider, "Euclidean affine functions and their application to calendar algorithms".
    """
    days = number if form == DATE_FORM else number // MICROS_OF_DAY
    quarters = 4 * (days + DAYS_TO_2000 + 719_468) + 3  # of days from 0000-03-01: a leap day is the last of its year
    century = quarters // 146_097
    scaled = 2_939_745 * (quarters - 146_097 * century | 3)
    year = 100 * century + (scaled >> 32)
    scaled = 2_141 * ((scaled & 0xFFFFFFFF) // (4 * 2_939_745)) + 197_913
    month = scaled >> 16
    if month > 12:
        month -= 12
        year += 1
    shown = year if year > 0 else 1 - year
    if shown < 10_000:
        to = _write_pair(text, _write_pair(text, to, shown // 100), shown % 100)
    else:
        to = write_decimal(text, to, shown, False)
    text[to] = MINUS
    to = _write_pair(text, to + 1, month)
    text[to] = MINUS
    to = _write_pair(text, to + 1, (scaled & 0xFFFF) // 2_141 + 1)
    if form != DATE_FORM:
        text[to] = SPACE
        to = _write_clock(text, to + 1, np.uint64(number - days * MICROS_OF_DAY))
    if form == TIMESTAMPTZ_FORM:
        text[to], text[to + 1], text[to + 2] = PLUS, DIGIT_0, DIGIT_0
        to += 3
    return to if year > 0 else write_word(text, to, _BC)


@inner
def _write_time(text: Array, to: Int, micros: Int, west: Int, has_zone: bool) -> Int:
    """Writes a time of the day, with its offset if it has one; returns BAD if one of them is out of range."""
    if micros < 0 or micros > MICROS_OF_DAY or west < -MOST_WEST or west > MOST_WEST:
        return BAD
    to = _write_clock(text, to, np.uint64(micros))
    if has_zone:
        text[to] = MINUS if west > 0 else PLUS
        west = abs(west)
        to = _write_pair(text, to + 1, west // 3600)
        if west % 3600 > 0:
            text[to] = COLON
            to = _write_pair(text, to + 1, west // 60 % 60)
        if west % 60 > 0:
            text[to] = COLON
            to = _write_pair(text, to + 1, west % 60)
    return to


@inner
def _write_interval(data: Array, at: Int, text: Array, to: Int) -> Int:
    """Writes microseconds, days and months, each with a sign of its own. At most 80 bytes are used."""
    micros, days, months = read_64(data, at), read_32(data, at + 8), read_32(data, at + 12)
    days -= (days >> 31) << 32  # signed
    months -= (months >> 31) << 32
    is_least = micros == LEAST_64 and days == LEAST_32 and months == LEAST_32
    if is_least or (micros == MOST_64 and days == MOST_32 and months == MOST_32):
        return _write_infinity(text, to, is_least)
    years = abs(months) // 12
    rest = abs(months) - 12 * years
    if months < 0:
        years, rest = -years, -rest
    begin = to
    is_after_negative = False  # the part before is negative: a positive one has its sign written
    for part in range(3):
        number = years if part == 0 else rest if part == 1 else days
        if number == 0:
            continue
        if to > begin:
            text[to] = SPACE
            to += 1
        if is_after_negative and number > 0:
            text[to] = PLUS
            to += 1
        to = write_decimal(text, to, number, True)
        to = write_word(text, to, _YEAR if part == 0 else _MONTH if part == 1 else _DAY)
        if number != 1:
            text[to] = ord("s")
            to += 1
        is_after_negative = number < 0
    if micros != 0 or to == begin:
        if to > begin:
            text[to] = SPACE
            to += 1
        if micros < 0 or is_after_negative:
            text[to] = MINUS if micros < 0 else PLUS
            to += 1
        to = _write_clock(text, to, np.uint64(~micros) + np.uint64(1) if micros < 0 else np.uint64(micros))
    return to
