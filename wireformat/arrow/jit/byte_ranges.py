"""Compiled copies, comparisons and hashes of bytes."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Int
from .compiler import hot
from .intrinsics import BLOCK, copy_block, read_32, read_64, same_block

LOW_BITS, FACTOR = 0x7FFFFFFF, 0x9E3779B1
"""The low bits of a number times FACTOR, which spreads them, fit in an int64."""


@hot
def spread(number: Int) -> Int:
    """Returns an int64 whose bits all depend on those of this one."""
    return ((number ^ number >> 31) & LOW_BITS) * FACTOR


_WORDS = 8
"""Words of eight bytes of a text that are hashed, or all if there are less than twice as many."""


@hot
def hashed_text(hashed: Int, data: Array, at: Int, length: Int) -> Int:
    """Returns the hash of a text, and of what was hashed before it."""
    hashed = spread(hashed ^ length)
    if length >= 8:
        last = at + length - 8
        for step in range(at, last, 8 if length < 16 * _WORDS else length // _WORDS):
            hashed = spread(hashed ^ read_64(data, step))
        return spread(hashed ^ read_64(data, last))
    if length >= 4:
        return spread(spread(hashed ^ read_32(data, at)) ^ read_32(data, at + length - 4))
    word = np.int64(0)
    for step in range(at, at + length):
        word = word << 8 | np.int64(data[step])
    return spread(hashed ^ word)


@hot
def copy_bytes(target: Array, to: Int, source: Array, at: Int, length: Int) -> Int:
    """Copies bytes, and returns the end of the copy; `target` has room for BLOCK bytes more."""
    if at + length + BLOCK <= len(source):
        for step in range(0, length, BLOCK):
            copy_block(target, to + step, source, at + step)
    else:
        for step in range(length):
            target[to + step] = source[at + step]
    return to + length


@hot
def same_bytes(data: Array, at: Int, other: Array, start: Int, length: Int) -> bool:
    """Whether `length` bytes are the same in both places."""
    if length >= BLOCK:
        last = length - BLOCK
        for step in range(0, last, BLOCK):
            if not same_block(data, at + step, other, start + step):
                return False
        return same_block(data, at + last, other, start + last)
    if length >= 8:
        last = length - 8
        first_bits = read_64(data, at) ^ read_64(other, start)
        return first_bits | (read_64(data, at + last) ^ read_64(other, start + last)) == 0
    if length >= 4:
        last = length - 4
        first_bits = read_32(data, at) ^ read_32(other, start)
        return first_bits | (read_32(data, at + last) ^ read_32(other, start + last)) == 0
    for step in range(length):
        if data[at + step] != other[start + step]:
            return False
    return True
