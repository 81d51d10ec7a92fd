"""Rows of the row-change table as typed tables need them: which table, which columns, which position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BadRows, OptionError
from ..lsn import lsn_text
from .compiled import Array
from .images import Images, Shapes, combined, list_shapes
from .schemas import CHANGES

INSERT, UPDATE, DELETE, TRUNCATE, RELATION = range(5)
KINDS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "RELATION")
"""The kinds of records that say something about a table; their places are the codes above."""

NEEDED = ("kind", "table_schema", "table_name", "new", "old", "unchanged", "types")
"""Columns without which nothing can be said."""

_GROUP_BYTES = 1 << 26
"""So many bytes of small record batches are made one: the cost of a batch is that of thousands of its rows."""

Changes = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]


def record_batches(changes: Any) -> Iterator[pa.RecordBatch]:
    """The record batches of changes, small ones put together; raises OptionError where a column is missing."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in _single_batches(changes):
        missing = [name for name in NEEDED if name not in batch.schema.names]
        if missing:
            raise OptionError(f"changes: expected the columns of the row-change table, missing: {', '.join(missing)}")
        held.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield _joined(held)
            held, size = [], 0
    if held:
        yield _joined(held)


def _single_batches(changes: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(changes, pa.Table):
        yield from changes.to_batches() or [pa.RecordBatch.from_pylist([], changes.schema)]
    elif isinstance(changes, pa.RecordBatch):
        yield changes
    elif isinstance(changes, Iterable):
        for one in changes:
            yield from _single_batches(one)
    else:
        raise TypeError(f"changes: expected a pyarrow Table or record batches, got {type(changes).__name__}")


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class ChangeRows:
    """Chosen rows of a record batch.

    rows   int64[n], which
    kinds  int64[n], their kinds, as places in KINDS
    """

    batch: pa.RecordBatch
    rows: Array
    kinds: Array

    @cached_property
    def new(self) -> Images:
        """Their new images."""
        return Images(self._map("new"), self.rows)

    @cached_property
    def old(self) -> Images:
        """Their old images."""
        return Images(self._map("old"), self.rows)

    @cached_property
    def types(self) -> Shapes:
        """Their lists of types."""
        return list_shapes(self._list("types"), self.rows)

    @cached_property
    def unchanged(self) -> Shapes:
        """The columns that they say were not sent."""
        return list_shapes(self._list("unchanged"), self.rows)

    @cached_property
    def layouts(self) -> Array:
        """int64[n]: rows of one kind with the same columns and types have the same number."""
        parts = (self.new.shapes, self.old.shapes, self.types, self.unchanged)
        return combined([self.kinds, *(part.ids for part in parts)])

    def _map(self, name: str) -> pa.MapArray:
        column = self.batch[name]
        is_plain = column.type.key_type == pa.string() and column.type.item_type == pa.string()
        return column if is_plain else column.cast(CHANGES.field(name).type)

    def _list(self, name: str) -> pa.ListArray:
        column = self.batch[name]
        return column if column.type.value_type == pa.string() else column.cast(CHANGES.field(name).type)

    def chosen(self, places: Array) -> ChangeRows:
        """Some of these rows."""
        return ChangeRows(self.batch, self.rows[places], self.kinds[places])


def rows_of_tables(batch: pa.RecordBatch) -> ChangeRows:
    """The rows that name a table and are of one of KINDS."""
    kinds = _kinds(batch)
    named = batch["table_name"].is_valid().to_numpy(zero_copy_only=False)
    return _chosen(batch, kinds, (kinds >= 0) & named)


def rows_of_table(batch: pa.RecordBatch, schema: str, table: str) -> ChangeRows:
    """The rows of one table; raises BadRows at a row that may be of this table, and does not say so."""
    is_own = pc.and_(pc.equal(batch["table_schema"], schema), pc.equal(batch["table_name"], table))
    is_own = pc.fill_null(is_own, False).to_numpy(zero_copy_only=False)
    kinds = _kinds(batch)
    _check_all_is_known(batch, kinds)
    return _chosen(batch, kinds, (kinds >= 0) & is_own)


def _chosen(batch: pa.RecordBatch, kinds: Array, flags: Array) -> ChangeRows:
    rows = np.flatnonzero(flags)
    return ChangeRows(batch, rows, kinds[rows])


def _kinds(batch: pa.RecordBatch) -> Array:
    found = pc.index_in(batch["kind"], value_set=pa.array(KINDS, batch["kind"].type))
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


_HIDDEN = {
    "STREAM_CHANGE": "a change of which nothing but its transaction was sent",
    "CORRUPT": "a record that could not be read",
}
"""Kinds of rows that may have changed any table."""


def _check_all_is_known(batch: pa.RecordBatch, kinds: Array) -> None:
    for kind, words in _HIDDEN.items():
        place = pc.index(batch["kind"], kind).as_py()
        if place >= 0:
            raise BadRows(
                "changes that say which row of which table they changed; leave out the rows that you can do without",
                f"{kind}, {words}",
                **position(batch, place),
            )
    truncates = np.flatnonzero(kinds == TRUNCATE)
    if len(truncates):
        places = np.flatnonzero(batch["table_name"].is_null().to_numpy(zero_copy_only=False)[truncates])
        if len(places):
            place = int(truncates[places[0]])
            raise BadRows(
                "changes that say which table they changed", "a TRUNCATE without tables", **position(batch, place)
            )


def position(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """Where a row comes from, as the attributes of an error."""
    names = batch.schema.names
    found: dict[str, Any] = {name: batch[name][row].as_py() for name in ("message", "record") if name in names}
    sequence = batch["sequence"][row].as_py() if "sequence" in names else None
    if sequence is not None:
        found["sequence"] = f"{lsn_text(sequence['commit_lsn'])} / {sequence['ordinal']}"
    return found
