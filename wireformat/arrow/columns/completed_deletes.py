"""Old images of DELETEs that leave out columns, completed with columns that are known from the rows before.

An UPDATE or DELETE is of the version that the row before it has, unless it names other columns. So where all rows since
some row name only columns of that one, they are of its version, and an old image may have all columns of that row. An
INSERT names all columns of its version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from ...options.table_names import TableName
from ..arrays import Array, Int, unused
from ..jit.compiler import compiled, inner
from ..noted_texts import NotedTexts
from ..scan.notes import (
    COMPLETE,
    DELETE,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    IMAGE_BITS,
    INSERT,
    KIND,
    NEW,
    OLD,
    PAIR,
    PRESENT,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_SLACK,
    UNTYPED,
    ScannedRows,
)
from .completed_images import (
    COLUMN_FIELDS,
    CompletedImages,
    cell_count,
    find_columns,
    first_cell,
    has_unsent,
    note_columns,
)
from .layouts import Layout, numbered_layouts, same_text

_MOST_CHANGES = 16
"""How many times the known columns of a table may change in a batch of rows, before its DELETEs stay as they are."""

_MOST_LEFT_OUT, _LEFT_OUT_AT_LEAST = 4, 8
"""A completed image has at most so many times the columns that it had, and so many more: memory is bounded."""

Columns: TypeAlias = "Mapping[str, str | None]"
"""The type of each column; None in an untyped image."""


class LastColumns:
    """Columns that the version of the last row of a table has, for a reader that takes all rows of tables in order."""

    def __init__(self) -> None:
        self._of: dict[TableName, Columns | Layout] = {}
        """The columns, or a layout that has them."""

    def of(self, table: TableName) -> Columns:
        """Returns those of a table; none if they are not known."""
        known = self._of.get(table, {})
        return _columns_of(known) if isinstance(known, Layout) else known

    def forget(self, table: TableName | None = None) -> None:
        """Forgets those of a table, or all: rows follow of which nothing is known."""
        if table is None:
            self._of.clear()
        else:
            self._of.pop(table, None)

    def take(self, codes: Array, layouts: Sequence[Layout]) -> None:
        """Learns from the next rows.

        codes   int64[n]: the index of the layout of each row
        """
        lasts = np.full(len(layouts), -1)
        lasts[codes] = np.arange(len(codes))  # the last one of equal indices stays
        order = np.argsort(-lasts)
        later: dict[TableName, list[Layout]] = {}
        known: dict[TableName, Columns | Layout] = {}
        for layout in [layouts[code] for code in order[: np.count_nonzero(lasts >= 0)].tolist()]:
            if layout.table in known:
                continue
            rows = later.setdefault(layout.table, [])
            rows.append(layout)
            if len(rows) == 1 and layout.new is not None:
                known[layout.table] = layout
            elif layout.new is not None:
                known[layout.table] = _known_to_all(_columns_of(layout), rows) or _columns_of(rows[0])
        for table, rows in later.items():
            if table not in known:  # DELETEs alone
                known[table] = _known_to_all(self.of(table), rows) or _columns_of(rows[0])
        self._of.update(known)


def _columns_of(layout: Layout) -> Columns:
    """Returns columns that the version of a row with this layout has; none if that is not sure."""
    names = layout.old if layout.new is None else layout.new
    if not names or layout.unchanged or names[0].startswith("$") or len({*names}) < len(names):
        return {}
    if layout.types is None:
        return dict.fromkeys(names)
    return dict(zip(names, layout.types, strict=True)) if all(layout.types) else {}


def _known_to_all(columns: Columns, layouts: Sequence[Layout]) -> Columns:
    """Returns the columns if rows with these layouts name no others; else none."""
    for layout in layouts:
        own = _columns_of(layout)
        if (layout.new or layout.old) and not own:
            return {}
        if not (own.items() <= columns.items() and columns.keys() >= {*(layout.old or ())}):
            return {}
    return columns


class CompletedDeletes(NamedTuple):
    """Old images of DELETEs that are completed.

    images    the images
    starts    int64[n]: for each of them, where its columns begin in `columns`; -1 for other rows
    columns   int32[m, COLUMN_FIELDS]
    text      the text of the notes, with more at its end
    """

    images: CompletedImages
    starts: Array
    columns: Array
    text: Array


def completed_deletes(
    scanned: ScannedRows, rows: Array, codes: Array, samples: Array, are_deletes: Array, last: LastColumns
) -> CompletedDeletes:
    """Completes the old images of DELETEs.

    rows          int64[n]: rows of the notes, row changes
    codes         int64[n]: the layout of each row
    samples       int64[m]: a row of each layout
    are_deletes   bool[m]: the layouts of DELETEs of which a table has many
    last          of the rows before
    """
    tables = _numbered_tables(scanned, samples)
    chosen, firsts = np.unique(tables[are_deletes], return_index=True)
    number_of = np.full(tables.max() + 1, -1)
    number_of[chosen] = np.arange(len(chosen))
    tables = number_of[tables]
    names = _table_names(scanned, samples[are_deletes][firsts])
    columns, states, text = _noted_columns([last.of(table) for table in names], scanned.text)
    widest = np.zeros(len(names), np.int64)
    ends = scanned.rows[ENDS : ENDS + OLD + 1]
    counts = (ends[:, samples] - np.where(samples > 0, ends[:, samples - 1], 0)).max(axis=0)
    np.maximum.at(widest, tables[tables >= 0], counts[tables >= 0])
    most = int(max(widest.max(), states[:, _COUNT].max()))
    room = unused((int(len(columns) + _MOST_CHANGES * widest.sum() + most), COLUMN_FIELDS), np.int32)
    room[: len(columns)] = columns
    is_delete = (scanned.rows[KIND, rows] == DELETE) & (tables[codes] >= 0)
    own = ends[OLD, rows[is_delete]] - np.where(rows[is_delete] > 0, ends[OLD, rows[is_delete] - 1], 0)
    cells = unused(int((_MOST_LEFT_OUT * own + _LEFT_OUT_AT_LEAST).sum()) + most, np.int32)
    starts, image_starts, image_counts = np.full(len(rows), -1), *np.zeros((2, len(rows)), np.int64)
    notes = scanned.rows, rows, scanned.cells, scanned.source, text, scanned.dictionary
    used = _complete(*notes, tables[codes], states, room, len(columns), starts, image_starts, image_counts, cells)
    images = CompletedImages(starts >= 0, image_starts, image_counts, cells[:used])
    return CompletedDeletes(images, starts, room, text)


def _numbered_tables(scanned: ScannedRows, rows: Array) -> Array:
    """Returns the number of the table of each of these rows, int64[n]."""
    numbers = scanned.rows[:, rows]
    numbers[PRESENT] = numbers[KIND] = numbers[ENDS : ENDS + 3] = 0
    return numbered_layouts(scanned._replace(rows=numbers), np.arange(len(rows)))[0]


def _table_names(scanned: ScannedRows, rows: Array) -> list[TableName]:
    """Returns the tables of some rows."""
    fields = [TABLE_SCHEMA, TABLE_SCHEMA + 1, TABLE_NAME, TABLE_NAME + 1]
    pairs = np.ascontiguousarray(scanned.rows[fields][:, rows].T.reshape(-1, PAIR), np.int32)
    names = NotedTexts(pairs, scanned.source, scanned.text).strings().fill_null("").to_pylist()
    return [*zip(names[::2], names[1::2], strict=True)]


_BEGIN, _COUNT, _IS_UNTYPED, _ARE_ALL, _CHANGES = range(5)
"""What is known of the columns of a table: where they begin and how many they are; whether they have no types; whether
they are those of an INSERT, which has all columns of its version; and how many times they have changed."""


def _noted_columns(known: Sequence[Columns], text: Array) -> tuple[Array, Array, Array]:
    """Returns the known columns of tables as notes, int32[m, COLUMN_FIELDS], what is known, int64[k, 5], and the text.

    text   of the notes, to whose end the names and types are added
    """
    counts = [len(columns) for columns in known]
    states = np.zeros((len(known), _CHANGES + 1), np.int64)
    states[:, _BEGIN] = np.cumsum(counts) - counts
    states[:, _COUNT] = counts
    states[:, _IS_UNTYPED] = [None in columns.values() for columns in known]
    texts = [part or "" for columns in known for part in chain.from_iterable(columns.items())]
    if not texts:
        return np.empty((0, COLUMN_FIELDS), np.int32), states, text
    encoded = [part.encode(errors="surrogatepass") for part in texts]
    lengths = np.array([*map(len, encoded)])
    pairs = np.stack([~(len(text) + np.cumsum(lengths) - lengths), lengths], axis=1).astype(np.int32)
    more = np.frombuffer(b"".join(encoded) + bytes(TEXT_SLACK), np.uint8)
    return pairs.reshape(-1, COLUMN_FIELDS), states, np.concatenate([text, more])


@compiled
def _complete(
    rows: Array,
    chosen: Array,
    cells: Array,
    source: Array,
    text: Array,
    dictionary: Array,
    tables: Array,
    states: Array,
    columns: Array,
    noted: Int,
    starts: Array,
    image_starts: Array,
    image_counts: Array,
    found: Array,
) -> Int:
    """Fills the arrays of CompletedDeletes and its images; returns how many cells were found.

    tables    int64[n]: of each row; below 0 for those of which no DELETE is completed
    states    int64[k, 5], changed: what is known of each table
    columns   int32[m, COLUMN_FIELDS]: `noted` are known at the beginning; filled after them
    found     int32[c]
    """
    used = np.int64(0)
    for index in range(len(chosen)):
        table = tables[index]
        if table < 0:
            continue
        row = chosen[index]
        present = rows[PRESENT, row]
        begin, count = states[table, _BEGIN], states[table, _COUNT]
        fits = (present >> UNTYPED & 1) == states[table, _IS_UNTYPED] and not has_unsent(rows, cells, row, OLD)
        if rows[KIND, row] == INSERT:
            fits = fits and states[table, _ARE_ALL] == 1 and cell_count(rows, row, NEW) == count
        for map_index in range(NEW, OLD + 1):
            own = cell_count(rows, row, map_index)
            if fits and own > 0:
                note_columns(rows, cells, dictionary, row, map_index, columns, noted)
                fits = find_columns(source, text, columns, noted, own, begin, count, found, used)
        if fits and present >> GIVEN & IMAGE_BITS == 1 << OLD:
            own = cell_count(rows, row, OLD)
            if 0 < own < count <= _MOST_LEFT_OUT * own + _LEFT_OUT_AT_LEAST:
                for step in range(used, used + count):
                    if found[step] >= 0:
                        found[step] += first_cell(rows, row, OLD)
                starts[index], image_starts[index], image_counts[index] = begin, used, count
                used += count
        elif not fits:
            states[table, _COUNT] = 0
            if states[table, _CHANGES] < _MOST_CHANGES:
                states[table, _CHANGES] += 1
                map_index = NEW if present >> GIVEN & 1 else OLD
                own = cell_count(rows, row, map_index)
                note_columns(rows, cells, dictionary, row, map_index, columns, noted)
                if not present >> HAS_UNCHANGED & 1 and _are_sure(source, text, columns, noted, own, present):
                    states[table, _BEGIN], states[table, _COUNT] = noted, own
                    states[table, _IS_UNTYPED] = present >> UNTYPED & 1
                    states[table, _ARE_ALL] = rows[KIND, row] == INSERT
                    noted += own
    return used


@inner
def _are_sure(source: Array, text: Array, columns: Array, begin: Int, count: Int, present: Int) -> bool:
    """Whether the version of a row has these columns of it: they have names and types, and no name occurs twice."""
    if count == 0 or present >> COMPLETE & IMAGE_BITS:
        return False
    is_untyped = present >> UNTYPED & 1
    for one in range(begin, begin + count):
        start, length = np.int64(columns[one, 0]), np.int64(columns[one, 1])
        if length <= 0 or (columns[one, PAIR + 1] <= 0 and not is_untyped):
            return False
        if one == begin and (source[start] if start >= 0 else text[~start]) == _DOLLAR:
            return False
        for other in range(begin, one):
            its_start, its_length = np.int64(columns[other, 0]), np.int64(columns[other, 1])
            if same_text(source, text, start, length, its_start, its_length):
                return False
    return True


_DOLLAR = ord("$")
"""The names of columns that have numbers begin with it."""
