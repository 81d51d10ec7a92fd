"""Old images that leave out columns, such as NULLs, completed: their rows have one layout, not many.

What such an image does not have is NULL in a typed table in any case, and tells nothing about the columns of the table.
So that of an UPDATE may have the columns of its new image, and that of a DELETE those of its table, as far as the rows
before it tell them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, Int, unused
from ..jit.compiler import inner
from ..scan.notes import COMPLETE, ENDS, NAME, PAIR, PRESENT, RELATION, TYPE, UNCHANGED_LENGTH, UNTYPED, VALUE
from ..scan.relations.entries import CELL_ENTRIES, CELL_NAME, CELL_TYPE, CELLS
from .layouts import same_text

NOT_COMPLETED, OWN_COLUMNS = -1, -2
"""In place of where the columns of an image begin: it is as it was; it has those of the new image of its row."""


class CompletedImages(NamedTuple):
    """The old images of rows, as they are completed.

    columns   int64[n]: where the columns of each begin among those of CompletedLayouts, or one of the numbers above.
              Those of a new image are in its order, but first those that were sent
    starts    int64[n]: where the values of an image begin in `cells`
    counts    int64[n]: how many they are; 0 for an image that is not completed
    cells     int32[m]: the cell of each column in the notes, -1 for one that is left out
    """

    columns: Array
    starts: Array
    counts: Array
    cells: Array

    @classmethod
    def none(cls, rows: int, cells: int) -> CompletedImages:
        """Returns those of as many rows, none of which are completed, with room for as many cells."""
        places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        return cls(np.full(rows, NOT_COMPLETED), *places, unused(cells, np.int32))

    def of(self, indices: Array) -> CompletedImages:
        """Returns those of some of the rows, int64[k]."""
        return CompletedImages(self.columns[indices], self.starts[indices], self.counts[indices], self.cells)


COLUMN_FIELDS = 2 * PAIR
"""The numbers of a column: the pairs of its name and of its type, which is empty if the image is untyped."""


@inner
def cell_count(rows: Array, row: Int, map_index: Int) -> Int:
    """Returns how many cells an image has, with those that were not sent."""
    return rows[ENDS + map_index, row] - first_cell(rows, row, map_index)


@inner
def first_cell(rows: Array, row: Int, map_index: Int) -> Int:
    """Returns the index of the first cell of an image."""
    return rows[ENDS + map_index, row - 1] if row > 0 else np.int64(0)


@inner
def note_columns(
    rows: Array, cells: Array, dictionary: Array, row: Int, map_index: Int, columns: Array, begin: Int
) -> None:
    """Fills columns[begin:], int32[m, COLUMN_FIELDS], with those of an image."""
    is_typed = not rows[PRESENT, row] >> UNTYPED & 1
    is_complete = rows[PRESENT, row] >> (COMPLETE + map_index) & 1
    first = first_cell(rows, row, map_index)
    entry = rows[RELATION, row] + CELLS
    for step in range(cell_count(rows, row, map_index)):
        for part in range(PAIR):
            columns[begin + step, PAIR + part] = 0
            if is_complete:
                columns[begin + step, part] = dictionary[entry + CELL_NAME, part]
                if is_typed:
                    columns[begin + step, PAIR + part] = dictionary[entry + CELL_TYPE, part]
            else:
                columns[begin + step, part] = cells[map_index, NAME, first + step, part]
                if is_typed:
                    columns[begin + step, PAIR + part] = cells[map_index, TYPE, first + step, part]
        entry += CELL_ENTRIES


@inner
def find_columns(
    source: Array,
    text: Array,
    columns: Array,
    own: Int,
    own_count: Int,
    begin: Int,
    count: Int,
    found: Array,
    at: Int,
) -> bool:
    """Whether own_count columns from `own` on are among the `count` columns from `begin` on, about in their order.

    columns   int32[m, COLUMN_FIELDS]
    found     int32[k]: found[at:] is filled, for each of the `count` columns, with its index among the others, or -1
    """
    for step in range(count):
        found[at + step] = -1
    next_one, steps = np.int64(0), 2 * count  # many columns in another order would take their square
    for step in range(own_count):
        is_same = False
        while not is_same:
            if steps == 0:
                return False
            steps -= 1
            one, other = own + step, begin + next_one
            is_same = True
            for field in range(0, COLUMN_FIELDS, PAIR):
                start, length = np.int64(columns[one, field]), np.int64(columns[one, field + 1])
                its_start, its_length = np.int64(columns[other, field]), np.int64(columns[other, field + 1])
                is_same = is_same and same_text(source, text, start, length, its_start, its_length)
            which = next_one
            next_one = next_one + 1 if next_one + 1 < count else np.int64(0)
        if found[at + which] >= 0:
            return False
        found[at + which] = step
    return True


@inner
def has_unsent(rows: Array, cells: Array, row: Int, map_index: Int) -> bool:
    """Whether an image has a column that was not sent."""
    for cell in range(first_cell(rows, row, map_index), rows[ENDS + map_index, row]):
        if cells[map_index, VALUE, cell, 1] == UNCHANGED_LENGTH:
            return True
    return False
