"""Old images that leave out columns, such as those that are NULL, completed: their rows have one layout, not many.

What such an image does not have is NULL in a typed table in any case. So it may have the columns of a whole image: of
the new one of its row, or, in a DELETE, of the last whole one of its table, if no row since then had other columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int, unused
from ..codes import codes_of_values, combined_codes, grouped
from ..jit.compiler import compiled, inner
from ..noted_texts import NotedTexts
from ..scan.notes import (
    COMPLETE,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    MAPS,
    NAME,
    NEW,
    OLD,
    PAIR,
    PRESENT,
    RELATION,
    TABLE_NAME,
    TABLE_SCHEMA,
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

    wholes   int64[n]: a row of the notes, whose new image has the columns of the completed one, where those that were
             not sent come last; -1 if the image stays as it is
    starts   int64[n]: where its values begin in `cells`
    cells    int32[m]: the cell of each column in the notes, -1 for one that is left out
    """

    wholes: Array
    starts: Array
    cells: Array

    def chosen(self, indices: Array) -> CompletedImages:
        """Returns those of some of the rows, int64[k]."""
        return self._replace(wholes=self.wholes[indices], starts=self.starts[indices])


def completed_layouts(scanned: ScannedRows, rows: Array) -> tuple[Array, Array, CompletedImages]:
    """Returns the number of the layout of each row, int64[n], the index of a row of each layout, and the old images.

    rows   int64[n]: rows of the notes, row changes
    """
    codes, samples = numbered_layouts(scanned, rows)
    wholes, starts, columns = np.full(len(rows), -1), np.zeros(len(rows), np.int64), np.empty(0, np.int32)
    if len(samples) > FEW_LAYOUTS:
        without_old = _numbered_without_old(scanned, samples)
        if len(samples) - int(without_old.max()) > FEW_LAYOUTS:
            tables = _numbered_tables(scanned, samples)[codes]
            last = np.full(int(tables.max()) + 1, -1)
            notes = scanned.rows, rows, scanned.cells, scanned.source, scanned.text, scanned.dictionary
            columns = unused(_find_wholes(*notes, tables, last, wholes), np.int32)
            _complete(*notes, tables, np.zeros(len(last), bool), wholes, starts, columns)
            own = without_old[codes]
            is_completed = wholes >= 0
            pairs = np.where(is_completed, len(samples) + own, codes), np.where(is_completed, own[wholes], 0)
            codes, wholes = combined_codes(pairs), np.where(is_completed, rows[wholes], -1)
    firsts, codes = grouped(codes)
    order = np.argsort(firsts)  # as the layouts occur
    return np.argsort(order)[codes], firsts[order], CompletedImages(wholes, starts, columns)


def _numbered_without_old(scanned: ScannedRows, samples: Array) -> Array:
    """Returns the number of the layout that each of these rows would have without its old image, int64[m]."""
    rows = scanned.rows[:, np.stack([np.maximum(samples - 1, 0), samples], axis=1).reshape(-1)]
    rows[ENDS : ENDS + len(MAPS), ::2] = np.where(samples > 0, rows[ENDS : ENDS + len(MAPS), ::2], 0)
    rows[ENDS + OLD] = 0
    rows[PRESENT] &= ~_OLD_BITS
    return numbered_layouts(scanned._replace(rows=rows), np.arange(1, 2 * len(samples), 2))[0]


def _numbered_tables(scanned: ScannedRows, samples: Array) -> Array:
    """Returns the number of the table of each of these rows, int64[m]."""
    names = [
        NotedTexts(scanned.rows[field : field + PAIR, samples].T.astype(np.int32), scanned.source, scanned.text)
        for field in (TABLE_SCHEMA, TABLE_NAME)
    ]
    return grouped(combined_codes([codes_of_values(pa.chunked_array([name.strings()])) for name in names]))[1]


