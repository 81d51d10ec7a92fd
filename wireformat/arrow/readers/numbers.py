"""Readers of the types whose values are numbers in Arrow, compiled: integers, booleans, decimals, dates, times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int, unused
from ..ascii import DIGIT_0, DIGIT_1, LOWER_E, LOWER_F, LOWER_T
from ..jit.compiler import compiled, hot
from ..jit.intrinsics import read_32
from ..noted_texts import NotedTexts
from .digits import decimal, integer
from .reader import Misfits, Texts, ValueReader
from .times import DATE, NOT_TAKEN, TIME, TIMESTAMP, TIMESTAMP_WITH_ZONE, moment

INTEGER, DECIMAL, BOOLEAN = range(-3, 0)
"""Forms, as those of times."""


class TextForm(NamedTuple):
    """How the texts of a type are written.

    number   INTEGER and so on
    largest  of an INTEGER: the largest value; of a DECIMAL: the most digits before the point
    scale    of a DECIMAL: the digits after the point
    """

    number: int
    largest: int = 0
    scale: int = 0


def form_of(type: pa.DataType) -> TextForm | None:
    """Returns the form of the texts of a type; None if they are not read here."""
    if pa.types.is_signed_integer(type):
        return TextForm(INTEGER, (1 << type.bit_width - 1) - 1)
    if pa.types.is_decimal128(type) and 0 <= type.scale <= type.precision:
        return TextForm(DECIMAL, type.precision - type.scale, type.scale)
    return _FORMS.get(type)


_FORMS = {
    pa.bool_(): TextForm(BOOLEAN),
    pa.date32(): TextForm(DATE),
    pa.time64("us"): TextForm(TIME),
    pa.timestamp("us"): TextForm(TIMESTAMP),
    pa.timestamp("us", "UTC"): TextForm(TIMESTAMP_WITH_ZONE),
}


def read_numbers(texts: NotedTexts, form: TextForm, type: pa.DataType) -> tuple[pa.Array, Array]:
    """Returns the values, and int64[m]: the rows whose texts are not in the usual form, which are null."""
    return array_of(*numbers_of(texts, form), texts, type)


def numbers_of(texts: NotedTexts, form: TextForm) -> tuple[Array, Array]:
    """Returns the values, int64[n], of decimals int64[2 * n], and bool[n]: whether the text is in the usual form.

    Other values are 0.
    """
    count = len(texts.pairs)
    values = unused(2 * count if form.number == DECIMAL else count, np.int64)
    is_taken = np.empty(count, bool)
    _read_numbers(*texts, form.number, form.largest, form.scale, values, is_taken)
    return values, is_taken


def array_of(values: Array, is_taken: Array, texts: NotedTexts, type: pa.DataType) -> tuple[pa.Array, Array]:
    """Returns the values that are taken, and the rows of the other texts that are not NULL.

    values     int64[n], of decimals int64[2 * n]
    is_taken   bool[n]
    """
    count = len(is_taken)
    nulls = count - np.count_nonzero(is_taken)
    if pa.types.is_boolean(type):
        values = np.packbits(values.astype(bool), bitorder="little")
    elif type.bit_width < 64:
        wide, values = values, unused(count, _NARROW[type.bit_width])
        np.copyto(values, wide, casting="same_kind")
    validity = pa.py_buffer(np.packbits(is_taken, bitorder="little")) if nulls else None
    column = pa.Array.from_buffers(type, count, [validity, pa.py_buffer(values)], nulls)
    return column, np.flatnonzero(~is_taken & (texts.pairs[:, 1] >= 0)) if nulls else np.empty(0, np.int64)


_NARROW = {8: np.int8, 16: np.int16, 32: np.int32}
"""Bits of a value to its type, where these are less than 64."""


@dataclass(frozen=True)
class ExactFloatReader:
    """Integers as floating-point numbers: those that would be rounded do not fit.

    integers   reads the texts as int64
    """

    type: pa.DataType
    integers: ValueReader

    def read(self, texts: Texts) -> tuple[pa.Array, Misfits]:
        """See ValueReader.read."""
        column, misfits = self.integers.read(texts)
        values = np.asarray(column.fill_null(0))
        floats = values.astype(self.type.to_pandas_dtype())
        with np.errstate(invalid="ignore"):  # 2**63 is a float that int64 does not hold
            is_rounded = (floats.astype(np.int64) != values) | (floats >= 2.0**63)
        misfits |= dict.fromkeys(
            np.flatnonzero(is_rounded).tolist(), f"an integer that a float of {self.type.bit_width} bits does not hold"
        )
        is_null = is_rounded | ~np.asarray(column.is_valid())
        return pa.array(floats, self.type, mask=is_null), dict(sorted(misfits.items()))


@compiled
def _read_numbers(
    pairs: Array, source: Array, text: Array, form: Int, largest: Int, scale: Int, values: Array, is_taken: Array
) -> None:
    """Fills values int64[n], of decimals int64[2 * n], and is_taken bool[n]: whether it is in the usual form."""
    # A loop for each form: in one loop for all of them, numbers would not stay in registers.
    if form == INTEGER:
        for item in range(len(pairs)):
            data, start, length = text_at(pairs, item, source, text)
            is_usual, number = integer(data, start, length, largest) if length > 0 else (False, 0)
            is_taken[item], values[item] = is_usual, number
    elif form == BOOLEAN:
        for item in range(len(pairs)):
            data, start, length = text_at(pairs, item, source, text)
            is_taken[item], values[item] = boolean(data, start, length)
    elif form == DECIMAL:
        for item in range(len(pairs)):
            data, start, length = text_at(pairs, item, source, text)
            is_taken[item] = length > 0 and decimal(data, start, length, largest, scale, values, 2 * item)
            if not is_taken[item]:
                values[2 * item], values[2 * item + 1] = 0, 0
    else:
        for item in range(len(pairs)):
            data, start, length = text_at(pairs, item, source, text)
            number = moment(data, start, length, form) if length > 0 else NOT_TAKEN
            is_taken[item], values[item] = number != NOT_TAKEN, number if number != NOT_TAKEN else 0


@hot
def boolean(data: Array, start: Int, length: Int) -> tuple[bool, Int]:
    """Whether the text is `t`, `f`, `1`, `0`, `true` or `false`, and 1 if it is a true one."""
    if length == 1:
        byte = np.int64(data[start])
        is_true = (byte == LOWER_T) | (byte == DIGIT_1)
        return is_true | (byte == LOWER_F) | (byte == DIGIT_0), np.int64(is_true)
    if length < 4:
        return False, 0
    word = read_32(data, start)
    is_true = length == 4 and word == _TRUE
    return is_true or (length == 5 and word == _FALS and data[start + 4] == LOWER_E), np.int64(is_true)


_TRUE, _FALS = (int.from_bytes(text, "big") for text in (b"true", b"fals"))


@hot
def text_at(pairs: Array, item: Int, source: Array, text: Array) -> tuple[Array, Int, Int]:
    """The buffer of a text, its start in it and its length."""
    start = np.int64(pairs[item, 0])
    if start < 0:
        return text, ~start, np.int64(pairs[item, 1])
    return source, start, np.int64(pairs[item, 1])
