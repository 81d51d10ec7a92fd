"""Committed rows on their way to a caller: with the position after them, of chosen tables, in groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.noted.changes import CommittedRows
from ..arrow.row_changes import HIDDEN_KINDS
from ..options import ReadOptions
from ..stream.capture_position import CapturePosition

_GROUP_BYTES = 32 << 20
"""Rows of about this many bytes become a typed batch together: each batch costs as much as some hundred rows."""


class HandedRows(NamedTuple):
    """Rows, and the position after them; None where a transaction goes on in the next rows."""

    rows: CommittedRows | None
    position: CapturePosition | None


def as_batch(rows: CommittedRows, kind: str | None = None) -> pa.RecordBatch:
    """Returns committed rows as a record batch.

    kind   only rows of this kind need be among them
    """
    if isinstance(rows, pa.RecordBatch):
        return rows
    return (rows if kind is None else rows.of_kind(kind)).batch()


def grouped_rows(
    found: Iterable[HandedRows], schema: str, table: str
) -> Iterator[tuple[list[pa.RecordBatch], CapturePosition | None]]:
    """Yields the rows of one table in groups of about _GROUP_BYTES, with the position after each group."""
    held: list[pa.RecordBatch] = []
    size = 0
    last: CapturePosition | None = None
    for rows, position in found:
        last = position or last
        if rows is None:
            continue
        batch = as_batch(rows)
        may_be = pc.or_(_is_of(batch, schema, table), pc.is_in(batch["kind"], pa.array([*HIDDEN_KINDS])))
        nameless = pc.and_(pc.equal(batch["kind"], "TRUNCATE"), pc.is_null(batch["table_name"]))
        own = batch.filter(pc.or_(may_be, nameless))
        if len(own):
            held.append(own)
            size += own.nbytes
        if size >= _GROUP_BYTES:
            yield held, last
            held, size, last = [], 0, None
    yield held, last


def _is_of(batch: pa.RecordBatch, schema: str, table: str) -> pa.Array:
    is_of = pc.and_(pc.equal(batch["table_name"], table), pc.equal(batch["table_schema"], schema))
    return pc.fill_null(is_of, False)


def rows_of_patterns(batch: pa.RecordBatch, options: ReadOptions) -> pa.RecordBatch:
    """Returns the rows that the option `tables` keeps."""
    if options.tables is None:
        return batch
    names = [batch[name].dictionary_encode() for name in ("table_schema", "table_name")]
    texts = [column.dictionary.to_pylist() for column in names]
    codes = [np.asarray(column.indices.fill_null(-1)) for column in names]
    pairs, inverse = np.unique(np.stack(codes), axis=1, return_inverse=True)
    kept = [
        schema < 0 or table < 0 or options.keeps("INSERT", (texts[0][schema], texts[1][table]))
        for schema, table in pairs.T.tolist()
    ]
    return batch.filter(pa.array(np.array(kept, bool)[inverse.reshape(-1)]))


def rows_of_loose_messages(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the messages that belong to no transaction."""
    messages = batch.filter(pc.equal(batch["kind"], "MESSAGE"))
    transactional = pc.map_lookup(messages["detail"], "transactional", "first")
    return messages.filter(pc.fill_null(pc.not_equal(transactional, "true"), True))
