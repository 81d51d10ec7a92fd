"""Joins rows that the scan read and rows that the declaration read, in their order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ..arrays import Array

MOST_SLICES = 8
"""Up to this number of ranges, each range becomes a record batch of its own, and no row is copied."""

MOST_COPIED_RANGES = 100
"""Up to this number of ranges it is faster to copy whole ranges than to gather single rows."""

BatchSlice = tuple[pa.RecordBatch, int, int]
"""Rows of a batch: the first row, and one past the last."""


def joined(ranges: list[BatchSlice]) -> list[BatchSlice]:
    """Joins ranges that follow each other in the same batch."""
    joined: list[BatchSlice] = []
    for source, start, stop in ranges:
        if joined and joined[-1][0] is source and joined[-1][2] == start:
            joined[-1] = (source, joined[-1][1], stop)
        else:
            joined.append((source, start, stop))
    return joined


def spliced(ranges: list[BatchSlice], scanned: pa.RecordBatch, built: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields ranges of two batches in this order: a few as slices, more of them as one batch.

    scanned, built   the rows that the scan and the declaration read
    """
    if len(ranges) <= MOST_SLICES:
        yield from (source.slice(start, stop - start) for source, start, stop in ranges)
        return
    schema = scanned.schema
    if len(ranges) <= MOST_COPIED_RANGES:
        slices = [source.slice(start, stop - start) for source, start, stop in ranges]
        columns = [pa.concat_arrays([rows.column(column) for rows in slices]) for column in range(len(schema))]
    else:
        shift = scanned.num_rows
        firsts = np.array([start + (shift if source is built else 0) for source, start, _ in ranges])
        counts = np.array([stop - start for _, start, stop in ranges])
        ends = np.cumsum(counts)
        order = np.arange(ends[-1]) + np.repeat(firsts - ends + counts, counts)
        indices = _indices(order)
        both = [pa.concat_arrays([scanned.column(column), built.column(column)]) for column in range(len(schema))]
        columns = [array.take(indices) for array in both]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def without_rows(batch: pa.RecordBatch, rows: Array) -> list[pa.RecordBatch]:
    """Returns the rows of a batch but these, as one batch or as a few slices."""
    rows = np.sort(rows)
    if len(rows) < MOST_SLICES:
        begins, ends = [0, *(rows + 1).tolist()], [*rows.tolist(), batch.num_rows]
        return [batch.slice(begin, end - begin) for begin, end in zip(begins, ends, strict=True) if begin < end]
    is_kept = np.ones(batch.num_rows, np.bool_)
    is_kept[rows] = False
    return [batch.take(_indices(np.flatnonzero(is_kept)))]


def _indices(rows: Array) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)])
