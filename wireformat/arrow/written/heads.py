"""Numbers rows by what they have besides values: rows with the same number share a layout.

A number is found in steps, from that of the kind on, one for each column: a step takes the number so far and the texts
of the row in the column to the next number. A step that was taken before is found by a hash, and then compared in full.
Numbers stay what they are for all rows of a stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...events import ROW_CHANGES
from ..arrays import Array, Int
from ..jit.byte_ranges import FACTOR, hashed_text, same_bytes
from ..jit.compiler import compiled, hot
from .columns import Lists, Texts, each_alone, is_valid, lists_of, texts_of

MOST_CODES = 1 << 16
"""How many steps a stream may have; rows for which there are no more are written by Python."""

_PART_CODES = MOST_CODES // 2
"""For rows with values that were not sent, which may be others in each row: later tables need the rest."""

SLOTS = 2 * MOST_CODES
PROBES = 64
"""How many slots a search looks at."""

NO_CODE = -1

MOST_TEXT = 1 << 26
"""Bytes of all texts of steps, and how many texts."""

_BEFORE, _COUNT, _ENDS, _LETTERS, _LAST, _FIELDS = range(6)
"""Fields of a step: the number before it, the number of texts, -1 for NULL, where their ends and bytes are, and the
step taken last after this one: most rows of a table take the same."""

_MOST = 3
"""Where `used` has how many steps there may be."""


class Steps(NamedTuple):
    """The steps that are known.

    slots    int32[SLOTS], steps by their hash, or NO_CODE
    steps    int32[MOST_CODES, _FIELDS]
    ends     int32, the ends of the texts of each step from their beginning on; letters: uint8, their bytes
    used     int64[4], how many steps, ends and letters there are, and how many steps there may be
    """

    slots: Array
    steps: Array
    ends: Array
    letters: Array
    used: Array


class Heads:
    """The numbers of all rows of a stream."""

    def __init__(self) -> None:
        self._known = Steps(
            slots=np.full(SLOTS, NO_CODE, np.int32),
            steps=np.zeros((MOST_CODES, _FIELDS), np.int32),
            ends=np.empty(1 << 10, np.int32),
            letters=np.empty(1 << 12, np.uint8),
            used=np.array([len(ROW_CHANGES), 0, 0, 0]),
        )
        self._known.steps[: len(ROW_CHANGES), _BEFORE] = NO_CODE

    def codes(self, batch: pa.RecordBatch, kinds: Array) -> tuple[Array, Array]:
        """The number of each row, int32[n], or NO_CODE, and the first rows of new numbers, int64[m], in their order.

        kinds   int32[n]: the index of the kind among those of row changes, NO_CODE for rows that get no number
        """
        before = self._known.used[0]
        names = [batch.column(name) for name in ("table_schema", "table_name")]
        images = [(batch.column(name), batch.column(name).keys) for name in ("new", "old")]
        types, detail, unchanged = (batch.column(name) for name in ("types", "detail", "unchanged"))
        lists = [*images, (types, types.values), (detail, detail.keys), (detail, detail.items)]
        steps = [(each_alone(column), texts_of(column)) for column in names]
        steps += [(lists_of(column), texts_of(texts)) for column, texts in lists]
        is_part = pc.list_value_length(unchanged).fill_null(0).to_numpy() > 0
        of_parts = [*steps, (lists_of(unchanged), texts_of(unchanged.values))]
        codes = np.full(len(kinds), NO_CODE, np.int32)
        for chosen, most, taken in ((~is_part, MOST_CODES, steps), (is_part, _PART_CODES, of_parts)):
            if chosen.any():
                self._known.used[_MOST] = most
                found = np.where(chosen, kinds, np.int32(NO_CODE))
                for one in taken:
                    self._step(*one, found)
                codes[chosen] = found[chosen]
        rows = np.flatnonzero(codes >= before)
        firsts = np.full(self._known.used[0] - before, -1)
        firsts[codes[rows[::-1]] - before] = rows[::-1]  # the last one that is assigned stays
        return codes, np.sort(firsts[firsts >= 0])

    def _step(self, lists: Lists, texts: Texts, codes: Array) -> None:
        row = 0
        while (row := _step_rows(row, lists, texts, self._known, codes)) < len(codes):
            if max(len(self._known.ends), len(self._known.letters)) < MOST_TEXT:
                ends, letters = (np.resize(array, 2 * len(array)) for array in (self._known.ends, self._known.letters))
                self._known = self._known._replace(ends=ends, letters=letters)
            else:
                codes[row] = NO_CODE
                row += 1


@compiled
def _step_rows(begin: Int, lists: Lists, texts: Texts, known: Steps, codes: Array) -> Int:
    """Takes rows from `begin` on one step further.

    codes     int32[n], the number so far, replaced with the next one; NO_CODE for rows that have or get none
    returns   the row whose step is new and has no room, or n
    """
    for row in range(begin, len(codes)):
        before = np.int64(codes[row])
        if before == NO_CODE:
            continue
        start, count = np.int64(lists.offsets[row]), np.int64(-1)
        if is_valid(lists.valid, lists.first + row):
            count = np.int64(lists.offsets[row + 1]) - start
        if len(texts.valid) > 0 and _has_null(texts, start, count):
            codes[row] = NO_CODE
            continue
        at, length = np.int64(0), np.int64(0)
        if count > 0:
            at = np.int64(texts.offsets[start])
            length = np.int64(texts.offsets[start + count]) - at
        step = np.int64(known.steps[before, _LAST])
        if _is_same_step(known, step, before, texts, start, count, at, length):
            codes[row] = step
            continue
        slot = _home_slot(texts.data, at, length, before, count)
        codes[row] = NO_CODE
        for _ in range(PROBES):
            step = np.int64(known.slots[slot])
            if step == NO_CODE:
                step = known.used[0]
                if step < known.used[_MOST]:
                    if not _learn(known, before, texts, start, count, at, length):
                        codes[row] = before
                        return row
                    known.slots[slot] = known.steps[before, _LAST] = codes[row] = step
                break
            if _is_same_step(known, step, before, texts, start, count, at, length):
                known.steps[before, _LAST] = codes[row] = step
                break
            slot = (slot + 1) & (SLOTS - 1)
    return len(codes)


@hot
def _has_null(texts: Texts, start: Int, count: Int) -> bool:
    for item in range(start, start + count):
        if not is_valid(texts.valid, texts.first + item):
            return True
    return False


@hot
def _home_slot(data: Array, at: Int, length: Int, before: Int, count: Int) -> Int:
    """The slot at which the search for a step begins."""
    hashed = hashed_text(before * FACTOR ^ count << 20, data, at, length)
    return (hashed >> 24 ^ hashed >> 44) & (SLOTS - 1)


@hot
def _is_same_step(
    known: Steps, step: Int, before: Int, texts: Texts, start: Int, count: Int, at: Int, length: Int
) -> bool:
    if known.steps[step, _BEFORE] != before or known.steps[step, _COUNT] != count:
        return False
    if count <= 0:
        return True
    ends = np.int64(known.steps[step, _ENDS])
    different = np.int64(0)
    for index in range(count):
        different |= (np.int64(texts.offsets[start + index + 1]) - at) ^ np.int64(known.ends[ends + index])
    letters = np.int64(known.steps[step, _LETTERS])
    return different == 0 and same_bytes(texts.data, at, known.letters, letters, length)


@hot
def _learn(known: Steps, before: Int, texts: Texts, start: Int, count: Int, at: Int, length: Int) -> bool:
    """Adds a step; False if there is no room for its texts."""
    step, ends, letters = known.used[0], known.used[1], known.used[2]
    if ends + count > len(known.ends) or letters + length > len(known.letters):
        return False
    known.steps[step, _BEFORE], known.steps[step, _COUNT] = before, count
    known.steps[step, _ENDS], known.steps[step, _LETTERS] = ends, letters
    for index in range(count):
        known.ends[ends + index] = np.int64(texts.offsets[start + index + 1]) - at
    for index in range(length):
        known.letters[letters + index] = texts.data[at + index]
    known.used[0], known.used[1], known.used[2] = step + 1, ends + max(count, np.int64(0)), letters + length
    return True
