"""The reference for what Spark does in SQL: committed and open rows of a chunk, from its rows and their fates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wireformat.arrow.arrays import Array
from wireformat.arrow.committed.batch import Column, Rows, flags
from wireformat.arrow.committed.fates import DELIVERED, FATES, OPEN, WHOLE
from wireformat.arrow.committed.row_ranges import taken
from wireformat.arrow.schemas import SEGMENT, SEQUENCE


def deliver(rows: pa.RecordBatch, fates: pa.Table, *, drop_resent: bool = True) -> pa.RecordBatch:
    """The committed rows among rows of one chunk: `committed_schema`, without `_segment`.

    fates   those of this chunk; only the segments of these rows need to be there
    Raises ValueError where a segment of these rows has no fate.
    """
    schema = pa.schema([field for field in rows.schema if field.name != SEGMENT.name])
    seen = Rows.of(rows)
    found = _Fates(rows, fates)
    of = found.of
    wanted = seen.delivered & (found.has(DELIVERED) | found.has(WHOLE))
    if drop_resent:
        wanted &= ~(found.has(WHOLE) & found.resent(seen))
    wanted &= ~found.undone(seen)
    found.check(seen.delivered)
    places = np.flatnonzero(wanted)
    batch = taken(rows, places)
    return _with_facts(batch, found.fates, of[places], schema)


def open_rows(rows: pa.RecordBatch, fates: pa.Table) -> pa.RecordBatch:
    """The rows of transactions that have not ended, as they came; of a `Chunk` with controls."""
    wanted = np.flatnonzero(_Fates(rows, fates).has(OPEN))
    names = [name for name in rows.schema.names if name not in ("sequence", "username", "origin", SEGMENT.name)]
    return taken(rows.select(names), wanted)


class _Fates:
    """The fates of one chunk, and for each row of a batch of it where its fate stands."""

    def __init__(self, rows: pa.RecordBatch, fates: pa.Table) -> None:
        ordered = fates.sort_by(SEGMENT.name).combine_chunks()
        self.fates = ordered.to_batches()[0] if len(ordered) else pa.RecordBatch.from_pylist([], FATES)
        self._segments = Column.of(rows[SEGMENT.name].cast(pa.int64())).values
        known = Column.of(self.fates[SEGMENT.name].cast(pa.int64())).values
        self.of: Array = np.minimum(np.searchsorted(known, self._segments), max(len(known) - 1, 0))
        self._is_known = known[self.of] == self._segments if len(known) else np.zeros(len(self.of), bool)

    def has(self, fate: str) -> Array:
        """bool[n]: rows with this fate."""
        if not len(self.fates):
            return np.zeros(len(self.of), bool)
        return flags(pc.equal(self.fates["fate"], fate))[self.of] & self._is_known

    def check(self, delivered: Array) -> None:
        """Raises ValueError where a row that counts has no fate."""
        missing = np.flatnonzero(delivered & ~self._is_known)
        if len(missing):
            raise ValueError(f"fates: there is none of segment {self._segments[missing[0]]}")

    def resent(self, rows: Rows) -> Array:
        """bool[n]: rows of whole transactions that are behind what was delivered ahead of their stretch."""
        lsn, csn = (Column.of(rows.batch[name]) for name in ("commit_lsn", "csn"))
        before_lsn, before_csn = (Column.of(self.fates[name]) for name in ("commit_lsn", "csn"))
        if not len(self.fates):
            return np.zeros(len(self.of), bool)
        is_below = [
            number.valid
            & before.valid[self.of]
            & (number.values.view(np.uint64) <= before.values[self.of].view(np.uint64))
            for number, before in ((lsn, before_lsn), (csn, before_csn))
        ]
        return is_below[0] & (~csn.valid | is_below[1])

    def undone(self, rows: Rows) -> Array:
        """bool[n]: rows of subtransactions that were undone."""
        lists = self.fates["undone"]
        found = np.zeros(len(self.of), bool)
        order = np.argsort(self.of, kind="stable")
        bounds = np.searchsorted(self.of[order], np.arange(len(lists) + 1))
        for fate in np.flatnonzero(flags(pc.fill_null(pc.greater(pc.list_value_length(lists), 0), False))).tolist():
            own = order[bounds[fate] : bounds[fate + 1]]
            found[own] = np.isin(rows.xids.values[own], lists[fate].as_py())
        return found & self._is_known & rows.xids.valid


def _with_facts(rows: pa.RecordBatch, fates: pa.RecordBatch, of: Array, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of whole transactions get their number right, those of segments all their facts."""
    if not len(rows):
        return pa.RecordBatch.from_pylist([], schema)
    told = fates.take(pa.array(of))
    is_whole = pc.equal(told["fate"], WHOLE)
    commit_lsn, ordinal = rows["sequence"].flatten()
    has_place = pc.or_(rows["commit_lsn"].is_valid(), rows["csn"].is_valid())
    number = pc.if_else(has_place, commit_lsn, pc.add(commit_lsn, pc.fill_null(told["sequence"], 0)))
    ordinals = pc.if_else(is_whole, ordinal, pc.add(ordinal, pc.fill_null(told["first_ordinal"], 0)))
    sequences = pc.if_else(is_whole, number, told["sequence"])
    columns = {"sequence": pa.StructArray.from_arrays([sequences, ordinals], fields=list(SEQUENCE))}
    for name in ("xid", "csn", "commit_lsn", "commit_time", "username", "origin"):
        columns[name] = pc.if_else(is_whole, rows[name], told[name].cast(rows.schema.field(name).type))
    return pa.RecordBatch.from_arrays([columns.get(field.name, rows[field.name]) for field in schema], schema=schema)
