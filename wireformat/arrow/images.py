"""Row images of many changes: which columns they have, and one column's texts out of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .compiled import Array

Names = tuple[str, ...]

_PASSES = 32
"""So many shapes of one length are told apart a whole column at a time; rows of others one by one."""


@dataclass(frozen=True)
class Shapes:
    """Lists of texts of which most are equal.

    ids    int64[n], a number for each row
    lists  the list that a number stands for; None is a null list. The first is None, whether it occurs or not
    """

    ids: Array
    lists: list[Names | None]


class Images:
    """The maps of `new` or `old`, of chosen rows.

    column   a map array of texts to texts
    rows     int64[n], the rows of it that are wanted
    """

    def __init__(self, column: pa.MapArray, rows: Array) -> None:
        self._starts, counts, self.valid = _ranges(column, rows)
        self._items = column.items
        self.shapes = _shapes(column.keys, self._starts, counts, self.valid)

    def texts(self, name: str, ordinal: int) -> pa.StringArray:
        """The column's text of each row; null where there is none.

        ordinal   place of the column in its table: where columns have no names, they are `$1`, `$2`, …
        """
        places = np.array([_place(names, name, ordinal) for names in self.shapes.lists])[self.shapes.ids]
        missing = places < 0
        if missing.all():
            return pa.nulls(len(places), pa.string())
        cells = pa.array(self._starts + places, mask=missing if missing.any() else None)
        return pc.take(self._items, cells, boundscheck=False)


def _place(names: Names | None, name: str, ordinal: int) -> int:
    """Where the column stands in the image, or -1."""
    if not names:
        return -1
    if name in names:
        return names.index(name)
    return ordinal if ordinal < len(names) and is_numbered(names) else -1


def is_numbered(names: Names) -> bool:
    """Whether these are no names but `$1`, `$2`, … as in sql-decoding."""
    return bool(names) and all(name == f"${place}" for place, name in enumerate(names, 1))


def list_shapes(column: pa.ListArray, rows: Array) -> Shapes:
    """The shapes of a column of lists of texts, of chosen rows."""
    starts, counts, valid = _ranges(column, rows)
    return _shapes(column.values, starts, counts, valid)


def _ranges(column: Any, rows: Array) -> tuple[Array, Array, Array]:
    """Where each row's entries lie in the values, how many there are, and whether the row is no null."""
    offsets = np.asarray(column.offsets).astype(np.int64)
    valid = column.is_valid().to_numpy(zero_copy_only=False)[rows] if column.null_count else np.ones(len(rows), bool)
    starts = offsets[rows]
    return starts, np.where(valid, offsets[rows + 1] - starts, 0), valid


def _shapes(texts: pa.StringArray, starts: Array, counts: Array, valid: Array) -> Shapes:
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    if total and total == len(texts) and bool((starts == firsts)[valid].all()):
        wanted = texts
        if _repeats(texts, counts, valid):
            return Shapes(valid.astype(np.int64), [None, tuple(texts[: int(counts.max())].to_pylist())])
    else:
        cells = np.repeat(starts - firsts, counts) + np.arange(total)
        wanted = pc.take(texts, pa.array(cells), boundscheck=False)
    encoded = wanted.dictionary_encode()
    words: list[str] = encoded.dictionary.to_pylist()
    codes = np.asarray(encoded.indices.fill_null(-1))

    ids = np.zeros(len(counts), np.int64)
    lists: list[Names | None] = [None]
    for count in np.unique(counts[valid]).tolist():
        rows = np.flatnonzero(valid & (counts == count))
        matrix = (
            codes.reshape(-1, count)
            if count * len(rows) == total > 0
            else codes[firsts[rows][:, None] + np.arange(count)]
        )
        for _ in range(_PASSES):
            if not len(rows):
                break
            same = (matrix == matrix[0]).all(axis=1)
            lists.append(_named(matrix[0], words))
            ids[rows[same]] = len(lists) - 1
            rows, matrix = (rows[:0], matrix[:0]) if same.all() else (rows[~same], matrix[~same])
        known: dict[bytes, int] = {}
        for row, line in zip(rows.tolist(), matrix, strict=True):
            shape = known.setdefault(line.tobytes(), len(lists))
            if shape == len(lists):
                lists.append(_named(line, words))
            ids[row] = shape
    return Shapes(ids, lists)


def _repeats(texts: pa.StringArray, counts: Array, valid: Array) -> bool:
    """Whether the texts are the same few over and over, as names in rows of one table: seen in the bytes at once."""
    count = int(counts.max())
    if texts.null_count or len(texts) != count * int(valid.sum()):
        return False
    _, offset_bytes, data = texts.buffers()
    offsets = np.frombuffer(offset_bytes, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets).reshape(-1, count)
    if not (lengths == lengths[0]).all() or not lengths[0].any():
        return False
    characters = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].reshape(len(lengths), -1)
    return bool((characters == characters[0]).all())


def _named(codes: Array, words: Sequence[str]) -> Names:
    return tuple(words[code] if code >= 0 else "" for code in codes.tolist())


def combined(parts: Sequence[Array]) -> Array:
    """Rows that are equal in all parts get the same number, from 0 on: int64[n]."""
    number = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        number = number * (int(part.max(initial=0)) + 1) + part
        if int(number.max(initial=0)) > 1 << 24:
            number = np.unique(number, return_inverse=True)[1].reshape(-1)
    return number
