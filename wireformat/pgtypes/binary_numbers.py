"""Numbers in binary form to text: integers, floats as PostgreSQL 12 and newer print them, numeric."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from ..errors import counted

MAX_IMPLIED_ZEROS = 1000
"""Zeros of a numeric's text that its bytes only count: as many as numeric(1000, 1000) has after the point.

A few bytes can stand for 131,072 digits, and a message for gigabytes of zeros: longer ones stay in binary form.
"""


def integer_reader(layout: str) -> Callable[[bytes], str]:
    """A reader of integers of this struct layout."""
    number = struct.Struct(layout)

    def read(data: bytes) -> str:
        return str(unpack(number, data)[0])

    return read


def unpack(layout: struct.Struct, data: bytes) -> tuple[Any, ...]:
    """Returns the numbers of a layout; raises ValueError for another size."""
    if len(data) != layout.size:
        raise ValueError(f"expected {counted(layout.size, 'byte')}, got {len(data)}")
    return layout.unpack(data)


class _Float(NamedTuple):
    """A kind of float: bits of the mantissa, least exponent, and from which power of ten on it has an exponent."""

    layout: struct.Struct
    bits: int
    least: int
    plain: int


_REAL = _Float(struct.Struct(">f"), 24, -149, 6)
_DOUBLE = _Float(struct.Struct(">d"), 53, -1074, 15)


def real_text(data: bytes) -> str:
    """A float of 32 bits."""
    return _float_text(unpack(_REAL.layout, data)[0], _REAL)


def double_text(data: bytes) -> str:
    """A float of 64 bits."""
    return _float_text(unpack(_DOUBLE.layout, data)[0], _DOUBLE)


def _float_text(value: float, kind: _Float) -> str:
    """The fewest digits that give the value back; with an exponent below 1e-4 and from 1e15 (real: 1e6) on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    sign = "-" if math.copysign(1, value) < 0 else ""
    if not value:
        return f"{sign}0"
    number, power = _shortest(abs(value), kind)
    digits = str(number)
    exponent = len(digits) - 1 + power
    if not -4 <= exponent < kind.plain:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{exponent:+03}"
    if power >= 0:
        return sign + digits + "0" * power
    digits = digits.rjust(1 - power, "0")
    return f"{sign}{digits[:power]}.{digits[power:]}"


def _shortest(value: float, kind: _Float) -> tuple[int, int]:
    """(digits, power of ten) of the decimal with the fewest digits among those that are nearest to this float alone.

    A decimal that lies in the middle between two floats is not taken, unlike by repr. So repr says the same only where
    no decimal of 17 digits does, which is below 2**53, where all floats are finer than that, and from 1e41 on.
    """
    if kind is _DOUBLE and not 2.0**53 <= value < 1e41:
        _, digits, power = Decimal(repr(value)).normalize().as_tuple()
        return int("".join(map(str, digits))), int(power)
    exponent = max(math.frexp(value)[1] - kind.bits, kind.least)
    mantissa = int(math.ldexp(value, -exponent))
    is_first_of_its_exponent = mantissa == 1 << (kind.bits - 1) and exponent > kind.least  # its lower neighbour is near
    low, high = 4 * mantissa - (1 if is_first_of_its_exponent else 2), 4 * mantissa + 2
    above, below = 1 << max(exponent - 2, 0), 1 << max(2 - exponent, 0)
    power = math.floor(math.log10(value)) + 1
    while True:
        factor, step = above * 10 ** max(-power, 0), below * 10 ** max(power, 0)
        middle = 4 * mantissa * factor
        around = middle // step
        fitting = [digits for digits in (around, around + 1) if low * factor < digits * step < high * factor]
        if fitting:
            return min(fitting, key=lambda digits: (abs(digits * step - middle), digits & 1)), power
        power -= 1


_NUMERIC_HEAD = struct.Struct(">HhHH")
POSITIVE, NEGATIVE, NAN, INFINITE, MINUS_INFINITE = 0x0000, 0x4000, 0xC000, 0xD000, 0xF000
"""The signs of a numeric."""

_SIGNS = {POSITIVE: "", NEGATIVE: "-"}
_SPECIAL = {NAN: "NaN", INFINITE: "Infinity", MINUS_INFINITE: "-Infinity"}

GROUP_DIGITS, MOST_GROUP = 4, 9999
"""Decimal digits of a group, and the largest group."""


def numeric_text(data: bytes) -> str | None:
    """A decimal: count, weight of the first group, sign, digits after the point; then groups of four digits.

    None if more than MAX_IMPLIED_ZEROS zeros would have to be made up.
    """
    if len(data) < _NUMERIC_HEAD.size:
        raise ValueError(f"expected at least {_NUMERIC_HEAD.size} bytes, got {len(data)}")
    count, weight, sign, scale = _NUMERIC_HEAD.unpack_from(data)
    if len(data) != _NUMERIC_HEAD.size + 2 * count:
        raise ValueError(
            f"expected {counted(count, 'group')} of digits, got {counted(len(data) - _NUMERIC_HEAD.size, 'byte')}"
        )
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    if sign not in _SIGNS:
        raise ValueError(f"expected a sign, got {sign:#06x}")
    groups = struct.unpack_from(f">{count}H", data, _NUMERIC_HEAD.size)
    if max(groups, default=0) > MOST_GROUP:
        raise ValueError(f"expected groups up to {MOST_GROUP}, got a larger one")
    before = (weight + 1) * GROUP_DIGITS  # digits before the point; negative: zeros just after it
    known = count * GROUP_DIGITS
    if max(before - known, min(-before, scale), scale - max(known - before, 0)) > MAX_IMPLIED_ZEROS:
        return None
    digits = "".join(f"{group:04}" for group in groups)
    if before < 0:
        digits, before = "0" * min(-before, scale + GROUP_DIGITS) + digits, 0
    whole, fraction = digits[:before].ljust(before, "0"), digits[before:]
    if fraction[scale:].strip("0"):
        raise ValueError(f"expected {counted(scale, 'digit')} after the point, got more")
    minus = _SIGNS[sign] if any(groups) else ""  # a server takes no negative zero either
    point = "." if scale else ""
    return f"{minus}{whole.lstrip('0') or '0'}{point}{fraction[:scale].ljust(scale, '0')}"
