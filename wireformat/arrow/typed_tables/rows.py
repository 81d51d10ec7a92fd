"""Rows of the row-change table as typed tables read them: by table, with their images and their positions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadRows, OptionError, add_hint
from ...options.table import listed, nearest
from ..arrays import Array
from ..codes import codes_of_values, combined_codes
from ..row_changes import (
    HIDDEN_KINDS,
    RELATION_ID_COLUMN,
    TABLE_COLUMNS,
    TABLE_KINDS,
    TABLE_RELATION,
    TABLE_TRUNCATE,
    RowChanges,
    record_batches,
)
from ..schemas import CHANGES, TEXT_MAP, format_of
from ..unread import ReadSummary
from .images import EncodedLists, Images, is_null, is_numbered, joined_lists
from .selections import BatchSelection, Selection, row_position

READ_COLUMNS = (
    *TABLE_COLUMNS,
    *("detail", "message", "record", "sequence", "xid", "commit_time", "raw", RELATION_ID_COLUMN),
)
"""The columns that typed tables read."""

_GROUP_BYTES = 1 << 30
"""Rows of record batches of up to this many bytes are read together: a string column holds at most 2 GiB."""

_GROUP_ROWS = 1 << 16
"""Up to this many rows are read together. A group costs as much as a few hundred rows, so it need not be larger."""


class RowChangeSource:
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

    Raises OptionError for a column that is missing or cannot be read, TypeError for anything but Arrow data.
    """
    for batch in record_batches(changes):
        names = batch.schema.names
        check_columns(names, keep)
        batch = batch.select([name for name in names if name in READ_COLUMNS or name in keep])
        for index, field in enumerate(batch.schema):
            if field.name not in _CAST_COLUMNS:
                continue
            type, wanted = field.type, CHANGES.field(field.name).type
            if not _can_be_cast(type, wanted):
                raise OptionError(f"changes, column {field.name}: expected {wanted}, got {type}")
            is_coded = pa.types.is_dictionary(type) and field.name == "kind"
            if is_coded or pa.types.is_string_view(type) or pa.types.is_null(type):
                batch = batch.set_column(index, field.name, batch.column(index).cast(wanted))
        yield batch


_CAST_COLUMNS = (*TABLE_COLUMNS, "detail")
"""The columns that are read as their type in the row-change table."""


@cache
def _can_be_cast(type: pa.DataType, wanted: pa.DataType) -> bool:
    try:
        pa.nulls(0, type).cast(wanted)
    except pa.ArrowException:
        return False
    return not pa.types.is_primitive(type)


def check_columns(names: Sequence[str], keep: Sequence[str]) -> None:
    """Raises OptionError if row changes with columns of these names lack one that is read, or one to keep."""
    missing = [name for name in TABLE_COLUMNS if name not in names]
    if missing:
        raise OptionError(f"changes: expected the columns of the row-change table, missing: {', '.join(missing)}")
    repeated = [name for name in READ_COLUMNS if names.count(name) > 1]
    if repeated:
        raise OptionError(f"changes: expected columns with different names, got {', '.join(repeated)} twice")
    for name in keep:
        if name not in names:
            raise OptionError(f"option keep: changes have no column {name!r}{nearest(name, names)}{listed(names)}")
        if names.count(name) > 1:
            raise OptionError(f"option keep: changes have {names.count(name)} columns {name!r}; rename them")


