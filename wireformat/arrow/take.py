"""Rows and values at given indices, in any order and of any number: `take` of Arrow joins all texts in one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import Array

MOST_ROWS = 1 << 16
MOST_BYTES = 1 << 30
"""The largest chunk of a column that is taken. Arrow's offsets of texts end at 2 GiB."""


def take_rows(table: pa.Table, indices: Array, sources: Mapping[str, Array] | None = None) -> pa.Table:
    """Returns rows of a table.

    indices   int64[n]
    sources   other indices for the values of some columns; -1 is null
    """
    of_column = sources or {}
    columns = [take_values(table[name], of_column.get(name, indices)) for name in table.column_names]
    return pa.Table.from_arrays(columns, schema=table.schema)


def take_values(column: pa.ChunkedArray, indices: Array) -> pa.ChunkedArray:
    """Returns values of a column; -1 is null."""
    chunks = list(column.chunks)
    if (indices < 0).any():
        indices = np.where(indices < 0, len(column), indices)
        chunks.append(pa.nulls(1, column.type))
    starts = np.cumsum([0, *map(len, chunks)])
    pieces = [
        piece
        for first in range(0, len(indices), MOST_ROWS)
        for piece in _taken(chunks, starts, indices[first : first + MOST_ROWS])
    ]
    return pa.chunked_array(pieces, column.type)


def _taken(chunks: Sequence[Any], starts: Array, indices: Array) -> Iterator[pa.Array]:
    """Yields values of an array in chunks: in one array, or in several if their texts are long."""
    order = None if (indices[1:] >= indices[:-1]).all() else np.argsort(indices, kind="stable")
    in_order = indices if order is None else indices[order]
    bounds: Array = np.searchsorted(in_order, starts)
    found = [
        chunks[chunk].take(pa.array(in_order[bounds[chunk] : bounds[chunk + 1]] - starts[chunk]))
        for chunk in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist()
    ]
    if len(found) > 1 and len(indices) > 1 and sum(piece.nbytes for piece in found) > MOST_BYTES:
        middle = len(indices) // 2
        yield from _taken(chunks, starts, indices[:middle])
        yield from _taken(chunks, starts, indices[middle:])
        return
    values = found[0] if len(found) == 1 else pa.concat_arrays(found)
    yield values if order is None else values.take(pa.array(np.argsort(order)))
