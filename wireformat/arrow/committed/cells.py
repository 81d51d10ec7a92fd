"""Single columns of row changes at some rows, and which pairs of BEGIN and COMMIT they make plain transactions."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...stream.controls import Control, agree
from ..arrays import Array


class NumberColumn(NamedTuple):
    """Numbers of some rows.

    values   int64[n]; unsigned numbers keep their bits
    valid    bool[n]: whether the row has the number
    """

    values: Array
    valid: Array

    @classmethod
    def of(cls, array: pa.Array) -> NumberColumn:
        """Returns the numbers of an int64 or timestamp array."""
        valid = np.ones(len(array), bool) if array.null_count == 0 else flags(array.is_valid())
        buffer = array.buffers()[1]
        values = np.frombuffer(buffer, np.int64)[array.offset : array.offset + len(array)]
        return cls(values, valid)

    def arrow(self, type: pa.DataType) -> pa.Array:
        """Returns the numbers as an array."""
        return pa.array(self.values, pa.int64(), mask=None if self.valid.all() else ~self.valid).cast(type)

    def or_else(self, other: NumberColumn) -> NumberColumn:
        """Returns these numbers, and the other numbers in rows without one."""
        if self.valid.all():
            return self
        return NumberColumn(np.where(self.valid, self.values, other.values), self.valid | other.valid)


def flags(array: pa.Array) -> Array:
    """Returns bool[n] for a boolean array without nulls."""
    buffer = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(buffer, count=array.offset + len(array), bitorder="little")[array.offset :].view(bool)


class ControlCells:
    """Reads single columns of control records, each column once.

    batch   row changes
    rows    int64[n]: the control records among them; None if there are no others
    """

    def __init__(self, batch: pa.RecordBatch, rows: Array | None = None) -> None:
        self._batch = batch
        self._rows = rows
        self._numbers: dict[str, NumberColumn] = {}

    def numbers(self, name: str, rows: Array) -> NumberColumn:
        """Returns a column of numbers at these rows."""
        if name not in self._numbers:
            self._numbers[name] = NumberColumn.of(self._batch[name])
        column = self._numbers[name]
        return NumberColumn(column.values[rows], column.valid[rows])

    def detail(self, rows: Array, key: str) -> pa.Array:
        """Returns the texts of a key of `detail` at these rows."""
        maps = self._batch["detail"].take(pa.array(rows))
        return pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first").cast(pa.string())

    @cached_property
    def detail_keys(self) -> set[str]:
        """The keys of `detail` that occur in the control records."""
        maps = self._batch["detail"] if self._rows is None else self._batch["detail"].take(pa.array(self._rows))
        return set(pc.unique(maps.keys).to_pylist())


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
