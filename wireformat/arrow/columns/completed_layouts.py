"""The layouts of row changes in the notes, of which old images that leave out columns are completed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, Int, unused
from ..codes import grouped
from ..jit.compiler import compiled, inner
from ..scan.notes import (
    COMPLETE,
    DELETE,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    IMAGE_BITS,
    KIND,
    MAPS,
    NEW,
    OLD,
    PRESENT,
    UNCHANGED_LENGTH,
    VALUE,
    ScannedRows,
)
from .completed_deletes import CompletedDeletes, LastColumns, completed_deletes
from .completed_images import (
    COLUMN_FIELDS,
    CompletedImages,
    cell_count,
    find_columns,
    first_cell,
    has_unsent,
    note_columns,
)
from .layouts import numbered_layouts

FEW_LAYOUTS = 32
"""So many layouts may differ in their old images alone before these are completed, which takes time for each row."""

_OLD_BITS = 1 << GIVEN + OLD | 1 << COMPLETE + OLD


class CompletedLayouts(NamedTuple):
    """The layouts of rows, with completed old images.

    codes     int64[n]: the number of the layout of each row
    samples   int64[m]: the index of a row of each layout
    images    the old images. Those of UPDATEs have the columns of the new image, those first that were sent
    deletes   the columns of those of DELETEs; None if none of these are completed
    has_many_deletes   whether DELETEs have so many layouts that they would be completed
    """

    codes: Array
    samples: Array
    images: CompletedImages
    deletes: CompletedDeletes | None
    has_many_deletes: bool


def completed_layouts(scanned: ScannedRows, rows: Array, last: LastColumns | None) -> CompletedLayouts:
    """Returns the layouts of rows.

    rows   int64[n]: rows of the notes, row changes
    last   of the rows before; None if these are not all rows of their tables, in their order
    """
    codes, samples = numbered_layouts(scanned, rows)
    starts, counts = np.zeros((2, len(rows)), np.int64)
    images = CompletedImages(np.zeros(len(rows), bool), starts, counts, np.empty(0, np.int32))
    deletes, has_many_deletes = None, False
    if len(samples) > FEW_LAYOUTS:
        without_old = _numbered_without_old(scanned, samples)
        has_many = (np.bincount(without_old) > FEW_LAYOUTS)[without_old]
        are_deletes = has_many & (scanned.rows[KIND, samples] == DELETE)
        if has_many.any():
            images.chosen[:] = (has_many & ~are_deletes)[codes]
            images = _completed_updates(scanned, rows, images)
            has_many_deletes = bool(are_deletes.any())
            if last is not None and has_many_deletes:
                deletes = completed_deletes(scanned, rows, codes, samples, are_deletes, last)
            codes = np.where(images.chosen, len(samples) + without_old[codes], codes)
        if deletes is not None:
            images = images.joined(deletes.images)
            codes = np.where(deletes.images.chosen, 2 * len(samples) + deletes.starts, codes)
    firsts, codes = grouped(codes)
    order = np.argsort(firsts)  # as the layouts occur
    return CompletedLayouts(np.argsort(order)[codes], firsts[order], images, deletes, has_many_deletes)


def _numbered_without_old(scanned: ScannedRows, samples: Array) -> Array:
    """Returns the number of the layout that each of these rows would have without its old image, int64[m]."""
    rows = scanned.rows[:, np.stack([np.maximum(samples - 1, 0), samples], axis=1).reshape(-1)]
    rows[ENDS : ENDS + len(MAPS), ::2] = np.where(samples > 0, rows[ENDS : ENDS + len(MAPS), ::2], 0)
    rows[ENDS + OLD] = 0
    rows[PRESENT] &= ~_OLD_BITS
    return numbered_layouts(scanned._replace(rows=rows), np.arange(1, 2 * len(samples), 2))[0]


def _completed_updates(scanned: ScannedRows, rows: Array, images: CompletedImages) -> CompletedImages:
    """Completes the old images that are chosen, of rows that have both, and whose old image is part of the new one."""
    needed, widest = _choose(scanned.rows, rows, images.chosen)
    cells, columns = unused(needed, np.int32), unused((2 * widest, COLUMN_FIELDS), np.int32)
    notes = scanned.rows, rows, scanned.cells, scanned.source, scanned.text, scanned.dictionary
    _complete(*notes, *images[:-1], cells, columns)
    return images._replace(cells=cells)


@compiled
def _choose(rows: Array, chosen_rows: Array, chosen: Array) -> tuple[Int, Int]:
    """Clears chosen[n] for rows whose old image has all columns of the new one, or none, or that lack an image.

    Returns how many cells `_complete` needs, and the most columns of an image.
    """
    total = widest = np.int64(0)
    for index in range(len(chosen)):
        row = chosen_rows[index]
        present = rows[PRESENT, row]
        count, own = cell_count(rows, row, NEW), cell_count(rows, row, OLD)
        chosen[index] &= present >> GIVEN & IMAGE_BITS == IMAGE_BITS and own > 0 and own < count
        if chosen[index]:
            total += 2 * count if present >> HAS_UNCHANGED & 1 else count
            widest = max(widest, count)
    return total, widest


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
    counts: Array,
    found: Array,
    columns: Array,
) -> None:
    """Fills starts[n], counts[n] and found[m] for old images that are part of the new one; clears chosen[n] for others.

    columns   int32[at least twice those of an image, COLUMN_FIELDS]
    """
    used = np.int64(0)
    for index in range(len(chosen)):
        if not chosen[index]:
            continue
        row = chosen_rows[index]
        count, own = cell_count(rows, row, NEW), cell_count(rows, row, OLD)
        note_columns(rows, cells, dictionary, row, NEW, columns, 0)
        note_columns(rows, cells, dictionary, row, OLD, columns, count)
        chosen[index] = not has_unsent(rows, cells, row, OLD) and find_columns(
            source, text, columns, count, own, 0, count, found, used
        )
        if chosen[index]:
            for step in range(count):
                if found[used + step] >= 0:
                    found[used + step] += first_cell(rows, row, OLD)
            if rows[PRESENT, row] >> HAS_UNCHANGED & 1:
                _move_unsent(rows, cells, row, found, used)
                used += count
            starts[index], counts[index] = used, count
            used += count


@inner
def _move_unsent(rows: Array, cells: Array, row: Int, columns: Array, used: Int) -> None:
    """Fills the columns that follow those of a new image with the same, but first those that were sent."""
    count, begin = cell_count(rows, row, NEW), first_cell(rows, row, NEW)
    to = used + count
    for is_unsent in range(2):
        for step in range(count):
            if (cells[NEW, VALUE, begin + step, 1] == UNCHANGED_LENGTH) == is_unsent:
                columns[to] = columns[used + step]
                to += 1
