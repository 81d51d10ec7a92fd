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
    """All places of these ranges, one behind the other, and for each which range it is of."""
    counts = stops - starts
    ends = np.cumsum(counts)
    of = np.repeat(np.arange(len(counts)), counts)
    return np.arange(len(of)) + (starts - ends + counts)[of], of


def taken(batch: pa.RecordBatch, places: Array) -> pa.RecordBatch:
    """The rows at these places; a filter is quicker, where it does."""
    if len(places) and (np.diff(places) > 0).all():
        first, last = int(places[0]), int(places[-1])
        wanted = np.zeros(last + 1 - first, bool)
        wanted[places - first] = True
        return batch.slice(first, len(wanted)).filter(pa.array(wanted))
    return batch.take(pa.array(places))


def gathered(batches: Mapping[int, pa.RecordBatch], which: Array, places: Array) -> Iterator[pa.RecordBatch]:
    """Rows of several batches in this order: one batch; more only where the rows do not fit into one.

    which, places   int64[n]: the batch of each row, and its place there
    Texts of more than 2 GiB do not fit, nor do dictionaries together that are larger than their indices can say.
    """
    sources = np.unique(which).tolist()
    if len(sources) == 1:
        yield taken(batches[sources[0]], places)
        return
    own = [np.flatnonzero(which == source) for source in sources]
    parts = [_some(batches[source], places[rows]) for source, rows in zip(sources, own, strict=True)]
    try:
        columns = [pa.concat_arrays([part.column(at) for part in parts]) for at in range(parts[0].num_columns)]
    except pa.ArrowException:
        middle = len(which) // 2
        for rows in (slice(0, middle), slice(middle, None)):
            yield from gathered(batches, which[rows], places[rows])
        return
    order = np.empty(len(which), np.int64)
    order[np.concatenate(own)] = np.arange(len(which))
    yield taken(pa.RecordBatch.from_arrays(columns, schema=parts[0].schema), order)


def _some(batch: pa.RecordBatch, places: Array) -> pa.RecordBatch:
    """The rows at these places; not copied where they are all."""
    return batch if np.array_equal(places, np.arange(len(batch))) else taken(batch, places)
