"""About how many bytes a record batch takes in memory."""

from __future__ import annotations

import pyarrow as pa

_COLUMN_BYTES = 512
"""About what a column takes beside its values: the most, by far, where a batch has few rows."""


def batch_size(batch: pa.RecordBatch) -> int:
    """Returns about how many bytes a record batch takes in memory, with what describes its columns."""
    return int(batch.nbytes) + _COLUMN_BYTES * batch.num_columns
