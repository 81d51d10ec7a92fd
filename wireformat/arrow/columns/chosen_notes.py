"""The notes of some rows of a scan, without those of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, Int
from ..jit.compiler import compiled
from ..scan.notes import (
    CELL_FIELDS,
    COMPLETE,
    DETAIL,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    MAPS,
    NEW,
    PRESENT,
    UNTYPED,
    ScannedRows,
)

_BITS_OF_IMAGES = 3 << (GIVEN + NEW) | 1 << HAS_UNCHANGED | 3 << (COMPLETE + NEW) | 1 << UNTYPED
"""What PRESENT says of the maps NEW and OLD."""


def chosen_notes(
    scanned: ScannedRows, rows: Array, maps: Sequence[int], fields: Sequence[int] | None = None
) -> ScannedRows:
    """Returns these rows of the notes, int64[n], ascending, without the cells of other maps.

    maps     NEW and OLD, or DETAIL, or all
    fields   the fields that are read of the rows, beside PRESENT and the ends of the maps; None for all

    Cells are copied only if some cells of these maps are left out.
    """
    if len(rows) == scanned.row_count:
        return scanned
    if fields is None:
        chosen = np.take(scanned.rows, rows, axis=1)
        chosen[ENDS : ENDS + len(MAPS)] = 0
    else:
        chosen = np.zeros((len(scanned.rows), len(rows)), np.int64)
        for field in (PRESENT, *fields):
            chosen[field] = scanned.rows[field, rows]
    chosen[PRESENT] &= ~((0 if NEW in maps else _BITS_OF_IMAGES) | (0 if DETAIL in maps else 1 << (GIVEN + DETAIL)))
    own_cells, are_moved, most = [], False, 0
    for map_index in maps:
        ends = scanned.rows[ENDS + map_index]
        firsts = np.where(rows > 0, ends[rows - 1], 0)
        counts = ends[rows] - firsts
        chosen[ENDS + map_index] = np.cumsum(counts)
        own_cells.append((map_index, firsts, counts))
        are_moved = are_moved or bool((firsts != chosen[ENDS + map_index] - counts).any())
        most = max(most, int(counts.sum()))
    kept = scanned._replace(rows=chosen, row_count=len(rows), events={})
    if not are_moved:
        return kept
    cells = np.empty((*scanned.cells.shape[:2], most, 2), np.int32)
    for map_index, firsts, counts in own_cells:
        _copy_cells(scanned.cells, map_index, firsts, counts, cells)
    return kept._replace(cells=cells)


@compiled
def _copy_cells(cells: Array, map_index: Int, firsts: Array, counts: Array, copied: Array) -> None:
    """Copies the cells of some rows of a map, from firsts[n] on and counts[n] of each, to the beginning of `copied`."""
    used = 0
    for row in range(len(firsts)):
        for cell in range(firsts[row], firsts[row] + counts[row]):
            for field in range(CELL_FIELDS):
                copied[map_index, field, used, 0] = cells[map_index, field, cell, 0]
                copied[map_index, field, used, 1] = cells[map_index, field, cell, 1]
            used += 1
