"""Commit times as the servers print them, and heartbeat times, to microseconds since 1970 in UTC.

Both functions are plain arithmetic over bytes, so that the compiled scan and the declaration run the same body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Heartbeat units: microseconds in one."""

_DAYS_BEFORE = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)  # a month, numbered from 1
_TEN_TO = (1, 10, 100, 1_000, 10_000, 100_000)
_LAST_YEAR = 294_246  # the last one whose microseconds all fit int64; PostgreSQL ends thirty years later


def parse_commit_time(text: Any, start: int, stop: int) -> tuple[bool, int]:
    """Read `2026-11-21 01:02:03.123456+08` at text[start:stop].

    text     bytes, or uint8[n]
    returns  (True, microseconds since 1970-01-01 UTC), or (False, 0) for everything else: `infinity`,
             `(timestamp out of range)`, a time without an offset, a date that is none
    Source: PostgreSQL manual, "Date/Time Output", style ISO; offsets are +HH, +HH:MM or +HH:MM:SS; ` BC` may follow.
    """
    year, month, day, clock, micros, offset, sign, units = 0, 0, 0, 0, 0, 0, 0, 3600
    at = start
    # Fields 0 to 2 are the date, 3 to 5 the time, 6 the fraction, 7 to 9 the offset. A byte before each says that it is
    # there; the fraction and the minutes and seconds of the offset may be left out.
    for field in range(10):
        if field > 0:
            mark = np.int64(text[at] if at < stop else 0)
            if field < 3:
                there = mark == 45  # -
            elif field == 3:
                there = mark == 32  # blank
            elif field == 6:
                there = mark == 46  # .
            elif field == 7:
                there = mark == 43 or mark == 45  # + -
                sign = 44 - mark
            else:
                there = mark == 58  # :
            if field == 6 and not there:
                continue
            if field > 7 and not there:
                break
            if not there:
                return False, 0
            at += 1
        begin = at
        value = 0
        most = 6 if field == 0 or field == 6 else 2
        while at < stop and at - begin < most and 48 <= text[at] <= 57:
            value = value * 10 + np.int64(text[at]) - 48
            at += 1
        digits = at - begin
        if digits < (4 if field == 0 else (1 if field == 6 else 2)) or (field > 3 and field != 6 and value > 59):
            return False, 0
        if field == 0:
            year = value
        elif field == 1:
            month = value
        elif field == 2:
            day = value
        elif field < 6:
            clock = clock * 60 + value
        elif field == 6:
            micros = value * _TEN_TO[6 - digits]
        else:
            offset += value * units
            units //= 60
    if stop - at == 3 and text[at] == 32 and text[at + 1] == 66 and text[at + 2] == 67:
        year = 1 - year
        at = stop
    if at != stop or clock >= 86400 or year > _LAST_YEAR or not 1 <= month <= 12:
        return False, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    before = _DAYS_BEFORE[month] + (leap and month > 2)
    if not 1 <= day <= _DAYS_BEFORE[month + 1] + (leap and month >= 2) - before:
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
