"""Row ranges in several batches, and their rows as one batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from ..arrays import Array

CURRENT_BATCH = -1
"""The number of the batch that is being read; held batches are numbered from 0."""

RowRange = tuple[int, int, int]
"""Rows of a batch: the number of the batch, the first row, and one past the last row."""


def row_indices(starts: Array, stops: Array) -> tuple[Array, Array]:
    """Returns the indices of all rows of these ranges, one range after the other, and the range of each row."""
    counts = stops - starts
    ends = np.cumsum(counts)
    range_of = np.repeat(np.arange(len(counts)), counts)
    return np.arange(len(range_of)) + (starts - ends + counts)[range_of], range_of


_MANY_OF = 8
"""Ranges with an eighth of all rows have many of them: then passes over all rows are faster than indices."""


def chosen_indices(starts: Array, stops: Array, is_chosen: Array) -> tuple[Array, Array]:
    """Returns the indices of the chosen rows of these ranges, one range after the other, and the range of each row.

    is_chosen   bool[n]: of all rows
    """
    has_few = _MANY_OF * int((stops - starts).sum()) < len(is_chosen)
    if has_few or (starts[1:] < stops[:-1]).any():
        indices, range_of = row_indices(starts, stops)
        is_chosen = is_chosen[indices]
        return indices[is_chosen], range_of[is_chosen]
    # the ranges are in the order of the rows
    steps = np.zeros(len(is_chosen) + 1, np.int8)
    has_rows = starts < stops
    steps[starts[has_rows]] += 1
    steps[stops[has_rows]] -= 1  # the next range may begin there
    indices = np.flatnonzero(is_chosen & np.cumsum(steps[:-1], dtype=np.int8).view(bool))
    counts = np.searchsorted(indices, stops) - np.searchsorted(indices, starts)
    return indices, np.repeat(np.arange(len(starts)), counts)


def taken(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    """Returns the rows at these indices. If the indices are ascending, a filter is used, which is faster."""
    if len(rows) and (np.diff(rows) > 0).all():
        first, last = int(rows[0]), int(rows[-1])
        wanted = np.zeros(last + 1 - first, bool)
        wanted[rows - first] = True
        return batch.slice(first, len(wanted)).filter(pa.array(wanted))
    return batch.take(pa.array(rows))


def gathered(batches: Mapping[int, pa.RecordBatch], batch_of: Array, rows: Array) -> Iterator[pa.RecordBatch]:
    """Yields rows of several batches, in this order: as one batch, or as more if they do not fit in one.

    batch_of, rows   int64[n]: the number of each row's batch, and the row's index in it

    Rows do not fit if they have more than 2 GiB of text, or dictionaries that are together too large for their indices.
    """
    sources = np.unique(batch_of).tolist()
    if len(sources) == 1:
        yield _chosen(batches[sources[0]], rows)
        return
    of_sources = [np.flatnonzero(batch_of == source) for source in sources]
    chosen = [_chosen(batches[source], rows[own]) for source, own in zip(sources, of_sources, strict=True)]
    try:
        columns = [
            pa.concat_arrays([batch.column(column) for batch in chosen]) for column in range(chosen[0].num_columns)
        ]
    except pa.ArrowException:
        middle = len(batch_of) // 2
        for half in (slice(0, middle), slice(middle, None)):
            yield from gathered(batches, batch_of[half], rows[half])
        return
    order = np.empty(len(batch_of), np.int64)
    order[np.concatenate(of_sources)] = np.arange(len(batch_of))
    yield taken(pa.RecordBatch.from_arrays(columns, schema=chosen[0].schema), order)


def _chosen(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    """Returns the rows at these indices, and the batch itself if these are all of its rows."""
    return batch if np.array_equal(rows, np.arange(len(batch))) else taken(batch, rows)
