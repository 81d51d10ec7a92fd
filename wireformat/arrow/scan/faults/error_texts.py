"""Compiled functions for the texts of many errors: which of them are about the same table, and the texts themselves."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...ascii import DIGIT_0, LOWER_A, SPACE
from ...jit.byte_ranges import LOW_BITS, spread
from ...jit.compiler import compiled, inner
from ...jit.intrinsics import BLOCK, copy_block
from ..notes import LSN, MESSAGE, PRESENT, RECORD
from ..primitives import read_64, same_bytes, write_decimal, write_hexadecimal
from .fields import (
    AT,
    BAD_FIELD_TAG,
    CELL,
    EXPECTED,
    FAULT,
    FAULTS,
    FIELD,
    FIELDS,
    GOT,
    IMAGE,
    IMAGES,
    INSIDE,
    SAYS_TABLE,
    SCHEMA,
    SHOWN,
    TABLE,
)

LOW_HALF = 0xFFFFFFFF

MOST_TAGS = 3
"""Number of sets of tags that a field may expect."""

SHAPES = FAULTS * len(IMAGES) * len(FIELDS) * MOST_TAGS * 2**5

NOTHING = -1
(
    EXPECTED_NUMBER,
    GOT_NUMBER,
    MESSAGE_NUMBER,
    OFFSET_NUMBER,
    RECORD_NUMBER,
    CELL_NUMBER,
    INSIDE_NUMBER,
    LSN_HIGH,
    LSN_LOW,
    TABLE_TEXT,
    SPOT_TEXT,
    TAG_TEXT,
) = range(12)
"""What follows the constant text of a piece. The halves of the LSN are written in hexadecimal digits."""

NO_TABLE_INDEX = 0
"""In place of the table of an error whose table is not known."""

MOST_PROBES = 8
"""Number of slots in which the names of a table are looked up. Names not found there count as another table's."""


@compiled
def number_tables(buffer: Array, text: Array, facts: Array, first_known: Int, slots: Array, owners: Array) -> None:
    """Finds errors that name the same table.

    facts         int64[FAULT_FIELDS, n]
    first_known   pairs from this start to -1 are of a text that is known to be UTF-8
    slots         int32[a power of two], -1 in each
    owners        int64[n], filled: the index of an error with the same table; -1 if no table is known
    """
    mask = len(slots) - 1
    for index in range(len(owners)):
        owners[index] = -1
        if facts[SCHEMA + 1, index] < 0:
            continue
        owners[index] = index
        hashed = _hashed(buffer, text, facts, index)
        for probe in range(MOST_PROBES):
            slot = (hashed + probe) & mask
            seen = np.int64(slots[slot])
            if seen < 0:
                slots[slot] = index
                break
            if _is_same_table(buffer, text, facts, first_known, seen, index):
                owners[index] = seen
                break


@inner
def _hashed(buffer: Array, text: Array, facts: Array, index: Int) -> Int:
    hashed = np.int64(0)
    for field in range(SCHEMA, TABLE + 1, TABLE - SCHEMA):
        start, length = facts[field, index], max(facts[field + 1, index], 0)
        data = buffer if start >= 0 else text
        at = start if start >= 0 else ~start
        end = at + length
        hashed ^= length
        if length < 8:
            for byte in range(at, end):
                hashed = (hashed & LOW_BITS) * 31 + np.int64(data[byte])
        else:
            for step in range(at, end - 8, 8):
                hashed = _mixed(hashed ^ read_64(data, step))
            hashed ^= read_64(data, end - 8)
        hashed = _mixed(hashed)
    return hashed ^ hashed >> 17


@inner
def _mixed(hashed: Int) -> Int:
    return spread(hashed) >> 24


@inner
def _is_same_table(buffer: Array, text: Array, facts: Array, first_known: Int, one: Int, other: Int) -> bool:
    """Whether the names of two errors have the same bytes, in the same encoding."""
    for field in range(SCHEMA, TABLE + 1, TABLE - SCHEMA):
        start, length = facts[field, one], max(facts[field + 1, one], 0)
        at = facts[field, other]
        if length != max(facts[field + 1, other], 0):
            return False
        if (first_known <= start < 0) != (first_known <= at < 0):
            return False
        one_data, other_data = buffer if start >= 0 else text, buffer if at >= 0 else text
        if not same_bytes(one_data, start if start >= 0 else ~start, other_data, at if at >= 0 else ~at, length):
            return False
    return True


