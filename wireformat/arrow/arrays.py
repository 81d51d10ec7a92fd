"""Arrays and record batches: type aliases, memory and its size, rows at any indices, for modules that load no numba."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Int = Any
"""int64 in compiled code; an int or a numpy.int64 where the same function runs uncompiled."""

Array = Any
"""A numpy array; the docstring of its function says of what."""


def read_only(array: Array) -> Array:
    """The same array, as the one type that the scan is compiled for."""
    array.flags.writeable = False
    return array


def unused(shape: int | tuple[int, ...], dtype: type[np.generic]) -> Array:
    """Returns an array whose values are not set, in Arrow's memory, which is used again; numpy's would be new pages."""
    size = prod(shape) if isinstance(shape, tuple) else shape
    return np.ndarray(shape, dtype, pa.allocate_buffer(int(size) * np.dtype(dtype).itemsize))


def unsigned_values(column: pa.Array) -> tuple[Array, Array]:
    """Returns uint64[n]: the values of an int64 column as unsigned numbers, 0 for null; bool[n]: which are there."""
    return np.asarray(column.fill_null(0)).view(np.uint64), np.asarray(column.is_valid())


_IF_ELSE_NEEDS_COPY = int(pa.__version__.partition(".")[0]) < 24
"""Whether if_else gives wrong texts for a slice of an array: https://github.com/apache/arrow/issues/49410"""


def null_where(flags: Array | pa.BooleanArray, values: pa.Array) -> pa.Array:
    """Returns the values, null where a flag is true."""
    if _IF_ELSE_NEEDS_COPY:
        values = pa.concat_arrays([values])
    return pc.if_else(pa.array(flags) if isinstance(flags, np.ndarray) else flags, pa.scalar(None, values.type), values)


_COLUMN_BYTES = 512
"""About what a column takes beside its values: the most, by far, where a batch has few rows."""


def batch_size(batch: pa.RecordBatch) -> int:
    """Returns about how many bytes a record batch takes in memory, with what describes its columns."""
    try:
        size = batch.nbytes
    except pa.ArrowTypeError:  # older versions of pyarrow do not know the size of a slice of views
        size = batch.get_total_buffer_size()
    return int(size) + _COLUMN_BYTES * batch.num_columns


TAKEN_ROWS = 1 << 16
TAKEN_BYTES = 1 << 30
"""The largest chunk of a column that is taken. Arrow's offsets of texts end at 2 GiB."""


def take_rows(table: pa.Table, indices: Array, sources: Mapping[str, Array] | None = None) -> pa.Table:
    """Returns rows of a table, in any order and of any number: `take` of Arrow joins all texts in one array.

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
        for first in range(0, len(indices), TAKEN_ROWS)
        for piece in _taken(chunks, starts, indices[first : first + TAKEN_ROWS])
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
    if len(found) > 1 and len(indices) > 1 and sum(piece.nbytes for piece in found) > TAKEN_BYTES:
        middle = len(indices) // 2
        yield from _taken(chunks, starts, indices[:middle])
        yield from _taken(chunks, starts, indices[middle:])
        return
    values = found[0] if len(found) == 1 else pa.concat_arrays(found)
    yield values if order is None else values.take(pa.array(np.argsort(order)))
