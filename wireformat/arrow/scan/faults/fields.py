"""What is wrong with a record, in numbers: a compiled walk notes it, and arrow/engine/error_texts.py words it.

A walk reads a record as its declaration does, and stops at the same byte. It says nothing of a record that it finds
nothing wrong with, or that it does not take: the declaration reads those. All walks use the functions of this module.

    walk(
        buffer, rows, cells, text, chosen, messages, dictionary, settings, states, rule, known_bytes, begin, faults,
        texts,
    ) -> None

    buffer, rows, cells, text   as in ScanArrays
    chosen                      int64[n]: the rows of the records to look at: the scan has declined them, or has noted
                                them and found a text that is not in the encoding
    messages                    int64[n]: their messages, as indexes in the message batch
    dictionary, settings        as in ScanArrays
    states, rule, known_bytes   which bytes are text; see TextRule
    begin                       which of them is looked at first
    faults                      int64[FAULT_FIELDS, n], zeros from `begin` on, filled
    texts                       int64[TEXT_FIELDS, m], filled with the texts of which Python says whether they are good
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array, Int
from ...jit.compiler import inner
from ..primitives import is_ascii_anywhere, is_ascii_block, read_16, read_32

# Fields of a fault: what it is; the byte of the buffer where its field begins, and the byte in the field; what is
# expected and found, as numbers; how many bytes are shown; row image, cell (0: none, else its index + 1) and field.
FAULT, AT, INSIDE, EXPECTED, GOT, SHOWN, IMAGE, CELL, FIELD = range(9)
SCHEMA, TABLE = 9, 11  # pairs, see notes.py; the length is -1 if the names are not known
SAYS_TABLE = 13  # 1 if the error names the table; the filters look at it anyway
RELATION_ID = 14  # of a row whose relation the scan does not know; else -1
LISTED = 15  # how many texts are listed with those of the record; it may be more than there is room for
FAULT_FIELDS = 16

# Fields of a listed text, which may be in the text of the notes; see notes.py. TEXT_AT and TEXT_INSIDE are what AT and
# INSIDE are if its first byte is wrong; TEXT_INSIDE may be LEFT_TO_DECLARATION. The others are as in a fault.
OWNER, START, LENGTH, TEXT_AT, TEXT_INSIDE, TEXT_IMAGE, TEXT_CELL, TEXT_FIELD, TEXT_SAYS_TABLE = range(9)
TEXT_FIELDS = 9

LEFT_TO_DECLARATION = -1
"""If the text is wrong, the declaration reads the record."""

NO_FAULT, BAD_TEXT, SHORT, BAD_LENGTH, BAD_FIELD_TAG, BAD_CELL_TAG, NO_CELL, TRAILING, WRONG_COUNT, UNKNOWN = range(10)
BAD_KIND, EMPTY = 10, 11
FAULTS = 12
"""Faults. UNKNOWN is a row of an unknown relation, WRONG_COUNT one that has more or fewer cells than its relation.
EMPTY is a message without bytes, which no walk is given."""

FIELDS = (
    *("", "table_schema", "table_name", "tag", "cells", "name", "type_oid", "value", "cell", "relation_id"),
    *("type", "op_type"),
)
IN_SCHEMA, IN_NAME, IN_TAG, IN_CELLS, IN_CELL_NAME, IN_OID, IN_VALUE, IN_CELL, IN_RELATION_ID = range(1, 10)
IN_TYPE, IN_KIND = range(10, len(FIELDS))

IMAGES = ("", "new", "old")
IN_NEW, IN_OLD = range(1, len(IMAGES))

STATES_TEXT, ANY_TEXT, OTHER_TEXT = range(3)
"""Which bytes are text: those that a table of states accepts; all, as wrong ones are replaced; those of an encoding
without such a table: texts that are not ASCII are listed, up to what else is wrong with the record."""


class TextRule(NamedTuple):
    """Which bytes are text."""

    which: Int
    """STATES_TEXT, ANY_TEXT or OTHER_TEXT"""
    states: Array
    """uint8[states, 256]: the next state of a walk over a text; see wireformat/arrow/scan/transcode.py"""
    known_bytes: Int
    """how many bytes the text of the notes begins with that are in UTF-8, such as the names of relations"""


STOPPED = -1
"""In place of where a field ends: the walk is over. Either a fault is noted, or the declaration reads the record."""

NO_NULL = -1
"""For texts that cannot be NULL."""


@inner
def note_fault(faults: Array, index: Int, fault: Int, at: Int, expected: Int, got: Int, shown: Int) -> Int:
    """Notes what is wrong, and where; returns STOPPED."""
    faults[FAULT, index] = fault
    faults[AT, index] = at
    faults[EXPECTED, index] = expected
    faults[GOT, index] = got
    faults[SHOWN, index] = shown
    return np.int64(STOPPED)


@inner
def begin_record(faults: Array, texts: Array, index: Int, begin: Int) -> bool:
    """Begins to look at a record; False if there is no more room for its texts."""
    faults[LISTED, index] = faults[LISTED, index - 1] if index > begin else 0
    return faults[LISTED, index] <= texts.shape[1]


@inner
def list_text(start: Int, length: Int, at: Int, inside: Int, faults: Array, texts: Array, index: Int) -> None:
    """Lists a text, if there is room; see the fields of a listed text."""
    listed = faults[LISTED, index]
    faults[LISTED, index] = listed + 1
    if listed >= texts.shape[1]:
        return
    texts[OWNER, listed] = index
    texts[START, listed] = start
    texts[LENGTH, listed] = length
    texts[TEXT_AT, listed] = at
    texts[TEXT_INSIDE, listed] = inside
    texts[TEXT_IMAGE, listed] = faults[IMAGE, index]
    texts[TEXT_CELL, listed] = faults[CELL, index]
    texts[TEXT_FIELD, listed] = faults[FIELD, index]
    texts[TEXT_SAYS_TABLE, listed] = faults[SAYS_TABLE, index]


@inner
def is_known(pair: Int, rule: TextRule) -> bool:
    """Whether a text is one of the dictionary or of a relation, which are good; `pair` is where it begins."""
    return pair < 0 and ~pair < rule.known_bytes


@inner
def check_text(
    data: Array, pair: Int, length: Int, at: Int, inside: Int, rule: TextRule, faults: Array, texts: Array, index: Int
) -> bool:
    """Whether a text is good, as Python's strict decoder says it, or is listed; else it is noted what is wrong.

    data         what the text is in: the buffer, or the text of the notes
    pair         where it begins, as a pair says it; see notes.py
    at, inside   where its field begins, and how many bytes of that come before it; inside may be LEFT_TO_DECLARATION
    """
    start = pair if pair >= 0 else ~pair
    if rule.which == ANY_TEXT or length <= 0 or is_ascii_anywhere(data, start, length):
        return True
    if rule.which == OTHER_TEXT:
        list_text(pair, length, at, inside, faults, texts, index)
        return True
    no_text = len(rule.states) - 1
    state = np.int64(0)
    begin = start  # of the character that is not complete
    byte, stop = start, start + length
    while byte < stop:
        if state == 0:
            begin = byte
            if stop - byte >= 8 and is_ascii_block(data, byte):
                byte += 8
                continue
        state = np.int64(rule.states[state, data[byte]])
        if state == no_text:
            _note_bad_text(faults, index, at, inside, begin - start, max(byte - begin, 1))
            return False
        byte += 1
    if state != 0:
        _note_bad_text(faults, index, at, inside, begin - start, start + length - begin)
    return state == 0


@inner
def _note_bad_text(faults: Array, index: Int, at: Int, inside: Int, offset: Int, got: Int) -> None:
    if inside != LEFT_TO_DECLARATION:
        faults[INSIDE, index] = inside + offset
        note_fault(faults, index, BAD_TEXT, at, 0, got, 0)


@inner
def check_room(at: Int, stop: Int, size: Int, faults: Array, index: Int) -> Int:
    """Returns where a number of `size` bytes ends, or STOPPED if the record is too short for it."""
    if stop - at < size:
        return note_fault(faults, index, SHORT, at, size, stop - at, stop - at)
    return at + size


@inner
def check_sized(
    buffer: Array, at: Int, stop: Int, size: Int, null: Int, rule: TextRule, faults: Array, texts: Array, index: Int
) -> Int:
    """Returns where a text ends that follows its length, or STOPPED.

    size   how many bytes the length has: 2 or 4
    null   the length that means NULL, or NO_NULL
    """
    begin = check_room(at, stop, size, faults, index)
    if begin < 0:
        return begin
    length = read_16(buffer, at) if size == 2 else read_32(buffer, at)
    if length == null:
        return begin
    if length > stop - begin:
        return note_fault(faults, index, BAD_LENGTH, at, stop - begin, length, size)
    is_good = check_text(buffer, begin, length, begin, np.int64(0), rule, faults, texts, index)
    return begin + length if is_good else np.int64(STOPPED)
