"""Arrays and record batches: type aliases, memory and its size, for modules that load no numba."""

from __future__ import annotations

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
