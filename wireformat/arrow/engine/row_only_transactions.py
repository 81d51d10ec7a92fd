"""Transactions of BEGIN, row changes and COMMIT alone: checks and filters take many of them at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...events import ROW_CHANGES
from ..arrays import Array

_KINDS = pa.array(["BEGIN", "COMMIT", *ROW_CHANGES])
_BEGIN, _COMMIT = 0, 1


class RowOnlyTransactions(NamedTuple):
    """The row-only transactions of a batch, in order, as runs of neighbours.

    begins, commits   int64[n]: the rows of their BEGIN and COMMIT
    runs              the row with which each run begins, and the row after its end
    """

    begins: Array
    commits: Array
    runs: dict[int, int]


NO_TRANSACTIONS = RowOnlyTransactions(np.zeros(0, np.int64), np.zeros(0, np.int64), {})


def row_only_transactions(batch: pa.RecordBatch) -> RowOnlyTransactions:
    """Finds the transactions that a batch holds from BEGIN to COMMIT: no gid, one xid if both ends have it.

    batch   its columns kind, xid and detail are read

    Unlike plain transactions (see `..committed.plain_transactions`), they have no ORIGIN and no other record between
    their ends. Their commit LSNs do not matter: neither the order nor the filters depend on them.
    """
    if not len(batch):
        return NO_TRANSACTIONS
    indexes = pc.fill_null(pc.index_in(batch["kind"], _KINDS), len(_KINDS))
    codes = np.frombuffer(indexes.buffers()[1], np.int32, len(batch))
    controls = np.flatnonzero((codes <= _COMMIT) | (codes == len(_KINDS)))
    pairs = np.flatnonzero((codes[controls[:-1]] == _BEGIN) & (codes[controls[1:]] == _COMMIT))
    begins, commits = controls[pairs], controls[pairs + 1]
    if len(begins):
        xids, other_xids = (batch["xid"].take(pa.array(rows)) for rows in (begins, commits))
        without_gid = pc.is_null(pc.map_lookup(batch["detail"].take(pa.array(begins)), "gid", "first"))
        chosen = pc.indices_nonzero(pc.and_(pc.fill_null(pc.equal(xids, other_xids), True), without_gid))
        pairs = np.frombuffer(chosen.buffers()[1], np.uint64, len(chosen)) if len(chosen) else np.zeros(0, np.uint64)
        begins, commits = begins[pairs], commits[pairs]
    if not len(begins):
        return NO_TRANSACTIONS
    breaks = np.flatnonzero(begins[1:] != commits[:-1] + 1)
    firsts = begins[np.concatenate([[0], breaks + 1])]
    ends = commits[np.concatenate([breaks, [len(commits) - 1]])] + 1
    return RowOnlyTransactions(begins, commits, dict(zip(firsts.tolist(), ends.tolist(), strict=True)))
