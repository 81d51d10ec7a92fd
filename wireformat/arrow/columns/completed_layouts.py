"""The layouts of row changes in the notes. Old images that leave out columns, such as NULLs, are completed.

What such an image does not have is NULL in a typed table in any case, and tells nothing about the columns of the table.
So that of an UPDATE may have the columns of its new image, and that of a DELETE those that LastColumns says of its
table: their rows have one layout, not many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...options.table_names import TableName
from ..arrays import Array, Int, unused
from ..codes import grouped
from ..jit.compiler import compiled, inner
from ..noted_texts import NotedTexts
from ..scan.dictionary import CELL_ENTRIES, CELL_NAME, CELL_TYPE, CELLS
from ..scan.notes import (
    COMPLETE,
    DELETE,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    IMAGE_BITS,
    INSERT,
    KIND,
    MAPS,
    NAME,
    NEW,
    OLD,
    PAIR,
    PRESENT,
    RELATION,
    TABLE_NAME,
    TABLE_SCHEMA,
    TEXT_SLACK,
    TYPE,
    UNCHANGED_LENGTH,
    UNTYPED,
    VALUE,
    ScannedRows,
)
from .last_columns import Columns, LastColumns
from .layouts import numbered_layouts, same_text

FEW_LAYOUTS = 32
"""So many layouts may differ in their old images alone before these are completed, which takes time for each row."""

_MOST_CHANGES = 4
"""How many times the known columns of a table may change in a batch of rows, before its DELETEs stay as they are."""

_MOST_LEFT_OUT, _LEFT_OUT_AT_LEAST = 4, 8
"""A completed image of a DELETE has at most so many times its own columns, and so many more: memory is bounded."""

_OLD_BITS = 1 << GIVEN + OLD | 1 << COMPLETE + OLD


NOT_COMPLETED, OWN_COLUMNS = -1, -2
"""In place of where the columns of an image begin: it is as it was; it has those of the new image of its row."""


class CompletedImages(NamedTuple):
    """The old images of rows, as they are completed.

    columns   int64[n]: where the columns of each begin among those of CompletedLayouts, or one of the numbers above.
              Those of a new image are in its order, but first those that were sent
    starts    int64[n]: where the values of an image begin in `cells`
    counts    int64[n]: how many they are; 0 for an image that is not completed
    cells     int32[m]: the cell of each column in the notes, -1 for one that is left out
    """

    columns: Array
    starts: Array
    counts: Array
    cells: Array

    @classmethod
    def none(cls, rows: int, cells: int) -> CompletedImages:
        """Returns those of as many rows, none of which are completed, with room for as many cells."""
        places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        return cls(np.full(rows, NOT_COMPLETED), *places, unused(cells, np.int32))

    def of(self, indices: Array) -> CompletedImages:
        """Returns those of some of the rows, int64[k]."""
        return CompletedImages(self.columns[indices], self.starts[indices], self.counts[indices], self.cells)


COLUMN_FIELDS = 2 * PAIR
"""The numbers of a column: the pairs of its name and of its type, which is empty if the image is untyped."""


class CompletedLayouts(NamedTuple):
    """The layouts of rows, with completed old images.

    codes     int64[n]: the number of the layout of each row
    samples   int64[m]: the index of a row of each layout
    images    the old images
    columns   int32[k, COLUMN_FIELDS]: the columns of those that do not have the columns of their new image
    text      the text of the notes, with more at its end
    has_many_deletes   whether DELETEs have so many layouts that they are completed if that is possible
    """

    codes: Array
    samples: Array
    images: CompletedImages
    columns: Array
    text: Array
    has_many_deletes: bool


def completed_layouts(scanned: ScannedRows, rows: Array, last: LastColumns | None) -> CompletedLayouts:
    """Returns the layouts of rows.

    rows   int64[n]: rows of the notes, row changes
    last   of the rows before; None if these are not all rows of their tables, in their order
    """
    codes, samples = numbered_layouts(scanned, rows)
    images = CompletedImages.none(len(rows), 0)
    columns, text, has_many_deletes = np.empty((0, COLUMN_FIELDS), np.int32), scanned.text, False
    if len(samples) > FEW_LAYOUTS:
        without_old, firsts = _numbered_without(scanned, samples, OLD)
        has_many = (np.bincount(without_old) > FEW_LAYOUTS)[without_old]
        are_deletes = has_many & (scanned.rows[KIND, samples] == DELETE)
        has_many_deletes = bool(are_deletes.any())
        if has_many.any():
            tables, known = np.full(len(samples), -1), []
            if last is not None and has_many_deletes:
                groups, names = _tables_of(scanned, samples[firsts], np.unique(without_old[are_deletes]))
                tables = groups[without_old]
                known = [last.of(name) for name in names]
            images, columns, text = _completed(scanned, rows, codes, samples, has_many & ~are_deletes, tables, known)
            rest = len(samples) + without_old[codes]  # rows of a table may differ in details
            codes = np.where(images.columns == OWN_COLUMNS, rest, codes)
            codes = np.where(images.columns >= 0, (images.columns + 1) * len(samples) + rest, codes)
    firsts, codes = grouped(codes)
    order = np.argsort(firsts)  # as the layouts occur
    return CompletedLayouts(np.argsort(order)[codes], firsts[order], images, columns, text, has_many_deletes)


def _numbered_without(scanned: ScannedRows, samples: Array, first: int) -> tuple[Array, Array]:
    """Returns the number of the layout that each of these rows would have without some maps, int64[m], and the index of
    a row of each number.

    first   OLD for the old image; NEW for all maps and the kind, so that rows of a table have the same number
    """
    # contiguous, since for other arrays it would be compiled once more
    rows = scanned.rows.take(np.stack([np.maximum(samples - 1, 0), samples], axis=1).reshape(-1), axis=1)
    rows[ENDS : ENDS + len(MAPS), ::2] = np.where(samples > 0, rows[ENDS : ENDS + len(MAPS), ::2], 0)
    if first == OLD:
        rows[ENDS + OLD] = 0
        rows[PRESENT] &= ~_OLD_BITS
    else:
        rows[ENDS : ENDS + len(MAPS)] = rows[KIND] = rows[PRESENT] = 0
    numbers, found = numbered_layouts(scanned._replace(rows=rows), np.arange(1, 2 * len(samples), 2))
    return numbers, found // 2


def _tables_of(scanned: ScannedRows, samples: Array, chosen: Array) -> tuple[Array, list[TableName]]:
    """Returns for each of these rows, int64[m], the index of its table, or -1, and the tables of the chosen ones.

    chosen   int64[k]: indices of rows
    """
    numbers, _ = _numbered_without(scanned, samples, NEW)
    tables, firsts = np.unique(numbers[chosen], return_index=True)
    index_of = np.full(numbers.max() + 1, -1)
    index_of[tables] = np.arange(len(tables))
    fields = [TABLE_SCHEMA, TABLE_SCHEMA + 1, TABLE_NAME, TABLE_NAME + 1]
    pairs = scanned.rows[fields][:, samples[chosen][firsts]].T.reshape(-1, PAIR).astype(np.int32)
    names = NotedTexts(pairs, scanned.source, scanned.text).strings().fill_null("").to_pylist()
    return index_of[numbers], [*zip(names[::2], names[1::2], strict=True)]


def _completed(
    scanned: ScannedRows,
    rows: Array,
    codes: Array,
    samples: Array,
    are_updates: Array,
    tables: Array,
    known: Sequence[Columns],
) -> tuple[CompletedImages, Array, Array]:
    """Returns completed images, with the columns and the text of CompletedLayouts.

    codes, samples   int64[n], int64[m]: the layouts of the rows, and a row of each
    are_updates      bool[m]: the layouts whose old images may get the columns of the new one
    tables           int64[m]: the table of each layout; below 0 if none of its DELETEs is completed
    known            the known columns of these tables
    """
    columns, states, text = _noted_columns(known, scanned.text)
    ends = scanned.rows[ENDS : ENDS + OLD + 1]
    new, old = ends[:, samples] - np.where(samples > 0, ends[:, samples - 1], 0)
    widest = np.zeros(len(known), np.int64)
    np.maximum.at(widest, tables[tables >= 0], np.maximum(new, old)[tables >= 0])
    most = int(max(new.max(), old.max(), states[:, _COUNT].max(initial=0)))
    room = unused((int(len(columns) + _MOST_CHANGES * widest.sum() + 2 * most), COLUMN_FIELDS), np.int32)
    room[: len(columns)] = columns
    are_deletes = (tables >= 0) & (scanned.rows[KIND, samples] == DELETE)
    needed = are_updates * 2 * new + are_deletes * (_MOST_LEFT_OUT * old + _LEFT_OUT_AT_LEAST)
    images = CompletedImages.none(len(rows), int(needed[codes].sum()) + most)
    notes = scanned.rows, rows, scanned.cells, scanned.source, text, scanned.dictionary
    _complete(*notes, codes, are_updates[codes], tables[codes], states, room, len(columns), *images)
    return images, room, text


_BEGIN, _COUNT, _IS_UNTYPED, _ARE_ALL, _ARE_SURE, _FITTING, _CHANGES = range(7)
"""What is known of the columns of a table: where they begin and how many they are; whether they have no types; whether
they are those of an INSERT, which has all columns of its version; whether no name occurs twice; the number of a layout
whose rows name no others, or -1; and how many times they have changed."""


def _noted_columns(known: Sequence[Columns], text: Array) -> tuple[Array, Array, Array]:
    """Returns the known columns of tables as notes, int32[m, COLUMN_FIELDS], what is known, int64[k, 7], and the text.

    text   of the notes, to whose end the names and types are added
    """
    counts = [len(columns) for columns in known]
    states = np.zeros((len(known), _CHANGES + 1), np.int64)
    states[:, _BEGIN] = np.cumsum(counts) - counts
    states[:, _COUNT] = counts
    states[:, _IS_UNTYPED] = [None in columns.values() for columns in known]
    states[:, _ARE_SURE], states[:, _FITTING] = True, -1
    encoded = [
        (part or "").encode(errors="surrogatepass")
        for columns in known
        for part in chain.from_iterable(columns.items())
    ]
    if not encoded:
        return np.empty((0, COLUMN_FIELDS), np.int32), states, text
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
    codes: Array,
    are_updates: Array,
    tables: Array,
    states: Array,
    columns: Array,
    noted: Int,
    of_columns: Array,
    starts: Array,
    counts: Array,
    found: Array,
) -> None:
    """Fills CompletedImages: of_columns[n], starts[n], counts[n] and found[m].

    codes, are_updates, tables   int64[n], bool[n], int64[n]: see `_completed`
    states    int64[k, 7], changed: what is known of each table
    columns   int32[m, COLUMN_FIELDS]: `noted` are known at the beginning; filled after them
    """
    used = np.int64(0)
    for index in range(len(chosen)):
        row, table = chosen[index], tables[index]
        present = rows[PRESENT, row]
        new, old = cell_count(rows, row, NEW), cell_count(rows, row, OLD)
        images = present >> GIVEN & IMAGE_BITS
        if are_updates[index] and images == IMAGE_BITS and 0 < old < new and not old_has_unsent(rows, cells, row):
            note_columns(rows, cells, dictionary, row, NEW, columns, noted)
            note_columns(rows, cells, dictionary, row, OLD, columns, noted + new)
            if find_columns(source, text, columns, noted + new, old, noted, new, found, used):
                _count_from(found, used, new, first_cell(rows, row, OLD))
                if present >> HAS_UNCHANGED & 1:
                    _move_unsent(rows, cells, row, found, used)
                    used += new
                of_columns[index], starts[index], counts[index] = OWN_COLUMNS, used, new
                used += new
        kind = rows[KIND, row]
        if table < 0 or (kind != DELETE and codes[index] == states[table, _FITTING]):
            continue
        begin, count = states[table, _BEGIN], states[table, _COUNT]
        is_untyped = present >> UNTYPED & 1
        is_mixed = kind == DELETE and images & 1 << NEW  # the types of its new image are taken for those of the old one
        fits = not is_mixed and is_untyped == states[table, _IS_UNTYPED] and not old_has_unsent(rows, cells, row)
        if kind == INSERT:
            fits = fits and states[table, _ARE_ALL] == 1 and new == count
        for map_index in range(NEW, OLD + 1):
            own = cell_count(rows, row, map_index)
            if fits and own > 0:
                note_columns(rows, cells, dictionary, row, map_index, columns, noted)
                fits = find_columns(source, text, columns, noted, own, begin, count, found, used)
        if (
            fits
            and kind == DELETE
            and images == 1 << OLD
            and 0 < old < count <= _MOST_LEFT_OUT * old + _LEFT_OUT_AT_LEAST
        ):
            if not states[table, _ARE_SURE]:
                fits = _all_differ(source, text, columns, begin, count)
                states[table, _ARE_SURE] = fits
            if fits:
                _count_from(found, used, count, first_cell(rows, row, OLD))
                of_columns[index], starts[index], counts[index] = begin, used, count
                used += count
        if kind != DELETE or not fits:
            states[table, _FITTING] = codes[index] if fits else -1
        if not fits:
            states[table, _COUNT] = 0
            map_index = NEW if images & 1 << NEW else OLD
            own = cell_count(rows, row, map_index)
            if states[table, _CHANGES] < _MOST_CHANGES and not is_mixed:
                states[table, _CHANGES] += 1
                note_columns(rows, cells, dictionary, row, map_index, columns, noted)
                if _are_named(source, text, columns, noted, own, present):
                    states[table, _BEGIN], states[table, _COUNT], states[table, _IS_UNTYPED] = noted, own, is_untyped
                    states[table, _ARE_ALL], states[table, _ARE_SURE] = kind == INSERT, False
                    noted += own


@inner
def _count_from(found: Array, begin: Int, count: Int, first: Int) -> None:
    """Adds the index of an image's first cell to the columns that it has."""
    for step in range(begin, begin + count):
        if found[step] >= 0:
            found[step] += first


