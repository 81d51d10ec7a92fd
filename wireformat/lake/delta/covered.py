"""Typed rows that a Delta table already has: a write that was stopped may have committed some of the tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...arrow.arrays import Array
from ...stream.positions import Position


def not_covered(batch: pa.RecordBatch, done: Position) -> Array:
    """Returns bool[n]: whether a typed row comes after a position.

    batch   typed rows that begin with the kept columns commit_lsn and csn. If the table has columns of these names,
            they are not kept, and `_sequence` is compared: the LSN, CSN or transaction number, the first of these
            that the stream has
    """
    if batch.schema.names[:2] != ["commit_lsn", "csn"]:
        end = next(number for number in (done.lsn, done.csn, done.transactions) if number is not None)
        return np.asarray(_numbers(batch["_sequence"].field("commit_lsn"))[0] > np.uint64(end))
    lsns, has_lsn = _numbers(batch["commit_lsn"])
    csns, has_csn = _numbers(batch["csn"])
    sequence, _ = _numbers(batch["_sequence"].field("commit_lsn"))
    covered = sequence <= np.uint64(done.transactions)
    covered = np.where(has_csn, csns <= np.uint64(done.csn or 0), covered)
    by_lsn = (lsns <= np.uint64(done.lsn or 0)) & (~has_csn | (csns <= np.uint64(done.csn or 0)))
    return np.asarray(~np.where(has_lsn, by_lsn, covered))


def _numbers(column: pa.Array) -> tuple[Array, Array]:
    """Returns uint64[n]: the values of a column, 0 for null; and bool[n]: whether a value is there."""
    valid = np.asarray(column.is_valid())
    return np.asarray(column.fill_null(0)).view(np.uint64), valid
