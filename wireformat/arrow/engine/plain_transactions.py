"""Whole transactions in a batch, BEGIN, row changes and COMMIT, that need no look at each of their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array

_KINDS = pa.array(["BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE"])
_BEGIN, _COMMIT = 0, 1


class PlainTransactions(NamedTuple):
    """The plain transactions of a batch, in order, as runs of neighbours.

    begins, commits   int64[n]: the rows of their BEGIN and COMMIT
    runs              the row with which each run begins, and the row after its end
    """

    begins: Array
    commits: Array
    runs: dict[int, int]


NO_TRANSACTIONS = PlainTransactions(np.zeros(0, np.int64), np.zeros(0, np.int64), {})


def plain_transactions(batch: pa.RecordBatch) -> PlainTransactions:
    """Finds the transactions that a batch holds whole: no gid, no other records, one xid if both ends have it.

    batch   its columns kind, xid and detail are read
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
        plain = pc.indices_nonzero(pc.and_(pc.fill_null(pc.equal(xids, other_xids), True), without_gid))
        chosen = np.frombuffer(plain.buffers()[1], np.uint64, len(plain)) if len(plain) else np.zeros(0, np.uint64)
        begins, commits = begins[chosen], commits[chosen]
    if not len(begins):
        return NO_TRANSACTIONS
    breaks = np.flatnonzero(begins[1:] != commits[:-1] + 1)
    firsts = begins[np.concatenate([[0], breaks + 1])]
    ends = commits[np.concatenate([breaks, [len(commits) - 1]])] + 1
    return PlainTransactions(begins, commits, dict(zip(firsts.tolist(), ends.tolist(), strict=True)))
