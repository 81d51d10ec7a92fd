"""Commit times as the servers print them, and heartbeat times, to microseconds since 1970 in UTC."""

from __future__ import annotations

import re
from datetime import date

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Heartbeat units: microseconds in one."""

_TIME = re.compile(
    r"(\d{4,6})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?", re.ASCII
)
MICROS_OF_2000 = 946_684_800_000_000
"""2000-01-01, where PostgreSQL's own times begin, in microseconds since 1970."""

_FIRST_YEAR, _LAST_YEAR = -4712, 294_246
"""4713 BC, where PostgreSQL's timestamps begin; its last years, up to 294276, have microseconds beyond int64."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY_OF_2000 = date(2000, 1, 1).toordinal()
_DAYS_OF_400_YEARS = 146_097

FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999 in UTC, since 1970: what Python's datetime can say."""


def table_time(micros: int | None) -> int | None:
    """A time as the row-change table holds it: None where Python's datetime cannot say it."""
    return micros if micros is not None and FIRST_MICROS <= micros <= LAST_MICROS else None


def parse_commit_time(text: str) -> int | None:
    """Read `2026-11-21 01:02:03.123456+08`: microseconds since 1970-01-01 UTC.

    None for everything else: `infinity`, `(timestamp out of range)`, a time without an offset, a date that is none.
    Source: PostgreSQL manual, "Date/Time Output", style ISO; offsets are +HH, +HH:MM or +HH:MM:SS; ` BC` may follow.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    sign, before_christ = match[8], match[12]
    year, month, day, hour, minute, second, *offset = map(int, match.group(1, 2, 3, 4, 5, 6) + match.groups("0")[8:11])
    if year < 1 or hour > 23 or max(minute, second, *offset) > 59:
        return None
    year = 1 - year if before_christ else year
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    try:
        in_cycle = date(2000 + year % 400, month, day)  # Python's years end at 9999, but dates repeat after 400 years
    except ValueError:
        return None
    days = in_cycle.toordinal() - _EPOCH_DAY + (year // 400 - 5) * _DAYS_OF_400_YEARS
    clock = (hour * 60 + minute) * 60 + second
    shift = (offset[0] * 60 + offset[1]) * 60 + offset[2]
    seconds = days * 86_400 + clock - (shift if sign == "+" else -shift)
    return seconds * 1_000_000 + int((match[7] or "").ljust(6, "0"))


def time_text(micros: int) -> str | None:
    """Microseconds since 1970 as `parse_commit_time` reads them, in UTC: `2026-11-21 01:02:03.5+00`.

    None outside of the years that it reads. Source: PostgreSQL manual, "Date/Time Output", style ISO.
    """
    seconds, fraction = divmod(micros, 1_000_000)
    days, clock = divmod(seconds, 86_400)
    cycles, day = divmod(days + _EPOCH_DAY - _FIRST_DAY_OF_2000, _DAYS_OF_400_YEARS)
    in_cycle = date.fromordinal(_FIRST_DAY_OF_2000 + day)
    year = in_cycle.year + 400 * cycles
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    shown, era = (year, "") if year > 0 else (1 - year, " BC")
    digits = f".{fraction:06d}".rstrip("0") if fraction else ""
    hour, minute, second = clock // 3600, clock // 60 % 60, clock % 60
    return f"{shown:04d}-{in_cycle:%m-%d} {hour:02d}:{minute:02d}:{second:02d}{digits}+00{era}"


def heartbeat_micros(time: int, factor: int) -> int | None:
    """Turn a heartbeat's number into microseconds; None if they do not fit 64 bits.

    factor   microseconds in one unit, or 0: guess by size (about 1e9 are seconds, 1e12 milliseconds, 1e15 microseconds)
    Source: GaussDB document, "Heartbeats": the unit is not published.
    """
    if factor == 0:
        size = time if time >= 0 else -(time + 1)
        factor = 1_000_000 if size < 100_000_000_000 else (1_000 if size < 100_000_000_000_000 else 1)
    micros = time * factor
    return micros if -(1 << 63) <= micros < 1 << 63 else None
