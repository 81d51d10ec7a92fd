"""Rows of one table, copied out of the notes of scans: their layouts, and the texts of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from ...options.reading import KINDS
from ..arrays import Array, Int, read_only
from ..columns.layouts import Layout, Names, layouts_of
from ..jit.compiler import compiled
from ..jit.intrinsics import BLOCK, copy_block
from ..noted_texts import NotedTexts
from ..row_changes import TABLE_KINDS
from ..scan.notes import ENDS, MESSAGE, NEW, OLD, RECORD, UNCHANGED_LENGTH, VALUE, ScannedRows
from ..typed_tables.images import EncodedLists, Image
from ..typed_tables.rows import ChangeRows
from ..typed_tables.selections import sequence_text

_TABLE_KINDS = np.array([TABLE_KINDS.index(kind) if kind in TABLE_KINDS else -1 for kind in KINDS])
"""The code of each kind in typed tables."""


@dataclass(frozen=True)
class NotedSelection:
    """Row changes that were copied out of the notes, as typed tables read them. It is a Selection.

    layout_codes   int64[n]: the index of each row's layout
    layouts        the different layouts
    values         the texts of all values that were sent
    starts         int64[2, n]: the index of the first value of each new image, and of each old one
    columns        further columns of the rows: message and record, and others that typed tables read
    """

    layout_codes: Array
    layouts: Sequence[Layout]
    values: NotedTexts
    starts: Array
    columns: dict[str, pa.Array]

    def __len__(self) -> int:
        """See Selection."""
        return len(self.layout_codes)

    @property
    def new(self) -> Image:
        """See Selection."""
        return self._image([layout.new for layout in self.layouts], self.starts[0])

    @property
    def old(self) -> Image:
        """See Selection."""
        return self._image([layout.old for layout in self.layouts], self.starts[1])

    @property
    def types(self) -> EncodedLists:
        """See Selection."""
        return self._lists([layout.types for layout in self.layouts])

    @property
    def unchanged(self) -> EncodedLists:
        """See Selection."""
        return self._lists([layout.unchanged for layout in self.layouts])

    @property
    def kinds(self) -> Array:
        """int64[n]: the kinds, as indices into TABLE_KINDS."""
        return _TABLE_KINDS[np.array([layout.kind for layout in self.layouts], np.int64)][self.layout_codes]

    @property
    def relation_ids(self) -> pa.Array:
        """See Selection."""
        oids = [dict(layout.detail).get("relation_id") for layout in self.layouts]
        of_layout = pa.array([None if oid is None else int(oid) for oid in oids], pa.int64())
        return of_layout.take(pa.array(self.layout_codes))

    def column(self, name: str, type: pa.DataType) -> pa.Array:
        """See Selection."""
        column = self.columns.get(name)
        if column is None:
            return pa.nulls(len(self.layout_codes), type)
        return column if column.type == type else column.cast(type)

    def position(self, index: int) -> dict[str, Any]:
        """See Selection."""
        position = {name: self.columns[name][index].as_py() for name in ("message", "record")}
        if "sequence" in self.columns:
            position["sequence"] = sequence_text(self.columns["sequence"][index].as_py())
        return position

    def detail(self, index: int) -> dict[str, str]:
        """See Selection."""
        return dict(self.layouts[int(self.layout_codes[index])].detail)

    def chosen(self, indices: Array) -> NotedSelection:
        """See Selection."""
        columns = {name: column.take(pa.array(indices)) for name, column in self.columns.items()}
        return NotedSelection(self.layout_codes[indices], self.layouts, self.values, self.starts[:, indices], columns)

    @cached_property
    def nbytes(self) -> int:
        """About the size in memory."""
        return len(self.values.source) + self.values.pairs.nbytes + 100 * len(self.layout_codes)

    def _image(self, names: Sequence[Names | None], starts: Array) -> Image:
        valid = np.array([image is not None for image in names], bool)[self.layout_codes]
        return Image(valid, self._lists(names), self.values, starts)

    def _lists(self, lists: Sequence[Names | None]) -> EncodedLists:
        code_of: dict[Names | None, int] = {None: 0}
        codes = np.array([code_of.setdefault(names, len(code_of)) for names in lists], np.int64)
        return EncodedLists(codes[self.layout_codes], list(code_of))


def copied_rows(
    scanned: ScannedRows,
    rows: Array,
    columns: dict[str, pa.Array],
    known: tuple[Array, Sequence[Layout]] | None = None,
) -> NotedSelection:
    """Copies row changes out of the notes.

    rows      int64[n]: rows of the notes
    columns   see NotedSelection
    known     layout codes and layouts of the rows; None looks for them
    """
    layout_codes, layouts = layouts_of(scanned, rows) if known is None else known
    starts = np.empty((2, len(rows)), np.int64)
    count, size = _measure_values(scanned.rows, rows, scanned.cells, starts)
    pairs, target = np.empty((count, 2), np.int32), np.empty(size + BLOCK, np.uint8)
    _copy_values(scanned.rows, rows, scanned.cells, scanned.source, scanned.text, pairs, target)
    return NotedSelection(layout_codes, layouts, _noted_texts(pairs, target[:size]), starts, columns)


def rows_without_values(scanned: ScannedRows, rows: Array) -> NotedSelection:
    """Returns row changes with their layouts, but not their values; see `copied_rows`."""
    layout_codes, layouts = layouts_of(scanned, rows)
    nothing = _noted_texts(np.empty((0, 2), np.int32), np.empty(0, np.uint8))
    return NotedSelection(layout_codes, layouts, nothing, np.zeros((2, len(rows)), np.int64), places_of(scanned, rows))


def places_of(scanned: ScannedRows, rows: Array) -> dict[str, pa.Array]:
    """Returns the columns `message` and `record` of rows of the notes."""
    return {name: pa.array(scanned.rows[field, rows]) for name, field in (("message", MESSAGE), ("record", RECORD))}


def joined_selections(parts: Sequence[NotedSelection]) -> NotedSelection:
    """Returns the rows of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    code_of: dict[Layout, int] = {}
    layout_codes = [
        np.array([code_of.setdefault(layout, len(code_of)) for layout in part.layouts], np.int64)[part.layout_codes]
        for part in parts
    ]
    values_before = [0, *accumulate(len(part.values.pairs) for part in parts)]
    bytes_before = [0, *accumulate(len(part.values.source) for part in parts)]
    pairs = np.concatenate([part.values.pairs for part in parts])
    for number, begin in enumerate(bytes_before[:-1]):
        pairs[values_before[number] : values_before[number + 1], 0] += begin
    return NotedSelection(
        np.concatenate(layout_codes),
        list(code_of),
        _noted_texts(pairs, np.concatenate([part.values.source for part in parts])),
        np.concatenate([part.starts + begin for part, begin in zip(parts, values_before, strict=False)], axis=1),
        {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in parts[0].columns},
    )


