"""What all functions that write values share: they return the end of the text, or one of these numbers.

A function that writes a value of one group of types takes

    data, at, size   the bytes of the value
    form             see forms.py
    text, to         where the text begins
    utf8             whether texts are in UTF-8; others must be ASCII
"""

from __future__ import annotations

import numpy as np

from ....pgtypes.binary_numbers import MAX_IMPLIED_ZEROS
from ...arrays import Array, Int
from ...jit.compiler import inner
from .forms import BITS_FORM, NUMERIC_FORM

BAD = np.int64(-1)
"""The value is not of its type, or it is left to the second look or the declaration."""

NO_ROOM = np.int64(-2)
"""The text is too short."""

MOST_FIXED_BYTES = 96
"""The most text of a value whose form says its size: an interval has 67 bytes, and a timestamp 35."""


@inner
def most_bytes(size: Int, form: Int) -> Int:
    """Returns how much text a value of `size` bytes has at most; `form` is that of a single value."""
    if form == NUMERIC_FORM:
        return 2 * size + 2 * MAX_IMPLIED_ZEROS + 16
    if form == BITS_FORM:
        return 8 * size
    return 2 * size + MOST_FIXED_BYTES


@inner
def write_word(text: Array, to: Int, word: Array) -> Int:
    """Writes constant bytes; returns the new end of the text."""
    for at in range(len(word)):
        text[to + at] = word[at]
    return to + len(word)
