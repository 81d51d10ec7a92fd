"""Columns of rows as compiled code takes them, and a check that all of their texts and offsets are valid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array, Int, read_only
from ..jit.compiler import compiled, hot


class Texts(NamedTuple):
    """Texts: int32[n + 1] offsets in uint8 data. Which ones are not NULL: bits of uint8 `valid`, the lowest first, of
    which `first` is that of the first text; without any, all are."""

    offsets: Array
    data: Array
    valid: Array
    first: Int


class Lists(NamedTuple):
    """Lists: int32[n + 1] offsets in an array of items, `valid` and `first` as in Texts."""

    offsets: Array
    valid: Array
    first: Int


def texts_of(array: pa.Array) -> Texts:
    """The texts of an array."""
    bits, offsets, data = array.buffers()
    return Texts(_offsets(offsets, array), _numbers(data, np.uint8), _numbers(bits, np.uint8), array.offset)


def lists_of(array: pa.Array) -> Lists:
    """The lists or maps of an array; the items are those of `values`, `keys` and `items`."""
    bits, offsets = array.buffers()[:2]
    return Lists(_offsets(offsets, array), _numbers(bits, np.uint8), array.offset)


def each_alone(array: pa.Array) -> Lists:
    """Lists of one text each; NULL where the text is."""
    return Lists(
        read_only(np.arange(len(array) + 1, dtype=np.int32)), _numbers(array.buffers()[0], np.uint8), array.offset
    )


def _offsets(buffer: pa.Buffer | None, array: pa.Array) -> Array:
    if len(array) == 0:
        return read_only(np.zeros(1, np.int32))
    return _numbers(buffer, np.int32)[array.offset : array.offset + len(array) + 1]


def _numbers(buffer: pa.Buffer | None, kind: Any) -> Array:
    if buffer is None:
        return read_only(np.empty(0, kind))
    return read_only(np.frombuffer(buffer, kind, buffer.size // np.dtype(kind).itemsize))


@hot
def is_valid(valid: Array, bit: Int) -> bool:
    """Whether a value is not NULL; `bit` includes that of the first value."""
    return len(valid) == 0 or valid[bit >> 3] >> (bit & 7) & 1 == 1


def are_sound(array: pa.Array) -> bool:
    """Whether all offsets are in order and all texts valid, of an array whose buffers are large enough. It is much
    faster than `validate(full=True)`, which decides where this says no."""
    kind = array.type
    bits = array.buffers()[0]
    if (
        bits is not None
        and array.null_count != pa.Array.from_buffers(pa.bool_(), len(array), [bits, bits], -1, array.offset).null_count
    ):
        return False
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        texts = texts_of(array)
        return bool(_are_ascending(texts.offsets, len(texts.data))) and (pa.types.is_binary(kind) or _are_utf8(texts))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        offsets = lists_of(array).offsets
        items = (array.keys, array.items) if pa.types.is_map(kind) else (array.values,)
        first, last = int(offsets[0]), int(offsets[-1])
        return (
            bool(_are_ascending(offsets, len(items[0])))
            and (pa.types.is_list(kind) or items[0].buffers()[0] is None)
            and all(are_sound(item.slice(first, last - first)) for item in items)
        )
    return True


@compiled
def _are_ascending(offsets: Array, most: Int) -> bool:
    """Whether each offset is at least the one before, and none is above `most` or below 0."""
    falls = np.int64(0)
    for index in range(len(offsets) - 1):
        falls |= np.int64(offsets[index + 1] < offsets[index])
    return falls == 0 and offsets[0] >= 0 and offsets[len(offsets) - 1] <= most


def _are_utf8(texts: Texts) -> bool:
    """Whether texts with ascending offsets are UTF-8: all as one text, none of which begins inside of a character."""
    ends = np.array([texts.offsets[0], texts.offsets[-1]], np.int32)
    whole = pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(texts.data))
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return pc.string_is_ascii(whole)[0].as_py() or bool(_begin_characters(texts.offsets, texts.data))


@compiled
def _begin_characters(offsets: Array, data: Array) -> bool:
    """Whether no offset is at a byte that continues a character."""
    last = np.int64(offsets[len(offsets) - 1])
    inside = np.int64(0)
    for index in range(len(offsets)):
        at = np.int64(offsets[index])
        if at < last:
            inside |= np.int64(data[at] & 0xC0 == 0x80)
    return inside == 0
