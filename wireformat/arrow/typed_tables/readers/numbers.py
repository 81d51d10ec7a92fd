"""Compiled readers of the types whose values are numbers in Arrow: integers, booleans, decimals, dates and times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...arrays import Array, Int
from ...ascii import LOWER_F, LOWER_T
from ...jit.compiler import compiled
from ...noted_texts import NotedTexts, unused
from .digits import decimal, integer
from .times import DATE, NOT_TAKEN, TIME, TIMESTAMP, TIMESTAMP_WITH_ZONE, moment

INTEGER, DECIMAL, BOOLEAN = range(-3, 0)
"""Forms, as those of times."""

_NULL, _TAKEN, _LEFT = range(3)
"""What became of a text; what is not in the usual form is left."""


class Form(NamedTuple):
    """How the texts of a type are written.

    number   INTEGER and so on
    largest  of an INTEGER: the largest value; of a DECIMAL: the most digits before the point
    scale    of a DECIMAL: the digits after the point
    """

    number: int
    largest: int = 0
    scale: int = 0


def form_of(type: pa.DataType) -> Form | None:
    """Returns the form of the texts of a type; None if they are not read here."""
    if pa.types.is_signed_integer(type):
        return Form(INTEGER, (1 << type.bit_width - 1) - 1)
    if pa.types.is_decimal128(type) and 0 <= type.scale <= type.precision:
        return Form(DECIMAL, type.precision - type.scale, type.scale)
    return _FORMS.get(type)


_FORMS = {
    pa.bool_(): Form(BOOLEAN),
    pa.date32(): Form(DATE),
    pa.time64("us"): Form(TIME),
    pa.timestamp("us"): Form(TIMESTAMP),
    pa.timestamp("us", "UTC"): Form(TIMESTAMP_WITH_ZONE),
}


def read_numbers(texts: NotedTexts, form: Form, type: pa.DataType) -> tuple[pa.Array, Array]:
    """Returns the values, and int64[m]: the rows whose texts are not in the usual form, which are null."""
    count = len(texts.pairs)
    values = unused(2 * count if form.number == DECIMAL else count, np.int64)
    states = np.empty(count, np.uint8)
    taken, left = _read_numbers(*texts, form.number, form.largest, form.scale, values, states)
    if form.number == BOOLEAN:
        values = np.packbits(values.astype(bool), bitorder="little")
    elif type.bit_width < 64:
        wide, values = values, unused(count, _NARROW[type.bit_width])
        np.copyto(values, wide, casting="same_kind")
    validity = None if taken == count else pa.py_buffer(np.packbits(states == _TAKEN, bitorder="little"))
    column = pa.Array.from_buffers(type, count, [validity, pa.py_buffer(values)], count - taken)
    return column, np.flatnonzero(states == _LEFT) if left else np.empty(0, np.int64)


_NARROW = {8: np.int8, 16: np.int16, 32: np.int32}
"""Bits of a value to its type, where these are less than 64."""


@compiled
def _read_numbers(
    pairs: Array, source: Array, text: Array, form: Int, largest: Int, scale: Int, values: Array, states: Array
) -> tuple[Int, Int]:
    """Fills values int64[n], of decimals int64[2 * n], and states uint8[n]; returns how many are taken and left."""
    taken = left = 0
    for item in range(len(pairs)):
        start = np.int64(pairs[item, 0])
        length = np.int64(pairs[item, 1])
        data = source if start >= 0 else text
        start = start if start >= 0 else ~start
        number = np.int64(0)
        is_taken = False
        if length > 0:
            if form == INTEGER:
                is_taken, number = integer(data, start, length, largest)
            elif form == DECIMAL:
                is_taken = decimal(data, start, length, largest, scale, values, 2 * item)
            elif form == BOOLEAN:
                number = np.int64(data[start] == LOWER_T)
                is_taken = (length == 1) & ((number == 1) | (data[start] == LOWER_F))
            else:
                number = moment(data, start, length, form)
                is_taken = number != NOT_TAKEN
        states[item] = _TAKEN if is_taken else (_NULL if length < 0 else _LEFT)
        taken += is_taken
        left += (length >= 0) & (not is_taken)
        if form != DECIMAL:
            values[item] = number if is_taken else 0
        elif not is_taken:
            values[2 * item], values[2 * item + 1] = 0, 0
    return taken, left
