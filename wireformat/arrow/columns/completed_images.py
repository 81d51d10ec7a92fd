"""Old images of UPDATEs that leave out columns, such as NULLs, completed: their rows have one layout, not many.

What such an image does not have is NULL in a typed table in any case, and tells nothing about the columns of the table.
So it may have the columns of the new image of its row. A DELETE has none, and the last one before it may be that of
another version of its table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, Int, unused
from ..codes import grouped
from ..jit.compiler import compiled, inner
from ..scan.notes import (
    COMPLETE,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    IMAGE_BITS,
    MAPS,
    NAME,
    NEW,
    OLD,
    PRESENT,
    RELATION,
    TYPE,
    UNCHANGED_LENGTH,
    UNTYPED,
    VALUE,
    ScannedRows,
)
from ..scan.relations.entries import CELL_ENTRIES, CELL_NAME, CELL_TYPE, CELLS
from .layouts import numbered_layouts, same_text

FEW_LAYOUTS = 32
"""So many layouts may differ in their old images alone before these are completed, which takes time for each row."""

_OLD_BITS = 1 << GIVEN + OLD | 1 << COMPLETE + OLD


class CompletedImages(NamedTuple):
    """The old images of rows, as they are completed.

    chosen   bool[n]: which of them are. They have the columns of the new image, those first that were sent
    starts   int64[n]: where the values of such an image begin in `cells`
    cells    int32[m]: the cell of each column in the notes, -1 for one that is left out
    """

    chosen: Array
    starts: Array
    cells: Array

    def of(self, indices: Array) -> CompletedImages:
        """Returns those of some of the rows, int64[k]."""
        return self._replace(chosen=self.chosen[indices], starts=self.starts[indices])


def completed_layouts(scanned: ScannedRows, rows: Array) -> tuple[Array, Array, CompletedImages]:
    """Returns the number of the layout of each row, int64[n], the index of a row of each layout, and the old images.

    rows   int64[n]: rows of the notes, row changes
    """
    codes, samples = numbered_layouts(scanned, rows)
    chosen, starts, cells = np.zeros(len(rows), bool), np.zeros(len(rows), np.int64), np.empty(0, np.int32)
    if len(samples) > FEW_LAYOUTS:
        without_old = _numbered_without_old(scanned, samples)
        has_many = np.bincount(without_old) > FEW_LAYOUTS
        if has_many.any():
            chosen = has_many[without_old][codes]
            cells = unused(_choose(scanned.rows, rows, chosen), np.int32)
            notes = scanned.rows, rows, scanned.cells, scanned.source, scanned.text, scanned.dictionary
            _complete(*notes, chosen, starts, cells)
            codes = np.where(chosen, len(samples) + without_old[codes], codes)
    firsts, codes = grouped(codes)
    order = np.argsort(firsts)  # as the layouts occur
    return np.argsort(order)[codes], firsts[order], CompletedImages(chosen, starts, cells)


def _numbered_without_old(scanned: ScannedRows, samples: Array) -> Array:
    """Returns the number of the layout that each of these rows would have without its old image, int64[m]."""
    rows = scanned.rows[:, np.stack([np.maximum(samples - 1, 0), samples], axis=1).reshape(-1)]
    rows[ENDS : ENDS + len(MAPS), ::2] = np.where(samples > 0, rows[ENDS : ENDS + len(MAPS), ::2], 0)
    rows[ENDS + OLD] = 0
    rows[PRESENT] &= ~_OLD_BITS
    return numbered_layouts(scanned._replace(rows=rows), np.arange(1, 2 * len(samples), 2))[0]


@compiled
def _choose(rows: Array, chosen_rows: Array, chosen: Array) -> Int:
    """Clears chosen[n] for rows whose old image has all columns of the new one, or none, or that lack an image.

    Returns how many cells `_complete` needs.
    """
    total = np.int64(0)
    for index in range(len(chosen)):
        row = chosen_rows[index]
        present = rows[PRESENT, row]
        count, own = _cell_count(rows, row, NEW), _cell_count(rows, row, OLD)
        chosen[index] &= present >> GIVEN & IMAGE_BITS == IMAGE_BITS and own > 0 and own < count
        if chosen[index]:
            total += 2 * count if present >> HAS_UNCHANGED & 1 else count
    return total


@compiled
def _complete(
    rows: Array,
    chosen_rows: Array,
    cells: Array,
    source: Array,
    text: Array,
    dictionary: Array,
    chosen: Array,
    starts: Array,
    columns: Array,
) -> None:
    """Fills starts[n] and columns[m] for old images that are part of the new one; clears chosen[n] for all others."""
    used = np.int64(0)
    for index in range(len(chosen)):
        row = chosen_rows[index]
        chosen[index] &= chosen[index] and _is_part(rows, cells, source, text, dictionary, row, columns, used)
        if chosen[index]:
            if rows[PRESENT, row] >> HAS_UNCHANGED & 1:
                _move_unsent(rows, cells, row, columns, used)
                used += _cell_count(rows, row, NEW)
            starts[index] = used
            used += _cell_count(rows, row, NEW)


@inner
def _is_part(
    rows: Array, cells: Array, source: Array, text: Array, dictionary: Array, row: Int, columns: Array, used: Int
) -> bool:
    """Whether the new image of a row has all columns of the old one, about in their order.

    columns   int32[m]: filled from `used` on, for each column of the new image with its cell in the old one, or -1
    """
    fields = 1 if rows[PRESENT, row] >> UNTYPED & 1 else 2
    count, begin = _cell_count(rows, row, NEW), rows[ENDS + OLD, row - 1] if row > 0 else 0
    for column in range(count):
        columns[used + column] = -1
    column, steps = np.int64(0), 2 * count  # a row of many columns in another order would take their square
    for step in range(_cell_count(rows, row, OLD)):
        if cells[OLD, VALUE, begin + step, 1] == UNCHANGED_LENGTH:
            return False
        is_same = False
        while not is_same:
            if steps == 0:
                return False
            steps -= 1
            is_same = True
            for index in range(fields):
                field = NAME if index == 0 else TYPE
                start, length = _noted(rows, cells, dictionary, row, OLD, field, step)
                other, other_length = _noted(rows, cells, dictionary, row, NEW, field, column)
                is_same = is_same and same_text(source, text, start, length, other, other_length)
            found = column
            column = column + 1 if column + 1 < count else 0
        if columns[used + found] >= 0:
            return False
        columns[used + found] = begin + step
    return True


@inner
def _move_unsent(rows: Array, cells: Array, row: Int, columns: Array, used: Int) -> None:
    """Fills the columns that follow those of a new image with the same, but first those that were sent."""
    count, begin = _cell_count(rows, row, NEW), rows[ENDS + NEW, row - 1] if row > 0 else 0
    to = used + count
    for is_unsent in range(2):
        for step in range(count):
            if (cells[NEW, VALUE, begin + step, 1] == UNCHANGED_LENGTH) == is_unsent:
                columns[to] = columns[used + step]
                to += 1


@inner
def _cell_count(rows: Array, row: Int, map_index: Int) -> Int:
    return rows[ENDS + map_index, row] - (rows[ENDS + map_index, row - 1] if row > 0 else 0)


@inner
def _noted(
    rows: Array, cells: Array, dictionary: Array, row: Int, map_index: Int, field: Int, index: Int
) -> tuple[Int, Int]:
    """Returns the pair of the name or the type of a cell of an image."""
    if rows[PRESENT, row] >> (COMPLETE + map_index) & 1:
        entry = rows[RELATION, row] + CELLS + index * CELL_ENTRIES + (CELL_NAME if field == NAME else CELL_TYPE)
        return np.int64(dictionary[entry, 0]), np.int64(dictionary[entry, 1])
    cell = (rows[ENDS + map_index, row - 1] if row > 0 else 0) + index
    return np.int64(cells[map_index, field, cell, 0]), np.int64(cells[map_index, field, cell, 1])
