"""The compiled reader of byte strings: hex digits, with or without a prefix, and the escape format of bytea."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...limits import COLUMN_BYTES
from ..arrays import Array, Int
from ..ascii import BACKSLASH, DIGIT_0, LOWER_X
from ..jit.compiler import compiled
from ..noted_texts import NotedTexts

_DIGITS = np.full(256, -1, np.int64)
for _number, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[[_digit, *chr(_digit).upper().encode()]] = _number
"""Byte to the hex digit that it is; -1 for all other bytes."""


def read_byte_strings(texts: NotedTexts, hex_only: bool) -> tuple[pa.Array, Array]:
    r"""Returns the values, and int64[m]: the rows whose texts are not in a usual form, which are null.

    hex_only   whether texts without the prefix `\x` are hex digits, too; else they are in the escape format
    """
    count = len(texts.pairs)
    room = int(np.maximum(texts.pairs[:, 1], 0).sum(dtype=np.int64))
    if room > COLUMN_BYTES:
        return pa.nulls(count, pa.binary()), np.arange(count)
    offset_buffer = pa.allocate_buffer(4 * (count + 1))
    data = pa.allocate_buffer(room, resizable=True)
    is_left, valid = np.zeros(count, bool), np.zeros((count + 7) // 8, np.uint8)
    offsets, target = np.frombuffer(offset_buffer, np.int32), np.frombuffer(data, np.uint8)
    nulls = _read_byte_strings(*texts, hex_only, offsets, target, valid, is_left)
    data.resize(int(offsets[count]))
    validity = pa.py_buffer(valid) if nulls else None
    column = pa.Array.from_buffers(pa.binary(), count, [validity, offset_buffer, data], nulls)
    return column, np.flatnonzero(is_left)


@compiled
def _read_byte_strings(
    pairs: Array,
    source: Array,
    text: Array,
    hex_only: bool,
    offsets: Array,
    target: Array,
    valid: Array,
    is_left: Array,
) -> Int:
    """Fills offsets[n + 1], target[: offsets[n]], a bit of `valid` for each value, is_left[n]; returns the nulls."""
    nulls = 0
    used = 0
    for item in range(len(pairs)):
        offsets[item] = used
        start = np.int64(pairs[item, 0])
        length = np.int64(pairs[item, 1])
        data = source if start >= 0 else text
        start = start if start >= 0 else ~start
        end = start + length
        has_prefix = length >= 2 and data[start] == BACKSLASH and data[start + 1] == LOWER_X
        bad = -1 if length < 0 else 0
        to = used
        if has_prefix or hex_only:
            start += 2 if has_prefix else 0
            if (end - start) & 1:
                bad = -1
                end = start
            for at in range(start, end, 2):
                byte = _DIGITS[data[at]] << 4 | _DIGITS[data[at + 1]]
                bad |= byte
                target[to] = byte & 0xFF
                to += 1
        else:
            while start < end:
                byte = np.int64(data[start])
                start += 1
                if byte == BACKSLASH and start < end and data[start] == BACKSLASH:
                    start += 1
                elif byte == BACKSLASH:
                    byte = -1
                    if start + 2 < end:
                        byte = 0
                        for at in range(start, start + 3):
                            digit = np.int64(data[at]) - DIGIT_0
                            byte = byte << 3 | digit if digit >= 0 and digit < 8 else -1
                        byte = byte if byte < 256 else -1
                    start += 3
                elif byte > 0x7F:
                    byte = -1
                bad |= byte
                target[to] = byte & 0xFF
                to += 1
        if bad < 0:
            nulls += 1
            is_left[item] = length >= 0
        else:
            used = to
            valid[item >> 3] |= 1 << (item & 7)
    offsets[len(pairs)] = used
    return nulls
