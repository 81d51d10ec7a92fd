"""A compiled copy of bytes, sixteen at a time."""

from __future__ import annotations

from ..arrays import Array, Int
from .compiler import hot
from .intrinsics import BLOCK, copy_block


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