def change_rows(selection: NotedSelection) -> ChangeRows:
    """Returns the rows as typed tables take them."""
    return ChangeRows((selection,), selection.kinds)


def _noted_texts(pairs: Array, source: Array) -> NotedTexts:
    return NotedTexts(pairs, read_only(source), np.zeros(BLOCK, np.uint8))


@compiled
def _measure_values(rows: Array, chosen: Array, cells: Array, starts: Array) -> tuple[Int, Int]:
    """Fills starts of NotedSelection for the rows chosen, int64[n]; returns how many values and bytes they have."""
    count = size = np.int64(0)
    for index in range(len(chosen)):
        row = chosen[index]
        for map_index in range(NEW, OLD + 1):
            starts[map_index, index] = count
            for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                length = np.int64(cells[map_index, VALUE, cell, 1])
                if length != UNCHANGED_LENGTH:
                    count += 1
                    size += length if length > 0 else 0
    return count, size


@compiled
def _copy_values(
    rows: Array, chosen: Array, cells: Array, source: Array, text: Array, pairs: Array, target: Array
) -> None:
    """Copies the values that `_measure_values` has measured into target, and fills their pairs."""
    count = at = np.int64(0)
    for index in range(len(chosen)):
        row = chosen[index]
        for map_index in range(NEW, OLD + 1):
            for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                start = np.int64(cells[map_index, VALUE, cell, 0])
                length = np.int64(cells[map_index, VALUE, cell, 1])
                if length == UNCHANGED_LENGTH:
                    continue
                pairs[count, 0] = at
                pairs[count, 1] = length if length >= 0 else -1
                count += 1
                if start < 0:  # TEXT_SLACK bytes follow the last text, and BLOCK bytes what is copied
                    for step in range(0, length, BLOCK):
                        copy_block(target, at + step, text, ~start + step)
                elif start + length + BLOCK <= len(source):
                    for step in range(0, length, BLOCK):
                        copy_block(target, at + step, source, start + step)
                else:
                    for step in range(length):
                        target[at + step] = source[start + step]
                at += length if length > 0 else 0
