"""The compiled split of arrays of one dimension into the texts of their elements; undoes quotes and backslashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int, unused
from ..ascii import BACKSLASH, CLOSE_BRACE, OPEN_BRACE, QUOTE
from ..jit.compiler import compiled

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
