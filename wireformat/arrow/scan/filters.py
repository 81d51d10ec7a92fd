"""The filters of ReadOptions as the scans take them: plain arrays, and the search for a table among its patterns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...options import ReadOptions
from ...options.reading import KINDS
from ..arrays import Array, Int
from ..jit.byte_ranges import FACTOR, LOW_BITS, spread
from ..jit.compiler import inner
from .notes import DELETE, INSERT, OF_ANY_TABLE, TABLE_NAME, TABLE_SCHEMA, TYPE_KIND, ScanArrays

FREE, ANY = -2, -1
"""In place of the length of a name: of the schema of a slot without a pattern; of *."""


class Filters(NamedTuple):
    """Which good records become rows."""

    kinds: int
    """Bit n: KINDS[n] is wanted; bit OF_ANY_TABLE + n: whatever its table."""
    patterns: np.ndarray[Any, Any]
    """int32[n, 4]: slots of a table with free ones in it, or none if all tables are wanted; in each the pairs
    (start, length) of schema and of table in names, or FREE"""
    names: np.ndarray[Any, Any]
    """uint8[n], UTF-8: a good record's text is UTF-8 or ASCII, others are looked at after they are transcoded"""


@inner
def name_hash(data: Any, start: Int, length: Int) -> Int:
    """What the search for a pattern knows of a name, or of ANY."""
    hashed = np.int64(length)
    for at in range(start, start + length):
        hashed = spread(hashed ^ np.int64(data[at]))
    return hashed


@inner
def pattern_slot(schema: Int, table: Int, slots: Int) -> Int:
    """Where the search for a pattern with names of these hashes begins.

    Each hash is shifted by another number of bits, so that schema and table do not cancel each other out; the lowest
    bits of a product depend on few bits, so those from the middle are taken.
    """
    return (((schema >> 7 ^ table >> 4) & LOW_BITS) * FACTOR >> 20) & slots - 1


@inner
def has_pattern(arrays: ScanArrays, row: Int, patterns: Array, names: Array) -> bool:
    """Whether a pattern names the table of a row."""
    buffer, rows, text = arrays.buffer, arrays.rows, arrays.text
    schema_hash = table_hash = any_hash = name_hash(names, 0, ANY)
    for field in (TABLE_SCHEMA, TABLE_NAME):
        start, length = rows[field, row], rows[field + 1, row]
        hashed = name_hash(buffer if start >= 0 else text, start if start >= 0 else ~start, length)
        schema_hash, table_hash = table_hash, hashed
    for stars in range(4):  # bit 0: * in place of the schema, bit 1: of the table
        slot = pattern_slot(
            any_hash if stars & 1 else schema_hash, any_hash if stars & 2 else table_hash, len(patterns)
        )
        while patterns[slot, 1] != FREE:
            matches = True
            for part in range(2):
                start, length = patterns[slot, 2 * part], patterns[slot, 2 * part + 1]
                own, own_length = rows[TABLE_SCHEMA + 2 * part, row], rows[TABLE_SCHEMA + 2 * part + 1, row]
                if stars >> part & 1:
                    matches = matches and length == ANY
                else:
                    matches = matches and length == own_length
                    at = 0
                    while matches and at < length:
                        matches = (buffer[own + at] if own >= 0 else text[~own + at]) == names[start + at]
                        at += 1
            if matches:
                return True
            slot = slot + 1 & len(patterns) - 1
    return False


@lru_cache(maxsize=16)
def _slots_of(tables: tuple[tuple[str | None, str | None], ...]) -> tuple[Array, Array]:
    """The patterns of some tables, and the text of their names; see Filters."""
    slots = np.full((2 << len(tables).bit_length(), 4), FREE, np.int32)
    names = bytearray()
    for pattern in tables:
        pairs, hashes = [], []
        for part in pattern:
            name = b"" if part is None else part.encode(errors="surrogatepass")  # no name in a stream has such bytes
            length = ANY if part is None else len(name)
            pairs += [len(names), length]
            hashes.append(int(name_hash(name, 0, length)))
            names += name
        slot = pattern_slot(hashes[0], hashes[1], len(slots))
        while slots[slot, 1] != FREE:
            slot = slot + 1 & len(slots) - 1
        slots[slot] = pairs
    return slots, np.frombuffer(bytes(names), np.uint8)


def make_filters(options: ReadOptions) -> Filters:
    """The filters of checked options."""
    patterns, names = _slots_of(tuple(options.tables or ()))
    kinds = sum(1 << bit for bit, kind in enumerate(KINDS) if options.kinds is None or kind in options.kinds)
    return Filters(
        kinds | 1 << OF_ANY_TABLE + TYPE_KIND,  # its names are those of a type
        patterns if options.tables is not None else patterns[:0],
        names,
    )


def make_change_filters(options: ReadOptions) -> Filters:
    """The filters that step over row changes of other tables, and keep all other records."""
    filters = make_filters(options)
    others = sum(1 << OF_ANY_TABLE + kind for kind in range(len(KINDS)) if not INSERT <= kind <= DELETE)
    return filters._replace(kinds=filters.kinds | others)