@dataclass(frozen=True)
class ChangeRows:
    """Chosen rows of some sources, one source after the other.

    selections  the rows of each source
    kinds       int64[m]: the kinds of all rows, as indices into TABLE_KINDS

    An index of a row counts from the first row of the first selection.
    """

    selections: tuple[Selection, ...]
    kinds: Array

    @cached_property
    def new(self) -> Images:
        """The new images."""
        return Images([selection.new for selection in self.selections])

    @cached_property
    def old(self) -> Images:
        """The old images."""
        return Images([selection.old for selection in self.selections])

    @cached_property
    def types(self) -> EncodedLists:
        """The lists of the types of the rows' values, encoded."""
        return joined_lists([selection.types for selection in self.selections])

    @cached_property
    def unchanged(self) -> EncodedLists:
        """The columns that the rows list as not sent."""
        return joined_lists([selection.unchanged for selection in self.selections])

    @cached_property
    def numbered(self) -> Array:
        """bool[m]: whether the new image has numbers for names, `$1`, `$2`, …. It then has all columns of the table.

        Only sql-decoding inserts rows without column names, and only sql-decoding omits types.
        """
        return self.new.names.where(is_numbered) & self.types.where(is_null)

    @property
    def relation_ids(self) -> pa.Array:
        """int64: the OIDs of the tables; null if the row change does not state it."""
        return pa.concat_arrays([selection.relation_ids for selection in self.selections])

    @cached_property
    def facts_of_layouts(self) -> dict[int, Any]:
        """What the rows of a layout tell about the columns of their table, by its code; see `image_facts`."""
        return {}

    @cached_property
    def layouts(self) -> Array:
        """int64[m]: rows with the same code are of one kind, with the same columns and types."""
        return self._layouts[0]

    @property
    def known_layouts(self) -> Sequence[Hashable] | None:
        """What rows with the same code in `layouts` have in common, of row changes alone; None if it is unknown."""
        return self._layouts[1]

    @cached_property
    def _layouts(self) -> tuple[Array, Sequence[Hashable] | None]:
        code_of: dict[Hashable, int] = {}
        codes: list[Array] = []
        for selection in self.selections:
            own, layouts = selection.layout_codes, selection.layouts
            if own is None or layouts is None:
                columns = (self.new.names, self.old.names, self.types, self.unchanged)
                return combined_codes([self.kinds, *(column.codes for column in columns)]), None
            if len(self.selections) == 1:
                return own, layouts
            codes.append(np.array([code_of.setdefault(layout, len(code_of)) for layout in layouts], np.int64)[own])
        return np.concatenate(codes), [*code_of]

    @cached_property
    def relation_codes(self) -> Array:
        """int64[m]: RELATIONs with the same code, from 1 on, say the same; all other rows have 0."""
        codes = np.zeros(len(self.kinds), np.int64)
        relations = np.flatnonzero(self.kinds == TABLE_RELATION)
        if len(relations):
            details = self.column("detail", TEXT_MAP).take(pa.array(relations))
            codes[relations] = codes_of_values(pa.chunked_array([details])) + 1
        return codes

    @property
    def nbytes(self) -> int:
        """About the size in memory."""
        return sum(selection.nbytes for selection in self.selections)

    def column(self, name: str, type: pa.DataType) -> pa.Array:
        """Returns a column of the rows; null in sources without this column."""
        found = [selection.column(name, type) for selection in self.selections]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    def position(self, index: int) -> dict[str, Any]:
        """Returns the position of a row in its input, as the attributes of an error."""
        selection, own = self._find(index)
        return selection.position(own)

    def detail(self, index: int) -> dict[str, str] | None:
        """Returns the `detail` of a row; None if the rows have no such column."""
        if index not in self._details:
            selection, own = self._find(index)
            self._details[index] = selection.detail(own)
        return self._details[index]

    @cached_property
    def _details(self) -> dict[int, dict[str, str] | None]:
        """The details that were asked for: those of a RELATION are, again and again."""
        return {}

    def _find(self, index: int) -> tuple[Selection, int]:
        for selection in self.selections:
            if index < len(selection):
                return selection, index
            index -= len(selection)
        raise IndexError(index)

    def chosen(self, indices: Array) -> ChangeRows:
        """Returns some of the rows; the indices must be ascending."""
        if len(indices) == len(self.kinds):
            return self
        begins = np.cumsum([0, *(len(selection) for selection in self.selections)])
        bounds = np.searchsorted(indices, begins)
        selections = tuple(
            selection.chosen(indices[bounds[number] : bounds[number + 1]] - begins[number])
            for number, selection in enumerate(self.selections)
        )
        return ChangeRows(selections, self.kinds[indices])


