"""Packed rows: the sorted rows of one stream as one binary value, which Spark moves unchanged and fast."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .position_errors import check_positions
from .sql_rules import truncate_ties

PACKED = "stream string, rows binary"
"""The Spark schema of packed rows. `stream` has the values of the columns stream_by as a JSON array."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Layout:
    """The columns of rows that are packed.

    names                all columns, in order
    stream_by, order_by  see `positions.PositionColumns`
    """

    names: tuple[str, ...]
    stream_by: tuple[str, ...]
    order_by: tuple[str, ...]

    @property
    def within(self) -> tuple[str, ...]:
        """The columns that sort the rows of a stream, except those of a TRUNCATE of several tables."""
        return (*self.order_by, "record")


def pack_batches(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that packs rows. Raises BadRows for a position that is null."""
    for batch in batches:
        rows = batch.rename_columns(layout.names)
        names = [*layout.stream_by, *layout.order_by]
        check_positions([rows[name] for name in names], names)
        packed = [(stream, pack(in_order(own, layout.within))) for stream, own in _by_stream(rows, layout.stream_by)]
        streams, values = zip(*packed, strict=True) if packed else ((), ())
        yield pa.RecordBatch.from_arrays(
            [pa.array(streams, pa.string()), pa.array(values, pa.binary())], names=["stream", "rows"]
        )


def unpack_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that unpacks a column of packed rows."""
    for batch in batches:
        for value in batch.column(0):
            yield unpack(value.as_buffer())


def pack(rows: pa.RecordBatch) -> bytes:
    """Returns the rows as an Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(packed: Any, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """Returns the rows, with all columns or only these."""
    if columns is None:
        return pa.ipc.open_stream(packed).read_next_batch()
    names = pa.ipc.open_stream(packed).schema.names
    options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
    return pa.ipc.open_stream(packed, options=options).read_next_batch().select(columns)


def in_order(rows: pa.RecordBatch, within: Sequence[str]) -> pa.RecordBatch:
    """Returns the rows of one stream, sorted by position."""
    keys = [rows[name] for name in within]
    if pc.any(pc.equal(rows["kind"], "TRUNCATE")).as_py():
        keys.append(truncate_ties(rows))
    table = pa.table({str(index): key for index, key in enumerate(keys)})
    indices = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    return rows if np.array_equal(indices, np.arange(len(indices))) else rows.take(indices)


def _by_stream(rows: pa.RecordBatch, stream_by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yields the name and the rows of each stream."""
    if not rows.num_rows:
        return
    if not stream_by:
        yield "[]", rows
        return
    streams = rows.select(stream_by)
    codes = reduce(_joined, [column.dictionary_encode().indices.to_numpy() for column in streams.columns])
    found, firsts, of = np.unique(codes, return_index=True, return_inverse=True)
    if len(found) == 1:
        yield _name(streams, 0), rows
        return
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(len(found) + 1))
    for number, first in enumerate(firsts.tolist()):
        indices = order[bounds[number] : bounds[number + 1]]
        yield _name(streams, first), rows.take(pa.array(indices))


def _joined(left: Any, right: Any) -> Any:
    """Returns codes that are equal for two rows if both inputs are."""
    codes: Any = np.unique(left.astype(np.int64) * (int(right.max()) + 1) + right, return_inverse=True)[1]
    return codes


def _name(streams: pa.RecordBatch, row: int) -> str:
    """Returns the key of a stream in Spark's state. If it changed, checkpoints would lose their streams."""
    return json.dumps([column[row].as_py() for column in streams.columns], ensure_ascii=False)


class Packed(NamedTuple):
    """Packed rows, and the positions of the first and the last row."""

    first: tuple[Any, ...]
    last: tuple[Any, ...]
    rows: bytes

    @classmethod
    def of(cls, rows: bytes, within: Sequence[str]) -> Packed:
        """Reads only the columns of the positions."""
        keys = unpack(rows, within)
        first, last = (tuple([column[index].as_py() for column in keys.columns]) for index in (0, -1))
        return cls(first, last, rows)


def merged(packed: Iterable[Packed], within: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields all rows of one stream in order. Packed rows that do not overlap are unpacked one at a time."""
    group: list[Packed] = []
    for one in sorted(packed, key=lambda one: one.first):
        if group and one.first > max(other.last for other in group):
            yield _together(group, within)
            group = []
        group.append(one)
    if group:
        yield _together(group, within)


def _together(group: Sequence[Packed], within: Sequence[str]) -> pa.RecordBatch:
    if len(group) == 1:
        return unpack(group[0].rows)
    rows = pa.Table.from_batches([unpack(one.rows) for one in group]).combine_chunks()
    return in_order(rows.to_batches()[0], within)
