"""Rows of the row-change table as typed tables need them: which table, which columns, which position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadRows, OptionError, add_hint
from ...lsn import lsn_text
from ..arrays import Array
from ..row_changes import HIDDEN_KINDS, TABLE_COLUMNS, TABLE_KINDS, RowChanges, record_batches
from ..schemas import CHANGES, format_of
from ..unread import Seen
from .images import Images, Piece, Shapes, combined, is_numbered, list_shapes

INSERT, UPDATE, DELETE, TRUNCATE, RELATION = range(len(TABLE_KINDS))
"""The code of a kind: its index in TABLE_KINDS."""

USED = (*TABLE_COLUMNS, "detail", "message", "record", "sequence", "xid", "commit_time", "raw")
"""The columns that typed tables read."""

_GROUP_BYTES = 1 << 30
"""Rows are read together until their record batches have so many bytes: a column of texts holds 2 GiB."""

_GROUP_ROWS = 1 << 16
"""Or until they are so many: the cost of a group is that of hundreds of rows."""


class Source:
    """Row changes that are read once, to their end.

    others   schemas of other inputs that may name the format
    format   that the rows were read from; None where it is not known
    whole    whether these are all rows of an input, so that it can be judged
    schema   of the first record batch; None where there is none

    Raises OptionError for two different formats, and what `used_columns` raises.
    """

    def __init__(
        self,
        changes: Any,
        keep: Sequence[str] = (),
        *,
        others: Sequence[pa.Schema] = (),
        format: str | None = None,
        whole: bool = True,
    ) -> None:
        self._batches = used_columns(changes, keep)
        self._first = next(self._batches, None)
        self._whole = whole
        self._seen = Seen()
        self.schema = None if self._first is None else self._first.schema
        self.format = format_of([*([] if self.schema is None else [self.schema]), *others], format)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The record batches, with the columns that are looked at or kept."""
        for batch in self._batches if self._first is None else chain([self._first], self._batches):
            if format_of([batch.schema], self.format) != self.format:
                raise OptionError("option format: some row changes say theirs, and the first do not; give it")
            self._seen = self._seen.and_of(batch)
            yield batch

    def check(self) -> None:
        """When all batches were read: raises BadRows where they are all rows of an input, and nothing could be read."""
        if self._whole:
            self._seen.check(self.format)

    def told(self, error: BadRows) -> BadRows:
        """The error with what the messages look like, where nothing could be read yet."""
        add_hint(error, self._seen.hint())
        return error


