"""Rows of the row-change table as typed tables read them: by table, with their images and their positions."""

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
from ...options.table import listed, nearest
from ..arrays import Array
from ..row_changes import HIDDEN_KINDS, RELATION_ID_COLUMN, TABLE_COLUMNS, TABLE_KINDS, RowChanges, record_batches
from ..schemas import CHANGES, format_of
from ..unread import ReadSummary
from .images import ChosenColumn, EncodedLists, Images, combined_codes, encoded_lists, is_numbered

TABLE_INSERT, TABLE_UPDATE, TABLE_DELETE, TABLE_TRUNCATE, TABLE_RELATION = range(len(TABLE_KINDS))
"""The code of a kind: its index in TABLE_KINDS."""

READ_COLUMNS = (
    *TABLE_COLUMNS,
    *("detail", "message", "record", "sequence", "xid", "commit_time", "raw", RELATION_ID_COLUMN),
)
"""The columns that typed tables read."""

_GROUP_BYTES = 1 << 30
"""Rows of record batches of up to this many bytes are read together: a string column holds at most 2 GiB."""

_GROUP_ROWS = 1 << 16
"""Up to this many rows are read together. A group costs as much as a few hundred rows, so it need not be larger."""


class Source:
    """Row changes that are read once, to their end.

    other_schemas  schemas of other inputs, whose metadata may name the format
    format         the format of the rows; None if it is not known
    is_whole       whether these are all rows of an input; only then does `check` raise if none could be read
    schema         of the first record batch; None if there is none

    Raises OptionError for two different formats, and the errors of `needed_columns`.
    """

    def __init__(
        self,
        changes: Any,
        keep: Sequence[str] = (),
        *,
        other_schemas: Sequence[pa.Schema] = (),
        format: str | None = None,
        is_whole: bool = True,
    ) -> None:
        self._batches = needed_columns(changes, keep)
        self._first = next(self._batches, None)
        self._is_whole = is_whole
        self._seen = ReadSummary()
        self.schema = None if self._first is None else self._first.schema
        self.format = format_of([*([] if self.schema is None else [self.schema]), *other_schemas], format)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the record batches, with the columns that typed tables read or the caller keeps."""
        for batch in self._batches if self._first is None else chain([self._first], self._batches):
            if format_of([batch.schema], self.format) != self.format:
                raise OptionError(
                    "option format: some record batches name their format in their metadata, but the first one does "
                    "not; pass format"
                )
            self._seen = self._seen.and_of(batch)
            yield batch

    def check(self) -> None:
        """Call it after the last batch. Raises BadRows if the input is whole and none of its rows could be read."""
        if self._is_whole:
            self._seen.check(self.format)

    def with_hint(self, error: BadRows) -> BadRows:
        """Adds a hint to the error, which format the messages look like, if no row could be read so far."""
        add_hint(error, self._seen.hint())
        return error


def needed_columns(changes: RowChanges, keep: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yields the record batches of row changes, with the columns that typed tables read or the caller keeps.

    Raises OptionError for a missing column, TypeError for anything but Arrow data.
    """
    for batch in record_batches(changes):
        names = batch.schema.names
        missing = [name for name in TABLE_COLUMNS if name not in names]
        if missing:
            raise OptionError(f"changes: expected the columns of the row-change table, missing: {', '.join(missing)}")
        for name in keep:
            if name not in names:
                raise OptionError(f"option keep: changes have no column {name!r}{nearest(name, names)}{listed(names)}")
            if names.count(name) > 1:
                raise OptionError(f"option keep: changes have {names.count(name)} columns {name!r}; rename them")
        yield batch.select([name for name in names if name in READ_COLUMNS or name in keep])


@dataclass(frozen=True)
class ChangeRows:
    """Chosen rows of some record batches, one batch after the other.

    selections  record batches, each with int64[n]: the indices of its chosen rows, ascending
    kinds       int64[m]: the kinds of all chosen rows, as indices into TABLE_KINDS

    An index of a chosen row counts from the first row of the first selection.
    """

    selections: tuple[tuple[pa.RecordBatch, Array], ...]
    kinds: Array

    @cached_property
    def new(self) -> Images:
        """The new images."""
        return Images(self._maps("new"))

    @cached_property
    def old(self) -> Images:
        """The old images."""
        return Images(self._maps("old"))

    @cached_property
    def types(self) -> EncodedLists:
        """The lists of the types of the rows' values, encoded."""
        return encoded_lists(self._lists("types"))

    @cached_property
    def unchanged(self) -> EncodedLists:
        """The columns that the rows list as not sent."""
        return encoded_lists(self._lists("unchanged"))

    @cached_property
    def numbered(self) -> Array:
        """bool[m]: whether the new image has numbers for names, `$1`, `$2`, …. It then has all columns of the table.

        Only sql-decoding inserts rows without column names, and only sql-decoding omits types.
        """
        names = self.new.names
        return np.array([is_numbered(image) for image in names.lists])[names.codes] & (self.types.codes == 0)

    @property
    def relation_ids(self) -> pa.Array:
        """int64: the OIDs of the tables; null if the row change does not state it."""
        found = []
        for batch, rows in self.selections:
            names = batch.schema.names
            if RELATION_ID_COLUMN in names:
                found.append(batch[RELATION_ID_COLUMN].take(pa.array(rows)).cast(pa.int64()))
            elif "detail" in names:
                detail = _cast_to_schema(batch["detail"].take(pa.array(rows)), "detail")
                found.append(pc.map_lookup(detail, "relation_id", "first").cast(pa.int64()))
            else:
                found.append(pa.nulls(len(rows), pa.int64()))
        return pa.concat_arrays(found)

    @cached_property
    def layouts(self) -> Array:
        """int64[m]: rows of one kind with the same columns and types have the same code."""
        columns = (self.new.names, self.old.names, self.types, self.unchanged)
        return combined_codes([self.kinds, *(column.codes for column in columns)])

    def _maps(self, name: str) -> list[ChosenColumn]:
        text = pa.string()
        return [
            (
                column
                if (column.type.key_type, column.type.item_type) == (text, text)
                else _cast_to_schema(column, name),
                rows,
            )
            for column, rows in ((batch[name], rows) for batch, rows in self.selections)
        ]

    def _lists(self, name: str) -> list[ChosenColumn]:
        return [
            (column if column.type.value_type == pa.string() else _cast_to_schema(column, name), rows)
            for column, rows in ((batch[name], rows) for batch, rows in self.selections)
        ]

    def column(self, name: str, type: pa.DataType) -> pa.Array:
        """Returns a column of the chosen rows; null in record batches without this column."""
        found = []
        for batch, rows in self.selections:
            if name in batch.schema.names:
                column = batch[name].take(pa.array(rows))
                found.append(column if column.type == type else column.cast(type))
            else:
                found.append(pa.nulls(len(rows), type))
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    def at(self, index: int) -> tuple[pa.RecordBatch, int]:
        """Returns the record batch of one chosen row, and the index of the row in it."""
        for batch, rows in self.selections:
            if index < len(rows):
                return batch, int(rows[index])
            index -= len(rows)
        raise IndexError(index)

    def chosen(self, indices: Array) -> ChangeRows:
        """Returns some of the chosen rows; the indices must be ascending."""
        if len(indices) == len(self.kinds):
            return self
        begins = np.cumsum([0, *(len(rows) for _, rows in self.selections)])
        bounds = np.searchsorted(indices, begins)
        selections = tuple(
            (batch, rows[indices[bounds[number] : bounds[number + 1]] - begins[number]])
            for number, (batch, rows) in enumerate(self.selections)
        )
        return ChangeRows(selections, self.kinds[indices])


