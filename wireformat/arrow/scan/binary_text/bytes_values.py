"""Bytes, bits, identifiers and values of types without a text form to text."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...ascii import BACKSLASH, DIGIT_0, LOWER_X, MINUS
from ...jit.compiler import inner
from ..primitives import read_32
from .forms import BAD, BITS_FORM, BYTEA_FORM, CHAR_FORM, HEX_FORM, UUID_FORM

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


@inner
def write_bytes_value(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> Int:
    """Writes a bytea, a bit string, a uuid, a "char", or a value of a type without a text form; see forms.py."""
    if form == BYTEA_FORM or form == HEX_FORM:
        text[to], text[to + 1] = BACKSLASH, LOWER_X
        return _write_hex(data, at, size, text, to + 2)
    if form == UUID_FORM:
        return write_uuid(data, at, size, text, to)
    if form == BITS_FORM:
        return _write_bits(data, at, size, text, to)
    if form == CHAR_FORM | 1 and size == 1:
        return _write_char(np.int64(data[at]), text, to)
    return BAD


@inner
def _write_hex(data: Array, at: Int, size: Int, text: Array, to: Int) -> Int:
    for offset in range(size):
        byte = np.int64(data[at + offset])
        text[to], text[to + 1] = _DIGITS[byte >> 4], _DIGITS[byte & 15]
        to += 2
    return to


@inner
def write_uuid(data: Array, at: Int, size: Int, text: Array, to: Int) -> Int:
    """Writes a uuid."""
    if size != 16:
        return BAD
    for part in range(0, 16, 2):
        to = _write_hex(data, at + part, np.int64(2), text, to)
        if part >= 2 and part <= 8:
            text[to] = MINUS
            to += 1
    return to


@inner
def _write_bits(data: Array, at: Int, size: Int, text: Array, to: Int) -> Int:
    """A number of bits, then as many bits, from the left of the bytes."""
    if size < 4:
        return BAD
    count = read_32(data, at)
    if count >= 1 << 31 or size - 4 != (count + 7) // 8:
        return BAD
    for bit in range(count):
        text[to + bit] = DIGIT_0 + (np.int64(data[at + 4 + bit // 8]) >> (7 - bit % 8) & 1)
    return to + count


@inner
def _write_char(byte: Int, text: Array, to: Int) -> Int:
    """One byte; nothing for zero; octal digits where it is not ASCII."""
    if byte > 0x7F:
        text[to] = BACKSLASH
        for digit in range(3):
            text[to + 1 + digit] = DIGIT_0 + (byte >> (6 - 3 * digit) & 7)
        return to + 4
    if byte > 0:
        text[to] = byte
        to += 1
    return to
