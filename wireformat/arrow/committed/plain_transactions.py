"""Which BEGIN and COMMIT make a plain transaction: the rule for two records, and for many pairs of rows at once."""

from __future__ import annotations

import pyarrow as pa

from ...stream.controls import Control, agree
from ..arrays import Array
from .cells import detail, detail_keys, flags, numbers


def is_plain(begin: Control, commit: Control) -> bool:
    """Whether a COMMIT ends this BEGIN, of no prepared transaction, where both or none of them has a commit LSN."""
    return begin.gid is None and agree(begin, commit) and (begin.commit_lsn is None) == (commit.commit_lsn is None)


def are_plain(batch: pa.RecordBatch, begins: Array, commits: Array) -> Array:
    """bool[n]: `is_plain` of each pair of a BEGIN's row and a COMMIT's."""
    xid, commit_xid = (numbers(batch, "xid", rows) for rows in (begins, commits))
    lsn, commit_lsn = (numbers(batch, "commit_lsn", rows) for rows in (begins, commits))
    same_xid = ~(xid.valid & commit_xid.valid) | (xid.values == commit_xid.values)
    same_lsn = (lsn.valid == commit_lsn.valid) & (~lsn.valid | (lsn.values == commit_lsn.values))
    plain: Array = same_xid & same_lsn
    if "gid" in detail_keys(batch, begins):
        plain &= ~flags(detail(batch, begins, "gid").is_valid())
    return plain
