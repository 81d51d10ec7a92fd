"""Reads single columns of row changes at some rows: numbers, and texts in `detail`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array


class Column(NamedTuple):
    """Numbers of some rows.

    values   int64[n]; unsigned numbers keep their bits
    valid    bool[n]: whether the row has the number
    """

    values: Array
    valid: Array

    @classmethod
    def of(cls, array: pa.Array) -> Column:
        """Returns the numbers of an int64 or timestamp array."""
        valid = np.ones(len(array), bool) if array.null_count == 0 else flags(array.is_valid())
        buffer = array.buffers()[1]
        values = np.frombuffer(buffer, np.int64)[array.offset : array.offset + len(array)]
        return cls(values, valid)

    def arrow(self, type: pa.DataType) -> pa.Array:
        """Returns the numbers as an array."""
        return pa.array(self.values, pa.int64(), mask=None if self.valid.all() else ~self.valid).cast(type)

    def or_else(self, other: Column) -> Column:
        """Returns these numbers, and the other numbers in rows without one."""
        if self.valid.all():
            return self
        return Column(np.where(self.valid, self.values, other.values), self.valid | other.valid)


def flags(array: pa.Array) -> Array:
    """Returns bool[n] for a boolean array without nulls."""
    buffer = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(buffer, count=array.offset + len(array), bitorder="little")[array.offset :].view(bool)


def numbers(batch: pa.RecordBatch, name: str, rows: Array) -> Column:
    """Returns a column of numbers at these rows."""
    return Column.of(batch[name].take(pa.array(rows)))


def detail(batch: pa.RecordBatch, rows: Array, key: str) -> pa.Array:
    """Returns the texts of a key of `detail` at these rows."""
    maps = batch["detail"].take(pa.array(rows))
    return pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first").cast(pa.string())


def detail_keys(batch: pa.RecordBatch, rows: Array) -> set[str]:
    """Returns the keys of `detail` that occur at these rows."""
    return set(pc.unique(batch["detail"].take(pa.array(rows)).keys).to_pylist())
