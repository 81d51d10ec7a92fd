"""The gather: copies what a scan noted, of all rows or of some, and builds the columns of row-change tables of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
import pyarrow as pa

from ...options.reading import KINDS
from ..arrays import Array, Int, unused
from ..commit_times import parse_times
from ..jit.compiler import compiled
from ..noted_texts import NotedTexts, copied
from ..readers.numbers import TextForm, numbers_of
from ..readers.reader import FEW_TEXTS
from ..readers.times import TIMESTAMP_WITH_ZONE
from ..scan.notes import (
    CELL_FIELDS,
    COMPLETE,
    CORRUPT,
    DETAIL,
    ENDS,
    ERROR,
    GIVEN,
    HAS_UNCHANGED,
    IMAGE_BITS,
    KIND,
    MAPS,
    NAME,
    NEW,
    NUMBERS,
    OLD,
    PRESENT,
    TEXTS,
    TIME_KNOWN,
    TIME_TEXT,
    TYPE,
    UNCHANGED_LENGTH,
    UNTYPED,
    VALUE,
    ScannedRows,
)
from ..schemas import CHANGES
from .complete_images import expand_complete_images, names_of_complete
from .row_limits import check_text


@compiled
def _select_types(rows: Array, count: Int, cells: Array, pairs: Array, ends: Array, has_image: Array) -> Int:
    """Selects the types of the new image of every row, or of the old one if there is no new; returns their number.

    pairs      int32[n, 2], filled: the pairs of the types; n is the number of cells of both maps
    ends       int32[count], filled: one past the row's last type
    has_image  uint8[count], filled: whether the row has an image
    """
    used = 0
    for row in range(count):
        has_new = rows[PRESENT, row] >> (GIVEN + NEW) & 1
        map_index = NEW if has_new else OLD
        types = cells[map_index, TYPE]
        begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
        for cell in range(begin, rows[ENDS + map_index, row]):
            pairs[used, 0] = types[cell, 0]
            pairs[used, 1] = types[cell, 1]
            used += 1
        ends[row] = used
        has_image[row] = has_new | (rows[PRESENT, row] >> (GIVEN + OLD) & 1)
    return used


@compiled
def _split_unsent(rows: Array, cells: Array, pairs: Array, counts: Array) -> None:
    """Moves the cells of images whose values were sent together, and lists the names of the others.

    rows     int64[ROW_FIELDS, n], the ends of their images are changed
    cells    as in Notes; names and types are noted
    pairs    int32[cells, 2], filled: the names of values that were not sent. Those of the old image are left out if
             there is a new one
    counts   int64[n], filled: how many of them each row has
    """
    listed = np.int64(0)
    begin_new = begin_old = used_new = used_old = np.int64(0)
    for row in range(rows.shape[1]):
        has_new = rows[PRESENT, row] >> (GIVEN + NEW) & 1
        first = listed
        for map_index in range(NEW, OLD + 1):
            begin, used = (begin_new, used_new) if map_index == NEW else (begin_old, used_old)
            end = rows[ENDS + map_index, row]
            for cell in range(begin, end):
                if cells[map_index, VALUE, cell, 1] != UNCHANGED_LENGTH:
                    for field in range(NAME, TYPE + 1):
                        cells[map_index, field, used, 0] = cells[map_index, field, cell, 0]
                        cells[map_index, field, used, 1] = cells[map_index, field, cell, 1]
                    used += 1
                elif map_index == NEW or not has_new:
                    pairs[listed, 0], pairs[listed, 1] = (
                        cells[map_index, NAME, cell, 0],
                        cells[map_index, NAME, cell, 1],
                    )
                    listed += 1
            rows[ENDS + map_index, row] = used
            if map_index == NEW:
                begin_new, used_new = end, used
            else:
                begin_old, used_old = end, used
        counts[row] = listed - first


def record_batch(scanned: ScannedRows, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the noted rows as a record batch; raises TooMuchText if they must be split, and LimitExceeded."""
    scanned, unchanged = _without_unchanged(scanned)
    presence = _Presence(scanned.rows[PRESENT, : scanned.row_count])

    def column(field: pa.Field) -> pa.Array:
        if field.name == "commit_time":
            return _commit_times(field.type, scanned)
        if field.name == "unchanged" and unchanged is not None:
            return unchanged
        return _column(field, scanned, presence)

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def _without_unchanged(scanned: ScannedRows) -> tuple[ScannedRows, pa.Array | None]:
    """Returns the notes without the cells of values that were not sent, and the column `unchanged` if there are any."""
    rows = scanned.rows[:, : scanned.row_count]
    present = rows[PRESENT]
    if not (present >> HAS_UNCHANGED & 1).any():
        return scanned, None
    rows = rows.copy()  # another thread may read the notes, too
    cells = scanned.cells[:, :, : int(rows[ENDS : ENDS + len(MAPS), -1].max())].copy()
    expand_complete_images(rows, scanned.row_count, cells, scanned.dictionary)
    pairs = unused((cell_count(scanned, NEW) + cell_count(scanned, OLD), 2), np.int32)
    counts = np.zeros(scanned.row_count, np.int64)
    _split_unsent(rows, cells, pairs, counts)
    ends = np.cumsum(counts)
    column = strings(pairs, int(ends[-1]), scanned, pa.string())
    nested = _nested(CHANGES.field("unchanged").type, ends, _bitmap(counts > 0), column)
    return scanned._replace(rows=rows, cells=cells), nested