@inner
def _are_named(source: Array, text: Array, columns: Array, begin: Int, count: Int, present: Int) -> bool:
    """Whether the version of a row has these columns of it, if their names differ: they have names, and types."""
    if count == 0 or present >> COMPLETE & IMAGE_BITS or present >> HAS_UNCHANGED & 1:
        return False
    for one in range(begin, begin + count):
        start, length = np.int64(columns[one, 0]), np.int64(columns[one, 1])
        if length <= 0 or (columns[one, PAIR + 1] <= 0 and not present >> UNTYPED & 1):
            return False
        if one == begin and (source[start] if start >= 0 else text[~start]) == _DOLLAR:
            return False
    return True


@inner
def _all_differ(source: Array, text: Array, columns: Array, begin: Int, count: Int) -> bool:
    """Whether no two of some columns have the same name."""
    for one in range(begin, begin + count):
        start, length = np.int64(columns[one, 0]), np.int64(columns[one, 1])
        for other in range(begin, one):
            its_start, its_length = np.int64(columns[other, 0]), np.int64(columns[other, 1])
            if same_text(source, text, start, length, its_start, its_length):
                return False
    return True


_DOLLAR = ord("$")
"""The names of columns that have numbers begin with it."""


@inner
def _move_unsent(rows: Array, cells: Array, row: Int, columns: Array, used: Int) -> None:
    """Fills the columns that follow those of a new image with the same, but first those that were sent."""
    count, begin = cell_count(rows, row, NEW), first_cell(rows, row, NEW)
    to = used + count
    for is_unsent in range(2):
        for step in range(count):
            if (cells[NEW, VALUE, begin + step, 1] == UNCHANGED_LENGTH) == is_unsent:
                columns[to] = columns[used + step]
                to += 1


