"""The compiled readers of texts with escapes: byte strings, in hex digits or the escape format of bytea; and arrays of
one dimension, which are split into the texts of their elements, without quotes and backslashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...limits import COLUMN_BYTES
from ..arrays import Array, Int, unused
from ..ascii import BACKSLASH, CLOSE_BRACE, DIGIT_0, LOWER_X, OPEN_BRACE, QUOTE
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


NULL = np.frombuffer(b"NULL", np.uint8)


def split_list_texts(texts: pa.StringArray, delimiter: str, type: pa.ListType) -> tuple[pa.Array, Array]:
    """Returns the lists of elements, and int64[m]: the rows whose texts are no arrays of one dimension, or have bounds;
    their lists are null.

    texts   without nulls
    """
    count = len(texts)
    _, offset_buffer, data_buffer = texts.buffers()
    bounds = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + count + 1]
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", np.uint8)
    size = int(bounds[count]) - int(bounds[0])
    most = size // 2 + 1
    target, ends = unused(size, np.uint8), np.zeros(most + 1, np.int32)
    item_ends, is_left = np.zeros(count + 1, np.int32), np.zeros(count, np.bool_)
    are_given = np.zeros(most, np.bool_)
    items = _split(data, bounds, ord(delimiter), target, ends, are_given, item_ends, is_left)
    values = pa.StringArray.from_buffers(
        items,
        pa.py_buffer(ends[: items + 1]),
        pa.py_buffer(target[: ends[items]]),
        None if are_given[:items].all() else pa.array(are_given[:items]).buffers()[1],
    )
    mask = pa.array(is_left) if is_left.any() else None
    return pa.ListArray.from_arrays(pa.array(item_ends), values, type=type, mask=mask), np.flatnonzero(is_left)


@compiled
def _split(
    data: Array,
    bounds: Array,
    delimiter: Int,
    target: Array,
    ends: Array,
    are_given: Array,
    item_ends: Array,
    is_left: Array,
) -> Int:
    """Fills the elements: target, ends[items + 1], are_given[items], which is false for NULL. Fills the end of each
    text's elements, item_ends[n + 1], and whether it is left to the grammar, is_left[n]. Returns the number of
    elements."""
    items = used = 0
    for row in range(len(is_left)):
        at, stop = np.int64(bounds[row]), np.int64(bounds[row + 1])
        first, first_byte = items, used
        is_array = stop - at >= 2 and data[at] == OPEN_BRACE
        at += 1
        is_closed = is_array and data[at] == CLOSE_BRACE
        if is_closed:
            at += 1
        while is_array and not is_closed:
            begin, item = at, used
            is_quoted = at < stop and data[at] == QUOTE
            at += is_quoted
            while at < stop:
                byte = np.int64(data[at])
                if byte == QUOTE or (
                    not is_quoted and (byte == delimiter or byte == CLOSE_BRACE or byte == OPEN_BRACE)
                ):
                    break
                if byte == BACKSLASH:
                    at += 1
                    if at == stop:
                        break
                    byte = np.int64(data[at])
                target[used] = byte
                used += 1
                at += 1
            is_null = False
            if is_quoted:
                is_array = at < stop and data[at] == QUOTE
                at += 1
            else:
                is_array = at > begin
                is_null = at - begin == len(NULL)
                for offset in range(len(NULL)):
                    is_null = is_null and data[begin + offset] == NULL[offset]
            is_array = is_array and at < stop
            if is_array:
                is_closed = data[at] == CLOSE_BRACE
                is_array = is_closed or data[at] == delimiter
                at += 1
                if is_null:
                    used = item
                are_given[items] = not is_null
                items += 1
                ends[items] = used
        if not is_array or at != stop:
            items, used = first, first_byte
            is_left[row] = True
        item_ends[row + 1] = items
    return items
