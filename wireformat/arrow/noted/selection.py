"""Rows of one table, copied out of the notes of scans: their layouts, and the texts of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from ...options.reading import KINDS
from ..arrays import Array, read_only
from ..codes import combined_codes, grouped
from ..columns.layouts import Layout, Names, layouts_of
from ..jit.compiler import compiled
from ..jit.intrinsics import BLOCK, copy_block
from ..noted_texts import COPIED_AT_ONCE, NotedTexts, unused
from ..row_changes import TABLE_KINDS
from ..scan.notes import ENDS, MESSAGE, NEW, OLD, RECORD, UNCHANGED_LENGTH, VALUE, ScannedRows
from ..typed_tables.images import EncodedLists, Image, is_null
from ..typed_tables.rows import ChangeRows
from ..typed_tables.selections import Selection, sequence_text

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
        return EncodedLists(self.layout_codes, [layout.types for layout in self.layouts])

    @property
    def unchanged(self) -> EncodedLists:
        """See Selection."""
        return EncodedLists(self.layout_codes, [layout.unchanged for layout in self.layouts])

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

    def copied(self, begin: int, end: int) -> NotedSelection:
        """Returns a copy of the rows from `begin` to `end`, of which there is at least one, and of their values alone.

        The values of all rows follow each other, as those of `copied_rows` do.
        """
        pairs, source = self.values.pairs, self.values.source
        first = int(self.starts[0, begin])
        last = int(self.starts[0, end]) if end < len(self) else len(pairs)
        own = pairs[first:last].copy()
        first_byte = int(own[0, 0]) if len(own) else 0
        own[:, 0] -= first_byte
        last_byte = int(pairs[last, 0]) if last < len(pairs) else len(source)
        firsts, codes = grouped(self.layout_codes[begin:end])
        return NotedSelection(
            codes.copy(),  # they may be those of all rows
            [self.layouts[code] for code in self.layout_codes[begin + firsts].tolist()],
            _noted_texts(own, source[first_byte:last_byte].copy() if len(own) else source[:0]),
            self.starts[:, begin:end] - first,
            {name: pa.concat_arrays([column.slice(begin, end - begin)]) for name, column in self.columns.items()},
        )

    @cached_property
    def nbytes(self) -> int:
        """See Selection."""
        return len(self.values.source) + self.values.pairs.nbytes + 100 * len(self.layout_codes)

    def _image(self, names: list[Names | None], starts: Array) -> Image:
        lists = EncodedLists(self.layout_codes, names)
        return Image(~lists.where(is_null), lists, self.values, starts)


def copied_rows(
    scanned: ScannedRows,
    rows: Array,
    columns: dict[str, pa.Array],
    known: tuple[Array, Sequence[Layout]] | None = None,
    order: Array | None = None,
) -> NotedSelection:
    """Copies row changes out of the notes.

    rows      int64[n]: rows of the notes
    columns   see NotedSelection, in the order of the result
    known     layout codes and layouts of the result; None looks for them
    order     int64[n]: the index in `rows` of each row of the result; None for their own order
    """
    layout_codes, layouts = layouts_of(scanned, rows) if known is None else known
    target_rows = np.arange(len(rows))
    if order is not None:
        target_rows[order] = np.arange(len(rows))
    counts, sizes = np.empty((len(rows), 2), np.int64), np.empty(len(rows), np.int64)
    _measure_values(scanned.rows, rows, scanned.cells, target_rows, counts, sizes)
    ends, byte_ends = np.cumsum(counts).reshape(-1, 2), np.cumsum(sizes)
    starts = ends - counts
    count, size = (int(ends[-1, 1]), int(byte_ends[-1])) if len(rows) else (0, 0)
    pairs = unused(2 * count, np.int32).reshape(-1, 2)
    target = unused(size, np.uint8)
    first_bytes = byte_ends - sizes
    _copy_values(
        scanned.rows, rows, scanned.cells, scanned.source, scanned.text, target_rows, starts, first_bytes, pairs, target
    )
    return NotedSelection(layout_codes, layouts, _noted_texts(pairs, target), np.ascontiguousarray(starts.T), columns)


def rows_without_values(
    scanned: ScannedRows, rows: Array, layout_codes: Array, layouts: Sequence[Layout]
) -> NotedSelection:
    """Returns row changes with their layouts, but not their values; see `copied_rows`."""
    nothing = _noted_texts(np.empty((0, 2), np.int32), np.empty(0, np.uint8))
    return NotedSelection(
        layout_codes, layouts, nothing, np.zeros((2, len(rows)), np.int64), position_columns(scanned, rows)
    )


def position_columns(scanned: ScannedRows, rows: Array) -> dict[str, pa.Array]:
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


def selection_of(
    rows: Selection,
    kinds: Array,
    tables: Sequence[tuple[str, str]],
    table_codes: Array,
    types: Mapping[str, pa.DataType],
) -> NotedSelection:
    """Returns row changes as if they were copied out of notes, to be joined with others that are.

    kinds         int64[n]: INSERT, UPDATE or DELETE, as indices into TABLE_KINDS
    table_codes   int64[n]: the index in `tables` of each row's table
    types         the further columns of the rows, and their types
    """
    new, old, oids = rows.new, rows.old, rows.relation_ids.dictionary_encode()
    lists = (new.names, old.names, rows.types, rows.unchanged)
    oid_codes = np.asarray(oids.indices.fill_null(-1)).astype(np.int64) + 1
    firsts, layout_codes = grouped(combined_codes([table_codes, kinds, *(one.codes for one in lists), oid_codes]))
    texts = [None, *map(str, oids.dictionary.to_pylist())]
    layouts = []
    for first in firsts.tolist():
        oid = texts[oid_codes[first]]
        new_names, old_names, types_of_row, unchanged = (one[first] for one in lists)
        detail = () if oid is None else (("relation_id", oid),)
        kind = KINDS.index(TABLE_KINDS[kinds[first]])
        layouts.append(Layout(kind, tables[table_codes[first]], new_names, old_names, types_of_row, unchanged, detail))
    starts, values = _values_of((new, old))
    columns = {name: rows.column(name, type) for name, type in types.items()}
    return NotedSelection(layout_codes, layouts, values, starts, columns)


def _values_of(images: Sequence[Image]) -> tuple[Array, NotedTexts]:
    """Returns the index of the first value of each image, int64[2, n], and the values: row by row, as in notes."""
    counts = [
        np.array([len(names or ()) for names in image.names.lists], np.int64)[image.names.codes] for image in images
    ]
    ends = np.cumsum(np.stack(counts, axis=1)).reshape(-1, len(images))
    starts = ends.T - np.stack(counts)
    total = int(ends[-1, -1]) if len(ends) else 0
    pairs, sources, source_bytes = np.empty((total, 2), np.int32), [], 0
    for image, count, firsts in zip(images, counts, starts, strict=True):
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        noted = image.values if isinstance(image.values, NotedTexts) else NotedTexts.of(image.values)
        own = NotedTexts.of(noted.chosen(np.repeat(image.starts, count) + within).strings())
        own.pairs[:, 0] += source_bytes
        pairs[np.repeat(firsts, count) + within] = own.pairs
        sources.append(own.source)
        source_bytes += len(own.source)
    texts = NotedTexts(pairs, read_only(np.concatenate(sources)), np.zeros(BLOCK, np.uint8)).strings()
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[: total + 1]
    pairs[:, 0] = bounds[:-1]
    pairs[:, 1] = np.where(pairs[:, 1] < 0, -1, np.diff(bounds))
    return starts, _noted_texts(pairs, np.frombuffer(data or b"", np.uint8))


def change_rows(selection: NotedSelection) -> ChangeRows:
    """Returns the rows as typed tables take them."""
    return ChangeRows((selection,), selection.kinds)


def _noted_texts(pairs: Array, source: Array) -> NotedTexts:
    return NotedTexts(pairs, read_only(source), np.zeros(BLOCK, np.uint8))


@compiled
def _measure_values(rows: Array, chosen: Array, cells: Array, target_rows: Array, counts: Array, sizes: Array) -> None:
    """Fills how many values the images of the rows chosen[n] have, counts[n, 2], and the bytes of each row, sizes[n].

    target_rows   int64[n]: which row of the result each of the rows chosen[n] is

    COPIED_AT_ONCE bytes follow the values of a row.
    """
    for index in range(len(chosen)):
        row = chosen[index]
        size = np.int64(COPIED_AT_ONCE)
        for map_index in range(NEW, OLD + 1):
            count = np.int64(0)
            for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                length = np.int64(cells[map_index, VALUE, cell, 1])
                if length != UNCHANGED_LENGTH:
                    count += 1
                    size += length if length > 0 else 0
            counts[target_rows[index], map_index - NEW] = count
        sizes[target_rows[index]] = size


@compiled
def _copy_values(
    rows: Array,
    chosen: Array,
    cells: Array,
    source: Array,
    text: Array,
    target_rows: Array,
    starts: Array,
    first_bytes: Array,
    pairs: Array,
    target: Array,
) -> None:
    """Copies the values that `_measure_values` has measured into target, and fills their pairs.

    target_rows   int64[n]: which row of the result each of the rows chosen[n] is
    starts        int64[n, 2]: for a row of the result, the index of the first value of its images
    first_bytes   int64[n]: and where its values begin in target
    """
    # The rows are read in their order, since the notes of rows that follow each other are beside each other.
    for index in range(len(chosen)):
        row, target_row = chosen[index], target_rows[index]
        count, at = starts[target_row, 0], first_bytes[target_row]
        for map_index in range(NEW, OLD + 1):
            for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                start = np.int64(cells[map_index, VALUE, cell, 0])
                length = np.int64(cells[map_index, VALUE, cell, 1])
                if length == UNCHANGED_LENGTH:
                    continue
                pairs[count, 0] = at
                pairs[count, 1] = length if length >= 0 else -1
                count += 1
                if start < 0:  # TEXT_SLACK bytes follow the last text, and COPIED_AT_ONCE bytes what is copied
                    for step in range(0, length, BLOCK):
                        copy_block(target, at + step, text, ~start + step)
                elif start + (length if length > 0 else 0) + COPIED_AT_ONCE <= len(source):
                    copy_block(target, at, source, start)
                    copy_block(target, at + BLOCK, source, start + BLOCK)
                    step = COPIED_AT_ONCE
                    while step < length:
                        copy_block(target, at + step, source, start + step)
                        step += BLOCK
                else:
                    for step in range(length):
                        target[at + step] = source[start + step]
                at += length if length > 0 else 0
