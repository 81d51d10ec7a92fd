"""One value's text form to a Python value: what the fast casts of whole columns leave over.

A function returns what Arrow takes for its column, or raises Misfit.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation

from ..errors import counted
from ..times import FIRST_MICROS, LAST_MICROS, MICROS_OF_DAY, parse_commit_time

One = Callable[[str], object]

INTEGER = re.compile(r"[+-]?[0-9]{1,100}")
FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|[+-]?(?:NaN|Infinity)")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
_ESCAPE = re.compile(rb"\\(\\|[0-3][0-7]{2})")
_HEX = re.compile(r"(?:\\x)?((?:[0-9A-Fa-f]{2})*)")
_MOMENT = re.compile(r"([0-9]{4,7})-[0-9]{2}-[0-9]{2}(?:( [0-9:.]+)([+-][0-9:]+)?)?( BC)?")


class Misfit(ValueError):
    """The value does not go into the type: in words, which are never the value itself."""


_TRUTHS = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


def boolean(text: str) -> bool:
    """`t`, `f` and the other forms of the servers."""
    if text not in _TRUTHS:
        raise Misfit("a text that is not a boolean")
    return _TRUTHS[text]


def integer(bits: int) -> One:
    """Signed integers of `bits` bits."""

    def read(text: str) -> int:
        if not INTEGER.fullmatch(text):
            raise Misfit("a text that is not an integer")
        number = int(text)
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise Misfit(f"an integer of more than {bits} bits")
        return number

    return read


def floating(bits: int) -> One:
    """Floating point numbers of 32 or 64 bits."""

    def read(text: str) -> float:
        if not FLOAT.fullmatch(text):
            raise Misfit("a text that is not a number")
        number = float(text)
        try:
            (number,) = struct.unpack("f", struct.pack("f", _odd(number, text))) if bits == 32 else (number,)
        except OverflowError:
            number = math.inf
        if math.isinf(number) and not text.endswith("Infinity"):
            raise Misfit(f"a number too large for {bits} bits")
        return number

    return read


def _odd(number: float, text: str) -> float:
    """Rounds a text that is between two doubles to the odd one: then it is rounded to 32 bits correctly, not twice."""
    if math.isfinite(number) and number != (exact := Decimal(text)) and not math.frexp(number)[0] * 2**53 % 2:
        return math.nextafter(number, math.inf if exact > number else -math.inf)
    return number


def decimal(precision: int, scale: int) -> One:
    """Exact numbers with `precision` digits, `scale` of them after the point."""
    context = Context(prec=precision, traps=[Inexact, InvalidOperation])
    unit = Decimal(1).scaleb(-scale)

    def read(text: str) -> Decimal:
        if text in ("NaN", "Infinity", "-Infinity"):
            raise Misfit("NaN or an infinity, which a decimal cannot hold")
        if not DECIMAL.fullmatch(text):
            raise Misfit("a text that is not a number")
        number = Decimal(text)
        if number and number.adjusted() >= precision - scale:
            raise Misfit(f"a number with more than {counted(precision - scale, 'digit')} before the point")
        try:
            return number.quantize(unit, context=context)
        except (Inexact, InvalidOperation):
            raise Misfit(f"a number with more than {counted(scale, 'digit')} after the point") from None

    return read


_ISO = "in ISO form, as the server prints it after SET datestyle TO ISO"


def _beyond(text: str, what: str) -> Misfit:
    """What a date that does not fit is, in words."""
    if text in ("infinity", "-infinity"):
        return Misfit(f"an infinite {what}")
    match = _MOMENT.fullmatch(text)
    if match is None:
        return Misfit(f"a text that is not a {what} {_ISO}")
    year, clock, zone, era = match.groups()
    found = "date" if clock is None else "timestamp with time zone" if zone else "timestamp"
    if found != what:
        return Misfit(f"a {found}, not a {what}")
    if era or len(year) > 4:
        return Misfit(f"a {what} {'before year 1' if era else 'after year 9999'}")
    beyond = ", or in UTC outside of the years 1 to 9999" if zone else ""
    return Misfit(f"a {what} that is in no calendar{beyond}")


def day(text: str) -> int:
    """Days since 1970."""
    match = _DATE.fullmatch(text)
    try:
        assert match is not None
        return date(*map(int, match.groups())).toordinal() - date(1970, 1, 1).toordinal()
    except (AssertionError, ValueError):
        raise _beyond(text, "date") from None


def time_of_day(text: str) -> int:
    """Microseconds since midnight."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise Misfit("a text that is not a time")
    hour, minute, second = map(int, match.group(1, 2, 3))
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match[4] or "").ljust(6, "0"))
    if hour == 24 and micros == MICROS_OF_DAY:
        raise Misfit("the end of the day, which the type does not have")
    if hour > 23 or minute > 59 or second > 59:
        raise Misfit("a text that is not a time")
    return micros


