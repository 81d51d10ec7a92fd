"""Compiled copies and comparisons of bytes, sixteen at a time, and the step of every hash."""

from __future__ import annotations

from ..arrays import Array, Int
from .compiler import hot
from .intrinsics import BLOCK, copy_block, read_32, read_64, same_block

LOW_BITS, FACTOR = 0x7FFFFFFF, 0x9E3779B1
"""The low bits of a number times FACTOR, which spreads them, fit in an int64."""


@hot
def spread(number: Int) -> Int:
    """Returns an int64 whose bits all depend on those of this one."""
    return ((number ^ number >> 31) & LOW_BITS) * FACTOR


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
