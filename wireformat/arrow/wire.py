"""Compiled bricks of every scan: numbers, text checks, identifiers, and text that the scan writes itself.

Positions are int64. Single bytes are widened before any arithmetic: uint8 would wrap, and int64 mixed with uint64 would
become a float. Callers have checked that what is read lies inside the buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import times
from .compiled import inner, shared

shared(times._number)
shared(times._after)
shared(times._days)
parse_commit_time = shared(times.parse_commit_time)
heartbeat_micros = shared(times.heartbeat_micros)

Bytes = Any
"""uint8[n]"""


@inner
def read_u16(data: Bytes, at: int) -> int:
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@inner
def read_u32(data: Bytes, at: int) -> int:
    return read_u16(data, at) << 16 | read_u16(data, at + 2)


@inner
def read_64(data: Bytes, at: int) -> int:
    """Eight bytes as the int64 with the same bits."""
    return np.int64(read_u32(data, at)) << 32 | read_u32(data, at + 4)


@inner
def is_ascii(data: Bytes, start: int, length: int) -> bool:
    """Whether no byte has its high bit set; without branches, so that it is done many bytes at a time."""
    seen = np.uint8(0)
    for at in range(start, start + length):
        seen |= data[at]
    return seen < 128


@inner
def is_utf8(data: Bytes, start: int, length: int) -> bool:
    """Whether Python's strict UTF-8 decoder would take the bytes: shortest forms, no surrogates, up to U+10FFFF."""
    stop = start + length
    at = start
    while at < stop:
        first = np.int64(data[at])
        at += 1
        if first < 0x80:
            continue
        if 0xC2 <= first <= 0xDF:
            more, low, high = 1, 0x80, 0xBF
        elif 0xE0 <= first <= 0xEF:
            more, low, high = 2, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
        elif 0xF0 <= first <= 0xF4:
            more, low, high = 3, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
        else:
            return False
        if stop - at < more:
            return False
        for step in range(more):
            byte = np.int64(data[at + step])
            if byte < low or byte > high:
                return False
            low, high = 0x80, 0xBF
        at += more
    return True


@inner
def same(data: Bytes, start: int, length: int, other: Bytes, other_start: int, other_length: int) -> bool:
    """Whether two ranges hold the same bytes."""
    if length != other_length:
        return False
    for at in range(length):
        if data[start + at] != other[other_start + at]:
            return False
    return True


@inner
def unquoted(data: Bytes, start: int, length: int, text: Bytes, used: int) -> tuple[int, int, int]:
    """The pair of an identifier that begins with a double quote, and how much of `text` is used after it.

    The length is -1 if the quotes are wrong. Only a name with a doubled quote in it is written to `text`.
    """
    if length < 2 or data[start + length - 1] != 34:
        return 0, -1, used
    first, last = start + 1, start + length - 1
    quotes = 0
    for at in range(first, last):
        if data[at] == 34:
            quotes += 1
    if quotes == 0:
        return first, last - first, used
    begin = used
    at = first
    while at < last:
        if data[at] == 34:
            at += 1
            if at >= last or data[at] != 34:
                return 0, -1, begin
        text[used] = data[at]
        used += 1
        at += 1
    return -1 - begin, used - begin, used


@inner
def write_decimal(text: Bytes, used: int, value: int, is_signed: bool) -> int:
    """Write a 64-bit number in decimal digits; returns how much of `text` is used after it."""
    left = np.uint64(value)
    if is_signed and value < 0:
        text[used] = 45
        used += 1
        left = ~left + np.uint64(1)
    digits = 1
    power = left // np.uint64(10)
    while power > np.uint64(0):
        digits += 1
        power //= np.uint64(10)
    for place in range(digits):
        text[used + digits - 1 - place] = np.uint8(left % np.uint64(10)) + np.uint8(48)
        left //= np.uint64(10)
    return used + digits


@inner
def write_hex(text: Bytes, used: int, value: int) -> int:
    """Write a number below 2^32 in upper-case hexadecimal digits without padding."""
    digits = 1
    while digits < 8 and value >> (4 * digits) > 0:
        digits += 1
    for place in range(digits):
        digit = (value >> (4 * (digits - 1 - place))) & 15
        text[used + place] = np.uint8(digit + (48 if digit < 10 else 55))
    return used + digits


@inner
def write_lsn(text: Bytes, used: int, value: int) -> int:
    """Write the LSN with the bits of an int64 as `0/CFE5C80`."""
    used = write_hex(text, used, (value >> 32) & 0xFFFFFFFF)
    text[used] = 47
    return write_hex(text, used + 1, value & 0xFFFFFFFF)