def timestamp(text: str) -> int:
    """Microseconds since 1970, no zone; a date is its midnight."""
    micros = parse_commit_time(f"{text}{'' if ' ' in text else ' 00:00:00'}+00")
    if micros is None or not FIRST_MICROS <= micros <= LAST_MICROS:
        raise _beyond(text, "timestamp")
    return micros


def timestamp_with_zone(text: str) -> int:
    """Microseconds since 1970 in UTC; an offset has up to three parts."""
    micros = parse_commit_time(text)
    if micros is None or not FIRST_MICROS <= micros <= LAST_MICROS:
        raise _beyond(text, "timestamp with time zone")
    return micros


def bytea(text: str) -> bytes:
    r"""Bytes in either output form: `\x` and hex digits, or escapes, `\\` and octal `\ooo`."""
    if text.startswith("\\x"):
        return hexadecimal(text)
    try:
        data = text.encode("ascii")
    except UnicodeEncodeError:
        raise Misfit("a text that is not a bytea value") from None
    plain = _ESCAPE.sub(b"", data)
    if b"\\" in plain:
        raise Misfit("a text that is not a bytea value")
    return _ESCAPE.sub(lambda match: b"\\" if match[1] == b"\\" else bytes((int(match[1], 8),)), data)


def hexadecimal(text: str) -> bytes:
    r"""Bytes as hex digits, with or without `\x`."""
    match = _HEX.fullmatch(text)
    if match is None:
        raise Misfit("a text that is not pairs of hex digits")
    return bytes.fromhex(match[1])


_BOUNDS = re.compile(r"(?:\[-?[0-9]{1,10}:-?[0-9]{1,10}\])+=")
_TOKENS = {
    delimiter: re.compile(rf'[{{}}{delimiter}]|"((?:[^"\\]|\\.)*)"|((?:[^{{}}"\\{delimiter}]|\\.)+)', re.DOTALL)
    for delimiter in (",", ";")
}
_QUOTED = re.compile(r"\\(.)", re.DOTALL)


def array(text: str, dimensions: int, delimiter: str = ",") -> list[object]:
    """The elements of an array's text, nested as deep as it has dimensions; NULL is None. Lower bounds are not kept.

    Source: PostgreSQL manual, "Array Input and Output Syntax"; the delimiter is pg_type.typdelim.
    """
    bounds = _BOUNDS.match(text)
    place = bounds.end() if bounds else 0
    token = _TOKENS[delimiter]
    stack: list[list[object]] = []
    expects_item = True
    while place < len(text):
        match = token.match(text, place)
        if match is None:
            break
        place, mark = match.end(), match[0]
        if mark == "{":
            if not expects_item:
                break
            if len(stack) == dimensions:
                has = f"more than {dimensions} dimension{'s' if dimensions > 1 else ''}"
                raise Misfit(f"an array of {has}; in `schema`, give its type as T{'[]' * (dimensions + 1)}, or as text")
            stack.append([])
        elif mark == "}":
            if not stack or (expects_item and stack[-1]):
                break
            done = stack.pop()
            if not stack:
                if place != len(text):
                    break
                return done
            stack[-1].append(done)
            expects_item = False
        elif mark == delimiter:
            if expects_item or not stack:
                break
            expects_item = True
        else:
            if not expects_item or len(stack) != dimensions:
                break
            stack[-1].append(_element(match))
            expects_item = False
    raise Misfit(f"a text that is not an array of {dimensions} dimension{'s' if dimensions > 1 else ''}")


def _element(match: re.Match[str]) -> str | None:
    if match[1] is not None:
        return _QUOTED.sub(r"\1", match[1])
    return None if match[2] == "NULL" else _QUOTED.sub(r"\1", match[2])
