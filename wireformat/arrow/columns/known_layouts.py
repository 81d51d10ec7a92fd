"""The layouts of row changes, read from the notes: those that were read before are found by their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..arrays import Array, unused
from ..codes import grouped
from ..jit.compiler import compiled
from ..noted_texts import NotedTexts
from ..scan.dictionary import CELL_ENTRIES, CELL_NAME, CELL_TYPE, CELLS
from ..scan.notes import (
    COMPLETE,
    DETAIL,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
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
    TYPE,
    UNCHANGED_LENGTH,
    UNTYPED,
    VALUE,
    ScannedRows,
)
from .completed_layouts import NOT_COMPLETED, OWN_COLUMNS, CompletedImages, CompletedLayouts, completed_layouts
from .last_columns import LastColumns
from .layouts import Layout, LayoutImage

MOST_BYTES = 1 << 24
"""The most bytes of the notes of layouts that are kept. Their names, as Python objects, take several times as much."""

_OF_LAYOUT = 1 << GIVEN + NEW | 1 << GIVEN + OLD | 1 << HAS_UNCHANGED | 1 << UNTYPED
"""The bits of PRESENT that rows of a layout have in common."""

_TABLE_TEXTS = 2
"""The schema and the name of the table."""


class LayoutsOfRows(NamedTuple):
    """The layouts of rows of the notes.

    codes       int64[n]: the index of the layout of each row
    layouts     the layouts
    completed   the old images, of which `layouts` have all columns
    """

    codes: Array
    layouts: list[Layout]
    completed: CompletedImages

    def chosen(self, indices: Array) -> LayoutsOfRows:
        """Returns those of some of the rows, int64[k]."""
        codes = self.codes[indices]
        firsts, numbers = grouped(codes)
        layouts = [self.layouts[code] for code in codes[firsts].tolist()]
        return self._replace(codes=numbers, layouts=layouts, completed=self.completed.of(indices))


class _Kept:
    """What was read before.

    of_notes   the layouts, by their notes
    same       a layout, by those that are equal to it
    size       about the number of bytes of the notes: threads may count some twice, or not at all
    """

    def __init__(self) -> None:
        self.of_notes: dict[bytes, Layout] = {}
        self.same: dict[Layout, Layout] = {}
        self.size = 0


class KnownLayouts:
    """Layouts that were read before: those of thousands of tables are not made anew for each piece of a capture.

    Several threads may use one object.
    """

    def __init__(self) -> None:
        self._kept = _Kept()

    def of(self, scanned: ScannedRows, rows: Array, last: LastColumns | None) -> LayoutsOfRows:
        """Returns the layouts of rows, which all differ.

        rows   int64[n]: rows of the notes, row changes
        last   of the rows before, which learns from these; None if these are not all rows of their tables, in order
        """
        found = self._found(scanned, rows, completed_layouts(scanned, rows, last))
        if last is not None:
            last.take(found.codes, found.layouts)
        return found

    def for_all(self, scanned: ScannedRows, rows: Array) -> LayoutsOfRows | None:
        """Returns the layouts of rows, for all readers; None if DELETEs have so many that each must complete them."""
        found = completed_layouts(scanned, rows, None)
        return None if found.has_many_deletes else self._found(scanned, rows, found)

    def _found(self, scanned: ScannedRows, rows: Array, completed: CompletedLayouts) -> LayoutsOfRows:
        """Returns layouts, none of them twice."""
        codes, samples, images, columns, text, _ = completed
        scanned = scanned._replace(text=text)
        found = self._read(scanned, rows[samples], images.columns[samples], images.counts[samples], columns)
        index_of: dict[int, int] = {}
        indices = [index_of.setdefault(id(layout), len(index_of)) for layout in found]
        if len(index_of) < len(found):  # the first row of a relation is noted in another way than those after it
            codes, found = np.array(indices, np.int64)[codes], [*{id(layout): layout for layout in found}.values()]
        return LayoutsOfRows(codes, found, images)

    def _read(
        self, scanned: ScannedRows, samples: Array, starts: Array, counts_of_old: Array, columns: Array
    ) -> list[Layout]:
        """Returns the layouts of these rows of the notes, int64[n]; equal ones are the same object.

        starts, counts_of_old   int64[n]: the columns of their old images; see CompletedImages
        columns                 see CompletedLayouts
        """
        ends = scanned.rows[ENDS : ENDS + len(MAPS)]
        counts = ends[:, samples] - np.where(samples > 0, ends[:, samples - 1], 0)
        are_completed = starts != NOT_COMPLETED
        counts[OLD] = np.where(are_completed, counts_of_old, counts[OLD])
        bounds = np.cumsum(np.append(0, _TABLE_TEXTS + 2 * counts.sum(axis=0)))
        pairs = unused((int(bounds[-1]), PAIR), np.int32)
        is_unsent = np.zeros(len(pairs), bool)
        notes = scanned.rows, scanned.cells, scanned.dictionary
        _note_texts(*notes, samples, starts, counts_of_old, columns, pairs, is_unsent)
        texts = NotedTexts(pairs, scanned.source, scanned.text).strings()
        _, offsets, data = texts.buffers()
        heads = np.stack(
            [scanned.rows[KIND, samples], scanned.rows[PRESENT, samples] & _OF_LAYOUT, are_completed, *counts], axis=1
        )
        lengths, names = np.ascontiguousarray(pairs[:, 1]), memoryview(data or b"")
        starts = np.frombuffer(offsets, np.int32)[bounds].tolist()
        kept = self._kept  # another thread may begin anew meanwhile
        keys = []
        for index, (begin, end) in enumerate(pairwise(bounds.tolist())):
            notes = heads[index], lengths[begin:end], is_unsent[begin:end], names[starts[index] : starts[index + 1]]
            keys.append(b"".join([part.tobytes() for part in notes]))
        found = {key: kept.of_notes[key] for key in keys if key in kept.of_notes}
        new = [index for index, key in enumerate(keys) if key not in found]
        for index, layout in zip(new, _layouts(heads[new], texts, is_unsent, bounds, new), strict=True):
            found[keys[index]] = kept.of_notes[keys[index]] = kept.same.setdefault(layout, layout)
            kept.size += len(keys[index])
        if kept.size > MOST_BYTES:
            self._kept = _Kept()
        return [found[key] for key in keys]


def _layouts(
    heads: Array, texts: pa.StringArray, is_unsent: Array, bounds: Array, chosen: Sequence[int]
) -> Iterator[Layout]:
    """Yields some layouts. Equal texts in them are the same object: most layouts have the names of others.

    heads       int64[m, 6]: KIND, the bits _OF_LAYOUT of PRESENT, whether the old image is completed, and the number of
                cells of each map, of those chosen
    texts       of all layouts, as `_note_texts` notes them
    is_unsent   bool[n], for each of the texts
    bounds      int64[k + 1]: where the texts of each layout begin and end
    chosen      int64[m]: indices of layouts
    """
    if not len(chosen):
        return
    begins, sizes = bounds[:-1][chosen], np.diff(bounds)[chosen]
    rows = np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    coded = texts.take(pa.array(rows)).fill_null("").dictionary_encode()
    different, codes = coded.dictionary.to_pylist(), iter(np.asarray(coded.indices).tolist())
    has_unsent = bool(is_unsent.any())
    for (kind, present, is_completed, *counts), begin, size in zip(
        heads.tolist(), begins.tolist(), sizes.tolist(), strict=True
    ):
        names = [different[code] for code in islice(codes, size)]
        done, images = _TABLE_TEXTS, []
        for map_index in (NEW, OLD):
            middle, end = done + counts[map_index], done + 2 * counts[map_index]
            unsent = np.flatnonzero(is_unsent[begin + done : begin + middle]).tolist() if has_unsent else ()
            image = LayoutImage.of(names[done:middle], names[middle:end], unsent)
            if map_index == OLD and is_completed:
                image = image._replace(names=image.names + image.unsent)
            images.append(image if present >> (GIVEN + map_index) & 1 else None)
            done = end
        middle = done + counts[DETAIL]
        detail = tuple(zip(names[done:middle], names[middle:], strict=True))
        layout = Layout.of(kind, (names[0], names[1]), images[NEW], images[OLD], detail)
        yield layout._replace(types=None) if present >> UNTYPED & 1 else layout


@compiled
def _note_texts(
    rows: Array,
    cells: Array,
    dictionary: Array,
    samples: Array,
    starts: Array,
    counts: Array,
    columns: Array,
    pairs: Array,
    is_unsent: Array,
) -> None:
    """Fills the pairs of the texts of some rows: schema and table; names and types of both images; keys and values of
    the details.

    samples     int64[m]: the rows
    starts, counts, columns   int64[m], int64[m], int32[k, COLUMN_FIELDS]: the columns of their completed old images
    pairs       int32[n, 2], filled
    is_unsent   bool[n], zeros: filled for names of columns that were not sent
    """
    done = np.int64(0)
    for index in range(len(samples)):
        row = samples[index]
        present = rows[PRESENT, row]
        for field in (TABLE_SCHEMA, TABLE_NAME):
            pairs[done, 0], pairs[done, 1] = rows[field, row], rows[field + 1, row]
            done += 1
        for part_index in range(NEW, DETAIL + 1):
            if part_index == OLD and starts[index] >= 0:
                for step in range(counts[index]):
                    for part in range(PAIR):
                        pairs[done + step, part] = columns[starts[index] + step, part]
                        pairs[done + counts[index] + step, part] = columns[starts[index] + step, PAIR + part]
                done += 2 * counts[index]
                continue
            map_index = NEW if part_index == OLD and starts[index] == OWN_COLUMNS else part_index
            begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
            count = rows[ENDS + map_index, row] - begin
            is_complete = map_index != DETAIL and present >> (COMPLETE + map_index) & 1
            is_typed = map_index == DETAIL or present >> UNTYPED & 1 == 0
            second = VALUE if map_index == DETAIL else TYPE
            column = rows[RELATION, row] + CELLS
            for step in range(count):
                cell = begin + step
                for part in range(PAIR):
                    if is_complete:
                        pairs[done + step, part] = dictionary[column + CELL_NAME, part]
                        pairs[done + count + step, part] = dictionary[column + CELL_TYPE, part]
                    else:
                        pairs[done + step, part] = cells[map_index, NAME, cell, part]
                        pairs[done + count + step, part] = cells[map_index, second, cell, part] if is_typed else 0
                column += CELL_ENTRIES
                if map_index != DETAIL and present >> HAS_UNCHANGED & 1:
                    is_unsent[done + step] = cells[map_index, VALUE, cell, 1] == UNCHANGED_LENGTH
            done += 2 * count