@inner
def cell_count(rows: Array, row: Int, map_index: Int) -> Int:
    """Returns how many cells an image has, with those that were not sent."""
    return rows[ENDS + map_index, row] - first_cell(rows, row, map_index)


@inner
def first_cell(rows: Array, row: Int, map_index: Int) -> Int:
    """Returns the index of the first cell of an image."""
    return rows[ENDS + map_index, row - 1] if row > 0 else np.int64(0)


@inner
def note_columns(
    rows: Array, cells: Array, dictionary: Array, row: Int, map_index: Int, columns: Array, begin: Int
) -> None:
    """Fills columns[begin:], int32[m, COLUMN_FIELDS], with those of an image."""
    is_typed = not rows[PRESENT, row] >> UNTYPED & 1
    is_complete = rows[PRESENT, row] >> (COMPLETE + map_index) & 1
    first = first_cell(rows, row, map_index)
    entry = rows[RELATION, row] + CELLS
    for step in range(cell_count(rows, row, map_index)):
        for part in range(PAIR):
            columns[begin + step, PAIR + part] = 0
            if is_complete:
                columns[begin + step, part] = dictionary[entry + CELL_NAME, part]
                if is_typed:
                    columns[begin + step, PAIR + part] = dictionary[entry + CELL_TYPE, part]
            else:
                columns[begin + step, part] = cells[map_index, NAME, first + step, part]
                if is_typed:
                    columns[begin + step, PAIR + part] = cells[map_index, TYPE, first + step, part]
        entry += CELL_ENTRIES


