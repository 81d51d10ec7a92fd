"""How a scan recognises the relation of a row, and learns it where it is new.

Nearly every row repeats what earlier rows of its table said: schema, table, names and types of columns. A scan reads
that in full where it is new, and learns it: its texts, and its bytes as patterns. Of later rows it compares the bytes
with the patterns, and notes the relation and the values alone. A table has a relation for each list of columns that its
rows have had, such as all of them and those of the key; they are linked by NEXT. The first row of a table may have the
columns of the newest other table, as partitions have: only the names of schema and table are learned then.

What is learned is a fact about bytes, so it stays true for as long as it is remembered; see scratch.py.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Int
from ...jit.byte_ranges import copy_bytes, spread
from ...jit.compiler import hot, inner
from ...jit.intrinsics import BLOCK, copy_block, read_64
from ..dictionary import (
    CELL_ENTRIES,
    CELL_FACTS,
    CELL_NAME,
    CELL_TYPE,
    CELLS,
    COLUMNS,
    HEAD,
    NEXT,
    SCHEMA,
    TAIL,
    UNDECIDED,
)
from ..notes import (
    CHARACTERS,
    COMPLETE,
    CURSOR_FIELDS,
    ENDS,
    GIVEN,
    IMAGE_BITS,
    LAST_RECOGNISED,
    LEARNED_END,
    LEARNED_FULL,
    LEARNED_USED,
    NAME,
    NEW,
    NEWEST,
    NEXT_ENTRY,
    NOT_LEARNED,
    PAIR,
    PRESENT,
    READ_IN_FULL,
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
from ..primitives import is_plain, not_plain, same_bytes, transcode_flag
from .characters import MOST_GROWTH, decode_name

PROBES = 16
"""How many slots a search for a table looks at."""

MOST_RELATIONS = 8
"""How many relations of one table are learned. Rows with other lists of columns are read in full."""

MOST_IN_VAIN, LEARNED_OF = 256, 16
"""After so many row images in which no relation was recognised, or whose names could not be learned, only one of the
second number is learned: to learn what does not come again takes longer than to read it."""


@hot
def _slot_of(buffer: Array, at: Int, end: Int) -> Int:
    """The slot at which the search for a table begins, from the bytes that name it."""
    length = end - at
    mixed = read_64(buffer, end - 8) if end >= 8 else np.int64(0)  # nothing is read before the buffer
    if length < 8:
        mixed &= ~(-1 << 8 * length)
    hashed = spread(mixed)
    for step in range(at, end - 8, 8):
        hashed = spread(hashed ^ read_64(buffer, step))
    return (hashed >> 24 ^ hashed >> 44) & (SLOTS - 1)


@hot
def find_relation(buffer: Array, at: Int, end: Int, text: Array, dictionary: Array, cursor: Array) -> Int:
    """The first relation of the table that buffer[at:end] names, or 0."""
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
    arrays.cursor[LAST_RECOGNISED] = arrays.cursor[READ_IN_FULL]
    count = np.int64(dictionary[relation + COLUMNS, 0])
    rows[ENDS + map_index, row] = begin + count
    rows[PRESENT, row] |= 1 << (GIVEN + map_index)
    if rows[PRESENT, row] >> COMPLETE & IMAGE_BITS == 0:
        rows[RELATION, row] = relation
    if rows[RELATION, row] == relation:
        rows[PRESENT, row] |= 1 << (COMPLETE + map_index)
        return
    column = relation + CELLS  # the other image has other columns, and a row has one relation
    is_typed = rows[PRESENT, row] >> UNTYPED & 1 == 0
    for cell in range(begin, begin + count):
        for part in range(PAIR):
            cells[map_index, NAME, cell, part] = dictionary[column + CELL_NAME, part]
            if is_typed:
                cells[map_index, TYPE, cell, part] = dictionary[column + CELL_TYPE, part]
        column += CELL_ENTRIES


@inner
def expected_relation(arrays: ScanArrays, row: Int, first: Int, head_bytes: Int) -> Int:
    """The relation whose columns a row is expected to have: the first one of its table. If that is 0, the newest one,
    if there is room to learn the table with its columns; or 0."""
    dictionary, cursor = arrays.dictionary, arrays.cursor
    newest = cursor[NEWEST]
    if first > 0 or newest == 0:
        return first
    end = cursor[NEXT_ENTRY] + CELLS + CELL_ENTRIES * np.int64(dictionary[newest + COLUMNS, 0])
    most_bytes = (1 + MOST_GROWTH) * head_bytes + BLOCK  # the head, and its names in UTF-8
    if end > dictionary.shape[0] or cursor[LEARNED_USED] + most_bytes > cursor[LEARNED_END]:
        return np.int64(0)
    no_cell = arrays.rows[ENDS + NEW, row]
    if _are_names_final(arrays, row, NEW, no_cell):
        return newest
    is_decoded = arrays.settings[CHARACTERS] > 0 and _keep_names(arrays, row, NEW, no_cell, True) >= 0
    return newest if is_decoded else np.int64(0)


@inner
def next_relation(dictionary: Array, relation: Int, first: Int) -> Int:
    """The relation to expect after `relation`; 0 for none."""
    return np.int64(dictionary[relation + NEXT, 0]) if first > 0 else np.int64(0)


@inner
def learn(
    arrays: ScanArrays,
    row: Int,
    map_index: Int,
    begin: Int,
    like: Int,
    first: Int,
    head: Int,
    head_end: Int,
    tail: Int,
    tail_end: Int,
) -> Int:
    """Learns the relation of a row that was read in full, if there is room for it, and its names are in UTF-8, or have
    only characters of the table of the encoding's characters.

    begin        the first cell of its image in the map `map_index`; the patterns were noted by `note_pattern`
    like         the relation of another table whose columns the row has, as `expected_relation` returned it, or 0 if it
                 was read in full
    first        the first relation of the table, or 0
    head, tail   the bytes that name the table, and those that say which columns follow, if the format has such
    returns      the first relation of the table, or 0 if it is still not known
    """
    rows, dictionary, cursor = arrays.rows, arrays.dictionary, arrays.cursor
    has_characters = arrays.settings[CHARACTERS] > 0
    if like == 0:
        if first > 0 and dictionary[first + NEXT, 1] == MOST_RELATIONS:
            return first
        cursor[READ_IN_FULL] += 1
        in_vain = max(cursor[READ_IN_FULL] - cursor[LAST_RECOGNISED], cursor[NOT_LEARNED])
        if in_vain > MOST_IN_VAIN and cursor[READ_IN_FULL] % LEARNED_OF != 0:
            return first
        table_bytes = head_end - head + tail_end - tail
        if not _has_room(arrays, row, map_index, begin, table_bytes, 1):
            if cursor[LEARNED_FULL] == 0 and (has_characters or _are_names_final(arrays, row, map_index, begin)):
                cursor[LEARNED_FULL] = WANTS_ROOM
            return first
    relation, names = cursor[NEXT_ENTRY], cursor[LEARNED_USED]
    end = rows[ENDS + map_index, row]
    count = end - begin
    own = begin if like == 0 else end
    used = _keep_names(arrays, row, map_index, own, False)
    is_final = (like > 0 and not has_characters) or _is_plain(arrays.text, names, used)
    if not is_final and not _are_names_final(arrays, row, map_index, own):
        cursor[NOT_LEARNED] += 1
        if not has_characters:
            return first
        if like == 0 and not _has_room(arrays, row, map_index, begin, table_bytes + BLOCK, MOST_GROWTH):
            cursor[LEARNED_FULL] = max(cursor[LEARNED_FULL], WANTS_ROOM)
            return first
        used = _keep_names(arrays, row, map_index, own, True)
        if used < 0:
            return first
        cursor[NOT_LEARNED] -= 1
    if like == 0:
        used = _keep(arrays, relation + TAIL, tail, tail_end - tail, used)
        for column in range(count):
            entry = relation + CELLS + CELL_ENTRIES * column + CELL_FACTS
            used = _keep(arrays, entry, np.int64(dictionary[entry, 0]), np.int64(dictionary[entry, 1]), used)
    else:
        for entry in range(TAIL, CELLS + CELL_ENTRIES * count):
            for part in range(PAIR):
                dictionary[relation + entry, part] = dictionary[like + entry, part]
    used = _keep(arrays, relation + HEAD, head, head_end - head, used)
    dictionary[relation + COLUMNS, 0] = count
    if not _link(arrays, relation, first, head, head_end) and like == 0:
        return first
    cursor[NEXT_ENTRY], cursor[LEARNED_USED] = relation + CELLS + CELL_ENTRIES * count, used
    if rows[RELATION, row] == like:
        rows[RELATION, row] = relation
    if first == 0:
        first = cursor[NEWEST] = relation
    return first


@inner
def _has_room(arrays: ScanArrays, row: Int, map_index: Int, begin: Int, table_bytes: Int, growth: Int) -> bool:
    """Whether there is room for the entries and texts of a relation.

    table_bytes   how many bytes head and tail have
    growth        how many times longer names and types may become
    """
    rows, image, dictionary, cursor = arrays.rows, arrays.cells[map_index], arrays.dictionary, arrays.cursor
    end = rows[ENDS + map_index, row]
    entry = cursor[NEXT_ENTRY] + CELLS
    if entry + CELL_ENTRIES * (end - begin) > dictionary.shape[0]:
        return False
    names = rows[TABLE_SCHEMA + 1, row] + rows[TABLE_NAME + 1, row]
    size = table_bytes
    for cell in range(begin, end):
        names += np.int64(image[NAME, cell, 1]) + np.int64(image[TYPE, cell, 1])
        size += np.int64(dictionary[entry + CELL_FACTS, 1])
        entry += CELL_ENTRIES
    size += growth * names
    return cursor[LEARNED_USED] + size <= cursor[LEARNED_END]


@hot
def _keep(arrays: ScanArrays, entry: Int, start: Int, length: Int, used: Int) -> Int:
    """Copies a noted text to text[used:], and makes that the text of an entry; returns the end of the copy."""
    buffer, text = arrays.buffer, arrays.text
    arrays.dictionary[entry, 0] = ~used
    arrays.dictionary[entry, 1] = length
    if used + length + BLOCK > arrays.cursor[LEARNED_END]:
        for step in range(length):
            text[used + step] = buffer[start + step] if start >= 0 else text[~start + step]
    elif start < 0:
        for step in range(0, length, BLOCK):
            copy_block(text, used + step, text, ~start + step)
    else:
        copy_bytes(text, used, buffer, start, length)
    return used + length


@hot
def _keep_name(arrays: ScanArrays, entry: Int, start: Int, length: Int, used: Int, decodes: bool) -> Int:
    """Keeps a noted name as `_keep` does, in UTF-8 if it `decodes`; see `_keep_names`. It keeps none after -1."""
    if used < 0:
        return used
    if decodes and not _is_known(arrays, start):
        return _keep_decoded(arrays, entry, start, length, used)
    return _keep(arrays, entry, start, length, used)


@inner
def _keep_decoded(arrays: ScanArrays, entry: Int, start: Int, length: Int, used: Int) -> Int:
    """Keeps a noted name in UTF-8; returns its end, or -1."""
    data = arrays.buffer if start >= 0 else arrays.text
    at = start if start >= 0 else ~start
    characters = arrays.settings[arrays.settings[CHARACTERS] :]
    end, after = decode_name(data, at, at + length, arrays.text, used, characters)
    arrays.dictionary[entry, 0] = ~used
    arrays.dictionary[entry, 1] = after - used
    return after if end == at + length else np.int64(-1)


@inner
def _keep_names(arrays: ScanArrays, row: Int, map_index: Int, begin: Int, decodes: bool) -> Int:
    """Keeps the names of schema and table, then those of the columns, then their types; returns the end of them.

    decodes   whether they are decoded by the table of characters: there must be room for that. It returns -1 if one of
              them has other characters, or a zero byte

    The names of columns follow each other, and so do the types: the gather copies those of a row at once.
    """
    rows, image = arrays.rows, arrays.cells[map_index]
    relation, used = arrays.cursor[NEXT_ENTRY], arrays.cursor[LEARNED_USED]
    count = rows[ENDS + map_index, row] - begin
    for texts in range(3):  # one loop: what it calls is large, and is inlined once
        for index in range(2 if texts == 0 else count):
            if texts == 0:
                entry, field = relation + SCHEMA + index, TABLE_SCHEMA + 2 * index
                start, length = rows[field, row], rows[field + 1, row]
            else:
                first, field = (CELL_NAME, NAME) if texts == 1 else (CELL_TYPE, TYPE)
                entry = relation + CELLS + CELL_ENTRIES * index + first
                start, length = np.int64(image[field, begin + index, 0]), np.int64(image[field, begin + index, 1])
            used = _keep_name(arrays, entry, start, length, used, decodes)
    return used


@inner
def _is_plain(text: Array, begin: Int, end: Int) -> bool:
    """Whether texts that follow each other are ASCII without zero bytes."""
    seen = np.int64(0)
    for at in range(begin, end - 8, 8):
        seen |= not_plain(read_64(text, at))
    if end - begin < 8:
        return False  # which is rare
    return is_plain(seen | not_plain(read_64(text, end - 8)))


@inner
def _are_names_final(arrays: ScanArrays, row: Int, map_index: Int, begin: Int) -> bool:
    """Whether the names of a row's table and of its columns, and their types, are texts that need no transcoding."""
    rows, image = arrays.rows, arrays.cells[map_index]
    for field in (TABLE_SCHEMA, TABLE_NAME):
        if not _is_final(arrays, rows[field, row], rows[field + 1, row]):
            return False
    for field in (NAME, TYPE):
        for cell in range(begin, rows[ENDS + map_index, row]):
            if not _is_final(arrays, np.int64(image[field, cell, 0]), np.int64(image[field, cell, 1])):
                return False
    return True


