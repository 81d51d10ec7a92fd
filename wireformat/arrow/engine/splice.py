"""Rows that the scan read and rows that the declaration read, put together in their order."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

FEW_PARTS, MOST_PARTS = 8, 100
"""Up to how many parts rows stay where they are, and up to how many it is faster to copy parts than to gather rows."""

RowRange = tuple[pa.RecordBatch, int, int]
"""Rows of a batch, from, to."""


def joined(parts: list[RowRange]) -> list[RowRange]:
    """The same parts, those that follow each other in one batch as one."""
    joined: list[RowRange] = []
    for source, start, stop in parts:
        if joined and joined[-1][0] is source and joined[-1][2] == start:
            joined[-1] = (source, joined[-1][1], stop)
        else:
            joined.append((source, start, stop))
    return joined


def spliced(parts: list[RowRange], batch: pa.RecordBatch, built: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Parts of two batches in their order: few as they are, others in one batch."""
    if len(parts) <= FEW_PARTS:
        yield from (source.slice(start, stop - start) for source, start, stop in parts)
        return
    schema = batch.schema
    if len(parts) <= MOST_PARTS:
        pieces = [source.slice(start, stop - start) for source, start, stop in parts]
        columns = [pa.concat_arrays([piece.column(column) for piece in pieces]) for column in range(len(schema))]
    else:
        shift = batch.num_rows
        order = [row + (shift if source is built else 0) for source, *rows in parts for row in range(*rows)]
        indices = pa.array(order, pa.int64())
        whole = [pa.concat_arrays([batch.column(column), built.column(column)]) for column in range(len(schema))]
        columns = [array.take(indices) for array in whole]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)