def used_columns(changes: RowChanges, keep: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """The record batches of row changes, with the columns that typed tables read or the caller keeps.

    Raises OptionError for a missing column, TypeError for anything but Arrow data.
    """
    for batch in record_batches(changes):
        names = batch.schema.names
        missing = [name for name in TABLE_COLUMNS if name not in names]
        if missing:
            raise OptionError(f"changes: expected the columns of the row-change table, missing: {', '.join(missing)}")
        for name in keep:
            if names.count(name) != 1:
                raise OptionError(f"option keep: expected one column {name!r} in changes, got {names.count(name)}")
        yield batch.select([name for name in names if name in USED or name in keep])


@dataclass(frozen=True)
class ChangeRows:
    """Chosen rows of some record batches, one after the other.

    pieces  record batches, and int64[n], which rows of each, in order
    kinds   int64[m], the kinds of all these rows, as indices into TABLE_KINDS
    """

    pieces: tuple[tuple[pa.RecordBatch, Array], ...]
    kinds: Array

    @cached_property
    def new(self) -> Images:
        """Their new images."""
        return Images(self._maps("new"))

    @cached_property
    def old(self) -> Images:
        """Their old images."""
        return Images(self._maps("old"))

    @cached_property
    def types(self) -> Shapes:
        """Their lists of types."""
        return list_shapes(self._lists("types"))

    @cached_property
    def unchanged(self) -> Shapes:
        """The columns that they say were not sent."""
        return list_shapes(self._lists("unchanged"))

    @cached_property
    def numbered(self) -> Array:
        """bool[n]: whether the new image has numbers for names, `$1`, `$2`, …; then its columns are all of the table.

        Only sql-decoding inserts rows without names, and only it leaves types out.
        """
        shapes = self.new.shapes
        return np.array([is_numbered(names) for names in shapes.lists])[shapes.ids] & (self.types.ids == 0)

    @cached_property
    def layouts(self) -> Array:
        """int64[m]: rows of one kind with the same columns and types have the same number."""
        parts = (self.new.shapes, self.old.shapes, self.types, self.unchanged)
        return combined([self.kinds, *(part.ids for part in parts)])

    def _maps(self, name: str) -> list[Piece]:
        text = pa.string()
        return [
            (column if (column.type.key_type, column.type.item_type) == (text, text) else _as_sent(column, name), rows)
            for column, rows in ((batch[name], rows) for batch, rows in self.pieces)
        ]

    def _lists(self, name: str) -> list[Piece]:
        return [
            (column if column.type.value_type == pa.string() else _as_sent(column, name), rows)
            for column, rows in ((batch[name], rows) for batch, rows in self.pieces)
        ]

    def column(self, name: str, type: pa.DataType) -> pa.Array:
        """A column of the record batches; null where one has no such column."""
        found = []
        for batch, rows in self.pieces:
            if name in batch.schema.names:
                column = batch[name].take(pa.array(rows))
                found.append(column if column.type == type else column.cast(type))
            else:
                found.append(pa.nulls(len(rows), type))
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    def at(self, place: int) -> tuple[pa.RecordBatch, int]:
        """The record batch of one of these rows, and the row in it."""
        for batch, rows in self.pieces:
            if place < len(rows):
                return batch, int(rows[place])
            place -= len(rows)
        raise IndexError(place)

    def chosen(self, places: Array) -> ChangeRows:
        """Some of these rows; the places rise."""
        if len(places) == len(self.kinds):
            return self
        bounds = np.cumsum([0, *(len(rows) for _, rows in self.pieces)])
        cuts = np.searchsorted(places, bounds)
        pieces = tuple(
            (batch, rows[places[cuts[piece] : cuts[piece + 1]] - bounds[piece]])
            for piece, (batch, rows) in enumerate(self.pieces)
        )
        return ChangeRows(pieces, self.kinds[places])


def _as_sent(column: pa.Array, name: str) -> pa.Array:
    return column.cast(CHANGES.field(name).type)


def rows_of_tables(batch: pa.RecordBatch) -> ChangeRows:
    """The rows that name a table and are of one of TABLE_KINDS."""
    kinds = _kinds(batch)
    named = batch["table_name"].is_valid().to_numpy(zero_copy_only=False)
    return _chosen(batch, kinds, (kinds >= 0) & (kinds < len(TABLE_KINDS)) & named)


def rows_of_table(changes: RowChanges, schema: str, table: str, keep: Sequence[str] = ()) -> Iterator[ChangeRows]:
    """The rows of one table, with the columns that are kept; those of small record batches put together.

    Raises BadRows at a row that may be of this table, and does not say so.
    """
    held: list[ChangeRows] = []
    count = size = 0
    for batch in used_columns(changes, keep):
        kinds = _kinds(batch)
        _check_all_is_known(batch, kinds)
        is_own = pc.and_(pc.equal(batch["table_name"], table), pc.equal(batch["table_schema"], schema))
        found = _chosen(batch, kinds, (kinds >= 0) & pc.fill_null(is_own, False).to_numpy(zero_copy_only=False))
        if not len(found.kinds):
            continue
        count += len(found.kinds)
        size += batch.nbytes
        if held and (count > _GROUP_ROWS or size > _GROUP_BYTES):
            yield _joined(held)
            held, count, size = [], len(found.kinds), batch.nbytes
        held.append(found)
    if held:
        yield _joined(held)


def _joined(parts: list[ChangeRows]) -> ChangeRows:
    return ChangeRows(tuple(part.pieces[0] for part in parts), np.concatenate([part.kinds for part in parts]))


def _chosen(batch: pa.RecordBatch, kinds: Array, flags: Array) -> ChangeRows:
    rows = np.flatnonzero(flags)
    return ChangeRows(((batch, rows),), kinds[rows])


_CODES = pa.array([*TABLE_KINDS, *HIDDEN_KINDS])
"""The kinds by their codes."""


def _kinds(batch: pa.RecordBatch) -> Array:
    """int64[n]: the codes of the kinds, -1 for others."""
    found = pc.index_in(batch["kind"], value_set=_CODES.cast(batch["kind"].type))
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def _check_all_is_known(batch: pa.RecordBatch, kinds: Array) -> None:
    hidden = np.flatnonzero(kinds >= len(TABLE_KINDS))
    if len(hidden):
        place = int(hidden[0])
        kind = batch["kind"][place].as_py()
        raise BadRows(
            "changes that say which row of which table they changed; leave out the rows that you can do without",
            f"{kind}, {HIDDEN_KINDS[kind]}",
            **position(batch, place),
        )
    truncates = np.flatnonzero(kinds == TRUNCATE)
    nameless = truncates[batch["table_name"].is_null().to_numpy(zero_copy_only=False)[truncates]]
    if len(nameless):
        raise BadRows(
            "changes that say which table they changed",
            "a TRUNCATE without tables",
            **position(batch, int(nameless[0])),
        )


def position(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """Where a row comes from, as the attributes of an error."""
    names = batch.schema.names
    found: dict[str, Any] = {name: batch[name][row].as_py() for name in ("message", "record") if name in names}
    sequence = batch["sequence"][row].as_py() if "sequence" in names else None
    if sequence is not None:
        found["sequence"] = f"{lsn_text(sequence['commit_lsn'])} / {sequence['ordinal']}"
    return found
