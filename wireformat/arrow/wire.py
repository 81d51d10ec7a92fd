"""Compiled bricks of every scan: numbers, text checks, identifiers, and text that the scan writes itself.

Positions are int64. Single bytes are widened before any arithmetic: uint8 would wrap, and int64 mixed with uint64 would
become a float. Callers have checked that what is read lies inside the buffer. Few functions: each one costs a tenth of
a second of every cold start.
"""

from __future__ import annotations

import numpy as np

from .. import times
from .compiled import Array, Int, inner
from .words import read_16, read_32, read_64

__all__ = [
    "heartbeat_micros",
    "is_ascii",
    "is_utf8",
    "parse_commit_time",
    "read_16",
    "read_32",
    "read_64",
    "unquote",
    "write_number",
]

parse_commit_time = inner(times.parse_commit_time)
heartbeat_micros = inner(times.heartbeat_micros)

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # of eight bytes, as int64


@inner
def is_ascii(data: Array, start: Int, length: Int) -> bool:
    """Whether no byte has its high bit set. Eight bytes at a time, the last ones together with bytes before the text:
    no text begins in the first eight bytes of a buffer."""
    seen = read_64(data, start + length - 8)
    if length < 8:
        return seen & ~(-1 << 8 * length) & _HIGH_BITS == 0
    for at in range(start, start + length - 8, 8):
        seen |= read_64(data, at)
    return seen & _HIGH_BITS == 0


@inner
def is_utf8(data: Array, start: Int, length: Int) -> bool:
    """Whether Python's strict UTF-8 decoder takes the bytes: shortest forms, no surrogates, up to U+10FFFF."""
    left, low, high = 0, 0x80, 0xBF  # how many bytes of a character follow, and the range of the next one
    for at in range(start, start + length):
        byte = np.int64(data[at])
        if left > 0:
            if byte < low or byte > high:
                return False
            left, low, high = left - 1, 0x80, 0xBF
        elif byte >= 0x80:
            if byte < 0xC2 or byte > 0xF4:
                return False
            left = 1 + (byte >= 0xE0) + (byte >= 0xF0)
            low = 0xA0 if byte == 0xE0 else (0x90 if byte == 0xF0 else 0x80)
            high = 0x9F if byte == 0xED else (0x8F if byte == 0xF4 else 0xBF)
    return left == 0


@inner
def unquote(data: Array, start: Int, length: Int, text: Array, used: Int) -> tuple[Int, Int]:
    """The pair of an identifier that begins with a double quote; its length is -1 if the quotes are wrong.

    Only a name with a doubled quote in it needs `text`, from `used` on.
    """
    first, last = start + 1, start + length - 1
    if length < 2 or data[last] != 34:
        return 0, -1
    to = used
    at = first
    while at < last:
        if data[at] == 34:
            at += 1
            if at >= last or data[at] != 34:
                return 0, -1
        text[to] = data[at]
        to += 1
        at += 1
    if to - used == last - first:
        return first, last - first
    return ~used, to - used


@inner
def write_number(text: Array, used: Int, value: Int, base: Int, signed: bool) -> Int:
    """Write a number, base 10 or 16, or if not signed the one with the bits of an int64.

    Returns how much of `text` is used then.
    """
    left = np.uint64(value)
    if signed and value < 0:
        text[used] = 45
        used += 1
        left = ~left + np.uint64(1)
    digits = 0
    while digits == 0 or left > np.uint64(0):
        digit = np.int64(left % np.uint64(base))
        text[used + digits] = digit + (48 if digit < 10 else 55)
        left //= np.uint64(base)
        digits += 1
    for place in range(digits // 2):  # they were written from the last one on
        other = used + digits - 1 - place
        text[used + place], text[other] = text[other], text[used + place]
    return used + digits