@compiled
def number_shapes(
    facts: Array, rows: Array, chosen: Array, tables: Array, slots: Array, shapes: Array, firsts: Array
) -> Int:
    """Finds errors whose texts have all but numbers and names in common; returns how many kinds there are.

    facts    int64[FAULT_FIELDS, n]
    rows     as in Notes
    chosen   int64[n], the rows of the errors
    tables   int64[n], the table of each error, or NO_TABLE_INDEX
    slots    int32[SHAPES], -1 in each
    shapes   int64[n], filled: the kind of each error
    firsts   int64[n], filled: the first error of each kind
    """
    count = 0
    for index in range(len(chosen)):
        expected = facts[EXPECTED, index]
        shape = facts[FAULT, index]
        shape = shape * len(IMAGES) + facts[IMAGE, index]
        shape = shape * len(FIELDS) + facts[FIELD, index]
        shape = shape * MOST_TAGS + (expected if facts[FAULT, index] == BAD_FIELD_TAG else np.int64(expected == 1))
        shape = shape * 2 + np.int64(facts[GOT, index] == 1)
        shape = shape * 2 + np.int64(facts[CELL, index] > 0)
        shape = shape * 2 + (rows[PRESENT, chosen[index]] >> LSN & 1)
        shape = shape * 2 + np.int64(facts[SHOWN, index] > 0)
        shape = shape * 2 + np.int64(says_table(facts, tables, index))
        if slots[shape] < 0:
            slots[shape] = count
            firsts[count] = index
            count += 1
        shapes[index] = slots[shape]
    return count


@inner
def says_table(facts: Array, tables: Array, index: Int) -> bool:
    """Whether the text of an error names its table."""
    return facts[SAYS_TABLE, index] == 1 and tables[index] != NO_TABLE_INDEX


@compiled
def write_errors(
    buffer: Array,
    starts: Array,
    facts: Array,
    rows: Array,
    chosen: Array,
    shapes: Array,
    first_pieces: Array,
    pieces: Array,
    literals: Array,
    tables: Array,
    names: Array,
    tags: Array,
    target: Array,
    ends: Array,
) -> None:
    """Writes the texts of errors, one after the other.

    starts                        int64[n], where the message of each error begins
    facts, rows, chosen, shapes   as for `number_shapes`
    first_pieces                  int64[shapes], where the pieces of each kind of error begin
    pieces                        int64[p, 3], the start and length of a constant text in `literals`, and what is next
    literals                      uint8[k], the constant texts, names and tags, and BLOCK more bytes
    tables                        int64[n], the table of each error
    names                         int64[tables, 2], start and length of their texts in `literals`
    tags                          int64[256, 2], the same of the bytes that are tags
    target                        uint8[t], filled; BLOCK bytes more than the texts take
    ends                          int64[n], filled: one past each text
    """
    to = np.int64(0)
    for index in range(len(ends)):
        row = chosen[index]
        piece = first_pieces[shapes[index]]
        while True:
            to = _copy_literal(literals, pieces[piece, 0], pieces[piece, 1], target, to)
            what = pieces[piece, 2]
            if what == NOTHING:
                break
            number = np.int64(0)
            if what == EXPECTED_NUMBER:
                number = facts[EXPECTED, index]
            elif what == GOT_NUMBER:
                number = facts[GOT, index]
            elif what == MESSAGE_NUMBER:
                number = rows[MESSAGE, row]
            elif what == OFFSET_NUMBER:
                number = facts[AT, index] - starts[index]
            elif what == RECORD_NUMBER:
                number = rows[RECORD, row]
            elif what == CELL_NUMBER:
                number = facts[CELL, index] - 1
            elif what == INSIDE_NUMBER:
                number = facts[INSIDE, index]
            if what <= INSIDE_NUMBER:
                to = write_decimal(target, to, number, True)
            elif what == LSN_HIGH:
                to = write_hexadecimal(target, to, rows[LSN, row] >> 32 & LOW_HALF)
            elif what == LSN_LOW:
                to = write_hexadecimal(target, to, rows[LSN, row] & LOW_HALF)
            elif what == TABLE_TEXT:
                table = tables[index]
                to = _copy_literal(literals, names[table, 0], names[table, 1], target, to)
            elif what == SPOT_TEXT:
                to = _write_spot(buffer, facts[AT, index], facts[SHOWN, index], target, to)
            else:
                tag = facts[GOT, index]
                to = _copy_literal(literals, tags[tag, 0], tags[tag, 1], target, to)
            piece += 1
        ends[index] = to


@inner
def _copy_literal(literals: Array, start: Int, length: Int, target: Array, to: Int) -> Int:
    """Copies a constant text in blocks; returns where it ends."""
    for step in range(0, length, BLOCK):
        copy_block(target, to + step, literals, start + step)
    return to + length


@inner
def _write_spot(buffer: Array, at: Int, shown: Int, target: Array, to: Int) -> Int:
    """Writes bytes as errors show them, each as two digits; returns where they end."""
    for offset in range(shown):
        if offset > 0:
            target[to] = SPACE
            to += 1
        byte = np.int64(buffer[at + offset])
        for digit in (byte >> 4, byte & 15):
            target[to] = digit + (DIGIT_0 if digit < 10 else LOWER_A - 10)
            to += 1
    return to
