"""Row changes that are copied out of the notes of a scan, one table after the other: values, and facts of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..arrays import Array, unused
from ..columns.known_layouts import LayoutsOfRows
from ..columns.layouts import Layout
from ..jit.compiler import compiled
from ..jit.intrinsics import BLOCK, LINE, copy_block, prefetch
from ..noted_texts import COPIED_AT_ONCE, LEFT_OUT_LENGTH
from ..scan.notes import BODY, ENDS, MESSAGE, NEW, OLD, RECORD, UNCHANGED_LENGTH, VALUE, ScannedRows
from .facts import (
    FACT_NUMBERS,
    GIVEN_FACTS,
    OF_MESSAGE,
    OF_ORDINAL,
    OF_RECORD,
    OF_SEQUENCE,
    READ_FACTS,
    facts_without_transactions,
)
from .selection import NotedSelection, noted_texts_of


class TransactionsOfRows(NamedTuple):
    """The transactions of rows.

    transactions      int64[n]: for each row, the index of its transaction
    ordinals          int64[n]: of the row in its transaction
    of_transactions   int64[k, FACT_NUMBERS]: the facts of each transaction, as `transaction_facts` returns them
    """

    transactions: Array
    ordinals: Array
    of_transactions: Array


def copied_rows(
    scanned: ScannedRows,
    rows: Array,
    found: LayoutsOfRows,
    groups: Array,
    transactions: TransactionsOfRows,
    columns: dict[str, pa.Array],
) -> NotedSelection:
    """Copies row changes out of the notes, one group after the other.

    rows           int64[n]: rows of the notes
    found          their layouts
    groups         int64[layouts]: the group of the rows of each layout
    transactions   those of the rows
    columns        see NotedSelection, in the order of the result
    """
    totals = np.zeros((int(groups.max(initial=0)) + 1, _PLACES), np.int64)
    codes, layouts, completed = found
    _measure_values(scanned.rows, rows, scanned.cells, codes, groups, completed.counts, totals)
    totals[:, _BYTES] += COPIED_AT_ONCE
    _, count, size = totals.sum(axis=0).tolist()
    pairs = unused((count, 2), np.int32)
    target = unused(size, np.uint8)
    starts = np.empty((2, len(rows)), np.int64)
    facts = unused((len(rows), FACT_NUMBERS), np.int64)
    ordered = np.empty(len(rows), np.int64)
    places = np.cumsum(totals, axis=0) - totals
    notes = scanned.rows, rows, scanned.cells, scanned.source, scanned.text
    _copy_values(*notes, codes, groups, *completed[1:], *transactions, places, starts, facts, ordered, pairs, target)
    return NotedSelection(ordered, layouts, noted_texts_of(pairs, target), starts, facts, columns, len(rows))


def rows_without_values(
    scanned: ScannedRows, rows: Array, layout_codes: Array, layouts: Sequence[Layout]
) -> NotedSelection:
    """Returns row changes with their layouts, but not their values; see `copied_rows`."""
    nothing = noted_texts_of(np.empty((0, 2), np.int32), np.empty(0, np.uint8))
    starts = np.zeros((2, len(rows)), np.int64)
    facts = facts_without_transactions(scanned, rows)
    return NotedSelection(layout_codes, layouts, nothing, starts, facts, {}, len(rows))


_PLACES = 3
_ROWS, _VALUES, _BYTES = range(_PLACES)
"""What is counted of the rows of a group."""


@compiled
def _measure_values(
    rows: Array, chosen: Array, cells: Array, codes: Array, groups: Array, completed_counts: Array, totals: Array
) -> None:
    """Adds the rows chosen[n], their values and the bytes of these to the totals[k, _PLACES] of their groups.

    codes, groups   see `copied_rows`
    completed_counts   int64[n]: how many values their old images have if these are completed; else 0
    """
    for index in range(len(chosen)):
        row, group = chosen[index], groups[codes[index]]
        count = size = np.int64(0)
        for map_index in range(NEW, OLD + 1):
            for cell in range(rows[ENDS + map_index, row - 1] if row > 0 else 0, rows[ENDS + map_index, row]):
                length = np.int64(cells[map_index, VALUE, cell, 1])
                if length != UNCHANGED_LENGTH:
                    count += 1
                    size += length if length > 0 else 0
        if completed_counts[index]:
            count += completed_counts[index]
            count -= rows[ENDS + OLD, row] - (rows[ENDS + OLD, row - 1] if row > 0 else 0)
        totals[group, _ROWS] += 1
        totals[group, _VALUES] += count
        totals[group, _BYTES] += size


_ROWS_AHEAD, _ROW_LINES = 8, 4
"""How many rows ahead a row is prefetched, and how many of its cache lines: the rows of one of many tables are far
apart."""

_AHEAD = 2 * LINE
"""How many bytes after a row are prefetched: the next row of its group is written there, and most rows are smaller."""


@compiled
def _copy_values(
    rows: Array,
    chosen: Array,
    cells: Array,
    source: Array,
    text: Array,
    codes: Array,
    groups: Array,
    its_starts: Array,
    its_counts: Array,
    its_cells: Array,
    transactions: Array,
    ordinals: Array,
    of_transactions: Array,
    places: Array,
    starts: Array,
    facts: Array,
    ordered: Array,
    pairs: Array,
    target: Array,
) -> None:
    """Copies the values that `_measure_values` has measured into target, and fills their pairs.

    codes, groups   see `copied_rows`
    its_starts, its_counts, its_cells   see CompletedImages
    transactions, ordinals, of_transactions   see TransactionsOfRows
    places          int64[k, _PLACES], changed: where the next row, value and byte of each group are written;
                    COPIED_AT_ONCE bytes follow the last byte of each
    starts          int64[2, n], filled: the index of the first value of each image
    facts           int64[n, FACT_NUMBERS], filled
    ordered         int64[n], filled: the codes, in the order of the groups
    """
    # The rows are read in their order, since the notes of rows that follow each other are beside each other. Those of
    # a group are written beside each other, at many places in turn, which the processor does not foresee.
    for index in range(len(chosen)):
        if index + _ROWS_AHEAD < len(chosen):
            body = rows[BODY, chosen[index + _ROWS_AHEAD]]
            for line in range(_ROW_LINES):
                prefetch(source, body + line * LINE)
        row, group = chosen[index], groups[codes[index]]
        target_row, count, at = places[group, _ROWS], places[group, _VALUES], places[group, _BYTES]
        ordered[target_row] = codes[index]
        transaction = transactions[index]
        for number in range(OF_SEQUENCE, FACT_NUMBERS):
            facts[target_row, number] = of_transactions[transaction, number]
        facts[target_row, OF_MESSAGE], facts[target_row, OF_RECORD] = rows[MESSAGE, row], rows[RECORD, row]
        facts[target_row, OF_ORDINAL] = ordinals[index]
        facts[target_row, GIVEN_FACTS] |= READ_FACTS
        for map_index in range(NEW, OLD + 1):
            starts[map_index - NEW, target_row] = count
            begin, end = np.int64(rows[ENDS + map_index, row - 1] if row > 0 else 0), rows[ENDS + map_index, row]
            is_completed = map_index == OLD and its_counts[index] > 0
            if is_completed:
                begin = its_starts[index]
                end = begin + its_counts[index]
            for place in range(begin, end):
                cell = np.int64(its_cells[place]) if is_completed else place
                if cell < 0:
                    pairs[count, 0], pairs[count, 1] = at, LEFT_OUT_LENGTH
                    count += 1
                    continue
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
        places[group, _ROWS], places[group, _VALUES], places[group, _BYTES] = target_row + 1, count, at
        for ahead in range(LINE, _AHEAD + 1, LINE):
            prefetch(target, at + ahead)
            prefetch(pairs, 2 * count + ahead // 4)
        prefetch(facts, (target_row + 1) * FACT_NUMBERS + LINE // 8)
        prefetch(starts, target_row + LINE // 8)
        prefetch(starts, len(chosen) + target_row + LINE // 8)
