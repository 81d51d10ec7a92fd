"""`NotedSelection`: row changes that were copied out of the notes of scans, with their layouts and texts of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from ...options.reading import KINDS
from ...options.table_names import TableName
from ..arrays import Array, read_only, unused
from ..codes import combined_codes, grouped, in_groups
from ..columns.layouts import Layout, Names
from ..jit.intrinsics import BLOCK
from ..noted_texts import NotedTexts
from ..row_changes import TABLE_KINDS
from ..typed_tables.images import EncodedLists, Image, is_null
from ..typed_tables.rows import ChangeRows
from ..typed_tables.selections import Selection
from .facts import (
    FACT_COLUMNS,
    FactColumns,
    facts_of_columns,
    position_of,
)

_ROW_BYTES, _SELECTION_BYTES = 100, 3 << 10
"""About what a row takes beside its values, and a selection beside its rows."""

_TABLE_KINDS = np.array([TABLE_KINDS.index(kind) if kind in TABLE_KINDS else -1 for kind in KINDS])
"""The code of each kind in typed tables."""


@dataclass(frozen=True)
class NotedSelection:
    """Row changes that were copied out of the notes, as typed tables read them. It is a Selection.

    layout_codes   int64[n]: the index of each row's layout
    layouts        the different layouts
    values         the texts of all values that were sent, row by row, maybe among those of other rows
    starts         int64[2, n]: the index of the first value of each new image, and of each old one
    facts          see facts.py
    columns        further columns of the rows, other than FACT_COLUMNS
    shared_rows    the number of rows of which the arrays keep something: the rows are a range of those
    """

    layout_codes: Array
    layouts: Sequence[Layout]
    values: NotedTexts
    starts: Array
    facts: Array
    columns: dict[str, pa.Array]
    shared_rows: int

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
        column = self._fact_columns.column(name) if name in FACT_COLUMNS else self.columns.get(name)
        if column is None:
            return pa.nulls(len(self.layout_codes), type)
        return column if column.type == type else column.cast(type)

    @cached_property
    def _fact_columns(self) -> FactColumns:
        """The facts as columns."""
        return FactColumns(self.facts)

    def position(self, index: int) -> dict[str, Any]:
        """See Selection."""
        return position_of(self.facts[index].tolist())

    def detail(self, index: int) -> dict[str, str]:
        """See Selection."""
        return dict(self.layouts[int(self.layout_codes[index])].detail)

    def chosen(self, indices: Array) -> NotedSelection:
        """See Selection."""
        columns = {name: column.take(pa.array(indices)) for name, column in self.columns.items()}
        codes, facts = self.layout_codes[indices], self.facts[indices]
        return NotedSelection(codes, self.layouts, self.values, self.starts[:, indices], facts, columns, len(indices))

    def alone(self) -> NotedSelection:
        """Returns the rows without what is kept of others, unless that is less than their own."""
        values = len(self.values.source) + self.values.pairs.nbytes
        return self if values + _ROW_BYTES * self.shared_rows <= 2 * self.nbytes else _joined([self])

    @cached_property
    def nbytes(self) -> int:
        """See Selection. Of what is kept of other rows, only what lies between these rows counts."""
        first, last = self._value_range
        first_byte, last_byte = self._byte_range
        values = last_byte - first_byte + self.values.pairs.itemsize * 2 * (last - first)
        return values + _ROW_BYTES * len(self.layout_codes) + _SELECTION_BYTES

    @cached_property
    def _value_range(self) -> tuple[int, int]:
        """Where the values of these rows begin and end, among others."""
        if not len(self) or not len(self.values.pairs):
            return 0, 0
        last = self.layouts[int(self.layout_codes[-1])]
        return int(self.starts[0, 0]), int(self.starts[1, -1]) + len(last.old or ())

    @cached_property
    def _byte_range(self) -> tuple[int, int]:
        """Where the bytes of these values begin and end."""
        first, last = self._value_range
        if first == last:
            return 0, 0
        (begin, _), (end, length) = self.values.pairs[[first, last - 1]].tolist()
        return begin, end + max(length, 0)

    def _image(self, names: list[Names | None], starts: Array) -> Image:
        lists = EncodedLists(self.layout_codes, names)
        return Image(~lists.where(is_null), lists, self.values, starts)


def joined_selections(parts: Sequence[NotedSelection]) -> NotedSelection:
    """Returns the rows of all parts, one part after the other."""
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[NotedSelection]) -> NotedSelection:
    code_of: dict[Layout, int] = {}
    layout_codes = [
        np.array([code_of.setdefault(layout, len(code_of)) for layout in part.layouts], np.int64)[part.layout_codes]
        for part in parts
    ]
    values = [part._value_range for part in parts]
    texts = [part._byte_range for part in parts]
    values_before = [0, *accumulate(last - first for first, last in values)]
    bytes_before = [0, *accumulate(last - first for first, last in texts)]
    pairs = unused((values_before[-1], 2), np.int32)
    source = unused(bytes_before[-1], np.uint8)
    starts = []
    for part, (first, last), (first_byte, last_byte), value, byte in zip(
        parts, values, texts, values_before, bytes_before, strict=False
    ):
        own = pairs[value : value + last - first]
        own[:] = part.values.pairs[first:last]
        own[:, 0] += byte - first_byte
        source[byte : byte + last_byte - first_byte] = part.values.source[first_byte:last_byte]
        starts.append(part.starts + (value - first))
    return NotedSelection(
        np.concatenate(layout_codes),
        list(code_of),
        noted_texts_of(pairs, source),
        np.concatenate(starts, axis=1),
        np.concatenate([part.facts for part in parts]),
        {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in parts[0].columns},
        sum(map(len, parts)),
    )


def tables_of(layouts: Sequence[Layout]) -> tuple[Array, list[TableName]]:
    """Returns int64[n], the index of the table of each layout; and the tables, in the order in which they occur."""
    index_of: dict[TableName, int] = {}
    return np.array([index_of.setdefault(layout.table, len(index_of)) for layout in layouts], np.int64), [*index_of]


def indices_of_tables(selection: NotedSelection) -> Iterator[tuple[TableName, Array]]:
    """Yields the tables of a selection, each with the indices of its rows, in order."""
    numbers, tables = tables_of(selection.layouts)
    order, bounds = in_groups(numbers[selection.layout_codes], len(tables))
    for number, table in enumerate(tables):
        if bounds[number] < bounds[number + 1]:
            yield table, order[bounds[number] : bounds[number + 1]]


def selections_of_tables(selection: NotedSelection) -> Iterator[tuple[TableName, NotedSelection]]:
    """Yields the tables of a selection whose rows are ordered by table, each with its rows.

    They share their values: `NotedSelection.alone` copies those of a table.
    """
    own_layouts: dict[TableName, list[Layout]] = {}
    own_codes = np.zeros(len(selection.layouts), np.int64)
    counts = np.bincount(selection.layout_codes, minlength=len(own_codes)).tolist()
    row_counts: dict[TableName, int] = {}
    for code, (layout, count) in enumerate(zip(selection.layouts, counts, strict=True)):
        if count:
            layouts = own_layouts.setdefault(layout.table, [])
            own_codes[code] = len(layouts)
            layouts.append(layout)
            row_counts[layout.table] = row_counts.get(layout.table, 0) + count
    codes, row = own_codes[selection.layout_codes], 0
    while row < len(codes):
        table = selection.layouts[int(selection.layout_codes[row])].table
        count = row_counts[table]
        rows = slice(row, row + count)
        columns = {name: column.slice(row, count) for name, column in selection.columns.items()}
        starts, facts = selection.starts[:, rows], selection.facts[rows]
        own = NotedSelection(codes[rows], own_layouts[table], selection.values, starts, facts, columns, len(selection))
        yield table, own
        row += count


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
    types         further columns of the rows, and their types
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
    facts = facts_of_columns(len(layout_codes), rows.column)
    columns = {name: rows.column(name, type) for name, type in types.items()}
    return NotedSelection(layout_codes, layouts, values, starts, facts, columns, len(layout_codes))


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
    return starts, noted_texts_of(pairs, np.frombuffer(data or b"", np.uint8))


def change_rows(selection: NotedSelection) -> ChangeRows:
    """Returns the rows as typed tables take them."""
    return ChangeRows((selection,), selection.kinds)


def noted_texts_of(pairs: Array, source: Array) -> NotedTexts:
    """Returns texts in one buffer."""
    return NotedTexts(pairs, read_only(source), np.zeros(BLOCK, np.uint8))
