"""Row images of many changes: which columns they have, and one column's texts out of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array, Int, read_only
from ..jit.compiler import compiled, inner

Names = tuple[str, ...]


@dataclass(frozen=True)
class Shapes:
    """Lists of texts of which most are equal.

    ids    int64[n], a number for each row
    lists  the list that a number stands for; None is a null list. The first is None, whether it occurs or not
    """

    ids: Array
    lists: list[Names | None]


Piece = tuple[Any, Array]
"""An Arrow column, and int64[n], the rows of it that are wanted."""


class Images:
    """The maps of `new` or `old`, of the wanted rows of some pieces, which follow each other."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        ranges = [_ranges(column, rows) for column, rows in pieces]
        self.valid = np.concatenate([valid for _, _, valid in ranges])
        self.shapes = _merged([_shapes(column.keys, *where) for (column, _), where in zip(pieces, ranges, strict=True)])
        self._cells = [(column.items, starts) for (column, _), (starts, _, _) in zip(pieces, ranges, strict=True)]

    def texts(self, name: str, ordinal: int, numbered: Array | None = None) -> pa.StringArray:
        """The column's text of each row; null where there is none.

        ordinal    place of the column in its table
        numbered   bool[n]: rows whose columns have no names, but are those of the table in their order
        """
        places = np.array([_place(names, name) for names in self.shapes.lists])[self.shapes.ids]
        if numbered is not None and numbered.any():
            counts = np.array([len(names or ()) for names in self.shapes.lists])[self.shapes.ids]
            places = np.where(numbered, np.where(ordinal < counts, ordinal, -1), places)
        missing = places < 0
        if missing.all():
            return pa.nulls(len(places), pa.string())
        found = []
        done = 0
        for items, starts in self._cells:
            own = slice(done, done + len(starts))
            done += len(starts)
            mask = missing[own] if missing[own].any() else None
            found.append(pc.take(items, pa.array(starts + places[own], mask=mask), boundscheck=False))
        return found[0] if len(found) == 1 else pa.concat_arrays(found)


def _place(names: Names | None, name: str) -> int:
    """Where the column stands in the image, or -1."""
    return names.index(name) if names and name in names else -1


def is_numbered(names: Names | None) -> bool:
    """Whether these are `$1`, `$2`, …: the numbers that sql-decoding has for names, or columns that are named so."""
    return names is not None and bool(names) and all(name == f"${place}" for place, name in enumerate(names, 1))


def list_shapes(pieces: Sequence[Piece]) -> Shapes:
    """The shapes of columns of lists of texts, of the wanted rows."""
    return _merged([_shapes(column.values, *_ranges(column, rows)) for column, rows in pieces])


def _merged(parts: Sequence[Shapes]) -> Shapes:
    """The shapes of several pieces, numbered together."""
    if len(parts) == 1:
        return parts[0]
    numbers: dict[Names | None, int] = {None: 0}
    ids = [np.array([numbers.setdefault(names, len(numbers)) for names in part.lists])[part.ids] for part in parts]
    return Shapes(np.concatenate(ids), list(numbers))


def _ranges(column: Any, rows: Array) -> tuple[Array, Array, Array]:
    """Where each row's entries lie in the values, how many there are, and whether the row is no null."""
    offsets = np.asarray(column.offsets)
    starts, stops = offsets[rows].astype(np.int64), offsets[rows + 1]
    valid = column.is_valid().to_numpy(zero_copy_only=False)[rows] if column.null_count else np.ones(len(rows), bool)
    return starts, np.where(valid, stops - starts, 0), valid


def _shapes(texts: pa.StringArray, starts: Array, counts: Array, valid: Array) -> Shapes:
    _, offset_bytes, data = texts.buffers()
    offsets = read_only(np.frombuffer(offset_bytes or bytes(4), np.int32)[texts.offset :])
    characters = read_only(np.frombuffer(data or b"", np.uint8))
    ids = np.zeros(len(counts), np.int64)
    samples = np.zeros(len(counts) + 1, np.int64)
    slots = np.zeros(1 << max(4, len(counts).bit_length() + 1), np.int64)
    found = _number_shapes(starts, counts, valid, offsets, characters, ids, samples, slots)
    lists: list[Names | None] = [None]
    for row in samples[1 : found + 1].tolist():
        names = texts[int(starts[row]) : int(starts[row] + counts[row])].to_pylist()
        lists.append(tuple(name or "" for name in names))
    return Shapes(ids, lists)


_HASH_BITS = (1 << 40) - 1


@compiled
def _number_shapes(
    starts: Array, counts: Array, valid: Array, offsets: Array, data: Array, ids: Array, samples: Array, slots: Array
) -> Int:
    """Number the rows by their lists, from 1 on; 0 is a null list.

    starts, counts, valid  int64[n], int64[n], bool[n]: where a row's texts lie
    offsets, data          int32[m + 1], uint8[k]: the texts
    ids                    int64[n], filled: the number of each row
    samples                int64[n + 1], filled: a row with this number
    slots                  int64[a power of two above n], zeros: a hash table of the numbers
    returns                int, how many numbers there are
    """
    found = 0
    last = 0
    for row in range(len(starts)):
        if not valid[row]:
            continue
        if last and _same_list(starts, counts, offsets, data, row, samples[last]):
            ids[row] = last
            continue
        mixed = np.int64(counts[row])
        for text in range(starts[row], starts[row] + counts[row]):
            mixed = (mixed * 257 + offsets[text + 1] - offsets[text]) & _HASH_BITS
            for place in range(offsets[text], offsets[text + 1]):
                mixed = (mixed * 257 + data[place]) & _HASH_BITS
        slot = (mixed ^ (mixed >> 17)) & (len(slots) - 1)
        while slots[slot] and not _same_list(starts, counts, offsets, data, row, samples[slots[slot]]):
            slot = (slot + 1) & (len(slots) - 1)
        if not slots[slot]:
            found += 1
            slots[slot] = found
            samples[found] = row
        last = slots[slot]
        ids[row] = last
    return found


@inner
def _same_list(starts: Array, counts: Array, offsets: Array, data: Array, one: Int, other: Int) -> bool:
    """Whether two rows have the same texts."""
    count = counts[one]
    if count != counts[other]:
        return False
    first, second = starts[one], starts[other]
    for text in range(count):
        if offsets[first + text + 1] - offsets[first + text] != offsets[second + text + 1] - offsets[second + text]:
            return False
    shift = np.int64(offsets[second]) - offsets[first]
    for place in range(offsets[first], offsets[first + count]):
        if data[place] != data[place + shift]:
            return False
    return True


def combined(parts: Sequence[Array]) -> Array:
    """Rows that are equal in all parts get the same number, from 0 on: int64[n]."""
    number = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        number = number * (int(part.max(initial=0)) + 1) + part
        if int(number.max(initial=0)) > 1 << 24:
            number = np.unique(number, return_inverse=True)[1].reshape(-1)
    return number