@inner
def _is_known(arrays: ScanArrays, start: Int) -> bool:
    """Whether a noted text is one of the dictionary or of a relation, which are in UTF-8."""
    return start < 0 and ~start < arrays.cursor[LEARNED_END]


@inner
def _is_final(arrays: ScanArrays, start: Int, length: Int) -> bool:
    """Whether a noted text needs no transcoding."""
    if _is_known(arrays, start):
        return True
    data = arrays.buffer if start >= 0 else arrays.text
    begin = start if start >= 0 else ~start
    is_ascii = True
    for at in range(begin, begin + length):
        if data[at] == 0:
            return False  # where an identifier seems to hold a zero byte, a length lied
        is_ascii = is_ascii and data[at] < 0x80
    return is_ascii or transcode_flag(data, begin, length, arrays.settings[UTF8] == 1) == 0


@inner
def _link(arrays: ScanArrays, relation: Int, first: Int, head: Int, head_end: Int) -> bool:
    """Puts a relation behind the first one of its table, or into a slot if it is the first; whether it could."""
    dictionary, cursor = arrays.dictionary, arrays.cursor
    if first > 0:
        dictionary[relation + COLUMNS, 1] = dictionary[first + COLUMNS, 1]
        dictionary[relation + NEXT, 0] = dictionary[first + NEXT, 0]
        dictionary[relation + NEXT, 1] = 1
        dictionary[first + NEXT, 0] = relation
        dictionary[first + NEXT, 1] += 1
        return True
    dictionary[relation + COLUMNS, 1] = UNDECIDED
    dictionary[relation + NEXT, 0] = 0
    dictionary[relation + NEXT, 1] = 1
    slot = _slot_of(arrays.buffer, head, head_end)
    for probe in range(PROBES):
        index = CURSOR_FIELDS + (slot + probe & SLOTS - 1)
        if cursor[index] == 0:
            cursor[index] = relation
            return True
    return False
