"""The columns of rows as compiled code takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...events import ROW_CHANGES, Truncate
from ..arrays import Array, read_only
from .kernel import MOST_CODES, NO_CODE, SLOTS, code_rows


class Texts(NamedTuple):
    """Texts: int32[n + 1] offsets in uint8 data, and uint8[n] whether each is not NULL."""

    offsets: Array
    valid: Array
    data: Array


class RowColumns:
    """Rows that conform to the row-change table.

    needs_lsn   whether rows without an LSN are left to Python
    codes       int32[n], see `code_rows`; firsts: the first row of each number
    starts, stops   int64[2, n], the items of the new and of the old tuple
    new, old    the values of items; value_counts: int64[n], how many of them each row has
    lsns        int64[n], 0 where there is none
    continues   bool[n], whether a row is of the TRUNCATE of the row before
    """

    def __init__(self, batch: pa.RecordBatch, *, needs_lsn: bool) -> None:
        self.batch = batch
        self.count = batch.num_rows
        new, old, types, detail, unchanged = (
            batch.column(name) for name in ("new", "old", "types", "detail", "unchanged")
        )
        new_keys, old_keys = _items(new, new.keys), _items(old, old.keys)
        lists = [new_keys, old_keys, _items(types, types.values), _items(detail, detail.keys)]
        lists.append(_items(detail, detail.items))
        words, starts, stops, there = [], [], [], []
        at = 0
        for items in lists:
            words.append(_words(items.values))
            starts.append(items.starts + at)
            stops.append(items.stops + at)
            there.append(items.there)
            at += len(items.values)
        kinds = batch.column("kind")
        lsn = batch.column("lsn")
        unsent = _items(unchanged, unchanged.values)
        is_row = _flags(pc.is_in(kinds, pa.array([*ROW_CHANGES])))
        skip = ~is_row | _flags(batch.column("xid").is_valid()) | (unsent.stops > unsent.starts)
        if needs_lsn:
            skip |= ~_flags(lsn.is_valid())
        self.codes = np.empty(self.count, np.int32)
        firsts = np.empty(MOST_CODES, np.int32)
        found = code_rows(
            np.stack([_words(batch.column(name)) for name in ("kind", "table_schema", "table_name")]),
            np.stack(starts),
            np.stack(stops),
            np.stack(there),
            np.concatenate(words),
            skip.view(np.uint8),
            self.codes,
            firsts,
            np.full(SLOTS, NO_CODE, np.int32),
        )
        self.firsts = firsts[:found]
        self.starts = np.stack([new_keys.starts, old_keys.starts])
        self.stops = np.stack([new_keys.stops, old_keys.stops])
        self.new, self.old = _texts(_items(new, new.items).values), _texts(_items(old, old.items).values)
        self.value_counts = (self.stops - self.starts).sum(axis=0)
        self.lsns = np.ascontiguousarray(lsn.fill_null(0).to_numpy())
        self.continues = _continues(batch)


class _Items(NamedTuple):
    """Items of the lists or maps of rows: int64 ranges in the values, and uint8 whether there is a list at all."""

    values: pa.Array
    starts: Array
    stops: Array
    there: Array


def _items(column: pa.Array, values: pa.Array) -> _Items:
    """The items of a column, of which `values` are those of all rows of the array it is a slice of."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    there = _flags(column.is_valid())
    first, last = int(offsets[0]), int(offsets[-1])
    offsets -= first
    starts = offsets[:-1]
    return _Items(values.slice(first, last - first), starts, np.where(there, offsets[1:], starts), there.view(np.uint8))


def _flags(values: pa.Array) -> Array:
    return values.to_numpy(zero_copy_only=False)


def _words(values: pa.Array) -> Array:
    """int32: a number for each text, the same for the same; -1 for none."""
    return pc.dictionary_encode(values).indices.fill_null(-1).to_numpy(zero_copy_only=False)


def _texts(values: pa.Array) -> Texts:
    _, offsets, data = values.buffers()
    count = len(values)
    found = np.zeros(1, np.int32) if count == 0 else np.frombuffer(offsets, np.int32)
    bytes_ = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    valid = _flags(values.is_valid()).view(np.uint8)
    return Texts(*map(read_only, (found[values.offset :][: count + 1] if count else found, valid, bytes_)))


def _continues(batch: pa.RecordBatch) -> Array:
    is_truncate = _flags(pc.equal(batch.column("kind"), Truncate.kind).fill_null(False))
    found = np.zeros(batch.num_rows, bool)
    found[1:] = is_truncate[1:] & is_truncate[:-1]
    for name in ("message", "record"):
        column = batch.column(name)
        numbers = column.fill_null(-1).to_numpy()
        found[1:] &= (numbers[1:] == numbers[:-1]) & _flags(column.is_valid())[1:] & _flags(column.is_valid())[:-1]
    return found
