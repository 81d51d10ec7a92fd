"""Dates, times and intervals in binary form to text, in the styles ISO and postgres, in UTC."""

from __future__ import annotations

import struct

from ..times import DAYS_TO_2000, MICROS_OF_DAY, clock_text, day_text
from .binary_numbers import unpack

_DATE = struct.Struct(">i")
_TIME = struct.Struct(">q")
_TIME_ZONE = struct.Struct(">qi")
_INTERVAL = struct.Struct(">qii")

DATES = range(-2_451_545, 2_145_031_949)
"""Days since 2000-01-01: from 4713 BC to the year 5874897."""
TIMESTAMPS = range(-211_813_488_000_000_000, 9_223_371_331_200_000_000 + 1)
"""Microseconds since 2000-01-01: from 4713 BC to the end of the year 294276, to which timestamp(0) may round up."""
ZONES = range(-57_599, 57_600)
"""Seconds west of Greenwich: less than 16 hours either way."""

INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)
_INFINITIES = ("-infinity", "infinity")
_INFINITE_DATES = dict(zip(INT32, _INFINITIES, strict=True))
_INFINITE_TIMESTAMPS = dict(zip(INT64, _INFINITIES, strict=True))
_INFINITE_INTERVALS = dict(zip(zip(INT64, INT32, INT32, strict=True), _INFINITIES, strict=True))
"""Version 17 and newer; before, these were intervals like others, of 178956970 years."""


def date_text(data: bytes) -> str:
    """Days since 2000-01-01."""
    (days,) = unpack(_DATE, data)
    if days in _INFINITE_DATES:
        return _INFINITE_DATES[days]
    _check(days, DATES, "a date")
    day, era = day_text(days + DAYS_TO_2000)
    return day + era


def time_text(data: bytes) -> str:
    """Microseconds since midnight; 24:00:00 is a time."""
    return _clock(unpack(_TIME, data)[0])


def time_zone_text(data: bytes) -> str:
    """Microseconds since midnight, and seconds west of Greenwich."""
    micros, west = unpack(_TIME_ZONE, data)
    _check(west, ZONES, "an offset")
    hours, minutes, seconds = abs(west) // 3600, abs(west) // 60 % 60, abs(west) % 60
    rest = f":{minutes:02}:{seconds:02}" if seconds else (f":{minutes:02}" if minutes else "")
    return f"{_clock(micros)}{'-' if west > 0 else '+'}{hours:02}{rest}"


def timestamp_text(data: bytes) -> str:
    """Microseconds since 2000-01-01."""
    return _timestamp(data, "")


def timestamp_zone_text(data: bytes) -> str:
    """The same in UTC, and with its offset."""
    return _timestamp(data, "+00")


def interval_text(data: bytes) -> str:
    """Microseconds, days and months, each with a sign of its own."""
    micros, days, months = parts = unpack(_INTERVAL, data)
    if parts in _INFINITE_INTERVALS:
        return _INFINITE_INTERVALS[parts]
    years, months = _toward_zero(months, 12)
    texts = []
    negative = False  # the part before: after it, a positive one has its sign written
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            texts.append(f"{'+' if negative and number > 0 else ''}{number} {unit}{'' if number == 1 else 's'}")
            negative = number < 0
    if micros or not texts:
        sign = "-" if micros < 0 else ("+" if negative else "")
        texts.append(sign + clock_text(abs(micros)))
    return " ".join(texts)


def _timestamp(data: bytes, zone: str) -> str:
    (micros,) = unpack(_TIME, data)
    if micros in _INFINITE_TIMESTAMPS:
        return _INFINITE_TIMESTAMPS[micros]
    _check(micros, TIMESTAMPS, "a timestamp")
    days, clock = divmod(micros, MICROS_OF_DAY)
    day, era = day_text(days + DAYS_TO_2000)
    return f"{day} {clock_text(clock)}{zone}{era}"


def _clock(micros: int) -> str:
    _check(micros, range(MICROS_OF_DAY + 1), "a time of day")
    return clock_text(micros)


def _toward_zero(number: int, divisor: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(number), divisor)
    return (-quotient, -rest) if number < 0 else (quotient, rest)


def _check(number: int, allowed: range, what: str) -> None:
    if number not in allowed:
        raise ValueError(f"expected {what}, got a number that is out of its range")