def text_pairs(scanned: ScannedRows, field: int) -> Array:
    """Returns int32[count, 2]: the pairs of one text field of the rows."""
    return scanned.rows[field : field + 2, : scanned.row_count].T.astype(np.int32, order="C")


def cell_count(scanned: ScannedRows, map_index: int) -> int:
    """Returns how many cells one map column has in all rows."""
    return int(scanned.rows[ENDS + map_index, scanned.row_count - 1]) if scanned.row_count else 0


class _Presence:
    """Which bits of PRESENT are set in all rows, and which in any row, since most columns are the same in all rows."""

    def __init__(self, present: Array) -> None:
        self._present = present
        self._all = int(np.bitwise_and.reduce(present)) if len(present) else 0
        self._any = int(np.bitwise_or.reduce(present)) if len(present) else 0

    def never(self, bit: int) -> bool:
        """Whether the bit is set in no row."""
        return not self._any >> bit & 1

    def validity(self, bit: int) -> pa.Buffer | None:
        """Returns the Arrow bitmap of the rows in which the bit is set; None if it is set in all rows."""
        if self._all >> bit & 1:
            return None
        return _bitmap(self._present & 1 << bit)

    def lacking(self, bit: int) -> Array:
        """Returns bool[n]: the rows in which the bit is not set."""
        return (self._present & 1 << bit) == 0


def _column(field: pa.Field, scanned: ScannedRows, presence: _Presence) -> pa.Array:
    name, arrow_type, count = field.name, field.type, scanned.row_count
    if name in NUMBERS:
        return _numbers(NUMBERS.index(name), arrow_type, scanned, presence)
    if name == "kind":
        return _kinds(arrow_type).take(_from_numpy(scanned.rows[KIND, :count], pa.int64()))
    if name == "error" and (scanned.rows[KIND, :count] == CORRUPT).any():
        return _errors(arrow_type, scanned)
    if name in TEXTS:
        if not (scanned.rows[TEXTS[name] + 1, :count] >= 0).any():
            return _nulls(arrow_type, count)
        return strings(text_pairs(scanned, TEXTS[name]), count, scanned, arrow_type)
    if name in MAPS:
        return _map(MAPS.index(name), arrow_type, scanned, presence)
    if name == "types":
        return _types(arrow_type, scanned, presence)
    return _nulls(arrow_type, count)  # _without_unchanged fills `unchanged` if there is any


def _errors(arrow_type: pa.DataType, scanned: ScannedRows) -> pa.Array:
    pairs = text_pairs(scanned, ERROR)
    pairs[scanned.rows[KIND, : scanned.row_count] != CORRUPT] = 0, -1
    return strings(pairs, scanned.row_count, scanned, arrow_type)


