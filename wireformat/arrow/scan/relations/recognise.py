"""How a scan recognises the relation of a row, and learns it where it is new.

Nearly every row repeats what earlier rows of its table said: schema, table, names and types of columns. A scan reads
that in full where it is new, and learns it: its texts, and its bytes as patterns. Of later rows it compares the bytes
with the patterns, and notes the relation and the values alone. A table has a relation for each list of columns that its
rows have had, such as all of them and those of the key; they are linked by NEXT.

What is learned is a fact about bytes, so it stays true for as long as it is remembered; see learned.py.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...jit.compiler import hot, inner
from ...jit.intrinsics import read_64
from ..notes import (
    COMPLETE,
    CURSOR_FIELDS,
    ENDS,
    GIVEN,
    LEARNED_END,
    LEARNED_FULL,
    LEARNED_USED,
    NAME,
    NEXT_ENTRY,
    PRESENT,
    RELATION,
    SLOTS,
    TABLE_NAME,
    TABLE_SCHEMA,
    TYPE,
    UNTYPED,
    UTF8,
    WANTS_ROOM,
    ScanArrays,
)
from ..primitives import same_bytes, transcode_flag
from .entries import CELL_ENTRIES, CELL_FACTS, CELL_NAME, CELL_TYPE, CELLS, COLUMNS, HEAD, NEXT, SCHEMA, TAIL, UNDECIDED

PROBES = 16
"""How many slots a search for a table looks at."""

LOW_BITS, FACTOR = 0x7FFFFFFF, 0x9E3779B1
"""The low bits of a name times FACTOR, which spreads them, fit in an int64."""

MOST_RELATIONS = 8
"""How many relations of one table are learned. Rows with other lists of columns are read in full."""


@hot
def _slot_of(buffer: Array, at: Int, end: Int) -> Int:
    """The slot at which the search for a table begins, from the bytes that name it; `end` is at least 8."""
    length = end - at
    mixed = read_64(buffer, end - 8)
    if length < 8:
        mixed &= ~(-1 << 8 * length)
    hashed = ((mixed ^ mixed >> 31) & LOW_BITS) * FACTOR
    for step in range(at, end - 8, 8):
        mixed = hashed ^ read_64(buffer, step)
        hashed = ((mixed ^ mixed >> 31) & LOW_BITS) * FACTOR
    return (hashed >> 24 ^ hashed >> 44) & (SLOTS - 1)


@hot
def find_relation(buffer: Array, at: Int, end: Int, text: Array, dictionary: Array, cursor: Array) -> Int:
    """The first relation of the table that buffer[at:end] names, or 0; `end` is at least 8."""
    slot = _slot_of(buffer, at, end)
    for probe in range(PROBES):
        relation = cursor[CURSOR_FIELDS + (slot + probe & SLOTS - 1)]
        if relation == 0:
            return 0
        if np.int64(dictionary[relation + HEAD, 1]) == end - at and same_bytes(
            buffer, at, text, ~np.int64(dictionary[relation + HEAD, 0]), end - at
        ):
            return relation
    return np.int64(0)


@inner
def note_pattern(arrays: ScanArrays, column: Int, at: Int, end: Int) -> None:
    """Notes where the bytes before the value of a column lie, in a row that is read in full; see `learn`."""
    entry = arrays.cursor[NEXT_ENTRY] + CELLS + CELL_ENTRIES * column + CELL_FACTS
    if entry < arrays.dictionary.shape[0]:
        arrays.dictionary[entry, 0] = at
        arrays.dictionary[entry, 1] = end - at


@hot
def note_complete(arrays: ScanArrays, row: Int, map_index: Int, relation: Int, begin: Int) -> None:
    """Notes whose names and types the cells of a row image from `begin` on have, whose values have been noted."""
    rows, cells, dictionary = arrays.rows, arrays.cells, arrays.dictionary
    count = np.int64(dictionary[relation + COLUMNS, 0])
    rows[ENDS + map_index, row] = begin + count
    rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    if rows[PRESENT, row] >> COMPLETE & 3 == 0:
        rows[RELATION, row] = relation
    if rows[RELATION, row] == relation:
        rows[PRESENT, row] |= 1 << (COMPLETE + map_index)
        return
    column = relation + CELLS  # the other image has other columns, and a row has one relation
    is_typed = rows[PRESENT, row] >> UNTYPED & 1 == 0
    for cell in range(begin, begin + count):
        for part in range(2):
            cells[map_index, NAME, cell, part] = dictionary[column + CELL_NAME, part]
            if is_typed:
                cells[map_index, TYPE, cell, part] = dictionary[column + CELL_TYPE, part]
        column += CELL_ENTRIES


@inner
def _keep(buffer: Array, text: Array, start: Int, length: Int, used: Int) -> Int:
    """Copies a noted text to text[used:]; returns the end of the copy."""
    for step in range(length):
        text[used + step] = buffer[start + step] if start >= 0 else text[~start + step]
    return used + length


@inner
def learn(
    arrays: ScanArrays,
    row: Int,
    map_index: Int,
    begin: Int,
    first: Int,
    head: Int,
    head_end: Int,
    tail: Int,
    tail_end: Int,
) -> Int:
    """Learns the relation of a row that was read in full, if there is room for it, and its names need no transcoding.

    begin        the first cell of its image in the map `map_index`; the patterns were noted by `note_pattern`
    first        the first relation of the table, or 0
    head, tail   the bytes that name the table, and those that say which columns follow, if the format has such
    returns      the first relation of the table, or 0 if it is still not known
    """
    buffer, rows, text, dictionary, cursor = arrays.buffer, arrays.rows, arrays.text, arrays.dictionary, arrays.cursor
    image = arrays.cells[map_index]
    end = rows[ENDS + map_index, row]
    count = end - begin
    relation = cursor[NEXT_ENTRY]
    used = cursor[LEARNED_USED]
    next_entry = relation + CELLS + CELL_ENTRIES * count
    has_room = next_entry <= dictionary.shape[0]
    if has_room:
        size = rows[TABLE_SCHEMA + 1, row] + rows[TABLE_NAME + 1, row] + head_end - head + tail_end - tail
        column = relation + CELLS + CELL_FACTS
        for cell in range(begin, end):
            size += np.int64(image[NAME, cell, 1]) + np.int64(image[TYPE, cell, 1]) + np.int64(dictionary[column, 1])
            column += CELL_ENTRIES
        has_room = used + size <= cursor[LEARNED_END]
    if not has_room:
        cursor[LEARNED_FULL] = max(cursor[LEARNED_FULL], WANTS_ROOM)
        return first
    begin_text = used
    for field in range(2):
        start, length = rows[TABLE_SCHEMA + 2 * field, row], rows[TABLE_SCHEMA + 2 * field + 1, row]
        dictionary[relation + SCHEMA + field, 0] = ~used
        dictionary[relation + SCHEMA + field, 1] = length
        used = _keep(buffer, text, start, length, used)
    for entry in range(2):  # the names follow each other, and so do the types: the gather copies those of a row at once
        field = NAME if entry == CELL_NAME else TYPE
        column = relation + CELLS + entry
        for cell in range(begin, end):
            start, length = np.int64(image[field, cell, 0]), np.int64(image[field, cell, 1])
            dictionary[column, 0] = ~used
            dictionary[column, 1] = length
            used = _keep(buffer, text, start, length, used)
            column += CELL_ENTRIES
    for at in range(begin_text, used):
        if text[at] == 0:
            return first  # where an identifier seems to hold a zero byte, a length lied
        if text[at] >= 0x80:
            if transcode_flag(text, begin_text, used - begin_text, arrays.settings[UTF8] == 1) != 0:
                return first
            break
    dictionary[relation + HEAD, 0] = ~used
    dictionary[relation + HEAD, 1] = head_end - head
    used = _keep(buffer, text, head, head_end - head, used)
    dictionary[relation + TAIL, 0] = ~used
    dictionary[relation + TAIL, 1] = tail_end - tail
    used = _keep(buffer, text, tail, tail_end - tail, used)
    column = relation + CELLS + CELL_FACTS
    for _ in range(count):
        start, length = np.int64(dictionary[column, 0]), np.int64(dictionary[column, 1])
        dictionary[column, 0] = ~used
        used = _keep(buffer, text, start, length, used)
        column += CELL_ENTRIES
    dictionary[relation + COLUMNS, 0] = count
    dictionary[relation + COLUMNS, 1] = UNDECIDED
    dictionary[relation + NEXT, 0] = 0
    dictionary[relation + NEXT, 1] = 1
    if first > 0:
        if dictionary[first + NEXT, 1] == MOST_RELATIONS:
            return first
        dictionary[relation + COLUMNS, 1] = dictionary[first + COLUMNS, 1]
        dictionary[relation + NEXT, 0] = dictionary[first + NEXT, 0]
        dictionary[first + NEXT, 0] = relation
        dictionary[first + NEXT, 1] += 1
    else:
        slot = _slot_of(buffer, head, head_end)
        probe = 0
        while probe < PROBES and cursor[CURSOR_FIELDS + (slot + probe & SLOTS - 1)] != 0:
            probe += 1
        if probe == PROBES:
            return 0
        cursor[CURSOR_FIELDS + (slot + probe & SLOTS - 1)] = relation
    cursor[NEXT_ENTRY], cursor[LEARNED_USED] = next_entry, used
    if rows[RELATION, row] == 0:
        rows[RELATION, row] = relation
    return first if first > 0 else relation
