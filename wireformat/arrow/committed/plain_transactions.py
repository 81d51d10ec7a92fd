"""Which pairs of BEGIN and COMMIT are plain transactions: the rule for two records, and for many pairs of rows."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from ...stream.controls import Control, agree
from ..arrays import Array
from .cells import ControlCells, flags


def is_plain(begin: Control, commit: Control) -> bool:
    """Whether BEGIN and COMMIT form a plain transaction. It is not prepared, and both or neither have a commit LSN."""
    return begin.gid is None and agree(begin, commit) and (begin.commit_lsn is None) == (commit.commit_lsn is None)


def are_plain(cells: ControlCells, begins: Array, commits: Array) -> Array:
    """Returns bool[n]: `is_plain` for each pair of the rows of a BEGIN and a COMMIT."""
    xid, commit_xid = (cells.numbers("xid", rows) for rows in (begins, commits))
    lsn, commit_lsn = (cells.numbers("commit_lsn", rows) for rows in (begins, commits))
    same_xid = ~(xid.valid & commit_xid.valid) | (xid.values == commit_xid.values)
    same_lsn = (lsn.valid == commit_lsn.valid) & (~lsn.valid | (lsn.values == commit_lsn.values))
    plain: Array = same_xid & same_lsn
    if "gid" in cells.detail_keys:
        plain &= ~flags(cells.detail(begins, "gid").is_valid())
    return plain


def are_one_block(cells: ControlCells, starts: Array, stops: Array, commits: Array) -> Array:
    """Returns bool[n]: whether STREAM_START, STREAM_STOP and STREAM_COMMIT are those of a transaction of one block."""
    if "first_segment" not in cells.detail_keys:
        return np.zeros(len(starts), bool)
    is_first = flags(pc.fill_null(pc.equal(cells.detail(starts, "first_segment"), "true"), False))
    xid, stop_xid, commit_xid = (cells.numbers("xid", rows) for rows in (starts, stops, commits))
    same_xid = xid.valid & commit_xid.valid & (xid.values == commit_xid.values)
    is_whole: Array = is_first & same_xid & (~stop_xid.valid | (stop_xid.values == xid.values))
    return is_whole
