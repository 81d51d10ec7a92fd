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


def spliced(scanned: pa.RecordBatch, built: pa.RecordBatch | None, origins: Array) -> Iterator[pa.RecordBatch]:
    """Yields rows of two batches: a few ranges as slices, more of them as one batch.

    scanned, built   the rows that the scan and the declaration read
    origins          int64[n]: for each row, its row in `scanned`, or ~ its row in `built`
    """
    batches = [scanned] if built is None else [scanned, built]
    signs = np.where(origins < 0, -1, 1)  # the rows of a range follow each other in the same batch
    is_first = np.diff(origins, prepend=0) != signs
    is_first[:1] = True
    is_first[1:] |= signs[1:] != signs[:-1]
    firsts = np.flatnonzero(is_first)
    if len(firsts) <= MOST_COPIED_RANGES:
        counts = np.diff(firsts, append=len(origins))
        slices = [
            (scanned if first >= 0 else batches[-1]).slice(max(first, ~first), count)
            for first, count in zip(origins[firsts].tolist(), counts.tolist(), strict=True)
        ]
        if len(slices) <= MOST_SLICES:
            yield from slices
            return
        columns = [pa.concat_arrays(ranges) for ranges in zip(*(rows.columns for rows in slices), strict=True)]
    else:
        order = np.where(origins < 0, scanned.num_rows + ~origins, origins)
        indices = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)])
        both = [pa.concat_arrays(pair) for pair in zip(*(batch.columns for batch in batches), strict=True)]
        columns = [array.take(indices) for array in both]
    yield pa.RecordBatch.from_arrays(columns, schema=scanned.schema)
