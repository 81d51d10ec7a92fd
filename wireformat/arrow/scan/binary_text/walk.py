"""The walks that write binary values as text, after the scan has noted them, each compiled when it is needed."""

from __future__ import annotations

import numpy as np

from ....limits import BATCH_TEXT_BYTES
from ...arrays import Array, Int
from ...ascii import CLOSE_BRACKET, COMMA, OPEN_BRACKET, SPACE
from ...jit.compiler import compiled, inner
from ..dictionary import CELL_ENTRIES, CELL_FACTS, CELL_QUOTED, CELL_TYPE, CELLS
from ..loop import Scan
from ..notes import (
    ARRAY_VALUE,
    BINARY_LENGTH,
    BYTES_VALUE,
    COMPLETE,
    DETAIL,
    ENDS,
    FLOAT_VALUE,
    GOOD,
    HEX_TEXT,
    NEEDS,
    NEW,
    NUMERIC_VALUE,
    OLD,
    OTHER_ARRAY_VALUE,
    PRESENT,
    RELATION,
    STATUS,
    TEXT_SLACK,
    TIME_VALUE,
    TYPE,
    VALUE,
    Notes,
)
from ..transcode import with_room
from .arrays_and_bytes import make_array_writer, write_bytes_value, write_other, write_simple
from .forms import BAD, FORM, GROUP_SHIFT, GROUPS, HEX_FORM, NO_ROOM, SCALAR_FORM, most_bytes
from .numbers import write_float, write_numeric
from .times import write_time_value


@inner
def column_of(rows: Array, row: Int, cells: Array, dictionary: Array, map_index: Int, cell: Int, column: Int) -> Int:
    """Returns the first entry of a cell's column; that of an image that is not complete is not before `column`."""
    if rows[PRESENT, row] >> (COMPLETE + map_index) & 1:
        begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
        return rows[RELATION, row] + CELLS + CELL_ENTRIES * (cell - begin)
    while dictionary[column + CELL_TYPE, 0] != cells[map_index, TYPE, cell, 0]:  # no two have their type at one place
        column += CELL_ENTRIES
    return column


@inner
def write_names(rows: Array, row: Int, cells: Array, text: Array, dictionary: Array, used: Int) -> Int:
    """Writes the names of the columns whose values become hexadecimal, as a list in JSON. Returns the new end of the
    text, or NO_ROOM.

    Each column is listed once: the columns of the old image, then those of the new one that are not among them.
    """
    to = used
    for map_index in (OLD, NEW):
        column = other_column = rows[RELATION, row] + CELLS
        other, other_end = rows[ENDS + OLD, row - 1] if row > 0 else 0, rows[ENDS + OLD, row]
        for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
            if cells[map_index, VALUE, cell, 1] > BINARY_LENGTH:
                continue
            column = column_of(rows, row, cells, dictionary, map_index, cell, column)
            if dictionary[column + CELL_FACTS, 1] & FORM != HEX_FORM:
                continue
            if map_index == NEW:
                while other < other_end:
                    other_column = column_of(rows, row, cells, dictionary, OLD, other, other_column)
                    if other_column >= column:
                        break
                    other += 1
                if other < other_end and other_column == column and cells[OLD, VALUE, other, 1] <= BINARY_LENGTH:
                    continue
            start, length = np.int64(dictionary[column + CELL_QUOTED, 0]), np.int64(dictionary[column + CELL_QUOTED, 1])
            if to + length + TEXT_SLACK > len(text):
                return NO_ROOM
            if to == used:
                text[to] = OPEN_BRACKET
                to += 1
            else:
                text[to], text[to + 1] = COMMA, SPACE
                to += 2
            for offset in range(length):
                text[to + offset] = text[~start + offset]
            to += length
    text[to] = CLOSE_BRACKET
    return to + 1


@compiled
def _write_lists(
    rows: Array, begin: Int, count: Int, cells: Array, text: Array, dictionary: Array, used: Int
) -> tuple[Int, Int, Int]:
    """Writes the lists of columns of the rows that need HEX_TEXT; arguments and results are those of a walk."""
    for row in range(begin, count):
        if rows[STATUS, row] == GOOD and rows[NEEDS, row] & HEX_TEXT:
            end = write_names(rows, row, cells, text, dictionary, used)
            if end == NO_ROOM:
                return row, used, 2 * len(text)
            detail = rows[ENDS + DETAIL, row] - 1
            cells[DETAIL, VALUE, detail, 0] = ~used
            cells[DETAIL, VALUE, detail, 1] = end - used
            rows[NEEDS, row] &= ~HEX_TEXT
            used = end
    return count, used, 0


