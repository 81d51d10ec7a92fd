"""Compiled readers of pgoutput's binary cells: numbers and times of a fixed width, and decimals.

They take what `binary_text` of pgtypes/binary.py and the reader of that text would read as the same value. Byte strings
and texts need no reader: their bytes are the value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....times import DAYS_TO_2000, FIRST_MICROS, LAST_MICROS, MICROS_OF_2000, MICROS_OF_DAY
from ...arrays import Array, Int
from ...ascii import MINUS
from ...jit.compiler import compiled
from ...jit.intrinsics import read_16
from ...noted_texts import NotedTexts, unused
from .digits import POWERS, append
from .numbers import array_of, text_at

_INT64 = (1 << 63) - 1


class BinaryForm(NamedTuple):
    """The binary form of a type with a fixed width.

    width        in bytes
    least, most  the numbers that fit the Arrow type; a number is signed if the least is below 0
    added        to a number, to make it a value
    """

    width: int
    least: int
    most: int
    added: int = 0


_UNSIGNED = BinaryForm(4, 0, (1 << 32) - 1)
_MICROS = BinaryForm(8, FIRST_MICROS - MICROS_OF_2000, LAST_MICROS - MICROS_OF_2000, MICROS_OF_2000)
_DAYS = (FIRST_MICROS // MICROS_OF_DAY - DAYS_TO_2000, LAST_MICROS // MICROS_OF_DAY - DAYS_TO_2000)

FORMS = {
    ("boolean", pa.bool_()): BinaryForm(1, 0, 255),
    ("smallint", pa.int16()): BinaryForm(2, -(1 << 15), (1 << 15) - 1),
    ("integer", pa.int32()): BinaryForm(4, -(1 << 31), (1 << 31) - 1),
    ("bigint", pa.int64()): BinaryForm(8, -_INT64 - 1, _INT64),
    **{(name, pa.int64()): _UNSIGNED for name in ("oid", "xid", "cid")},
    ("real", pa.float32()): BinaryForm(4, -(1 << 31), (1 << 31) - 1),
    ("double precision", pa.float64()): BinaryForm(8, -_INT64 - 1, _INT64),
    ("date", pa.date32()): BinaryForm(4, *_DAYS, DAYS_TO_2000),
    ("time without time zone", pa.time64("us")): BinaryForm(8, 0, MICROS_OF_DAY - 1),
    ("timestamp without time zone", pa.timestamp("us")): _MICROS,
    ("timestamp with time zone", pa.timestamp("us", "UTC")): _MICROS,
}
"""SQL type and Arrow type to the binary form."""


def read_binary(cells: NotedTexts, form: BinaryForm, type: pa.DataType) -> tuple[pa.Array, Array]:
    """Returns the values, and int64[m]: the rows whose cells are not taken, which are null.

    Cells that are not taken have another width, or a value that does not fit, such as `infinity`.
    """
    count = len(cells.pairs)
    values, is_taken = unused(count, np.int64), np.empty(count, bool)
    _read_fixed(*cells, form.width, form.least, form.most, form.added, values, is_taken)
    column, left = array_of(values, is_taken, cells, type)
    return _with_one_nan(column) if pa.types.is_floating(type) else column, left


def _with_one_nan(column: pa.Array) -> pa.Array:
    """Returns floats with the NaN that its text is read as, in place of all NaNs."""
    is_nan = pc.is_nan(column)
    return pc.if_else(is_nan, pa.scalar(math.nan, column.type), column) if pc.any(is_nan).as_py() else column


@compiled
def _read_fixed(
    pairs: Array,
    source: Array,
    text: Array,
    width: Int,
    least: Int,
    most: Int,
    added: Int,
    values: Array,
    is_taken: Array,
) -> None:
    """Fills values int64[n] and is_taken bool[n]; see BinaryForm."""
    skipped = 64 - 8 * width if least < 0 else 0
    for item in range(len(pairs)):
        data, start, length = text_at(pairs, item, source, text)
        number = 0
        is_taken[item] = False
        if length == width:
            for at in range(start, start + length):
                number = number << 8 | np.int64(data[at])
            number = number << skipped >> skipped
            if number >= least and number <= most:
                is_taken[item] = True
                number += added
        values[item] = number


_UUID_BYTES, _UUID_LENGTH = 16, 36
_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_HYPHENS = np.array([8, 13, 18, 23])
_HIGH_DIGITS = np.setdiff1d(np.arange(_UUID_LENGTH), _HYPHENS)[::2]


def read_binary_uuids(cells: NotedTexts) -> tuple[pa.Array, Array]:
    """Does what `read_binary` does, for uuid, which is a string column."""
    starts, lengths = cells.pairs.T.astype(np.int64)
    is_taken = lengths == _UUID_BYTES
    rows = np.flatnonzero(is_taken)
    data = np.empty((len(rows), _UUID_BYTES), np.uint8)
    for buffer, chosen, first in (
        (cells.source, starts[rows] >= 0, starts[rows]),
        (cells.text, starts[rows] < 0, ~starts[rows]),
    ):
        data[chosen] = buffer[first[chosen, np.newaxis] + np.arange(_UUID_BYTES)]
    texts = np.empty((len(rows), _UUID_LENGTH), np.uint8)
    texts[:, _HYPHENS] = MINUS
    texts[:, _HIGH_DIGITS] = _HEX_DIGITS[data >> 4]
    texts[:, _HIGH_DIGITS + 1] = _HEX_DIGITS[data & 15]
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(is_taken * _UUID_LENGTH, out=offsets[1:])
    validity = pa.py_buffer(np.packbits(is_taken, bitorder="little"))
    column = pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(texts), validity)
    return column, np.flatnonzero(~is_taken & (lengths >= 0))


def read_binary_decimals(cells: NotedTexts, type: pa.DataType) -> tuple[pa.Array, Array]:
    """Does what `read_binary` does, for numeric and a decimal type whose scale is from 0 to its precision."""
    count = len(cells.pairs)
    values, is_taken = unused(2 * count, np.int64), np.empty(count, bool)
    _read_decimals(*cells, type.precision - type.scale, type.scale, values, is_taken)
    return array_of(values, is_taken, cells, type)


_HEADER, _GROUP, _NEGATIVE = 8, 4, 0x4000
"""Bytes before the groups of a numeric, decimal digits of a group, and the sign of negative ones; see numeric_text in
pgtypes/binary_numbers.py."""


@compiled
def _read_decimals(
    pairs: Array, source: Array, text: Array, whole: Int, scale: Int, values: Array, is_taken: Array
) -> None:
    """Fills values int64[2 * n] and is_taken bool[n].

    whole   the most digits before the point
    """
    for item in range(len(pairs)):
        data, start, length = text_at(pairs, item, source, text)
        at = 2 * item
        values[at], values[at + 1] = 0, 0
        is_taken[item] = False
        if length < _HEADER:
            continue
        count = read_16(data, start)
        weight = (read_16(data, start + 2) ^ 0x8000) - 0x8000
        negative = read_16(data, start + 4)
        own_scale = read_16(data, start + 6)
        if length != _HEADER + 2 * count or (negative != 0 and negative != _NEGATIVE) or own_scale > scale:
            continue
        first = read_16(data, start + _HEADER) if count > 0 else 0
        before = weight * _GROUP + 1 + (first > 9) + (first > 99) + (first > 999)
        if before > whole if first > 0 and weight >= 0 else (first == 0 and (count > 0 or weight != 0)):
            continue
        is_good = True
        zeros = 0
        for group_index in range(count):
            group = read_16(data, start + _HEADER + 2 * group_index)
            group_digits = _GROUP
            zeros = (weight - group_index) * _GROUP + own_scale  # digits that follow the group
            if zeros < 0:
                group_digits = zeros + _GROUP if zeros > -_GROUP else 0
                cut = POWERS[_GROUP - group_digits]
                is_good &= group // cut * cut == group
                group_digits_number = group // cut
                zeros = 0
            else:
                group_digits_number = group
            is_good &= group <= 9999
            if not is_good:
                break
            append(values, at, POWERS[group_digits], -group_digits_number if negative else group_digits_number)
        zeros += scale - own_scale
        while zeros > 0:
            step = zeros if zeros < 9 else 9
            append(values, at, POWERS[step], 0)
            zeros -= step
        if is_good:
            is_taken[item] = True
