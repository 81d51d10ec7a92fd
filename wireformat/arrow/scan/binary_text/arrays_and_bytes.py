"""Binary form to the text of output functions: arrays, vectors, bytes, bits, identifiers, what has no text form."""

from __future__ import annotations

import numpy as np

from ....pgtypes.binary import MAX_DIMENSIONS
from ...arrays import Array, Int
from ...ascii import (
    BACKSLASH,
    CASE_BIT,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    DIGIT_0,
    EQUALS,
    LOWER_F,
    LOWER_T,
    LOWER_X,
    MINUS,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    SPACE,
)
from ...jit.compiler import inner
from ..loop import Scan
from ..primitives import is_ascii, read_16, read_32, read_64, transcode_flag, write_decimal
from .forms import (
    BAD,
    BITS_FORM,
    BOOLEAN_FORM,
    BYTEA_FORM,
    CHAR_FORM,
    DOUBLE_FORM,
    ELEMENT_OID_SHIFT,
    HEX_FORM,
    INTEGER_FORM,
    JSONB_FORM,
    NO_ROOM,
    NUMERIC_FORM,
    OID_FORM,
    REAL_FORM,
    SCALAR_FORM,
    SIZE_OF_FORM,
    TEXT_FORM,
    UUID_FORM,
    VECTOR,
    most_bytes,
)
from .numbers import write_float, write_numeric
from .times import write_time_value

MOST_HEAD_BYTES = 32 * MAX_DIMENSIONS
"""The most text of the bounds of an array, and more than that of the braces beside an element."""

_HEAD_BYTES, _DIMENSION_BYTES, _LENGTH_BYTES = 12, 8, 4

_NULL = np.frombuffer(b"null", np.uint8)
_NULL_SHOWN = np.frombuffer(b"NULL", np.uint8)

_QUOTED = np.zeros(256, np.bool_)
_QUOTED[list(b'"\\{},\t\n\v\f\r ')] = True
"""Bytes because of which an element is written in quotes."""


