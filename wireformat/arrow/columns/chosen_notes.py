"""The notes of some rows of a scan, without those of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..scan.notes import COMPLETE, DETAIL, ENDS, GIVEN, HAS_UNCHANGED, MAPS, NEW, PRESENT, UNTYPED, ScannedRows

_BITS_OF_IMAGES = 3 << (GIVEN + NEW) | 1 << HAS_UNCHANGED | 3 << (COMPLETE + NEW) | 1 << UNTYPED
"""What PRESENT says of the maps NEW and OLD."""


def chosen_notes(scanned: ScannedRows, rows: Array, maps: Sequence[int]) -> ScannedRows:
    """Returns these rows of the notes, int64[n], ascending, without the cells of other maps.

    maps   NEW and OLD, or DETAIL, or all

    Cells are copied only if some cells of these maps are left out.
    """
    if len(rows) == scanned.row_count:
        return scanned
    chosen = np.take(scanned.rows, rows, axis=1)
    firsts = [np.where(rows > 0, scanned.rows[ENDS + map_index, rows - 1], 0) for map_index in maps]
    counts = [chosen[ENDS + map_index] - first for map_index, first in zip(maps, firsts, strict=True)]
    chosen[ENDS : ENDS + len(MAPS)] = 0
    chosen[PRESENT] &= ~((0 if NEW in maps else _BITS_OF_IMAGES) | (0 if DETAIL in maps else 1 << (GIVEN + DETAIL)))
    shifts = []  # how far the cells of each row move
    for map_index, first, count in zip(maps, firsts, counts, strict=True):
        chosen[ENDS + map_index] = np.cumsum(count)
        shifts.append(first - chosen[ENDS + map_index] + count)
    kept = scanned._replace(rows=chosen, row_count=len(rows), events={})
    if not any(shift.any() for shift in shifts):
        return kept
    totals = [int(count.sum()) for count in counts]
    cells = np.empty((*scanned.cells.shape[:2], max(totals), 2), np.int32)
    for map_index, total, count, shift in zip(maps, totals, counts, shifts, strict=True):
        cells[map_index, :, :total] = scanned.cells[map_index][:, np.arange(total) + np.repeat(shift, count)]
    return kept._replace(cells=cells)