def _cast_to_schema(column: pa.Array, name: str) -> pa.Array:
    """Casts a column to its type in the row-change table."""
    return column.cast(CHANGES.field(name).type)


def rows_of_tables(batch: pa.RecordBatch) -> ChangeRows:
    """Returns the rows that name a table and are of one of TABLE_KINDS."""
    kinds = _kinds(batch)
    named = batch["table_name"].is_valid().to_numpy(zero_copy_only=False)
    return _chosen(batch, kinds, (kinds >= 0) & (kinds < len(TABLE_KINDS)) & named)


def rows_of_table(changes: RowChanges, schema: str, table: str, keep: Sequence[str] = ()) -> Iterator[ChangeRows]:
    """Yields the rows of one table, with the columns to keep. Rows of small record batches are yielded together.

    Raises BadRows at a row that may be a change of this table but does not name its table.
    """
    waiting: list[ChangeRows] = []
    count = size = 0
    for batch in needed_columns(changes, keep):
        kinds = _kinds(batch)
        _check_tables_are_named(batch, kinds)
        is_of_table = pc.and_(pc.equal(batch["table_name"], table), pc.equal(batch["table_schema"], schema))
        found = _chosen(batch, kinds, (kinds >= 0) & pc.fill_null(is_of_table, False).to_numpy(zero_copy_only=False))
        if not len(found.kinds):
            continue
        count += len(found.kinds)
        size += batch.nbytes
        if waiting and (count > _GROUP_ROWS or size > _GROUP_BYTES):
            yield _joined(waiting)
            waiting, count, size = [], len(found.kinds), batch.nbytes
        waiting.append(found)
    if waiting:
        yield _joined(waiting)


def _joined(rows_of_batches: list[ChangeRows]) -> ChangeRows:
    """Joins the chosen rows of single record batches."""
    return ChangeRows(
        tuple(rows.selections[0] for rows in rows_of_batches), np.concatenate([rows.kinds for rows in rows_of_batches])
    )


def _chosen(batch: pa.RecordBatch, kinds: Array, flags: Array) -> ChangeRows:
    rows = np.flatnonzero(flags)
    return ChangeRows(((batch, rows),), kinds[rows])


_CODES = pa.array([*TABLE_KINDS, *HIDDEN_KINDS])
"""All kinds that name, or should name, a table. A kind's index is its code."""


def _kinds(batch: pa.RecordBatch) -> Array:
    """Returns int64[n]: the codes of the kinds, -1 for all others."""
    found = pc.index_in(batch["kind"], value_set=_CODES.cast(batch["kind"].type))
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def _check_tables_are_named(batch: pa.RecordBatch, kinds: Array) -> None:
    hidden = np.flatnonzero(kinds >= len(TABLE_KINDS))
    if len(hidden):
        row = int(hidden[0])
        kind = batch["kind"][row].as_py()
        raise BadRows(
            "changes that name their table and row",
            f"{kind}, {HIDDEN_KINDS[kind]}; filter out the rows that you do not need",
            **row_position(batch, row),
        )
    truncates = np.flatnonzero(kinds == TABLE_TRUNCATE)
    nameless = truncates[batch["table_name"].is_null().to_numpy(zero_copy_only=False)[truncates]]
    if len(nameless):
        raise BadRows(
            "changes that name their table",
            "a TRUNCATE without tables",
            **row_position(batch, int(nameless[0])),
        )


def row_position(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """Returns the position of a row in its input, as the attributes of an error."""
    names = batch.schema.names
    found: dict[str, Any] = {name: batch[name][row].as_py() for name in ("message", "record") if name in names}
    sequence = batch["sequence"][row].as_py() if "sequence" in names else None
    if sequence is not None:
        found["sequence"] = f"{lsn_text(sequence['commit_lsn'])} / {sequence['ordinal']}"
    return found
