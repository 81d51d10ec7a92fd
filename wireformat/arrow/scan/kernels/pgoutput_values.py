"""Compiled functions that write pgoutput's times and binary values as text."""

from __future__ import annotations

import numpy as np

from ....times import FIRST_MICROS, LAST_MICROS, MICROS_OF_2000, MICROS_OF_DAY
from ...arrays import Int
from ...jit.compiler import inner
from ..binary_text.forms import (
    BOOLEAN_FORM,
    DATE_FORM,
    INTEGER_FORM,
    LAST_WRITTEN_FORM,
    OID_FORM,
    SIZE_OF_FORM,
    TIMESTAMPTZ_FORM,
)
from ..binary_text.times import write_moment
from ..dictionary import COMMIT_TIME_KEY, token_entry
from ..notes import BINARY_LENGTH, PRESENT, TEXT_USED, TIME_KNOWN, TIME_TEXT, XID, ScanArrays
from ..primitives import read_16, read_32, read_64, write_decimal
from ..row_notes import note_detail
from ..tokens import BOOLEANS

OUTPUT_TRUE, OUTPUT_FALSE = (token_entry(token) for token in BOOLEANS)
"""The texts of a boolean: that of a true one is `t`."""

FIRST_TIME, LAST_TIME = (micros - MICROS_OF_2000 for micros in (FIRST_MICROS, LAST_MICROS))
FIRST_DAY, LAST_DAY = (micros // MICROS_OF_DAY for micros in (FIRST_TIME, LAST_TIME))
"""The years 1 to 9999, in microseconds since 2000; other times are left to the declaration."""


@inner
def binary_value(arrays: ScanArrays, at: Int, size: Int, used: Int, binary_form: Int) -> tuple[Int, Int]:
    """Returns the pair of a binary value, which may be written to text[used:], or is noted in its binary form.

    binary_form   the form and the size of the type's values, packed; see SIZE_OF_FORM
    """
    buffer, text, dictionary = arrays.buffer, arrays.text, arrays.dictionary
    if binary_form > LAST_WRITTEN_FORM or size != binary_form & SIZE_OF_FORM:
        return at, BINARY_LENGTH - size
    form = binary_form - size
    if form == BOOLEAN_FORM:
        entry = OUTPUT_TRUE if buffer[at] != 0 else OUTPUT_FALSE
        return np.int64(dictionary[entry, 0]), np.int64(dictionary[entry, 1])
    number = np.int64(0)
    if size == 2:
        number = read_16(buffer, at)
    elif size == 4:
        number = read_32(buffer, at)
    elif size == 8:
        number = read_64(buffer, at)
    if form == OID_FORM:
        return ~used, write_decimal(text, used, number, False) - used
    if size == 2 or size == 4:
        number -= (number >> (8 * size - 1)) << (8 * size)  # signed
    if form == INTEGER_FORM:
        return ~used, write_decimal(text, used, number, True) - used
    first, last = (FIRST_DAY, LAST_DAY) if form == DATE_FORM else (FIRST_TIME, LAST_TIME)
    if number < first or number > last:
        return at, BINARY_LENGTH - size
    return ~used, write_moment(text, used, number, form) - used


@inner
def note_xid(arrays: ScanArrays, at: Int, row: Int) -> None:
    """Notes the transaction id at `at`."""
    arrays.rows[XID, row] = read_32(arrays.buffer, at)
    arrays.rows[PRESENT, row] |= 1 << XID


@inner
def note_time(arrays: ScanArrays, row: Int, key: Int, at: Int) -> bool:
    """Adds the time at `at` to the row's detail map; False for one that the declaration must read.

    key   COMMIT_TIME_KEY, which is also the row's commit time, or PREPARE_TIME_KEY
    """
    rows, text, cursor = arrays.rows, arrays.text, arrays.cursor
    micros = read_64(arrays.buffer, at)
    if micros < FIRST_TIME or micros > LAST_TIME:
        return False
    begin = cursor[TEXT_USED]
    end = write_moment(text, begin, micros, TIMESTAMPTZ_FORM)
    cursor[TEXT_USED] = end
    note_detail(arrays, row, key, ~begin, end - begin)
    if key == COMMIT_TIME_KEY:
        rows[TIME_TEXT, row] = micros + MICROS_OF_2000
        rows[TIME_TEXT + 1, row] = TIME_KNOWN
    return True
