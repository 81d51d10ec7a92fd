"""Ranges of rows in several batches, and such rows as one batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from ..arrays import Array

HERE = -1
"""The batch that is being read; held ones are numbered from 0."""

RowRange = tuple[int, int, int]
"""Rows of a batch: HERE or the number of a held one, the first row, and the one behind the last."""


def spread(starts: Array, stops: Array) -> tuple[Array, Array]:
    """The row indices of these ranges, one range after the other, and for each index its range."""
    counts = stops - starts
    ends = np.cumsum(counts)
    of = np.repeat(np.arange(len(counts)), counts)
    return np.arange(len(of)) + (starts - ends + counts)[of], of


def taken(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    """The rows at these indices. Where they rise a filter is used, which is quicker."""
    if len(rows) and (np.diff(rows) > 0).all():
        first, last = int(rows[0]), int(rows[-1])
        wanted = np.zeros(last + 1 - first, bool)
        wanted[rows - first] = True
        return batch.slice(first, len(wanted)).filter(pa.array(wanted))
    return batch.take(pa.array(rows))


def gathered(batches: Mapping[int, pa.RecordBatch], which: Array, rows: Array) -> Iterator[pa.RecordBatch]:
    """Rows of several batches in this order: one batch; more only where the rows do not fit into one.

    which, rows   int64[n]: the batch of each row, and its index there
    Texts of more than 2 GiB do not fit, nor do dictionaries together that are larger than their indices can say.
    """
    sources = np.unique(which).tolist()
    if len(sources) == 1:
        yield taken(batches[sources[0]], rows)
        return
    own = [np.flatnonzero(which == source) for source in sources]
    chosen = [_some(batches[source], rows[mine]) for source, mine in zip(sources, own, strict=True)]
    try:
        columns = [
            pa.concat_arrays([batch.column(column) for batch in chosen]) for column in range(chosen[0].num_columns)
        ]
    except pa.ArrowException:
        middle = len(which) // 2
        for half in (slice(0, middle), slice(middle, None)):
            yield from gathered(batches, which[half], rows[half])
        return
    order = np.empty(len(which), np.int64)
    order[np.concatenate(own)] = np.arange(len(which))
    yield taken(pa.RecordBatch.from_arrays(columns, schema=chosen[0].schema), order)


def _some(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    """The rows at these indices; the batch itself where these are all."""
    return batch if np.array_equal(rows, np.arange(len(batch))) else taken(batch, rows)
