"""Commit times as the servers print them, and heartbeat times, to microseconds since 1970 in UTC.

Both functions are plain arithmetic over bytes, so that the compiled scan and the declaration run the same body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Heartbeat units: microseconds in one."""

_FIELDS = np.array(
    [
        (0, 4, 6, 294_246),  # year; later ones, up to PostgreSQL's 294276, have microseconds that do not fit int64
        (45, 2, 2, 12),  # -month
        (45, 2, 2, 31),  # -day
        (32, 2, 2, 23),  # blank, hour
        (58, 2, 2, 59),  # :minute
        (58, 2, 2, 59),  # :second
        (46, 1, 6, 999_999),  # .fraction, may be left out
        (43, 2, 2, 59),  # + or -, hours of the offset
        (58, 2, 2, 59),  # :minutes of the offset, may be left out
        (58, 2, 2, 59),  # :seconds of the offset, may be left out
    ],
    np.int64,
)
"""A time's fields: the byte before it, how many digits it has at least and at most, its largest value."""

_FRACTION, _OFFSET = 6, 7
_DAYS_BEFORE = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
"""Days of a common year before each month, numbered from 1, and before the next year."""
_FIRST_YEAR = -4712  # 4713 BC, where PostgreSQL's timestamps begin
_TEN_TO = np.array([1, 10, 100, 1_000, 10_000, 100_000])


def parse_commit_time(text: Any, start: int, stop: int) -> tuple[bool, int]:
    """Read `2026-11-21 01:02:03.123456+08` at text[start:stop].

    text     bytes, or uint8[n]
    returns  (True, microseconds since 1970-01-01 UTC), or (False, 0) for everything else: `infinity`,
             `(timestamp out of range)`, a time without an offset, a date that is none
    Source: PostgreSQL manual, "Date/Time Output", style ISO; offsets are +HH, +HH:MM or +HH:MM:SS; ` BC` may follow.
    """
    year, month, day, clock, micros, offset, sign, weight = 0, 0, 0, 0, 0, 0, 0, 3600
    at = start
    for field in range(10):
        if field > 0:
            mark = np.int64(text[at] if at < stop else 0)
            if field == _OFFSET:
                sign = 44 - mark
            if mark != _FIELDS[field, 0] and not (field == _OFFSET and mark == 45):
                if field == _FRACTION:
                    continue
                if field > _OFFSET:
                    break
                return False, 0
            at += 1
        begin = at
        value = np.int64(0)
        while at < stop and at - begin < _FIELDS[field, 2] and text[at] >= 48 and text[at] <= 57:
            value = value * 10 + np.int64(text[at]) - 48
            at += 1
        if at - begin < _FIELDS[field, 1] or value > _FIELDS[field, 3]:
            return False, 0
        if field == 0:
            year = value
        elif field == 1:
            month = value
        elif field == 2:
            day = value
        elif field < _FRACTION:
            clock = clock * 60 + value
        elif field == _FRACTION:
            micros = value * _TEN_TO[6 - (at - begin)]
        else:
            offset += value * weight
            weight //= 60
    if year < 1 or month < 1 or day < 1:
        return False, 0
    if stop - at == 3 and text[at] == 32 and text[at + 1] == 66 and text[at + 2] == 67:
        year = 1 - year
        at = stop
    if at != stop or year < _FIRST_YEAR:
        return False, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    before = _DAYS_BEFORE[month] + (leap and month > 2)
    if day > _DAYS_BEFORE[month + 1] + (leap and month > 1) - before:
        return False, 0
    last = year - 1
    days = 365 * last + last // 4 - last // 100 + last // 400 + before + day - 719_163
    return True, (days * 86400 + clock - sign * offset) * 1_000_000 + micros


def heartbeat_micros(time: int, factor: int) -> tuple[bool, int]:
    """Turn a heartbeat's number into microseconds.

    factor   microseconds in one unit, or 0: guess by size (about 1e9 are seconds, 1e12 milliseconds, 1e15 microseconds)
    returns  (True, microseconds), or (False, 0) if they do not fit 64 bits. Source: GaussDB document, "Heartbeats": the
             unit is not published.
    """
    size = time if time >= 0 else -(time + 1)
    if factor == 0:
        factor = 1_000_000 if size < 100_000_000_000 else (1_000 if size < 100_000_000_000_000 else 1)
    if factor > 1 and size >= 9_223_372_036_854_775_807 // factor:
        return False, 0
    return True, time * factor
