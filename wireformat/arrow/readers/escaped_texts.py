"""The compiled readers of texts with escapes: byte strings, in hex digits or the escape format of bytea; and arrays,
which are split into the texts of their elements, without quotes and backslashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...limits import COLUMN_BYTES
from ..arrays import Array, Int, unused
from ..ascii import (
    BACKSLASH,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    DIGIT_0,
    EQUALS,
    LOWER_X,
    MINUS,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
)
from ..jit.compiler import compiled, inner
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

_MOST_DIGITS = 10
"""Of a bound of an array."""


def split_list_texts(texts: pa.StringArray, delimiter: str, type: pa.ListType) -> tuple[pa.Array, Array]:
    """Returns the lists of elements, and int64[m]: the rows whose texts are no arrays; their lists are null.

    texts   without nulls
    type    lists of strings, nested as deep as the arrays have dimensions
    """
    count = len(texts)
    types = [type]
    while pa.types.is_list(types[-1].value_type):
        types.append(types[-1].value_type)
    _, offset_buffer, data_buffer = texts.buffers()
    bounds = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + count + 1]
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", np.uint8)
    size = int(bounds[count]) - int(bounds[0])
    most = size // 2 + 1
    target, ends, is_left = unused(size, np.uint8), np.zeros(most + 1, np.int32), np.zeros(count, np.bool_)
    are_given = np.zeros(most, np.bool_)
    list_ends, counts = np.zeros((len(types), max(most, count) + 1), np.int32), np.zeros(len(types), np.int64)
    items = _split(data, bounds, ord(delimiter), target, ends, are_given, list_ends, counts, np.copy(counts), is_left)
    lists = pa.StringArray.from_buffers(
        items,
        pa.py_buffer(ends[: items + 1]),
        pa.py_buffer(target[: ends[items]]),
        None if are_given[:items].all() else pa.array(are_given[:items]).buffers()[1],
    )
    for depth in reversed(range(len(types))):
        mask = pa.array(is_left) if depth == 0 and is_left.any() else None
        own_ends = pa.array(list_ends[depth, : int(counts[depth]) + 1])
        lists = pa.ListArray.from_arrays(own_ends, lists, type=types[depth], mask=mask)
    return lists, np.flatnonzero(is_left)


_OPENED, _HAS_ITEM, _DELIMITED = range(3)
"""What an array has been read up to: a brace that opens a list, an item, or a delimiter."""


@compiled
def _split(
    data: Array,
    bounds: Array,
    delimiter: Int,
    target: Array,
    ends: Array,
    are_given: Array,
    list_ends: Array,
    counts: Array,
    firsts: Array,
    is_left: Array,
) -> Int:
    """Fills the elements: target, ends[items + 1], are_given[items], which is false for NULL; returns their number.

    list_ends   int32[dimensions, lists + 1], filled: where the items of each list end, those of the arrays first
    counts      int64[dimensions], zeros: filled with the number of lists
    firsts      int64[dimensions]: for the number of lists before a row
    is_left     bool[n], filled: whether a text is left to the grammar
    """
    dimensions = len(counts)
    items = used = 0
    for row in range(len(is_left)):
        stop = np.int64(bounds[row + 1])
        at = _after_bounds(data, np.int64(bounds[row]), stop)
        first, first_byte = items, used
        for level in range(dimensions):
            firsts[level] = counts[level]
        depth, state = 0, _OPENED
        is_array = True
        while is_array and at < stop:
            byte = np.int64(data[at])
            if byte == OPEN_BRACE:
                is_array = state != _HAS_ITEM and depth < dimensions
                depth += 1
                state = _OPENED
                at += 1
            elif byte == CLOSE_BRACE:
                at += 1
                is_array = depth > 0 and state != _DELIMITED and (depth > 1 or at == stop)
                if is_array:
                    depth -= 1
                    counts[depth] += 1
                    list_ends[depth, counts[depth]] = items if depth + 1 == dimensions else counts[depth + 1]
                    state = _HAS_ITEM
            elif byte == delimiter:
                is_array = state == _HAS_ITEM
                state = _DELIMITED
                at += 1
            elif state == _HAS_ITEM or depth < dimensions:
                is_array = False
            else:
                begin, item = at, used
                is_quoted = byte == QUOTE
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
                is_null = not is_quoted and at - begin == len(NULL)
                for offset in range(len(NULL)):
                    is_null = is_null and data[begin + offset] == NULL[offset]
                if is_null:
                    used = item
                is_array = at < stop
                at += is_quoted
                are_given[items] = not is_null
                items += 1
                ends[items] = used
                state = _HAS_ITEM
        if not is_array or depth > 0 or counts[0] == firsts[0]:
            items, used = first, first_byte
            is_left[row] = True
            for level in range(1, dimensions):
                counts[level] = firsts[level]
            counts[0] = firsts[0] + 1
            list_ends[0, counts[0]] = items if dimensions == 1 else counts[1]
    return items


@inner
def _after_bounds(data: Array, start: Int, stop: Int) -> Int:
    """Returns where an array begins that may have lower bounds before it: `[0:2]={1,2,3}`."""
    at = start
    while at < stop and data[at] == OPEN_BRACKET:
        for end in (COLON, CLOSE_BRACKET):
            at += 1
            at += at < stop and data[at] == MINUS
            begin = at
            while at < stop and data[at] >= DIGIT_0 and data[at] < DIGIT_0 + 10:
                at += 1
            if at == begin or at > begin + _MOST_DIGITS or at == stop or data[at] != end:
                return start
        at += 1
    return at + 1 if start < at < stop and data[at] == EQUALS else start