def _make_walk(name: str, group: int, write: Scan) -> Scan:
    """Returns the compiled walk that writes the values of one group of types.

    write   (data, at, size, form, text, to, utf8) -> the end of the text, BAD or NO_ROOM, and how long the text must be
    """

    def walk(
        rows: Array,
        begin: Int,
        count: Int,
        cells: Array,
        buffer: Array,
        text: Array,
        dictionary: Array,
        used: Int,
        utf8: bool,
    ) -> tuple[Int, Int, Int]:
        """Writes the values of the rows as text, from row `begin` on, until `text` is full.

        Rows with a value that cannot be written here keep the bit of the group.

        used      how many bytes of the text are used
        utf8      whether texts are in UTF-8
        returns   the row to continue with, how many bytes are used, and how long the text must be for that row
        """
        for row in range(begin, count):
            if rows[STATUS, row] != GOOD or rows[NEEDS, row] & 1 << group == 0:
                continue
            is_good = True
            for map_index in range(NEW, OLD + 1):
                column = rows[RELATION, row] + CELLS
                for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                    at, length = np.int64(cells[map_index, VALUE, cell, 0]), np.int64(cells[map_index, VALUE, cell, 1])
                    if length > BINARY_LENGTH:
                        continue
                    column = column_of(rows, row, cells, dictionary, map_index, cell, column)
                    packed = np.int64(dictionary[column + CELL_FACTS, 1])
                    if packed >> GROUP_SHIFT & GROUPS != group:
                        continue
                    end, needed = write(buffer, at, BINARY_LENGTH - length, packed, text, used, utf8)
                    if end == NO_ROOM:
                        return row, used, needed
                    if end == BAD:
                        is_good = False
                        break
                    cells[map_index, VALUE, cell, 0] = ~used
                    cells[map_index, VALUE, cell, 1] = end - used
                    used = end
            if is_good:
                rows[NEEDS, row] &= ~(1 << group)
        return count, used, 0

    walk.__name__ = walk.__qualname__ = name
    return compiled(walk)


def _single(write: Scan) -> Scan:
    """Returns `write` for single values as a walk takes it."""

    @inner
    def write_single(data: Array, at: Int, size: Int, packed: Int, text: Array, to: Int, utf8: bool) -> tuple[Int, Int]:
        form = packed & SCALAR_FORM
        needed = to + most_bytes(size, form)
        if needed > len(text):
            return NO_ROOM, needed
        return write(data, at, size, form, text, to, utf8), needed

    return write_single


_WALKS = {
    BYTES_VALUE: _make_walk("walk_bytes", BYTES_VALUE, _single(write_bytes_value)),
    NUMERIC_VALUE: _make_walk("walk_numerics", NUMERIC_VALUE, _single(write_numeric)),
    FLOAT_VALUE: _make_walk("walk_floats", FLOAT_VALUE, _single(write_float)),
    TIME_VALUE: _make_walk("walk_times", TIME_VALUE, _single(write_time_value)),
    ARRAY_VALUE: _make_walk("walk_arrays", ARRAY_VALUE, make_array_writer(write_simple)),
    OTHER_ARRAY_VALUE: _make_walk("walk_other_arrays", OTHER_ARRAY_VALUE, make_array_writer(write_other)),
}
"""One for each group, so that a stream compiles what it needs."""


def write_binary_texts(
    notes: Notes, count: int, buffer: Array, dictionary: Array, used: int, utf8: bool
) -> tuple[Array, int]:
    """Writes the binary values of pgoutput's rows as text. Leaves out rows with a value that is bad, or that makes the
    text too long.

    used      how many bytes of the text of the notes are used
    utf8      whether texts are in UTF-8; arrays of others are left out if they are not ASCII
    returns   the text of the notes, or a larger one in its place, and how many bytes of it are used
    """
    rows, cells, text = notes
    needs = int(np.bitwise_or.reduce(rows[NEEDS, :count]))
    most = used + BATCH_TEXT_BYTES
    row = needed = 0

    def has_room() -> bool:
        nonlocal text
        if row == count or max(used, needed) > most:
            return False
        text = with_room(text, used, needed - used + TEXT_SLACK)
        return True

    while needs & HEX_TEXT and has_room():
        row, used, needed = _write_lists(rows, row, count, cells, text[:-TEXT_SLACK], dictionary, used)
    for group, walk in _WALKS.items():
        row = needed = 0
        while needs & 1 << group and has_room():
            row, used, needed = walk(rows, row, count, cells, buffer, text[:-TEXT_SLACK], dictionary, used, utf8)
    return text, used
