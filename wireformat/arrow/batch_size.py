"""About how many bytes a record batch takes in memory."""

from __future__ import annotations

import pyarrow as pa

_COLUMN_BYTES = 512
"""About what a column takes beside its values: the most, by far, where a batch has few rows."""


def batch_size(batch: pa.RecordBatch) -> int:
    """Returns about how many bytes a record batch takes in memory, with what describes its columns."""
    try:
        size = batch.nbytes
    except pa.ArrowTypeError:  # older versions of pyarrow do not know the size of a slice of views
        size = batch.get_total_buffer_size()
    return int(size) + _COLUMN_BYTES * batch.num_columns
