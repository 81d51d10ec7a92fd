"""Compiled: dates, times of day and timestamps in ISO form to days and microseconds.

Callers have checked that what is read is inside the buffer. What is not in the usual form gives NOT_TAKEN.
"""

from __future__ import annotations

import numpy as np

from ...times import FIRST_MICROS, LAST_MICROS, MICROS_OF_DAY
from ..arrays import Array, Int
from ..ascii import COLON, DOT, MINUS, PLUS, SPACE
from ..jit.compiler import hot
from ..jit.intrinsics import read_16, read_64
from .digits import HIGH_NIBBLES, POWERS, ZEROS, are_digits, number_of

DATE, TIME, TIMESTAMP, TIMESTAMP_WITH_ZONE = range(4)

NOT_TAKEN = -1 << 62
"""In place of a number of days or microseconds."""

_DATE = int.from_bytes(b"0000-00-", "big")
_DATE_ZERO_BITS = HIGH_NIBBLES | 0xFF0000FF
_CLOCK = int.from_bytes(b"00:00:00", "big")
_CLOCK_ZERO_BITS = HIGH_NIBBLES | 0xFF0000FF0000
_TWO = 0x3030

_MONTHS = np.cumsum([[0, 0, 31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] for leap in range(2)], axis=1)
_DAYS_BEFORE = _MONTHS.reshape(-1).astype(np.int64)
"""14 * leap + month, from 1 to 13: the days of the year before the month."""

_DAYS_TO_1970 = 719_163
"""From the day before 0001-01-01."""

_LAST_ZONE = 15
"""Hours: PostgreSQL's offsets are less than 16 hours."""


@hot
def moment(data: Array, at: Int, length: Int, form: Int) -> Int:
    """Days since 1970, microseconds since midnight, or microseconds since 1970 in UTC.

    form   DATE, `2026-11-21`; TIME, `01:02:03.5` with up to six digits; TIMESTAMP, both; TIMESTAMP_WITH_ZONE, followed
           by an offset, `+01`, `+05:30` or `+00:53:28`, and in UTC within the years 1 to 9999, too
    """
    days = micros = shift = seconds = 0
    end = at + length
    if form == TIMESTAMP_WITH_ZONE:
        if length < 22:
            return NOT_TAKEN
        end -= 3
        if data[end] == COLON:
            shift = _two_digits(data, end + 1)
            end -= 3
            if data[end] == COLON:
                seconds, shift = shift, _two_digits(data, end + 1)
                end -= 3
        hours = _two_digits(data, end + 1)
        if (data[end] != PLUS and data[end] != MINUS) or shift > 59 or seconds > 59 or hours > _LAST_ZONE:
            return NOT_TAKEN
        if shift < 0 or seconds < 0 or hours < 0:
            return NOT_TAKEN
        shift = ((hours * 60 + shift) * 60 + seconds) * 1_000_000
        shift = shift if data[end] == MINUS else -shift
    if form != TIME:
        if length != 10 if form == DATE else end - at < 19:
            return NOT_TAKEN
        days = _day(data, at)
        if days == NOT_TAKEN or form == DATE:
            return days
        if data[at + 10] != SPACE:
            return NOT_TAKEN
        at += 11
    micros = _clock(data, at, end) if end - at >= 8 else NOT_TAKEN
    if micros == NOT_TAKEN:
        return micros
    micros += days * MICROS_OF_DAY + shift
    return micros if micros >= FIRST_MICROS and micros <= LAST_MICROS else NOT_TAKEN


@hot
def _two_digits(data: Array, at: Int) -> Int:
    """The number of two digits; -1 if they are not digits."""
    word = read_16(data, at) ^ _TWO
    return number_of(word) if are_digits(word, HIGH_NIBBLES) else -1


@hot
def _day(data: Array, at: Int) -> Int:
    """Days since 1970 of ten bytes."""
    word = read_64(data, at) ^ _DATE
    year = number_of(word >> 32 & 0xFFFFFFFF)
    month = number_of(word >> 8 & 0xFFFF)
    day = _two_digits(data, at + 8)
    if not are_digits(word, _DATE_ZERO_BITS) or year < 1 or month < 1 or month > 12:
        return NOT_TAKEN
    century = year * 5243 >> 19  # year // 100, for all years up to 9999
    is_leap = year & 3 == 0 and (century * 100 != year or century & 3 == 0)
    index = month + 14 if is_leap else month
    before = _DAYS_BEFORE[index]
    if day < 1 or day > _DAYS_BEFORE[index + 1] - before:
        return NOT_TAKEN
    year -= 1
    century = year * 5243 >> 19
    return year * 365 + (year >> 2) - century + (century >> 2) + before + day - _DAYS_TO_1970


@hot
def _clock(data: Array, at: Int, end: Int) -> Int:
    """Microseconds since midnight of eight bytes or more."""
    word = read_64(data, at) ^ _CLOCK
    hour = number_of(word >> 48 & 0xFFFF)
    minute = number_of(word >> 24 & 0xFFFF)
    second = number_of(word & 0xFFFF)
    rest = end - at - 8
    count = rest - 1 if rest > 0 else 0
    if not are_digits(word, _CLOCK_ZERO_BITS) or hour > 23 or minute > 59 or second > 59 or rest == 1 or count > 6:
        return NOT_TAKEN
    # Without branches, since about half of the times of many columns have a fraction. If there is none, all is shifted
    # out in two steps: a shift by 64 is undefined.
    skipped = 60 - 8 * count
    word = (read_64(data, end - 8) ^ ZEROS) << 4 << skipped >> skipped >> 4
    if (rest > 0) & (data[end - count - 1] != DOT) or not are_digits(word, HIGH_NIBBLES):
        return NOT_TAKEN
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + number_of(word) * POWERS[6 - count]
