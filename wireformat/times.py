"""Times as the servers print them, to and from microseconds since 1970 in UTC; and heartbeat times."""

from __future__ import annotations

import re
from datetime import date

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Heartbeat units: microseconds in one."""

_TIME = re.compile(
    r"(\d{4,6})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?", re.ASCII
)
SECONDS_BELOW, MILLIS_BELOW = 100_000_000_000, 100_000_000_000_000
"""A heartbeat's number that is smaller than these is taken for seconds or milliseconds where no unit is given."""

MICROS_OF_2000 = 946_684_800_000_000
"""2000-01-01, where PostgreSQL's own times begin, in microseconds since 1970."""

_FIRST_YEAR, _LAST_YEAR = -4712, 294_246
"""4713 BC, where PostgreSQL's timestamps begin; its last years, up to 294276, have microseconds beyond int64."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY_OF_2000 = date(2000, 1, 1).toordinal()
_DAYS_OF_400_YEARS = 146_097

DAYS_TO_2000 = _FIRST_DAY_OF_2000 - _EPOCH_DAY
"""2000-01-01 in days since 1970."""

MICROS_OF_DAY = 86_400_000_000

FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999 in UTC, since 1970: what Python's datetime can say."""


def table_time(micros: int | None) -> int | None:
    """Returns a time as the row-change table holds it: None outside the range of Python's datetime."""
    return micros if micros is not None and FIRST_MICROS <= micros <= LAST_MICROS else None


def parse_commit_time(text: str) -> int | None:
    """Reads a time such as `2026-11-21 01:02:03.123456+08`; returns microseconds since 1970-01-01 UTC.

    Returns None for everything else: `infinity`, `(timestamp out of range)`, a time without an offset, an invalid date.
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
    """Returns microseconds since 1970 as text in UTC, such as `2026-11-21 01:02:03.5+00`.

    Returns None outside the years that `parse_commit_time` reads.
    Source: PostgreSQL manual, "Date/Time Output", style ISO.
    """
    days, clock = divmod(micros, MICROS_OF_DAY)
    year, month_and_day = _calendar(days)
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    day, era = _shown(year, month_and_day)
    return f"{day} {clock_text(clock)}+00{era}"


def day_text(days: int) -> tuple[str, str]:
    """Returns days since 1970 as `2026-11-21`, and ` BC` or nothing, which follows the time."""
    return _shown(*_calendar(days))


def clock_text(micros: int) -> str:
    """Returns microseconds as `01:02:03.5`, with the shortest fraction. The hours may exceed a day."""
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"


def _calendar(days: int) -> tuple[int, str]:
    """Returns the year (0 is 1 BC) and `-11-21`. Python's years end at 9999, but dates repeat after 400 years."""
    cycles, day = divmod(days - DAYS_TO_2000, _DAYS_OF_400_YEARS)
    in_cycle = date.fromordinal(_FIRST_DAY_OF_2000 + day)
    return in_cycle.year + 400 * cycles, f"-{in_cycle:%m-%d}"


def _shown(year: int, month_and_day: str) -> tuple[str, str]:
    shown, era = (year, "") if year > 0 else (1 - year, " BC")
    return f"{shown:04}{month_and_day}", era


def heartbeat_micros(time: int, factor: int) -> int | None:
    """Returns the time in a heartbeat as microseconds; None if they do not fit into 64 bits.

    factor   microseconds in one unit, or 0: guess by size (about 1e9 are seconds, 1e12 milliseconds, 1e15 microseconds)
    Source: GaussDB document, "Heartbeats": the unit is not published.
    """
    if factor == 0:
        size = time if time >= 0 else -(time + 1)
        factor = 1_000_000 if size < SECONDS_BELOW else (1_000 if size < MILLIS_BELOW else 1)
    micros = time * factor
    return micros if -(1 << 63) <= micros < 1 << 63 else None
