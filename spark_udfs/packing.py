"""Rows packed: the rows of one stream, in their order, as one binary value, for a way that would harm or slow them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf

from .sql_rules import truncate_ties

PACKED = "stream string, rows binary"
"""What packed rows are to Spark: `stream` holds the values of the columns stream_by as a JSON array."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Layout:
    """The columns of rows that are packed.

    names                all of them, in their order
    stream_by, order_by  see `positions.Places`
    """

    names: tuple[str, ...]
    stream_by: tuple[str, ...]
    order_by: tuple[str, ...]

    @property
    def within(self) -> tuple[str, ...]:
        """Columns that order the rows of a stream, but for those of a TRUNCATE of several tables."""
        return (*self.order_by, "record")


def pack_batches(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What mapInArrow runs: all columns in, packed rows out. Raises OptionError for a position that is null."""
    for batch in batches:
        rows = batch.rename_columns(layout.names)
        placed = [*layout.stream_by, *layout.order_by]
        check_positions([rows[name] for name in placed], placed)
        packed = [(stream, pack(in_order(part, layout.within))) for stream, part in _by_stream(rows, layout.stream_by)]
        streams, values = zip(*packed, strict=True) if packed else ((), ())
        yield pa.RecordBatch.from_arrays(
            [pa.array(streams, pa.string()), pa.array(values, pa.binary())], names=["stream", "rows"]
        )


def unpack_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What mapInArrow runs: a column of packed rows in, the rows out."""
    for batch in batches:
        for value in batch.column(0):
            yield unpack(value.as_buffer())


def pack(rows: pa.RecordBatch) -> bytes:
    """The rows as an Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(packed: Any, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The rows, or only these of their columns."""
    if columns is None:
        return pa.ipc.open_stream(packed).read_next_batch()
    names = pa.ipc.open_stream(packed).schema.names
    options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
    return pa.ipc.open_stream(packed, options=options).read_next_batch().select(columns)


def check_positions(columns: Iterable[pa.Array], names: Iterable[str]) -> None:
    """Raises OptionError where one of these columns is null: such a row has no place in the order."""
    empty = [name for name, column in zip(names, columns, strict=True) if column.null_count]
    if empty:
        raise wf.OptionError(f"options order_by and stream_by: a row has no {' and no '.join(empty)}")


def in_order(rows: pa.RecordBatch, within: Sequence[str]) -> pa.RecordBatch:
    """The rows of one stream in their order."""
    keys = [rows[name] for name in within]
    if pc.any(pc.equal(rows["kind"], "TRUNCATE")).as_py():
        keys.append(truncate_ties(rows))
    table = pa.table({str(place): key for place, key in enumerate(keys)})
    places = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    return rows if np.array_equal(places, np.arange(len(places))) else rows.take(places)


def _by_stream(rows: pa.RecordBatch, stream_by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each stream, and its name."""
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
        places = order[bounds[number] : bounds[number + 1]]
        yield _name(streams, first), rows.take(pa.array(places))


def _joined(left: Any, right: Any) -> Any:
    """Numbers that are alike where both are."""
    codes: Any = np.unique(left.astype(np.int64) * (int(right.max()) + 1) + right, return_inverse=True)[1]
    return codes


def _name(streams: pa.RecordBatch, row: int) -> str:
    """The key of a stream in Spark's state: another text for the same values would lose the streams of checkpoints."""
    return json.dumps([column[row].as_py() for column in streams.columns], ensure_ascii=False)


class Packed(NamedTuple):
    """Packed rows, and the positions of the first and the last."""

    first: tuple[Any, ...]
    last: tuple[Any, ...]
    rows: bytes

    @classmethod
    def of(cls, rows: bytes, within: Sequence[str]) -> Packed:
        """Reads only what it needs."""
        keys = unpack(rows, within)
        first, last = (tuple([column[place].as_py() for column in keys.columns]) for place in (0, -1))
        return cls(first, last, rows)


def merged(parts: Iterable[Packed], within: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows of one stream in order; of parts that lie behind each other, one is unpacked at a time."""
    group: list[Packed] = []
    for part in sorted(parts, key=lambda part: part.first):
        if group and part.first > max(other.last for other in group):
            yield _together(group, within)
            group = []
        group.append(part)
    if group:
        yield _together(group, within)


def _together(group: Sequence[Packed], within: Sequence[str]) -> pa.RecordBatch:
    if len(group) == 1:
        return unpack(group[0].rows)
    rows = pa.Table.from_batches([unpack(part.rows) for part in group]).combine_chunks()
    return in_order(rows.to_batches()[0], within)
