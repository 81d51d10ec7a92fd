"""Commit times as the servers print them, and heartbeat times, to microseconds since 1970 in UTC.

Both functions are plain arithmetic over bytes, so that the compiled scan and the declaration run the same body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Heartbeat units: microseconds in one."""

_LAST_YEAR = 294_276  # of PostgreSQL's timestamps; one more would not fit int64 microseconds


def parse_commit_time(text: Any, start: int, stop: int) -> tuple[bool, int]:
    """Read `2026-11-21 01:02:03.123456+08` at text[start:stop].

    text     bytes, or uint8[n]
    returns  (True, microseconds since 1970-01-01 UTC), or (False, 0) for everything else: `infinity`,
             `(timestamp out of range)`, a time without an offset, a date that is none
    Source: PostgreSQL manual, "Date/Time Output", style ISO; offsets are +HH, +HH:MM or +HH:MM:SS; ` BC` may follow.
    """
    year, at = _number(text, start, stop, 4, 6)
    month, at = _number(text, _after(text, at, stop, 45), stop, 2, 2)
    day, at = _number(text, _after(text, at, stop, 45), stop, 2, 2)
    hour, at = _number(text, _after(text, at, stop, 32), stop, 2, 2)
    minute, at = _number(text, _after(text, at, stop, 58), stop, 2, 2)
    second, at = _number(text, _after(text, at, stop, 58), stop, 2, 2)
    if at < 0:
        return False, 0
    micros = 0
    if at < stop and text[at] == 46:
        fraction, end = _number(text, at + 1, stop, 1, 6)
        if end < 0:
            return False, 0
        for _ in range(6 - (end - at - 1)):
            fraction *= 10
        micros = fraction
        at = end
    if at >= stop or not (text[at] == 43 or text[at] == 45):
        return False, 0
    sign = 1 if text[at] == 43 else -1
    offset, at = _number(text, at + 1, stop, 2, 2)
    offset *= 3600
    for weight in (60, 1):
        if 0 <= at < stop and text[at] == 58:
            part, at = _number(text, at + 1, stop, 2, 2)
            if part > 59:
                return False, 0
            offset += part * weight
    if 0 <= at and stop - at == 3 and text[at] == 32 and text[at + 1] == 66 and text[at + 2] == 67:
        year = 1 - year
        at = stop
    if at != stop or year > _LAST_YEAR or month < 1 or month > 12 or day < 1 or hour > 23 or minute > 59 or second > 59:
        return False, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = (29 if leap else 28) if month == 2 else (30 if month in (4, 6, 9, 11) else 31)
    if day > longest:
        return False, 0
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - sign * offset
    return True, seconds * 1_000_000 + micros


def heartbeat_micros(time: int, factor: int) -> tuple[bool, int]:
    """Turn a heartbeat's number into microseconds.

    factor   microseconds in one unit, or 0: guess by size (about 1e9 are seconds, 1e12 milliseconds, 1e15 microseconds)
    returns  (True, microseconds), or (False, 0) if they do not fit 64 bits. Source: formats/gaussdb, "Heartbeats":
             the unit is not published.
    """
    size = time if time >= 0 else -(time + 1)
    if factor == 0:
        factor = 1_000_000 if size < 100_000_000_000 else (1_000 if size < 100_000_000_000_000 else 1)
    if size > 9_223_372_036_854_775_807 // factor - 1:
        return factor == 1, time if factor == 1 else 0
    return True, time * factor


def _number(text: Any, start: int, stop: int, least: int, most: int) -> tuple[int, int]:
    """A decimal number of least..most digits at start: (value, byte after it), or (0, -1)."""
    if start < 0:
        return 0, -1
    value = 0
    at = start
    while at < stop and at - start < most and 48 <= text[at] <= 57:
        value = value * 10 + np.int64(text[at]) - 48
        at += 1
    if at - start < least:
        return 0, -1
    return value, at


def _after(text: Any, at: int, stop: int, mark: int) -> int:
    """The byte after `mark` at text[at], or -1."""
    return at + 1 if 0 <= at < stop and text[at] == mark else -1


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, with years counted from March."""
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
