"""The binary forms of types, as numbers that compiled code tells apart, and what functions that write values return.

They return the end of the text, or one of two numbers. A function that writes a value of one group of types takes

    data, at, size   the bytes of the value
    form             its form
    text, to         where the text begins
    utf8             whether texts are in UTF-8; others must be ASCII
"""

from __future__ import annotations

import numpy as np

from ....pgtypes import SQL_NAMES, type_oid
from ....pgtypes.binary import has_text
from ....pgtypes.binary_numbers import MAX_IMPLIED_ZEROS
from ...arrays import Array, Int
from ...jit.compiler import inner
from ..notes import ARRAY_VALUE, BYTES_VALUE, FLOAT_VALUE, NUMERIC_VALUE, OTHER_ARRAY_VALUE, TIME_VALUE

DECLINED_FORM, TEXT_FORM = range(2)
"""DECLINED_FORM: for the declaration."""

INTEGER_FORM, OID_FORM, BOOLEAN_FORM, TIMESTAMP_FORM, TIMESTAMPTZ_FORM, DATE_FORM = range(0x10, 0x70, 0x10)
SIZE_OF_FORM = 0x0F
"""In the lower bits of these, how many bytes a value has. The scan itself writes them, except dates and timestamps out
of the years 1 to 9999."""

LAST_WRITTEN_FORM = DATE_FORM | SIZE_OF_FORM
"""The scan writes values of forms up to this one, and notes others as they are."""

NUMERIC_FORM, REAL_FORM, DOUBLE_FORM, BYTEA_FORM, UUID_FORM, BITS_FORM, CHAR_FORM = range(0x70, 0xE0, 0x10)
TIME_FORM, TIMETZ_FORM, INTERVAL_FORM, JSONB_FORM, HEX_FORM = range(0xE0, 0x130, 0x10)
"""HEX_FORM: of a type without a text form, whose values become hexadecimal."""

SCALAR_FORM = 0x1FF
"""The bits that tell the form of a value, or of the elements of an array."""

ARRAY, VECTOR = 0x200, 0x400
"""Added to the form of the elements; a vector is int2vector or oidvector."""

GROUP_SHIFT, GROUPS = 11, 0x07
"""These bits tell which walk writes the values: one of the groups of notes.py."""

FORM = (1 << GROUP_SHIFT) - 1
"""The bits of the form without its group."""

ELEMENT_OID_SHIFT = 14
"""In the form of an array or vector, the type OID of its elements begins at this bit."""

_SCALARS = {
    **dict.fromkeys(("text", "character varying", "character", "name", "unknown", "xml", "json"), TEXT_FORM),
    "jsonb": JSONB_FORM,
    "smallint": INTEGER_FORM | 2,
    "integer": INTEGER_FORM | 4,
    "bigint": INTEGER_FORM | 8,
    **dict.fromkeys(("oid", "xid", "cid"), OID_FORM | 4),
    "xid8": OID_FORM | 8,
    "boolean": BOOLEAN_FORM | 1,
    "timestamp without time zone": TIMESTAMP_FORM | 8,
    "timestamp with time zone": TIMESTAMPTZ_FORM | 8,
    "date": DATE_FORM | 4,
    "numeric": NUMERIC_FORM,
    "real": REAL_FORM | 4,
    "double precision": DOUBLE_FORM | 8,
    "bytea": BYTEA_FORM,
    "uuid": UUID_FORM,
    **dict.fromkeys(("bit", "bit varying"), BITS_FORM),
    '"char"': CHAR_FORM | 1,
    "time without time zone": TIME_FORM | 8,
    "time with time zone": TIMETZ_FORM | 12,
    "interval": INTERVAL_FORM,
}
_VECTORS = {"int2vector": "smallint", "oidvector": "oid"}


def form_of(oid: int) -> int:
    """The form of a type's binary values, by the number of the type."""
    return _FORMS.get(oid, BYTES_VALUE << GROUP_SHIFT | HEX_FORM)


_GROUP_OF_FORM = {
    NUMERIC_FORM: NUMERIC_VALUE,
    **dict.fromkeys((REAL_FORM, DOUBLE_FORM), FLOAT_VALUE),
    **dict.fromkeys((DATE_FORM, TIMESTAMP_FORM, TIMESTAMPTZ_FORM, TIME_FORM, TIMETZ_FORM, INTERVAL_FORM), TIME_VALUE),
}
"""BYTES_VALUE if a form is not listed."""

SIMPLE_FORMS = (
    TEXT_FORM,
    JSONB_FORM,
    UUID_FORM,
    BOOLEAN_FORM | 1,
    *(INTEGER_FORM | size for size in (2, 4, 8)),
    OID_FORM | 4,
)
"""Arrays of these are a group of their own, since most arrays are and they take less time to compile."""


def _of_value(name: str) -> int:
    form = _SCALARS[name]
    return _GROUP_OF_FORM.get(form & ~SIZE_OF_FORM, BYTES_VALUE) << GROUP_SHIFT | form


def _of_elements(name: str, kind: int) -> int:
    form = _SCALARS[name]
    group = ARRAY_VALUE if form in SIMPLE_FORMS else OTHER_ARRAY_VALUE
    return type_oid(name) << ELEMENT_OID_SHIFT | group << GROUP_SHIFT | kind | form


def _form(name: str) -> int:
    element = name.removesuffix("[]")
    if name in _VECTORS:
        return _of_elements(_VECTORS[name], VECTOR)
    if element in _SCALARS:
        return _of_value(name) if name == element else _of_elements(element, ARRAY)
    return DECLINED_FORM


_FORMS = {oid: _form(name) for oid, name in SQL_NAMES.items() if has_text(oid)}


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