def rows_of_tables(batch: pa.RecordBatch) -> ChangeRows:
    """Returns the rows that name a table and are of one of TABLE_KINDS."""
    kinds = _kinds(batch)
    named = np.asarray(batch["table_name"].is_valid())
    return _chosen(batch, kinds, (kinds >= 0) & (kinds < len(TABLE_KINDS)) & named)


def chosen_of_batch(rows: ChangeRows) -> Array:
    """Returns the indices in their record batch of what `rows_of_tables` has chosen."""
    (selection,) = rows.selections
    assert isinstance(selection, BatchSelection), "rows of one record batch"
    return selection.rows


def rows_of_table(changes: RowChanges, schema: str, table: str, keep: Sequence[str] = ()) -> Iterator[ChangeRows]:
    """Yields the rows of one table, with the columns to keep. Rows of small record batches are yielded together.

    Raises BadRows at a row that may be a change of this table but does not name its table.
    """
    waiting: list[ChangeRows] = []
    count = size = 0
    for batch in needed_columns(changes, keep):
        kinds = _kinds(batch)
        check_tables_are_named(batch, kinds)
        is_of_table = pc.and_(pc.equal(batch["table_name"], table), pc.equal(batch["table_schema"], schema))
        found = _chosen(batch, kinds, (kinds >= 0) & np.asarray(pc.fill_null(is_of_table, False)))
        if not len(found.kinds):
            continue
        count += len(found.kinds)
        size += batch.nbytes
        if waiting and (count > _GROUP_ROWS or size > _GROUP_BYTES):
            yield joined_rows(waiting)
            waiting, count, size = [], len(found.kinds), batch.nbytes
        waiting.append(found)
    if waiting:
        yield joined_rows(waiting)


def joined_rows(parts: Sequence[ChangeRows]) -> ChangeRows:
    """Returns the rows of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    selections = tuple(selection for rows in parts for selection in rows.selections)
    return ChangeRows(selections, np.concatenate([rows.kinds for rows in parts]))


def _chosen(batch: pa.RecordBatch, kinds: Array, flags: Array) -> ChangeRows:
    rows = np.flatnonzero(flags)
    return ChangeRows((BatchSelection(batch, rows),), kinds[rows])


_CODES = pa.array([*TABLE_KINDS, *HIDDEN_KINDS])
"""All kinds that name, or should name, a table. A kind's index is its code."""


def _kinds(batch: pa.RecordBatch) -> Array:
    """Returns int64[n]: the codes of the kinds, -1 for all others."""
    found = pc.index_in(batch["kind"], value_set=_CODES.cast(batch["kind"].type))
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def check_tables_are_named(batch: pa.RecordBatch, kinds: Array | None = None) -> None:
    """Raises BadRows at a row that may be a change of any table.

    kinds   what `_kinds` returns
    """
    kinds = _kinds(batch) if kinds is None else kinds
    hidden = np.flatnonzero(kinds >= len(TABLE_KINDS))
    if len(hidden):
        row = int(hidden[0])
        kind = batch["kind"][row].as_py()
        raise BadRows(
            "changes that name their table and row",
            f"{kind}, {HIDDEN_KINDS[kind]}",
            hint="filter out the rows that you do not need",
            **row_position(batch, row),
        )
    truncates = np.flatnonzero(kinds == TABLE_TRUNCATE)
    nameless = truncates[np.asarray(batch["table_name"].is_null())[truncates]]
    if len(nameless):
        raise BadRows(
            "changes that name their table",
            "a TRUNCATE without tables",
            **row_position(batch, int(nameless[0])),
        )
