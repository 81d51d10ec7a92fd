"""The texts of a column where they were noted, not copied yet, and the copy that makes a string column of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import LimitExceeded
from ..limits import COLUMN_BYTES
from .arrays import Array, Int, read_only, unused
from .jit.compiler import compiled, hot
from .jit.intrinsics import BLOCK, copy_block

COPIED_AT_ONCE = 2 * BLOCK
"""The bytes that are copied of every text, also of shorter ones."""


LEFT_OUT_LENGTH = -2
"""The length of a NULL that stands for a column that the row image does not have."""


class NotedTexts(NamedTuple):
    """Texts as pairs (start, length) into two buffers, as a scan notes them: see arrow/scan/notes.py.

    The arrays are contiguous, and of these types always: for others, compiled code would be compiled once more.
    """

    pairs: Array
    """int32[n, 2], writable: a start >= 0 is an offset in `source`, a start < 0 is the offset ~start in `text`; a
    length < 0 is NULL"""
    source: Array
    """uint8[m], read-only"""
    text: Array
    """uint8[k], writable; at least BLOCK bytes follow its last text"""

    @classmethod
    def of(cls, texts: pa.StringArray) -> NotedTexts:
        """Returns the texts of a string or binary column, which are not copied."""
        return cls.of_rows(texts, np.arange(len(texts)))

    @classmethod
    def of_rows(cls, texts: pa.StringArray, rows: Array) -> NotedTexts:
        """Returns the texts of some rows, int64[m]; a row < 0 gives NULL."""
        validity, offset_bytes, data = texts.buffers()
        offsets = read_only(np.frombuffer(offset_bytes or bytes(4), np.int32)[texts.offset :])
        bits = read_only(np.frombuffer(validity if texts.null_count else b"", np.uint8))
        pairs = unused((len(rows), 2), np.int32)
        _note_rows(rows, offsets, bits, texts.offset, pairs)
        return cls(pairs, read_only(np.frombuffer(data or b"", np.uint8)), np.zeros(BLOCK, np.uint8))

    def chosen(self, rows: Array) -> NotedTexts:
        """Returns the texts of some rows, int64[m]."""
        return self._replace(pairs=self.pairs[rows])

    def strings(self) -> pa.StringArray:
        """Returns the texts as a string column; raises LimitExceeded if they do not fit in one."""
        return copied(self.pairs, len(self.pairs), self.source, self.text, pa.string(), _checked)


@compiled
def _note_rows(rows: Array, offsets: Array, bits: Array, first_bit: Int, pairs: Array) -> None:
    """Fills pairs[n, 2] for rows[n].

    offsets, bits   int32[m + 1], uint8[k]: of an Arrow array, `bits` from its first byte on; none if nothing is null
    first_bit       the bit of the first row
    """
    for item in range(len(rows)):
        row = rows[item]
        bit = row + first_bit
        if row < 0 or (len(bits) > 0 and not bits[bit >> 3] >> (bit & 7) & 1):
            pairs[item, 0], pairs[item, 1] = 0, -1
        else:
            pairs[item, 0], pairs[item, 1] = offsets[row], offsets[row + 1] - offsets[row]


def _checked(size: int) -> int:
    if size > COLUMN_BYTES:
        raise LimitExceeded(f"limits.COLUMN_BYTES is {COLUMN_BYTES}, a column of texts has {size} bytes")
    return size


def copied(
    pairs: Array, count: int, source: Array, text: Array, arrow_type: pa.DataType, check: Callable[[int], int]
) -> pa.Array:
    """Returns the texts at pairs[:count] as a string or binary column.

    check   takes the bytes of all texts and returns them; raises if they do not fit in a column
    """
    offset_buffer = pa.allocate_buffer(4 * (count + 1))
    offsets = np.frombuffer(offset_buffer, np.int32)
    valid = np.empty((count + 7) // 8, np.uint8)
    nulls, total = _measure(pairs, count, offsets, valid)
    size = check(int(total))
    data = pa.allocate_buffer(size + COPIED_AT_ONCE, resizable=True)
    _copy(pairs, count, offsets, source, text, np.frombuffer(data, np.uint8))
    data.resize(size, shrink_to_fit=False)
    return pa.Array.from_buffers(
        arrow_type, count, [pa.py_buffer(valid) if nulls else None, offset_buffer, data], nulls
    )


@hot
def _measure_text(pairs: Array, item: Int, offsets: Array, total: Int) -> tuple[Int, Int]:
    """Fills the offset of a text. Returns whether it is not NULL, and the bytes of the texts up to it."""
    offsets[item] = total
    length = np.int64(pairs[item, 1])
    is_text = np.int64(length >= 0)  # a branch would be wrong for every other text of a column with NULLs
    return is_text, total + length * is_text


@compiled
def _measure(pairs: Array, count: Int, offsets: Array, valid: Array) -> tuple[Int, Int]:
    """Fills offsets[count + 1] from the lengths in pairs[:, 1], and `valid` with a bit for each text: 0 for NULL.

    Returns the number of NULLs, and the bytes of all texts. The offsets are only valid if these fit in an int32.
    """
    total = given = np.int64(0)
    for byte in range(count >> 3):
        bits = np.int64(0)
        for bit in range(8):  # so many are no loop; indices without a sign are not counted from the end
            is_text, total = _measure_text(pairs, np.uint64(8 * byte + bit), offsets, total)
            given += is_text
            bits |= is_text << bit
        valid[byte] = bits
    bits = np.int64(0)
    for item in range(count & ~7, count):
        is_text, total = _measure_text(pairs, np.uint64(item), offsets, total)
        given += is_text
        bits |= is_text << (item & 7)
    if count & 7:
        valid[count >> 3] = bits
    offsets[count] = total
    return count - given, total


@partial(compiled, by_byte=True)
def _copy(pairs: Array, count: Int, offsets: Array, source: Array, text: Array, target: Array) -> None:
    """Copies every text to target[offsets[i] : offsets[i + 1]]."""
    # Whole blocks are copied, two at once, so that most texts take no branch of their own. The next text overwrites the
    # bytes after a text, and target has space after the last one. Texts that follow each other in `text`, such as the
    # names of a relation, are copied together.
    item = 0
    while item < count:
        start = np.int64(pairs[item, 0])
        length = np.int64(pairs[item, 1])
        to = np.int64(offsets[item])
        item += 1
        if start >= 0:
            if start + (length if length > 0 else 0) + COPIED_AT_ONCE <= len(source):
                copy_block(target, to, source, start)
                copy_block(target, to + BLOCK, source, start + BLOCK)
                step = COPIED_AT_ONCE
                while step < length:
                    copy_block(target, to + step, source, start + step)
                    step += BLOCK
            else:
                for step in range(length):
                    target[to + step] = source[start + step]
        else:
            while item < count and pairs[item, 0] == start - length and pairs[item, 1] > 0 and length > 0:
                length += np.int64(pairs[item, 1])
                item += 1
            for step in range(0, length, BLOCK):  # BLOCK bytes follow the last text
                copy_block(target, to + step, text, ~start + step)
