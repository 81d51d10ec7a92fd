"""The row images of many changes: their column names, and the texts of one column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int, read_only, unused
from ..codes import HASH_BITS
from ..jit.byte_ranges import same_bytes
from ..jit.compiler import compiled, inner
from ..noted_texts import LEFT_OUT_LENGTH, NotedTexts
from ..readers.reader import Texts, as_strings

Names = tuple[str, ...]


@dataclass(frozen=True)
class EncodedLists:
    """A column of lists of texts, dictionary-encoded because most of the lists are equal.

    codes  int64[n]: an index into `lists` for each row
    lists  the lists, of which some may be equal; None is a null list
    """

    codes: Array
    lists: list[Names | None]

    def __getitem__(self, row: int) -> Names | None:
        """Returns the list of a row."""
        return self.lists[self.codes[row]]

    def where(self, test: Callable[[Names | None], bool]) -> Array:
        """Returns bool[n]: whether the list of a row passes a test."""
        passes = np.array([test(names) for names in self.lists], bool)
        return passes[self.codes] if passes.any() else np.zeros(len(self.codes), bool)


class Image(NamedTuple):
    """The `new` or the `old` images of some rows.

    valid    bool[n]: whether the row has this image
    names    the column names of each image
    values   the values of all images, in order
    starts   int64[n]: the index of each image's first value
    """

    valid: Array
    names: EncodedLists
    values: pa.StringArray | NotedTexts
    starts: Array

    def texts(self, indices: Array, codes: Array) -> NotedTexts:
        """Returns a value of each image.

        indices   int64[m]: the index of the value in an image, below 0 for none
        codes     int64[n]: for each image, which of the indices is its own
        """
        if not isinstance(self.values, NotedTexts):
            own = indices[codes]
            return NotedTexts.of_rows(self.values, np.where(own < 0, -1, self.starts + own))
        pairs = unused((len(codes), 2), np.int32)
        _choose_pairs(indices, codes, np.ascontiguousarray(self.starts), self.values.pairs, pairs)
        return self.values._replace(pairs=pairs)


class Images:
    """The `new` or `old` images of the rows of some sources, one source after the other.

    valid   bool[n]: whether the row has this image
    names   the column names of each image
    """

    def __init__(self, images: Sequence[Image]) -> None:
        self.valid = np.concatenate([image.valid for image in images])
        self.names = joined_lists([image.names for image in images])
        self._images = images

    @property
    def named(self) -> Collection[str]:
        """The columns that some image has."""
        return self._places.keys()

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        """Where each column is: lists of names, and its index in them."""
        found = defaultdict[str, list[tuple[int, int]]](list)
        for number, names in enumerate(self.names.lists):
            for index, name in enumerate(names or ()):
                found[name].append((number, index))
        return dict(found)

    def has(self, name: str) -> Array:
        """Returns bool[n]: whether the row's image has a column, which may be NULL."""
        indices, codes, done = np.array(self._indices_of(name), np.int64), self.names.codes, 0
        found = indices[codes] >= 0
        for image in self._images:
            own = slice(done, done + len(image.valid))
            if isinstance(image.values, NotedTexts):
                found[own] &= image.texts(indices, codes[own]).pairs[:, 1] != LEFT_OUT_LENGTH
            done = own.stop
        return found

    def _indices_of(self, name: str) -> list[int]:
        """Returns the index of a column in each of the lists of names, -1 if it is not there."""
        found = [-1] * len(self.names.lists)
        for number, index in reversed(self._places.get(name, ())):  # of equal names the first one
            found[number] = index
        return found

    def texts(self, name: str, column_index: int, numbered: Array | None = None) -> Texts:
        """Returns the text of one column in each row, null where the row has none.

        column_index   index of the column in its table
        numbered       bool[n]: rows whose columns have numbers for names; they are those of the table, in its order
        """
        index_of = self._indices_of(name)
        codes = self.names.codes
        if numbered is not None and numbered.any():
            codes = codes + np.where(numbered, len(index_of), 0)
            index_of += [column_index if column_index < len(names or ()) else -1 for names in self.names.lists]
        if max(index_of, default=-1) < 0:
            return pa.nulls(len(codes), pa.string())
        indices = np.array(index_of, np.int64)
        found: list[Texts] = []
        done = 0
        for image in self._images:
            own = codes[done : done + len(image.valid)]
            found.append(image.texts(indices, own))
            done += len(own)
        return found[0] if len(found) == 1 else pa.concat_arrays([as_strings(texts) for texts in found])


@compiled
def _choose_pairs(indices: Array, codes: Array, starts: Array, of_values: Array, pairs: Array) -> None:
    """Fills pairs[n, 2] with those of a value of each image.

    indices     int64[k]: the index of the value in an image; below 0 for none
    codes       int64[n]: for each image, which of the indices is its own
    starts      int64[n]: the index of the first value of each image
    of_values   int32[m, 2]: the pairs of all values
    """
    for row in range(len(codes)):
        index = indices[codes[row]]
        if index < 0:
            pairs[row, 0], pairs[row, 1] = 0, -1
        else:
            pairs[row, 0], pairs[row, 1] = of_values[starts[row] + index, 0], of_values[starts[row] + index, 1]


def is_null(names: Names | None) -> bool:
    """Whether a list is null."""
    return names is None


def is_numbered(names: Names | None) -> bool:
    """Whether the names are `$1`, `$2`, …: numbers that sql-decoding writes for names, or columns named like that."""
    return names is not None and bool(names) and all(name == f"${number}" for number, name in enumerate(names, 1))


def image_of_maps(column: Any, rows: Array) -> Image:
    """Returns the images in some rows of a column of maps."""
    starts, counts, valid = _entry_ranges(column, rows)
    return Image(valid, _encoded(column.keys, starts, counts, valid), column.items, starts)


def encoded_lists(column: Any, rows: Array) -> EncodedLists:
    """Encodes some rows of a column of lists."""
    return _encoded(column.values, *_entry_ranges(column, rows))


def joined_lists(columns: Sequence[EncodedLists]) -> EncodedLists:
    """Joins encoded columns; equal lists get the same code."""
    if len(columns) == 1 and len({*columns[0].lists}) == len(columns[0].lists):
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
    valid = np.asarray(column.is_valid())[rows] if column.null_count else np.ones(len(rows), bool)
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
            hashed = (hashed * 257 + offsets[text + 1] - offsets[text]) & HASH_BITS
            for offset in range(offsets[text], offsets[text + 1]):
                hashed = (hashed * 257 + data[offset]) & HASH_BITS
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