@inner
def find_columns(
    source: Array,
    text: Array,
    columns: Array,
    own: Int,
    own_count: Int,
    begin: Int,
    count: Int,
    found: Array,
    at: Int,
) -> bool:
    """Whether own_count columns from `own` on are among the `count` columns from `begin` on, about in their order.

    columns   int32[m, COLUMN_FIELDS]
    found     int32[k]: found[at:] is filled, for each of the `count` columns, with its index among the others, or -1
    """
    for step in range(count):
        found[at + step] = -1
    next_one, steps = np.int64(0), 2 * count  # many columns in another order would take their square
    for step in range(own_count):
        is_same = False
        while not is_same:
            if steps == 0:
                return False
            steps -= 1
            one, other = own + step, begin + next_one
            is_same = True
            for field in range(0, COLUMN_FIELDS, PAIR):
                start, length = np.int64(columns[one, field]), np.int64(columns[one, field + 1])
                its_start, its_length = np.int64(columns[other, field]), np.int64(columns[other, field + 1])
                is_same = is_same and same_text(source, text, start, length, its_start, its_length)
            which = next_one
            next_one = next_one + 1 if next_one + 1 < count else np.int64(0)
        if found[at + which] >= 0:
            return False
        found[at + which] = step
    return True


@inner
def old_has_unsent(rows: Array, cells: Array, row: Int) -> bool:
    """Whether the old image has a column that was not sent."""
    for cell in range(first_cell(rows, row, OLD), rows[ENDS + OLD, row]):
        if cells[OLD, VALUE, cell, 1] == UNCHANGED_LENGTH:
            return True
    return False
