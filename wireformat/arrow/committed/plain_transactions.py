"""Which pairs of BEGIN and COMMIT are plain transactions: the rule for two records, and for many pairs of rows."""

from __future__ import annotations

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