def with_corrupt(batch: pa.RecordBatch, scanned: ScannedRows) -> pa.RecordBatch:
    """Returns the batch of rows of which some were noted as CORRUPT after it was made; raises TooMuchText."""
    if not (scanned.rows[KIND, : scanned.row_count] == CORRUPT).any():
        return batch
    noted = record_batch(scanned, pa.schema([field for field in batch.schema if field.name in _OF_CORRUPT]))
    columns = [noted[name] if name in _OF_CORRUPT else batch[name] for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


_OF_CORRUPT = ("kind", "error", "raw")
"""The columns in which a row that is noted as CORRUPT differs from one that the scan has declined."""


def _numbers(field: int, arrow_type: pa.DataType, scanned: ScannedRows, presence: _Presence) -> pa.Array:
    if presence.never(field):
        return _nulls(arrow_type, scanned.row_count)
    values = scanned.rows[field, : scanned.row_count].astype(np.int32 if arrow_type == pa.int32() else np.int64)
    validity = presence.validity(field)
    if validity is not None:
        values[presence.lacking(field)] = 0  # else what the memory of the notes had before would be written to files
    return pa.Array.from_buffers(arrow_type, scanned.row_count, [validity, pa.py_buffer(values)])


def _commit_times(arrow_type: pa.DataType, scanned: ScannedRows) -> pa.Array:
    rows, count = scanned.rows, scanned.row_count
    is_time = rows[TIME_TEXT + 1, :count] == TIME_KNOWN
    micros = np.where(is_time, rows[TIME_TEXT, :count], 0)
    with_text = np.flatnonzero(rows[TIME_TEXT + 1, :count] >= 0)
    if len(with_text):
        pairs = rows[TIME_TEXT : TIME_TEXT + 2, with_text].T.astype(np.int32, order="C")
        micros[with_text], is_time[with_text] = _times_of_texts(pairs, scanned)
    if not is_time.any():
        return _nulls(arrow_type, count)
    return pa.Array.from_buffers(arrow_type, count, [_bitmap(is_time), pa.py_buffer(micros)])


_TIME_FORM = TextForm(TIMESTAMP_WITH_ZONE)


def _times_of_texts(pairs: Array, scanned: ScannedRows) -> tuple[Array, Array]:
    """Returns what `parse_times` does, for noted texts."""
    if len(pairs) < FEW_TEXTS:
        return parse_times(strings(pairs, len(pairs), scanned, pa.string()))
    micros, is_time = numbers_of(NotedTexts(pairs, scanned.source, scanned.text), _TIME_FORM)
    left = np.flatnonzero(~is_time)
    if len(left):
        micros[left], is_time[left] = parse_times(strings(pairs[left], len(left), scanned, pa.string()))
    return micros, is_time


def _map(map_index: int, arrow_type: pa.DataType, scanned: ScannedRows, presence: _Presence) -> pa.Array:
    if presence.never(GIVEN + map_index):
        return _nulls(arrow_type, scanned.row_count)
    count = cell_count(scanned, map_index)
    if map_index == DETAIL or presence.never(COMPLETE + map_index):
        keys = strings(scanned.cells[map_index, NAME], count, scanned, pa.string())
    else:
        keys, _ = names_of_complete(scanned, map_index, NAME, count)
    values = strings(scanned.cells[map_index, VALUE], count, scanned, pa.string())
    entries = pa.StructArray.from_arrays([keys, values], fields=[arrow_type.key_field, arrow_type.item_field])
    return _nested(
        arrow_type, scanned.rows[ENDS + map_index, : scanned.row_count], presence.validity(GIVEN + map_index), entries
    )


def _types(arrow_type: pa.DataType, scanned: ScannedRows, presence: _Presence) -> pa.Array:
    rows, count = scanned.rows, scanned.row_count
    if not presence.never(UNTYPED):  # the other rows of its format have images without columns, or none
        present = rows[PRESENT, :count]
        is_empty = (present >> (GIVEN + NEW) & IMAGE_BITS > 0) & (present >> UNTYPED & 1 == 0)
        return _nested(arrow_type, np.zeros(count, np.int32), _bitmap(is_empty), pa.nulls(0, pa.string()))
    if not (presence.never(COMPLETE + NEW) and presence.never(COMPLETE + OLD)):
        image_bits = rows[PRESENT, :count] >> (GIVEN + NEW) & IMAGE_BITS
        types, type_ends = names_of_complete(scanned, -1, TYPE, cell_count(scanned, NEW) + cell_count(scanned, OLD))
        return _nested(arrow_type, type_ends, None if image_bits.all() else _bitmap(image_bits > 0), types)
    ends, has_image = unused(count, np.int32), unused(count, np.uint8)
    pairs = unused((cell_count(scanned, NEW) + cell_count(scanned, OLD), 2), np.int32)
    type_count = _select_types(rows, count, scanned.cells, pairs, ends, has_image)
    types = strings(pairs, type_count, scanned, pa.string())
    return _nested(arrow_type, ends, None if has_image.all() else _bitmap(has_image), types)


def _nested(arrow_type: pa.DataType, ends: Array, validity: pa.Buffer | None, children: pa.Array) -> pa.Array:
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    return pa.Array.from_buffers(arrow_type, len(ends), [validity, pa.py_buffer(offsets)], children=[children])


def strings(pairs: Array, count: int, scanned: ScannedRows, arrow_type: pa.DataType) -> pa.Array:
    """Returns the texts at pairs[:count] as a string or binary column; raises the errors of `check_text`."""
    return copied(pairs, count, scanned.source, scanned.text, arrow_type, partial(check_text, scanned))


def _nulls(arrow_type: pa.DataType, count: int) -> pa.Array:
    """Returns a column of nulls: a slice of a cached one, since every batch needs the same ones."""
    return _cached_nulls(arrow_type, 1 << max(count - 1, 1).bit_length()).slice(0, count)


@cache
def _kinds(arrow_type: pa.DataType) -> pa.Array:
    """Returns the names of all kinds as an array."""
    offsets = np.cumsum([0, *map(len, KINDS)], dtype=np.int32)
    return pa.Array.from_buffers(
        arrow_type, len(KINDS), [None, pa.py_buffer(offsets), pa.py_buffer("".join(KINDS).encode())]
    )


def _from_numpy(values: Array, arrow_type: pa.DataType) -> pa.Array:
    """Returns the values as an Arrow array, without pandas, which pa.array would load."""
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(values)])


