"""Compiled functions for names, plain or in double quotes, and for the tables that they name."""

from __future__ import annotations

import re

import numpy as np

from ....grammar.names import TYPE_WORDS
from ....identifiers import PLAIN_NAME
from ....limits import NAME_BYTES
from ...arrays import Array, Int
from ...ascii import DOT, QUOTE
from ...jit.compiler import hot, inner
from ..notes import RELATION, TABLE_NAME, TABLE_SCHEMA, TEXT_USED, ScanArrays
from ..relations.entries import SCHEMA, TABLE
from ..relations.recognise import find_relation
from .literals import quoted_end, undo

MOST_BYTES_TO_CHANGE = 2 * NAME_BYTES + 1

PLAIN, FIRST, TYPE_WORD = 1, 2, 4
BYTES = np.zeros(256, np.uint8)
"""What each byte may be part of: a plain name, also as its first byte; the words of a type."""
for _bit, _pattern, _before in ((PLAIN, PLAIN_NAME, "a"), (FIRST, PLAIN_NAME, ""), (TYPE_WORD, TYPE_WORDS, "")):
    for _byte in range(128):
        if re.fullmatch(_pattern, _before + chr(_byte)):
            BYTES[_byte] |= _bit


@hot
def name_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where a plain name ends that begins at `at`; `at` itself if there is none."""
    if at < stop and not BYTES[buffer[at]] & FIRST:
        return at
    while at < stop and BYTES[buffer[at]] & PLAIN:
        at += 1
    return at


@hot
def read_name(arrays: ScanArrays, at: Int, stop: Int) -> tuple[Int, Int, Int]:
    """A name, plain or in quotes: where it ends, or -1, and its pair."""
    buffer, text, cursor = arrays.buffer, arrays.text, arrays.cursor
    if at == stop or buffer[at] != QUOTE:
        end = name_end(buffer, at, stop)
        return end if end > at else -1, at, end - at
    end, doubled = quoted_end(buffer, at, stop)
    if not doubled or end < 0:
        return end, at + 1, end - at - 2
    used = cursor[TEXT_USED]
    _, after = undo(buffer, at, end, text, used, QUOTE, False)
    cursor[TEXT_USED] = after
    return end, ~used, after - used


@inner
def read_table(arrays: ScanArrays, at: Int, stop: Int, row: Int, close: Int) -> Int:
    """`schema.table`, each plain or in quotes, and the byte `close`; returns where that byte ends, or -1."""
    buffer, rows = arrays.buffer, arrays.rows
    for field in range(TABLE_SCHEMA, TABLE_NAME + 1, 2):
        at, start, length = read_name(arrays, at, stop)
        if at < 0 or at == stop or buffer[at] != (DOT if field == TABLE_SCHEMA else close):
            return -1
        rows[field, row] = start
        rows[field + 1, row] = length
        at += 1
    return at


@hot
def names_end(buffer: Array, at: Int, stop: Int, close: Int) -> Int:
    """Where the first byte `close` outside of quotes ends, which may be beyond `stop`; -1 if a quote is not closed."""
    while at < stop and buffer[at] != close:
        at = quoted_end(buffer, at, stop)[0] if buffer[at] == QUOTE else at + 1
        if at < 0:
            return -1
    return at + 1


@hot
def find_table(arrays: ScanArrays, at: Int, end: Int, row: Int) -> Int:
    """The first relation of the table that buffer[at:end] names, whose names are noted; 0 if it is not known."""
    first = find_relation(arrays.buffer, at, end, arrays.text, arrays.dictionary, arrays.cursor)
    if first > 0:
        note_table(arrays, row, first)
    return first


@hot
def note_table(arrays: ScanArrays, row: Int, relation: Int) -> None:
    """Notes a relation and the names of its table in a row."""
    rows, dictionary = arrays.rows, arrays.dictionary
    rows[RELATION, row] = relation
    for part in range(2):
        rows[TABLE_SCHEMA + part, row] = dictionary[relation + SCHEMA, part]
        rows[TABLE_NAME + part, row] = dictionary[relation + TABLE, part]