@inner
def write_simple(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> Int:
    """Writes a value of one of SIMPLE_FORMS; see forms.py."""
    if form == TEXT_FORM or form == JSONB_FORM:
        if form == JSONB_FORM:
            if size == 0 or data[at] != 1:
                return BAD
            at += 1
            size -= 1
        if not is_ascii(data, at, size) and transcode_flag(data, at, size, utf8) != 0:
            return BAD
        for offset in range(size):
            text[to + offset] = data[at + offset]
        return to + size
    if form == UUID_FORM:
        return write_uuid(data, at, size, text, to)
    if size != form & SIZE_OF_FORM:
        return BAD
    form -= size
    if form == BOOLEAN_FORM:
        text[to] = LOWER_T if data[at] != 0 else LOWER_F
        return to + 1
    number = read_16(data, at) if size == 2 else read_32(data, at) if size == 4 else read_64(data, at)
    if form == INTEGER_FORM and size < 8:
        number -= (number >> (8 * size - 1)) << (8 * size)  # signed
    return write_decimal(text, to, number, form == INTEGER_FORM)


@inner
def write_other(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> Int:
    """Writes a value of all other forms; see forms.py."""
    kind = form & ~SIZE_OF_FORM
    if form == NUMERIC_FORM:
        return write_numeric(data, at, size, form, text, to, utf8)
    if kind == REAL_FORM or kind == DOUBLE_FORM:
        return write_float(data, at, size, form, text, to, utf8)
    if form == BYTEA_FORM or form == BITS_FORM or kind == CHAR_FORM:
        return write_bytes_value(data, at, size, form, text, to, utf8)
    if kind == OID_FORM:  # those of 8 bytes
        return write_decimal(text, to, read_64(data, at), False) if size == 8 else BAD
    return write_time_value(data, at, size, form, text, to, utf8)


def make_array_writer(write_element: Scan) -> Scan:
    """Returns the function that writes arrays and vectors whose elements `write_element` writes."""

    @inner
    def write_array(data: Array, at: Int, size: Int, form: Int, text: Array, to: Int, utf8: bool) -> tuple[Int, Int]:
        """Writes an array as `{1,NULL,3}`, or a vector as `1 2 3`; returns the end of the text, BAD or NO_ROOM, and how
        long the text must be at least.

        data   dimensions, whether there are NULLs, type of the elements; length and lower bound of each dimension; then
               length and bytes of each element, -1 for NULL; integers of 32 bits
        """
        is_vector = form & VECTOR != 0
        end = at + size
        room = len(text)
        if size < _HEAD_BYTES:
            return BAD, room
        dimensions = read_32(data, at)
        if dimensions > MAX_DIMENSIONS or (is_vector and dimensions > 1):
            return BAD, room
        if read_32(data, at + 4) > 1 or read_32(data, at + 8) != form >> ELEMENT_OID_SHIFT:
            return BAD, room
        lengths = at + _HEAD_BYTES
        item = lengths + dimensions * _DIMENSION_BYTES
        if item > end:
            return BAD, room
        if to + MOST_HEAD_BYTES > room:
            return NO_ROOM, to + MOST_HEAD_BYTES
        count = np.int64(dimensions > 0)
        has_bounds, is_empty = False, dimensions == 0
        for dimension in range(dimensions):
            length, lower = _dimension(data, lengths, dimension)
            if length < 0 or lower + length - 1 >= 1 << 31:
                return BAD, room
            has_bounds = has_bounds or lower != 1
            is_empty = is_empty or length == 0
            count = min(count * length, size)  # a larger number of elements is as wrong as this one
        if is_empty:
            count = np.int64(0)
        if count * _LENGTH_BYTES > end - item or (count == 0 and item != end):
            return BAD, room
        if count == 0:
            if not is_vector:
                text[to], text[to + 1] = OPEN_BRACE, CLOSE_BRACE
                to += 2
            return to, room
        if has_bounds and not is_vector:
            for dimension in range(dimensions):
                length, lower = _dimension(data, lengths, dimension)
                text[to] = OPEN_BRACKET
                to = write_decimal(text, to + 1, lower, True)
                text[to] = COLON
                to = write_decimal(text, to + 1, lower + length - 1, True)
                text[to] = CLOSE_BRACKET
                to += 1
            text[to] = EQUALS
            to += 1
        form &= SCALAR_FORM
        for index in range(count):
            if end - item < _LENGTH_BYTES:
                return BAD, room
            length = read_32(data, item)
            item += _LENGTH_BYTES
            is_null = length == 0xFFFFFFFF
            if is_null:
                length = np.int64(0)
            if length > end - item or (is_null and is_vector):
                return BAD, room
            needed = to + MOST_HEAD_BYTES + 2 * most_bytes(length, form)
            if needed > room:
                return NO_ROOM, needed
            if index > 0:
                text[to] = SPACE if is_vector else COMMA
                to += 1
            if not is_vector:
                to = _write_braces(data, lengths, dimensions, index, OPEN_BRACE, text, to)
            if is_null:
                for offset in range(4):
                    text[to + offset] = _NULL_SHOWN[offset]
                to += 4
            else:
                begin = to
                to = write_element(data, item, length, form, text, to, utf8)
                if to < 0:
                    return BAD, room
                if not is_vector:
                    to = _quote(text, begin, to)
                item += length
            if not is_vector:
                to = _write_braces(data, lengths, dimensions, index + 1, CLOSE_BRACE, text, to)
        return (to, room) if item == end else (BAD, room)

    return write_array


@inner
def _dimension(data: Array, lengths: Int, dimension: Int) -> tuple[Int, Int]:
    """Length and lower bound of a dimension, both signed."""
    length = read_32(data, lengths + dimension * _DIMENSION_BYTES)
    lower = read_32(data, lengths + dimension * _DIMENSION_BYTES + 4)
    return length - ((length >> 31) << 32), lower - ((lower >> 31) << 32)


@inner
def _write_braces(data: Array, lengths: Int, dimensions: Int, index: Int, brace: Int, text: Array, to: Int) -> Int:
    """Writes the braces between the elements index - 1 and index: those of each dimension that begins or ends there."""
    stride = np.int64(1)
    for dimension in range(dimensions - 1, -1, -1):
        stride *= _dimension(data, lengths, dimension)[0]
        if index % stride != 0:
            break
        text[to] = brace
        to += 1
    return to


@inner
def _quote(text: Array, begin: Int, end: Int) -> Int:
    """Puts the element text[begin:end] in quotes if it needs them; returns its new end."""
    length = end - begin
    escaped = 0
    is_quoted = length == 0
    is_null = length == 4
    for offset in range(length):
        byte = text[begin + offset]
        is_quoted = is_quoted or _QUOTED[byte]
        escaped += byte == QUOTE or byte == BACKSLASH
        if is_null and byte | CASE_BIT != _NULL[offset]:
            is_null = False
    if not is_quoted and not is_null:
        return end
    to = end + 1 + escaped
    text[to] = QUOTE
    for at in range(end - 1, begin - 1, -1):
        to -= 1
        byte = text[at]
        text[to] = byte
        if byte == QUOTE or byte == BACKSLASH:
            to -= 1
            text[to] = BACKSLASH
    text[begin] = QUOTE
    return end + 2 + escaped


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
