"""The tables of a stream, from the notes of its scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...options.reading import KINDS
from ...options.table_names import TableName
from ..arrays import Array
from ..codes import grouped, in_groups
from ..columns.layouts import Layout
from ..row_changes import TABLE_KINDS
from ..scan.notes import MESSAGE, RECORD
from ..typed_tables.observations import Observations
from ..typed_tables.tables import TablesFound
from ..typed_tables.versions import image_facts
from .rows import NotedRows
from .selection import NotedSelection, change_rows, joined_selections, rows_without_values

_IS_OF_TABLE = np.array([kind in TABLE_KINDS for kind in KINDS])

MOST_RANGES = 8
"""Up to this many ranges of rows are taken from the notes one by one. Beyond, a record batch of all rows is faster."""


GROUP_ROWS = 1 << 14
"""At least this many rows are taken from the notes together: a group costs as much as a few thousand rows."""


class NotedTables:
    """The tables of a stream, from the rows of its scan.

    tables   takes the rows
    """

    def __init__(self, tables: TablesFound | Observations) -> None:
        self._tables = tables
        self._found = tables if isinstance(tables, TablesFound) else None
        self._waiting: list[NotedSelection] = []
        self._count = 0

    def take(self, rows: pa.RecordBatch | NotedRows) -> None:
        """Takes the next rows."""
        if isinstance(rows, pa.RecordBatch):
            self._take_batch(rows)
            return
        chosen = np.flatnonzero(_IS_OF_TABLE[rows.kind_codes])
        is_noted = rows.are_noted_changes(chosen)
        bounds = (np.flatnonzero(is_noted[1:] != is_noted[:-1]) + 1).tolist()
        if len(bounds) >= MOST_RANGES:
            self._take_batch(rows.batch_of(chosen))
            return
        for start, stop in zip([0, *bounds], [*bounds, len(chosen)], strict=True):
            if start < stop and is_noted[start]:
                self._take_notes(rows, rows.notes_of(chosen[start:stop]))
            elif start < stop:
                self._take_batch(rows.batch_of(chosen[start:stop]))
        if self._count >= GROUP_ROWS:
            self._take_waiting()

    def finish(self) -> None:
        """Hands on the last rows."""
        self._take_waiting()

    def _take_batch(self, batch: pa.RecordBatch) -> None:
        self._take_waiting()
        self._tables.take_batch(batch)

    def _take_notes(self, rows: NotedRows, notes: Array) -> None:
        """Takes row changes that the notes have; they are only counted if their tables are known."""
        codes, layouts = rows.layouts_of(notes)
        if self._found is None or self._waiting or not _count_settled(self._found, rows, notes, codes, layouts):
            self._waiting.append(rows_without_values(rows.scanned, notes, codes, layouts))
            self._count += len(notes)

    def _take_waiting(self) -> None:
        if not self._waiting:
            return
        selection = joined_selections(self._waiting)
        changes = change_rows(selection)
        self._tables.take(changes, _by_table(selection), selection.position)
        if self._found is not None:
            for first in grouped(selection.layout_codes)[0].tolist():
                layout = selection.layouts[selection.layout_codes[first]]
                versions = self._found.versions_of(layout.table)
                if versions is not None:
                    versions.settle(layout, image_facts(changes, first))
        self._waiting, self._count = [], 0


def _count_settled(found: TablesFound, rows: NotedRows, notes: Array, codes: Array, layouts: Sequence[Layout]) -> bool:
    """Counts the rows of layouts that are all settled; returns whether they are.

    codes   int64[n]: the index of the layout of each row of the notes
    """
    counts = np.bincount(codes, minlength=len(layouts))
    occurring = np.flatnonzero(counts).tolist()
    for code in occurring:
        versions = found.versions_of(layouts[code].table)
        if versions is None or not versions.is_settled(layouts[code]):
            return False
    lasts = np.zeros(len(layouts), np.int64)
    lasts[codes] = np.arange(len(codes))  # of several rows, the last one stays
    of_tables: dict[TableName, tuple[int, int]] = {}
    for code in occurring:
        last, count = of_tables.get(layouts[code].table, (0, 0))
        of_tables[layouts[code].table] = max(last, int(lasts[code])), count + int(counts[code])
    of_notes = rows.scanned.rows
    for table, (last, count) in of_tables.items():
        row = notes[last]
        found.count(table, {"message": int(of_notes[MESSAGE, row]), "record": int(of_notes[RECORD, row])}, count)
    return True


def _by_table(selection: NotedSelection) -> Iterator[tuple[TableName, Array]]:
    """Yields the tables, each with the indices of its rows, in order."""
    number_of: dict[TableName, int] = {}
    numbers = np.array([number_of.setdefault(layout.table, len(number_of)) for layout in selection.layouts], np.int64)
    of_row = numbers[selection.layout_codes]
    order, bounds = in_groups(of_row, len(number_of))
    for table, number in number_of.items():
        if bounds[number] < bounds[number + 1]:
            yield table, order[bounds[number] : bounds[number + 1]]
