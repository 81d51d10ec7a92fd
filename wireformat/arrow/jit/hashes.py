"""`spread`, the step of every hash in compiled code."""

from __future__ import annotations

from ..arrays import Int
from .compiler import hot

LOW_BITS, FACTOR = 0x7FFFFFFF, 0x9E3779B1
"""The low bits of a number times FACTOR, which spreads them, fit in an int64."""


@hot
def spread(number: Int) -> Int:
    """Returns an int64 whose bits all depend on those of this one."""
    return ((number ^ number >> 31) & LOW_BITS) * FACTOR
