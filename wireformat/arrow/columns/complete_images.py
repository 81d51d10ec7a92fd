"""Complete images have every column of their relation. The scan notes only their values, not their names and types.

In such a row the bit COMPLETE + map index of PRESENT is 1, and RELATION is the relation's entry in the dictionary; see
scan/dictionary.py. The names of a relation follow each other in the text, and so do its types.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int, unused
from ..jit.compiler import compiled
from ..jit.intrinsics import BLOCK, copy_block
from ..scan.dictionary import CELL_ENTRIES, CELL_NAME, CELL_TYPE, CELLS
from ..scan.notes import COMPLETE, ENDS, GIVEN, IMAGE_BITS, NAME, NEW, OLD, PAIR, PRESENT, RELATION, TYPE, UNTYPED
from .row_limits import check_text

if TYPE_CHECKING:
    from ..scan.notes import ScannedRows

_ENTRY_OF_FIELD = {NAME: CELL_NAME, TYPE: CELL_TYPE}


@partial(compiled, by_byte=True)
def _measure_names(
    rows: Array, count: Int, map_index: Int, cells: Array, dictionary: Array, entry: Int, offsets: Array, ends: Array
) -> Int:
    """Fills offsets[n + 1] with the offsets of the names or types of all cells.

    map_index   index in MAPS; -1: the new image of each row, or the old one if there is no new image
    cells       int32[maps, n, 2]: the pairs of the names or types of images that are not complete
    entry       CELL_NAME or CELL_TYPE
    ends        int32[count], filled: one past the row's last cell
    returns     how many bytes of text there are; the offsets are only valid if this fits in an int32
    """
    total = np.int64(0)
    used = np.uint64(0)  # indices without a sign are not counted from the end
    for row in range(count):
        chosen = map_index if map_index >= 0 else NEW if rows[PRESENT, row] >> (GIVEN + NEW) & 1 else OLD
        begin = rows[ENDS + chosen, row - 1] if row > 0 else 0
        end = rows[ENDS + chosen, row]
        if rows[PRESENT, row] >> (COMPLETE + chosen) & 1:
            column = np.uint64(rows[RELATION, row] + CELLS + entry)
            for _ in range(begin, end):
                offsets[used] = total
                used += np.uint64(1)
                total += np.int64(dictionary[column, 1])
                column += np.uint64(CELL_ENTRIES)
        else:
            for cell in range(begin, end):
                offsets[used] = total
                used += np.uint64(1)
                total += np.int64(cells[chosen, cell, 1])
        ends[row] = used
    offsets[used] = total
    return total


@partial(compiled, by_byte=True)
def _copy_names(
    rows: Array,
    count: Int,
    map_index: Int,
    cells: Array,
    dictionary: Array,
    entry: Int,
    offsets: Array,
    source: Array,
    text: Array,
    target: Array,
) -> None:
    """Copies the names or types that `_measure_names` has measured into target, in blocks as in the gather."""
    used = np.int64(0)
    for row in range(count):
        chosen = map_index if map_index >= 0 else NEW if rows[PRESENT, row] >> (GIVEN + NEW) & 1 else OLD
        begin = rows[ENDS + chosen, row - 1] if row > 0 else 0
        end = rows[ENDS + chosen, row]
        is_complete = rows[PRESENT, row] >> (COMPLETE + chosen) & 1
        cell = begin
        while cell < end:
            first = dictionary[rows[RELATION, row] + CELLS + entry, 0] if is_complete else cells[chosen, cell, 0]
            start = np.int64(first)
            cells_at_once = end - begin if is_complete else 1
            to = np.int64(offsets[used])
            length = np.int64(offsets[used + cells_at_once]) - to
            if start < 0:
                for step in range(0, length, BLOCK):
                    copy_block(target, to + step, text, ~start + step)
            else:
                for step in range(length):
                    target[to + step] = source[start + step]
            cell += cells_at_once
            used += cells_at_once


@compiled
def _expand(rows: Array, count: Int, cells: Array, dictionary: Array) -> None:
    """Notes the names and types of complete images cell by cell, and clears their COMPLETE bits."""
    for row in range(count):
        for map_index in range(NEW, OLD + 1):
            if rows[PRESENT, row] >> (COMPLETE + map_index) & 1:
                column = rows[RELATION, row] + CELLS
                is_typed = rows[PRESENT, row] >> UNTYPED & 1 == 0
                for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                    for part in range(PAIR):
                        cells[map_index, NAME, cell, part] = dictionary[column + CELL_NAME, part]
                        if is_typed:
                            cells[map_index, TYPE, cell, part] = dictionary[column + CELL_TYPE, part]
                    column += CELL_ENTRIES
                rows[PRESENT, row] &= ~(1 << (COMPLETE + map_index))


def has_complete(rows: Array) -> bool:
    """Whether any of the rows has a complete image."""
    return bool((rows[PRESENT] >> COMPLETE & IMAGE_BITS).any())


def expand_complete_images(rows: Array, count: int, cells: Array, dictionary: Array) -> None:
    """Notes the names and types of complete images cell by cell, for code that reads single cells."""
    if has_complete(rows[:, :count]):
        _expand(rows, count, cells, dictionary)


def names_of_complete(scanned: ScannedRows, map_index: int, field: int, most: int) -> tuple[pa.Array, Array]:
    """Returns the names or types of the cells of one map as a string column; raises the errors of `check_text`.

    map_index   index in MAPS; -1: the new image of each row, or the old one if there is no new image
    field       NAME or TYPE
    most        the largest number of cells
    returns     also int32[n]: for each row, one past its last cell
    """
    pairs, entry = scanned.cells[:, field], _ENTRY_OF_FIELD[field]
    offset_buffer = pa.allocate_buffer(4 * (most + 1))
    offsets, ends = np.frombuffer(offset_buffer, np.int32), unused(scanned.row_count, np.int32)
    images = scanned.rows, scanned.row_count, map_index, pairs, scanned.dictionary, entry, offsets
    size = check_text(scanned, int(_measure_names(*images, ends)))
    data = pa.allocate_buffer(size + BLOCK, resizable=True)
    _copy_names(*images, scanned.source, scanned.text, np.frombuffer(data, np.uint8))
    data.resize(size, shrink_to_fit=False)
    return pa.Array.from_buffers(pa.string(), int(ends[-1]), [None, offset_buffer, data], 0), ends
