"""A compiled comparison of bytes, sixteen at a time."""

from __future__ import annotations

from ..arrays import Array, Int
from .compiler import hot
from .intrinsics import BLOCK, read_32, read_64, same_block


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
