"""Groups row changes by layout (kind, table, columns, types): Python handles one object per layout, not per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...options.reading import KINDS
from ..arrays import Array, Int
from ..jit.byte_ranges import hashed_text, same_bytes, spread
from ..jit.compiler import compiled, inner
from ..scan.notes import (
    COMPLETE,
    DETAIL,
    ENDS,
    GIVEN,
    HAS_UNCHANGED,
    IMAGE_BITS,
    KIND,
    NAME,
    NEW,
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

Names = tuple[str, ...]


class Layout(NamedTuple):
    """What is the same in all rows of a layout.

    kind        index in KINDS
    table       schema and name
    new, old    the column names of the images, without columns that were not sent; None if there is no such image
    types       the types of the values of the new image, or of the old one if there is no new; None if it is untyped
    unchanged   the columns that this image lists as not sent; None if there are none
    detail      keys and texts
    """

    kind: int
    table: tuple[str, str]
    new: Names | None
    old: Names | None
    types: Names | None
    unchanged: Names | None
    detail: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        kind: int,
        table: tuple[str, str],
        new: LayoutImage | None,
        old: LayoutImage | None,
        detail: tuple[tuple[str, str], ...],
    ) -> Layout:
        """Returns the layout of rows with these images."""
        sent = old if new is None else new
        return cls(
            kind,
            table,
            None if new is None else new.names,
            None if old is None else old.names,
            None if sent is None else sent.types,
            None if sent is None else sent.unsent or None,
            detail,
        )


class LayoutImage(NamedTuple):
    """The names and types of the columns of an image that were sent, and the names of the others."""

    names: Names
    types: Names
    unsent: Names

    @classmethod
    def of(cls, names: Sequence[str], types: Sequence[str], unsent: Sequence[int]) -> LayoutImage:
        """Returns the image with these columns, of which some were not sent."""
        if not unsent:
            return cls(tuple(names), tuple(types), ())
        left_out = {*unsent}
        sent = [index for index in range(len(names)) if index not in left_out]
        return cls(
            tuple(names[index] for index in sent),
            tuple(types[index] for index in sent),
            tuple(names[index] for index in unsent),
        )


def numbered_layouts(scanned: ScannedRows, rows: Array) -> tuple[Array, Array]:
    """Returns the number of the layout of each row, int64[n], and a row of each layout, int64[m].

    rows   int64[n]: rows of the notes, row changes
    """
    codes, samples = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    slots = np.zeros(1 << max(4, len(rows).bit_length() + 1), np.int64)
    of_relations = np.full((_RELATION_SLOTS, 2), -1, np.int64)
    arrays = (scanned.rows, rows, scanned.cells, scanned.source, scanned.text)
    found = _number_layouts(*arrays, codes, samples, slots, of_relations)
    return codes, samples[:found]


_RELATION_SLOTS = 1 << 10
"""A power of two: how many last codes of relations are remembered, to be tried first."""

_KINDS, _PRESENT_BITS, _SLOT_FOLD = len(KINDS), 1 << (UNTYPED - GIVEN + 1), 8
"""For the key of a relation, a kind and what is present: the number of kinds and of combinations of bits, and by how
many bits the key is folded, so that relations and kinds are spread over the slots."""


@compiled
def _number_layouts(
    rows: Array,
    chosen: Array,
    cells: Array,
    source: Array,
    text: Array,
    codes: Array,
    samples: Array,
    slots: Array,
    of_relations: Array,
) -> Int:
    """Gives rows of the same layout the same code, from 0 on; returns the number of codes.

    rows, cells, source, text   of ScannedRows
    chosen    int64[n]: rows of the notes
    codes     int64[n], filled
    samples   int64[n], filled: a row of each code
    slots     int64[a power of two above n], zeros: a hash table of codes + 1
    of_relations   int64[_RELATION_SLOTS, 2], -1: a key, and the code of the last rows with it: rows of one relation and
                   kind with complete images have the same layout if their details are equal
    """
    found = last = 0
    for index in range(len(chosen)):
        row = chosen[index]
        present = rows[PRESENT, row] >> GIVEN
        key = (rows[RELATION, row] * _KINDS + rows[KIND, row]) * _PRESENT_BITS + present
        relation_slot = (key ^ (key >> _SLOT_FOLD)) & (_RELATION_SLOTS - 1)
        if of_relations[relation_slot, 0] == key:
            code = of_relations[relation_slot, 1]
            if not present >> DETAIL & 1 or _same_details(rows, cells, row, samples[code]):
                codes[index] = last = code
                continue
        code = last if found > 0 else -1  # the layout of the row before is tried first
        if code < 0 or not _same_layout(rows, cells, source, text, row, samples[code]):
            slot = _home_slot(rows, cells, source, text, row) & (len(slots) - 1)
            code = slots[slot] - 1
            while code >= 0 and not _same_layout(rows, cells, source, text, row, samples[code]):
                slot = (slot + 1) & (len(slots) - 1)
                code = slots[slot] - 1
            if code < 0:
                code = found
                samples[found] = row
                found += 1
                slots[slot] = found
        image_bits = present & IMAGE_BITS
        is_complete = present >> (COMPLETE - GIVEN) & IMAGE_BITS == image_bits
        if image_bits and is_complete and not present >> (HAS_UNCHANGED - GIVEN) & 1:
            of_relations[relation_slot, 0], of_relations[relation_slot, 1] = key, code
        codes[index] = last = code
    return found


@inner
def _home_slot(rows: Array, cells: Array, source: Array, text: Array, row: Int) -> Int:
    """A hash of all that `_same_layout` compares: rows may leave out any columns, whose names have one length."""
    present = rows[PRESENT, row] >> GIVEN
    hashed = present * _KINDS + rows[KIND, row]
    for field in (TABLE_SCHEMA, TABLE_NAME):
        hashed = _hashed_pair(hashed, source, text, rows[field, row], rows[field + 1, row])
    for map_index in range(NEW, DETAIL + 1):
        begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
        end = rows[ENDS + map_index, row]
        hashed = spread(hashed ^ end - begin)
        if map_index != DETAIL and present >> (COMPLETE - GIVEN + map_index) & 1:
            hashed = spread(hashed ^ rows[RELATION, row])
        else:
            for cell in range(begin, end):
                hashed = _hashed_pair(
                    hashed, source, text, cells[map_index, NAME, cell, 0], cells[map_index, NAME, cell, 1]
                )
                if map_index == DETAIL or not present >> (UNTYPED - GIVEN) & 1:
                    field = VALUE if map_index == DETAIL else TYPE
                    hashed = _hashed_pair(
                        hashed, source, text, cells[map_index, field, cell, 0], cells[map_index, field, cell, 1]
                    )
        if present >> (HAS_UNCHANGED - GIVEN) & 1:
            for cell in range(begin, end):
                hashed = spread(hashed ^ (cells[map_index, VALUE, cell, 1] == UNCHANGED_LENGTH))
    return hashed >> 24 ^ hashed >> 44


@inner
def _hashed_pair(hashed: Int, source: Array, text: Array, start: Int, length: Int) -> Int:
    """The hash of a text, and of what was hashed before it; NULL is like the empty one."""
    at, size = np.int64(start), max(np.int64(length), 0)
    return hashed_text(hashed, source, at, size) if at >= 0 else hashed_text(hashed, text, ~at, size)


@inner
def _same_details(rows: Array, cells: Array, row: Int, other: Int) -> bool:
    """Whether the details of two rows are noted alike. It may be false for equal ones; it compares no text."""
    begin = rows[ENDS + DETAIL, row - 1] if row > 0 else 0
    at = rows[ENDS + DETAIL, other - 1] if other > 0 else 0
    count = rows[ENDS + DETAIL, row] - begin
    if count != rows[ENDS + DETAIL, other] - at:
        return False
    for step in range(count):
        for field in range(NAME, VALUE + 1):
            if (
                cells[DETAIL, field, begin + step, 0] != cells[DETAIL, field, at + step, 0]
                or cells[DETAIL, field, begin + step, 1] != cells[DETAIL, field, at + step, 1]
            ):
                return False
    return True


@inner
def _same_layout(rows: Array, cells: Array, source: Array, text: Array, row: Int, other: Int) -> bool:
    """Whether two rows have the same layout."""
    present = rows[PRESENT, row] >> GIVEN
    if present != rows[PRESENT, other] >> GIVEN or rows[KIND, row] != rows[KIND, other]:
        return False
    complete = present >> (COMPLETE - GIVEN) & IMAGE_BITS
    if complete and rows[RELATION, row] != rows[RELATION, other]:
        return False
    for field in (TABLE_SCHEMA, TABLE_NAME):
        if not same_text(
            source, text, rows[field, row], rows[field + 1, row], rows[field, other], rows[field + 1, other]
        ):
            return False
    has_unchanged = present >> (HAS_UNCHANGED - GIVEN) & 1
    for map_index in range(NEW, DETAIL + 1):
        begin = rows[ENDS + map_index, row - 1] if row > 0 else 0
        other_begin = rows[ENDS + map_index, other - 1] if other > 0 else 0
        count = rows[ENDS + map_index, row] - begin
        if count != rows[ENDS + map_index, other] - other_begin:
            return False
        is_complete = map_index != DETAIL and complete >> map_index & 1
        if is_complete and not has_unchanged:
            continue
        other_field = VALUE if map_index == DETAIL else TYPE
        is_untyped = map_index != DETAIL and present >> (UNTYPED - GIVEN) & 1
        for step in range(count):
            cell, at = begin + step, other_begin + step
            if map_index != DETAIL and (cells[map_index, VALUE, cell, 1] == UNCHANGED_LENGTH) != (
                cells[map_index, VALUE, at, 1] == UNCHANGED_LENGTH
            ):
                return False
            if is_complete:
                continue
            for index in range(1 if is_untyped else 2):
                field = NAME if index == 0 else other_field
                start, length = np.int64(cells[map_index, field, cell, 0]), np.int64(cells[map_index, field, cell, 1])
                other_start, other_length = (
                    np.int64(cells[map_index, field, at, 0]),
                    np.int64(cells[map_index, field, at, 1]),
                )
                if not same_text(source, text, start, length, other_start, other_length):
                    return False
    return True


@inner
def same_text(source: Array, text: Array, start: Int, length: Int, other: Int, other_length: Int) -> bool:
    """Whether two pairs are the same text; NULL is like the empty one."""
    if length <= 0 or other_length <= 0:
        return length <= 0 and other_length <= 0
    if length != other_length:
        return False
    if start == other:
        return True
    if start >= 0 and other >= 0:
        return bool(same_bytes(source, start, source, other, length))
    if start < 0 and other < 0:
        return bool(same_bytes(text, ~start, text, ~other, length))
    own, its = (start, ~other) if start >= 0 else (other, ~start)
    for step in range(length):
        if source[own + step] != text[its + step]:
            return False
    return True


def are_of_table(scanned: ScannedRows, rows: Array, table: tuple[str, str]) -> Array:
    """Returns bool[n]: whether these rows of the notes are of a table.

    table   schema and name
    """
    schema, name = (text.encode(errors="surrogatepass") for text in table)
    are_of = np.zeros(len(rows), bool)
    names = np.frombuffer(schema + name, np.uint8)
    _compare_names(scanned.rows, rows, scanned.source, scanned.text, names, len(schema), are_of)
    return are_of


@compiled
def _compare_names(
    rows: Array, chosen: Array, source: Array, text: Array, names: Array, schema_bytes: Int, are_of: Array
) -> None:
    """Fills are_of, bool[n], for the rows chosen, int64[n]; names is uint8[m], the name of the schema and the table."""
    for index in range(len(chosen)):
        row = chosen[index]
        if rows[TABLE_NAME + 1, row] != len(names) - schema_bytes or rows[TABLE_SCHEMA + 1, row] != schema_bytes:
            continue
        is_same = True
        for field in (TABLE_NAME, TABLE_SCHEMA):  # tables differ more often than schemas
            begin = schema_bytes if field == TABLE_NAME else 0
            start = rows[field, row]
            for step in range(rows[field + 1, row] if is_same else 0):
                if names[begin + step] != (source[start + step] if start >= 0 else text[~start + step]):
                    is_same = False
                    break
        are_of[index] = is_same
