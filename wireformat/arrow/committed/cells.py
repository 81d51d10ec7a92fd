"""Reads single columns of row changes at some rows: numbers, and texts in `detail`."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
