"""The tables of a stream, from the notes of its scan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ...options.reading import KINDS
from ..arrays import Array
from ..codes import in_groups
from ..row_changes import TABLE_KINDS
from ..typed_tables.observations import Observations
from ..typed_tables.tables import TablesFound
from .rows import NotedRows
from .selection import NotedSelection, change_rows, joined_selections, rows_without_values

_IS_OF_TABLE = np.array([kind in TABLE_KINDS for kind in KINDS])

MOST_RANGES = 8
"""Up to this many ranges of rows are taken from the notes one by one. Beyond, a record batch of all rows is faster."""


GROUP_ROWS = 1 << 16
"""At least this many rows are taken from the notes together: a group costs as much as a few thousand rows."""


class NotedTables:
    """The tables of a stream, from the rows of its scan.

    tables   takes the rows
    """

    def __init__(self, tables: TablesFound | Observations) -> None:
        self._tables = tables
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
                notes = rows.notes_of(chosen[start:stop])
                self._waiting.append(rows_without_values(rows.scanned, notes, *rows.layouts_of(notes)))
                self._count += len(notes)
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

    def _take_waiting(self) -> None:
        if self._waiting:
            selection = joined_selections(self._waiting)
            self._tables.take(change_rows(selection), _by_table(selection), selection.position)
            self._waiting, self._count = [], 0


def _by_table(selection: NotedSelection) -> Iterator[tuple[tuple[str, str], Array]]:
    """Yields the tables, each with the indices of its rows, in order."""
    number_of: dict[tuple[str, str], int] = {}
    numbers = np.array([number_of.setdefault(layout.table, len(number_of)) for layout in selection.layouts], np.int64)
    of_row = numbers[selection.layout_codes]
    order, bounds = in_groups(of_row, len(number_of))
    for table, number in number_of.items():
        if bounds[number] < bounds[number + 1]:
            yield table, order[bounds[number] : bounds[number + 1]]
