"""`ChunkTables`: the tables of a chunk, from the notes of its scans. Rows that tell nothing new are only counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Array
from ..arrow.columns.layouts import Layout
from ..arrow.noted.rows import NotedRows
from ..arrow.noted.selection import change_rows, rows_without_values
from ..arrow.noted.tables import NotedTables
from ..arrow.row_changes import TABLE_KINDS
from ..arrow.scan.notes import MESSAGE, RECORD
from ..arrow.typed_tables.observations import facts_of
from ..options.reading import KINDS
from .row_facts import ChunkObservations

_IS_OF_TABLE = np.array([kind in TABLE_KINDS for kind in KINDS])


class ChunkTables:
    """Has observations take the rows of a chunk, which come in order."""

    def __init__(self, observations: ChunkObservations) -> None:
        self._observations = observations
        self._tables = NotedTables(observations)
        self._facts: dict[Layout, str] = {}
        """What rows tell, by their layout, of the layouts that the tables have taken."""

    def take(self, rows: pa.RecordBatch | NotedRows) -> None:
        """Takes the next rows."""
        if isinstance(rows, pa.RecordBatch):
            self._tables.take(rows)
            return
        chosen = np.flatnonzero(_IS_OF_TABLE[rows.kind_codes])
        if not len(chosen) or not rows.are_noted_changes(chosen).all():
            self._tables.take(rows)
            return
        notes = rows.notes_of(chosen)
        codes, layouts = rows.layouts_of(notes)
        lasts, firsts = np.full(len(layouts), -1), np.full(len(layouts), -1)
        lasts[codes] = np.arange(len(codes))  # of several rows, the last one stays
        firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        occurring = np.flatnonzero(lasts >= 0)
        found = [layouts[code] for code in occurring.tolist()]
        if self._tell_nothing_new(found):
            counts = np.bincount(codes, minlength=len(layouts))[occurring]
            self._count(rows, found, notes[firsts[occurring]], notes[lasts[occurring]], counts)
            return
        self._tables.take(rows)
        sample = firsts[occurring]
        changes = change_rows(rows_without_values(rows.scanned, notes[sample], codes[sample], layouts))
        for index, layout in enumerate(found):
            if layout not in self._facts:
                self._facts[layout] = facts_of(changes, index)

    def finish(self) -> None:
        """Hands on the last rows."""
        self._tables.finish()

    def _tell_nothing_new(self, layouts: Sequence[Layout]) -> bool:
        """Whether rows of these layouts can be counted, in any order."""
        if not all(layout in self._facts for layout in layouts):
            return False
        self._tables.finish()  # the rows before them
        return all(self._observations.is_settled(layout.table, self._facts[layout]) for layout in layouts)

    def _count(self, rows: NotedRows, layouts: Sequence[Layout], firsts: Array, lasts: Array, counts: Array) -> None:
        """Counts rows.

        firsts, lasts   int64[n]: the first and the last row of the notes that has each layout
        counts          int64[n]: how many rows have it
        """
        ends = [
            [{"message": message, "record": record} for message, record in zip(*places, strict=True)]
            for places in (rows.scanned.rows[[MESSAGE, RECORD]][:, notes].tolist() for notes in (firsts, lasts))
        ]
        for layout, first, last, count in zip(layouts, *ends, counts.tolist(), strict=True):
            self._observations.add(layout.table, self._facts[layout], first, last, count)
