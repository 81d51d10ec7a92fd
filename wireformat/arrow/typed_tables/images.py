"""The row images of many changes: their column names, and the texts of one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int, read_only
from ..jit.compiler import compiled, inner
from ..jit.same_bytes import same_bytes
from ..noted_texts import NotedTexts
from .readers.reader import Texts

Names = tuple[str, ...]


@dataclass(frozen=True)
class EncodedLists:
    """A column of lists of texts, dictionary-encoded because most of the lists are equal.

    codes  int64[n]: an index into `lists` for each row
    lists  the different lists; None is a null list, and is always the first
    """

    codes: Array
    lists: list[Names | None]


ChosenColumn = tuple[Any, Array]
"""An Arrow column, and int64[n]: the indices of the rows to read from it."""


class Images:
    """The `new` or `old` images of the chosen rows, one column of maps after the other.

    valid   bool[n]: whether the row has this image
    names   the column names of each image
    """

    def __init__(self, columns: Sequence[ChosenColumn]) -> None:
        ranges = [_entry_ranges(column, rows) for column, rows in columns]
        self.valid = np.concatenate([valid for _, _, valid in ranges])
        self.names = _concatenated(
            [_encoded(column.keys, *entries) for (column, _), entries in zip(columns, ranges, strict=True)]
        )
        self._values = [(column.items, starts) for (column, _), (starts, _, _) in zip(columns, ranges, strict=True)]

    def texts(self, name: str, column_index: int, numbered: Array | None = None) -> Texts:
        """Returns the text of one column in each row, null where the row has none.

        column_index   index of the column in its table
        numbered       bool[n]: rows whose columns have numbers for names; they are those of the table, in its order
        """
        indices = np.array([_index_of(names, name) for names in self.names.lists])[self.names.codes]
        if numbered is not None and numbered.any():
            counts = np.array([len(names or ()) for names in self.names.lists])[self.names.codes]
            indices = np.where(numbered, np.where(column_index < counts, column_index, -1), indices)
        missing = indices < 0
        if missing.all():
            return pa.nulls(len(indices), pa.string())
        found = []
        done = 0
        for values, starts in self._values:
            rows = slice(done, done + len(starts))
            done += len(starts)
            entries = starts + indices[rows]
            if missing[rows].any():
                entries[missing[rows]] = -1
            found.append(NotedTexts.of_rows(values, entries))
        return found[0] if len(found) == 1 else pa.concat_arrays([texts.strings() for texts in found])


def _index_of(names: Names | None, name: str) -> int:
    """Returns the index of the column in the image, or -1."""
    return names.index(name) if names and name in names else -1


def is_numbered(names: Names | None) -> bool:
    """Whether the names are `$1`, `$2`, …: numbers that sql-decoding writes for names, or columns named like that."""
    return names is not None and bool(names) and all(name == f"${number}" for number, name in enumerate(names, 1))


def encoded_lists(columns: Sequence[ChosenColumn]) -> EncodedLists:
    """Encodes the chosen rows of columns of lists, one column after the other."""
    return _concatenated([_encoded(column.values, *_entry_ranges(column, rows)) for column, rows in columns])


def _concatenated(columns: Sequence[EncodedLists]) -> EncodedLists:
    """Joins encoded columns; equal lists get the same code."""
    if len(columns) == 1:
        return columns[0]
    code_of: dict[Names | None, int] = {None: 0}
    codes = [
        np.array([code_of.setdefault(names, len(code_of)) for names in column.lists])[column.codes]
        for column in columns
    ]
    return EncodedLists(np.concatenate(codes), list(code_of))


def _entry_ranges(column: Any, rows: Array) -> tuple[Array, Array, Array]:
    """Returns the index of each row's first entry, how many entries the row has, and whether it is not null."""
    offsets = np.asarray(column.offsets)
    starts, stops = offsets[rows].astype(np.int64), offsets[rows + 1]
    valid = column.is_valid().to_numpy(zero_copy_only=False)[rows] if column.null_count else np.ones(len(rows), bool)
    return starts, np.where(valid, stops - starts, 0), valid


def _encoded(texts: pa.StringArray, starts: Array, counts: Array, valid: Array) -> EncodedLists:
    """Encodes the lists texts[start : start + count] of some rows."""
    if not valid.any():
        return EncodedLists(np.zeros(len(counts), np.int64), [None])
    _, offset_bytes, data = texts.buffers()
    offsets = read_only(np.frombuffer(offset_bytes or bytes(4), np.int32)[texts.offset :])
    characters = read_only(np.frombuffer(data or b"", np.uint8))
    codes = np.zeros(len(counts), np.int64)
    samples = np.zeros(len(counts) + 1, np.int64)
    slots = np.zeros(1 << max(4, len(counts).bit_length() + 1), np.int64)
    last_code = _number_lists(starts, counts, valid, offsets, characters, codes, samples, slots)
    lists: list[Names | None] = [None]
    for row in samples[1 : last_code + 1].tolist():
        names = texts[int(starts[row]) : int(starts[row] + counts[row])].to_pylist()
        lists.append(tuple(name or "" for name in names))
    return EncodedLists(codes, lists)


_HASH_BITS = (1 << 40) - 1


@compiled
def _number_lists(
    starts: Array, counts: Array, valid: Array, offsets: Array, data: Array, codes: Array, samples: Array, slots: Array
) -> Int:
    """Gives rows with equal lists the same code, from 1 on; 0 is a null list.

    starts, counts, valid  int64[n], int64[n], bool[n]: each row's first text, number of texts, and validity
    offsets, data          int32[m + 1], uint8[k]: the texts
    codes                  int64[n], filled: the code of each row
    samples                int64[n + 1], filled: a row with each code
    slots                  int64[a power of two above n], zeros: a hash table of codes
    returns                int, the highest code
    """
    highest = 0
    last = 0
    for row in range(len(starts)):
        if not valid[row]:
            continue
        if last and _same_list(starts, counts, offsets, data, row, samples[last]):
            codes[row] = last
            continue
        hashed = np.int64(counts[row])
        for text in range(starts[row], starts[row] + counts[row]):
            hashed = (hashed * 257 + offsets[text + 1] - offsets[text]) & _HASH_BITS
            for offset in range(offsets[text], offsets[text + 1]):
                hashed = (hashed * 257 + data[offset]) & _HASH_BITS
        slot = (hashed ^ (hashed >> 17)) & (len(slots) - 1)
        while slots[slot] and not _same_list(starts, counts, offsets, data, row, samples[slots[slot]]):
            slot = (slot + 1) & (len(slots) - 1)
        if not slots[slot]:
            highest += 1
            slots[slot] = highest
            samples[highest] = row
        last = slots[slot]
        codes[row] = last
    return highest


@inner
def _same_list(starts: Array, counts: Array, offsets: Array, data: Array, row: Int, other: Int) -> bool:
    """Whether two rows have the same texts."""
    count = counts[row]
    if count != counts[other]:
        return False
    first, second = starts[row], starts[other]
    for text in range(count):
        if offsets[first + text + 1] - offsets[first + text] != offsets[second + text + 1] - offsets[second + text]:
            return False
    begin, other_begin = np.int64(offsets[first]), np.int64(offsets[second])
    return same_bytes(data, begin, data, other_begin, np.int64(offsets[first + count]) - begin)


def combined_codes(columns: Sequence[Array]) -> Array:
    """Returns int64[n]: rows with equal codes in all columns get the same code, from 0 on."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = codes * (int(column.max(initial=0)) + 1) + column
        if int(codes.max(initial=0)) > 1 << 24:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    return codes
