"""Row changes as an input: the record batches in them, and the kinds and columns that typed tables need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..events import ROW_CHANGES
from ..options.reading import KINDS
from .arrays import Array, batch_size

RowChanges = Any
"""A pyarrow Table, a RecordBatch, a RecordBatchReader, or an iterable of these; iterables may be nested."""

TABLE_KINDS = (*ROW_CHANGES, "TRUNCATE", "RELATION")
"""The kinds of records that describe or change a table."""

IS_ROW_CHANGE = np.array([kind in ROW_CHANGES for kind in KINDS])
"""By the index of a kind in KINDS."""

TABLE_INSERT, TABLE_UPDATE, TABLE_DELETE, TABLE_TRUNCATE, TABLE_RELATION = range(len(TABLE_KINDS))
"""The code of a kind: its index in TABLE_KINDS."""

HIDDEN_KINDS = {
    "STREAM_CHANGE": "a change of which nothing but its transaction was sent",
    "CORRUPT": "a record that could not be read",
}
"""Kinds that may have changed any table, and why it is unknown which."""

TABLE_COLUMNS = ("kind", "table_schema", "table_name", "new", "old", "unchanged", "types")
"""The columns of the row-change table that `tables` and `typed` cannot do without."""


RELATION_ID_COLUMN = "_relation_id"
"""int64: the OID of the table of a row change. On Spark it is sent as a column, since Spark is slow at sending maps."""


def record_batches(changes: RowChanges, name: str = "row changes") -> Iterator[pa.RecordBatch]:
    """The record batches of row changes, in order.

    Small ones of a table are joined. A table or reader without rows gives one empty batch, for its schema.

    name   of the argument, for the error
    Raises TypeError for anything else.
    """
    if isinstance(changes, pa.RecordBatch):
        yield changes
    elif isinstance(changes, pa.Table):
        yield from joined_batches(changes.to_batches() or [pa.RecordBatch.from_pylist([], changes.schema)])
    elif isinstance(changes, pa.RecordBatchReader):
        first = next(iter(changes), None)
        yield pa.RecordBatch.from_pylist([], changes.schema) if first is None else first
        yield from changes
    elif (
        isinstance(changes, Iterable)
        and not isinstance(changes, (str, bytes, Mapping))
        and not hasattr(changes, "__arrow_c_stream__")  # a DataFrame, whose items are no rows
    ):
        for item in changes:
            yield from record_batches(item, name)
    else:
        raise TypeError(f"{name}: expected a pyarrow Table or record batches, got {type(changes).__name__}")


JOINED_ROWS, JOINED_BYTES = 1 << 16, 16 << 20
"""Record batches are joined up to this size: each costs as much as thousands of rows."""


_TINY_BYTES, _JOINED_TINY_BYTES = 32 << 10, 512 << 10


def joined_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the batches, small ones of a schema that follow each other as one.

    `batch_size` takes longer than to join a tiny batch, so these are joined before.
    """
    tiny = _joined_by(pa.RecordBatch.get_total_buffer_size, batches, _TINY_BYTES, _JOINED_TINY_BYTES)
    return _joined_by(batch_size, tiny, JOINED_BYTES, JOINED_BYTES)


def _joined_by(
    size_of: Callable[[pa.RecordBatch], int], batches: Iterable[pa.RecordBatch], most_each: int, most: int
) -> Iterator[pa.RecordBatch]:
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        batch_bytes = size_of(batch)
        has_room = rows + len(batch) <= JOINED_ROWS and batch_bytes <= min(most_each, most - size)
        if small and not (has_room and batch.schema.equals(small[0].schema)):
            yield one_batch(small)
            small, rows, size = [], 0, 0
        small.append(batch)
        rows += len(batch)
        size += batch_bytes
    if small:
        yield one_batch(small)


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns batches of a schema, of which there must be one, as one."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)  # which copies a single one, too


class RowSource(Protocol):
    """Row changes, as a scan has noted them.

    kind_codes     uint8[n]: the index in KINDS of each row's kind
    other_rows     int64[k]: the rows that are no row changes, ascending
    other_records  these rows, with the columns that `transactions` needs
    row_bytes      about the size of a row with all columns
    stepped        int64[n + 1]: how many row changes were stepped over before each row, and in all; None: no row change
    """

    kind_codes: Array
    other_rows: Array

    @property
    def other_records(self) -> pa.RecordBatch:
        """See the class."""

    @property
    def row_bytes(self) -> float:
        """See the class."""

    @property
    def stepped(self) -> Array | None:
        """See the class."""

    def position_of_stepped(self, row: int) -> tuple[int, int]:
        """Returns message and record of the first row change that was stepped over directly before a row.

        row   a row after a row change that was stepped over, or n
        """

    @property
    def xids(self) -> tuple[Array, Array]:
        """The xid of each row, int64[n], and whether it has one, bool[n]."""

    def positions(self, rows: Array) -> Iterator[tuple[int, int]]:
        """Yields the indexes of message and record of these rows."""

    def batch_of(self, rows: Array) -> pa.RecordBatch:
        """Returns these rows, with all columns."""