@cache
def _cached_nulls(arrow_type: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, arrow_type)


def _bitmap(flags: Array) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags != 0, bitorder="little"))  # packbits is much faster for bool than for numbers


_BITS_OF_IMAGES = 3 << (GIVEN + NEW) | 1 << HAS_UNCHANGED | 3 << (COMPLETE + NEW) | 1 << UNTYPED
"""What PRESENT says of the maps NEW and OLD."""


def chosen_notes(
    scanned: ScannedRows, rows: Array, maps: Sequence[int], fields: Sequence[int] | None = None
) -> ScannedRows:
    """Returns these rows of the notes, int64[n], ascending, without the cells of other maps.

    maps     NEW and OLD, or DETAIL, or all
    fields   the fields that are read of the rows, beside PRESENT and the ends of the maps; None for all

    Cells are copied only if some cells of these maps are left out.
    """
    if len(rows) == scanned.row_count:
        return scanned
    if fields is None:
        chosen = np.take(scanned.rows, rows, axis=1)
        chosen[ENDS : ENDS + len(MAPS)] = 0
    else:
        chosen = np.zeros((len(scanned.rows), len(rows)), np.int64)
        for field in (PRESENT, *fields):
            chosen[field] = scanned.rows[field, rows]
    chosen[PRESENT] &= ~((0 if NEW in maps else _BITS_OF_IMAGES) | (0 if DETAIL in maps else 1 << (GIVEN + DETAIL)))
    own_cells, are_moved, most = [], False, 0
    for map_index in maps:
        ends = scanned.rows[ENDS + map_index]
        firsts = np.where(rows > 0, ends[rows - 1], 0)
        counts = ends[rows] - firsts
        chosen[ENDS + map_index] = np.cumsum(counts)
        own_cells.append((map_index, firsts, counts))
        are_moved = are_moved or bool((firsts != chosen[ENDS + map_index] - counts).any())
        most = max(most, int(counts.sum()))
    kept = scanned._replace(rows=chosen, row_count=len(rows), events={})
    if not are_moved:
        return kept
    cells = np.empty((*scanned.cells.shape[:2], most, 2), np.int32)
    for map_index, firsts, counts in own_cells:
        _copy_cells(scanned.cells, map_index, firsts, counts, cells)
    return kept._replace(cells=cells)


@compiled
def _copy_cells(cells: Array, map_index: Int, firsts: Array, counts: Array, copied: Array) -> None:
    """Copies the cells of some rows of a map, from firsts[n] on and counts[n] of each, to the beginning of `copied`."""
    used = 0
    for row in range(len(firsts)):
        for cell in range(firsts[row], firsts[row] + counts[row]):
            for field in range(CELL_FIELDS):
                copied[map_index, field, used, 0] = cells[map_index, field, cell, 0]
                copied[map_index, field, used, 1] = cells[map_index, field, cell, 1]
            used += 1