@compiled
def _find_wholes(
    rows: Array,
    chosen: Array,
    cells: Array,
    source: Array,
    text: Array,
    dictionary: Array,
    tables: Array,
    last: Array,
    wholes: Array,
) -> Int:
    """Fills the index of the row whose new image may have the columns of the old image of each row.

    tables    int64[n]: the number of the table of each of the rows chosen
    last      int64[tables], -1: filled with the last row whose new image is whole
    wholes    int64[n], -1
    returns   how many cells `_complete` needs
    """
    total = np.int64(0)
    for index in range(len(chosen)):
        row, table = chosen[index], tables[index]
        present = rows[PRESENT, row]
        whole = last[table]
        if present >> (GIVEN + NEW) & 1:
            if not present >> HAS_UNCHANGED & 1:
                last[table] = index
            elif whole >= 0 and not _same_columns(rows, cells, source, text, dictionary, row, chosen[whole]):
                last[table] = -1
            whole = index
        if present >> (GIVEN + OLD) & 1 and whole >= 0:
            count = _cell_count(rows, chosen[whole], NEW)
            if _cell_count(rows, row, OLD) <= count:
                wholes[index] = whole
                total += 2 * count if present >> HAS_UNCHANGED & 1 else count
            elif whole != index:
                last[table] = -1
    return total


@compiled
def _complete(
    rows: Array,
    chosen: Array,
    cells: Array,
    source: Array,
    text: Array,
    dictionary: Array,
    tables: Array,
    is_other: Array,
    wholes: Array,
    starts: Array,
    columns: Array,
) -> None:
    """Fills starts[n] and columns[m] for old images that are part of a whole image; clears `wholes` of all others.

    tables, wholes   as `_find_wholes` leaves them
    is_other         bool[tables], False: whether an old image had other columns since the last whole image
    """
    used = np.int64(0)
    for index in range(len(chosen)):
        row, table, whole = chosen[index], tables[index], wholes[index]
        if rows[PRESENT, row] >> (GIVEN + NEW) & 1 and not rows[PRESENT, row] >> HAS_UNCHANGED & 1:
            is_other[table] = False
        if whole < 0:
            continue
        wholes[index] = -1
        if whole != index and is_other[table]:
            continue
        its_row = chosen[whole]
        if not _is_part(rows, cells, source, text, dictionary, row, its_row, columns, used):
            is_other[table] |= whole != index
        elif _cell_count(rows, row, OLD) < _cell_count(rows, its_row, NEW):
            count = _cell_count(rows, its_row, NEW)
            if rows[PRESENT, row] >> HAS_UNCHANGED & 1:
                _move_unsent(rows, cells, its_row, columns, used)
                used += count
            wholes[index], starts[index] = whole, used
            used += count


@inner
def _is_part(
    rows: Array,
    cells: Array,
    source: Array,
    text: Array,
    dictionary: Array,
    row: Int,
    whole: Int,
    columns: Array,
    used: Int,
) -> bool:
    """Whether the new image of another row has all columns of the old image, about in their order.

    columns   int32[m]: filled from `used` on, for each column of the new image with its cell in the old one, or -1
    """
    if (rows[PRESENT, row] ^ rows[PRESENT, whole]) >> UNTYPED & 1:
        return False
    count, begin = _cell_count(rows, whole, NEW), rows[ENDS + OLD, row - 1] if row > 0 else 0
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
            is_same = _same_column(rows, cells, source, text, dictionary, row, OLD, step, whole, column)
            found = column
            column = column + 1 if column + 1 < count else 0
        if columns[used + found] >= 0:
            return False
        columns[used + found] = begin + step
    return True


@inner
def _same_columns(
    rows: Array, cells: Array, source: Array, text: Array, dictionary: Array, row: Int, other: Int
) -> bool:
    """Whether two new images have the same columns, sent or not, in the same order."""
    count = _cell_count(rows, row, NEW)
    if count != _cell_count(rows, other, NEW) or (rows[PRESENT, row] ^ rows[PRESENT, other]) >> UNTYPED & 1:
        return False
    for index in range(count):
        if not _same_column(rows, cells, source, text, dictionary, row, NEW, index, other, index):
            return False
    return True


@inner
def _same_column(
    rows: Array,
    cells: Array,
    source: Array,
    text: Array,
    dictionary: Array,
    row: Int,
    map_index: Int,
    index: Int,
    whole: Int,
    column: Int,
) -> bool:
    """Whether a cell of an image and one of a new image have the same name and type; both images have types or none."""
    for field in (NAME, TYPE):
        if field == NAME or not rows[PRESENT, row] >> UNTYPED & 1:
            start, length = _noted(rows, cells, dictionary, row, map_index, field, index)
            other, other_length = _noted(rows, cells, dictionary, whole, NEW, field, column)
            if not same_text(source, text, start, length, other, other_length):
                return False
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
