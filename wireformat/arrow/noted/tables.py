"""The tables of a stream, from the notes of its scan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...formats.pgoutput.undelivered import Descriptions
from ...options.reading import KINDS
from ...options.table_names import TableName
from ..arrays import Array
from ..codes import grouped
from ..columns.last_columns import LastColumns
from ..columns.layouts import Layout
from ..jit.compiler import compiled
from ..row_changes import TABLE_KINDS, TABLE_RELATION
from ..scan.notes import MESSAGE, RECORD
from ..typed_tables.rows import ChangeRows
from ..typed_tables.versions import ColumnFacts, image_facts
from .copies import rows_without_values
from .relation_events import take_descriptions
from .rows import NotedRows
from .selection import NotedSelection, change_rows, indices_of_tables, joined_selections

_IS_OF_TABLE = np.array([kind in TABLE_KINDS for kind in KINDS])

MOST_RANGES = 8
"""Up to this many ranges of rows are taken from the notes one by one. Beyond, a record batch of all rows is faster."""


GROUP_ROWS = 1 << 14
"""At least this many rows are taken from the notes together: a group costs as much as a few thousand rows."""

_MOST_NEW = 0.5
"""Rows up to the last new layout of their table are taken first, unless they are more than this share."""


class CountedTables(Protocol):
    """Takes the rows of tables, or counts them where they tell nothing new. A position is a message and a record."""

    def take(
        self, rows: ChangeRows, tables: Iterable[tuple[TableName, Array]], position_of: Callable[[int], dict[str, Any]]
    ) -> None:
        """See TablesFound."""

    def take_batch(self, batch: pa.RecordBatch) -> None:
        """See TablesFound."""

    def settle(self, table: TableName, layout: Hashable, facts: ColumnFacts) -> None:
        """Learns what rows of a layout tell, of which some have been taken."""

    def is_settled(self, table: TableName, layout: Hashable) -> bool:
        """Whether rows of a layout tell nothing new, until other rows of their table are taken: they can be counted."""

    def count(
        self, table: TableName, layout: Hashable, first: dict[str, Any], last: dict[str, Any], changes: int
    ) -> None:
        """Counts the next rows of a layout that is settled, with the positions of the first and the last one."""


class NotedTables:
    """The tables of a stream, from the rows of its scan. Rows of layouts that tell nothing new are only counted.

    tables   takes the rows
    only     the table whose relations are taken: a stream describes all of its tables, also to those who want one
    descriptions   learns in which transactions tables were described; None if that is not needed
    """

    def __init__(
        self, tables: CountedTables, only: TableName | None = None, descriptions: Descriptions | None = None
    ) -> None:
        self._tables, self._only, self._descriptions = tables, only, descriptions
        self._last = LastColumns()
        self._waiting: list[NotedSelection] = []
        self._waiting_tables: set[TableName] = set()
        self._count = 0

    def take(self, rows: pa.RecordBatch | NotedRows) -> None:
        """Takes the next rows."""
        self._take(rows)
        if self._descriptions is not None:
            take_descriptions(self._descriptions, rows)

    def _take(self, rows: pa.RecordBatch | NotedRows) -> None:
        if isinstance(rows, pa.RecordBatch):
            self._take_batch(rows)
            return
        chosen = np.flatnonzero(_IS_OF_TABLE[rows.kind_codes])
        is_noted = rows.are_noted_changes(chosen)
        bounds = (np.flatnonzero(is_noted[1:] != is_noted[:-1]) + 1).tolist()
        if len(bounds) >= MOST_RANGES:
            self._take_batch(rows.batch_of(chosen))
            return
        notes = rows.notes_of(chosen[is_noted])
        found = rows.layouts_of(notes, None if bounds else self._last)
        done = 0
        for start, stop in zip([0, *bounds], [*bounds, len(chosen)], strict=True):
            if start < stop and is_noted[start]:
                those = slice(done, done + stop - start)
                self._take_notes(rows, notes[those], found.codes[those], found.layouts)
                done = those.stop
            elif start < stop:
                self._take_batch(rows.batch_of(chosen[start:stop]))
        if self._count >= GROUP_ROWS:
            self._take_waiting()

    def finish(self) -> None:
        """Hands on the last rows."""
        self._take_waiting()

    def _take_batch(self, batch: pa.RecordBatch) -> None:
        self._take_waiting()
        self._last.forget()
        self._tables.take_batch(batch if self._only is None else without_other_relations(batch, self._only))

    def _take_notes(
        self, rows: NotedRows, notes: Array, codes: Array, layouts: Sequence[Layout], *, may_cut: bool = True
    ) -> None:
        """Takes row changes that the notes have.

        codes     int64[n]: the index of the layout of each row
        layouts   the layouts
        may_cut   whether rows up to the last new layout of their table may be taken before the others
        """
        counts, firsts, lasts = np.zeros((3, len(layouts)), np.int64)
        _note_occurrences(codes, counts, firsts, lasts)
        occurring = np.flatnonzero(counts)
        found = [layouts[code] for code in occurring.tolist()]
        must_wait = self._waiting_tables.union(
            layout.table for layout in found if not self._tables.is_settled(layout.table, layout)
        )
        waits = np.array([layout.table in must_wait for layout in found], bool)
        counted = occurring[~waits]
        self._count_rows(rows, layouts, counted, notes[firsts[counted]], notes[lasts[counted]], counts[counted])
        if not waits.any():
            return
        new_until = _new_until(found, firsts[occurring].tolist())
        until = np.full(len(layouts), -1)
        until[occurring] = [new_until[layout.table] if layout.table in must_wait else -1 for layout in found]
        is_new, is_waiting = np.arange(len(codes)) <= until[codes], until[codes] >= 0
        new, count = int(np.count_nonzero(is_new)), int(np.count_nonzero(is_waiting))
        is_cut = may_cut and count >= GROUP_ROWS and new <= _MOST_NEW * count
        taken = np.flatnonzero(is_new if is_cut else is_waiting)
        self._waiting.append(rows_without_values(rows.scanned, notes[taken], codes[taken], layouts))
        self._waiting_tables = must_wait
        self._count += len(taken)
        if is_cut:  # what they teach may settle the layouts of all others
            self._take_waiting()
            others = is_waiting & ~is_new
            self._take_notes(rows, notes[others], codes[others], layouts, may_cut=False)

    def _count_rows(
        self, rows: NotedRows, layouts: Sequence[Layout], codes: Array, firsts: Array, lasts: Array, counts: Array
    ) -> None:
        """Counts rows of settled layouts.

        codes           int64[n]: the layouts, as indices
        firsts, lasts   int64[n]: the first and the last row of the notes that has each layout
        counts          int64[n]: how many rows have it
        """
        fields = [[MESSAGE], [RECORD]]
        begins, ends = (rows.scanned.rows[fields, of_layout].T.tolist() for of_layout in (firsts, lasts))
        for code, begin, end, count in zip(codes.tolist(), begins, ends, counts.tolist(), strict=True):
            layout = layouts[code]
            self._tables.count(layout.table, layout, _position(begin), _position(end), count)

    def _take_waiting(self) -> None:
        if not self._waiting:
            return
        selection = joined_selections(self._waiting)
        changes = change_rows(selection)
        self._tables.take(changes, indices_of_tables(selection), selection.position)
        for first in grouped(selection.layout_codes)[0].tolist():
            layout = selection.layouts[selection.layout_codes[first]]
            self._tables.settle(layout.table, layout, image_facts(changes, first))
        self._waiting, self._waiting_tables, self._count = [], set(), 0


@compiled
def _note_occurrences(codes: Array, counts: Array, firsts: Array, lasts: Array) -> None:
    """Fills, for each code that occurs, how often it does, and where for the first and the last time.

    counts   int64[n], zeros
    """
    for index in range(len(codes)):
        code = codes[index]
        if counts[code] == 0:
            firsts[code] = index
        counts[code] += 1
        lasts[code] = index


def without_other_relations(batch: pa.RecordBatch, table: TableName) -> pa.RecordBatch:
    """Returns the rows without those that describe other tables."""
    is_own = pc.and_(
        *(pc.equal(batch[name], of) for name, of in zip(("table_schema", "table_name"), table, strict=True))
    )
    is_kept = pc.or_kleene(pc.not_equal(batch["kind"], TABLE_KINDS[TABLE_RELATION]), is_own)
    return batch.filter(pc.fill_null(is_kept, True))


def _new_until(layouts: Sequence[Layout], firsts: Sequence[int]) -> dict[TableName, int]:
    """Returns the last first row of a layout of each table.

    firsts   the first row of each of the layouts
    """
    until: dict[TableName, int] = {}
    for layout, first in zip(layouts, firsts, strict=True):
        until[layout.table] = max(first, until.get(layout.table, first))
    return until


def _position(numbers: Sequence[int]) -> dict[str, Any]:
    message, record = numbers
    return {"message": message, "record": record}
