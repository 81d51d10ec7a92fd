"""The filters of ReadOptions as the scans take them: plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...limits import RECORD_BYTES
from ...options import ReadOptions
from ...options.reading import KINDS
from .notes import DELETE, INSERT, OF_ANY_TABLE, TYPE_KIND


class Filters(NamedTuple):
    """Which good records become rows."""

    kinds: int
    """Bit n: KINDS[n] is wanted; bit OF_ANY_TABLE + n: whatever its table."""
    patterns: np.ndarray[Any, Any]
    """int32[n, 4]: pairs (start, length) of schema and of table in names; length -1 is *"""
    names: np.ndarray[Any, Any]
    """uint8[n], UTF-8: a good record's text is UTF-8 or ASCII, others are looked at after they are transcoded"""


def make_filters(options: ReadOptions) -> Filters:
    """The filters of checked options."""
    names = bytearray()
    patterns = []
    for pattern in options.tables or ():
        row: list[int] = []
        for part in pattern:
            row += [len(names), -1 if part is None else len(part.encode())]
            names += (part or "").encode()
        patterns.append(row)
    if options.tables == ():
        patterns.append([0, RECORD_BYTES, 0, RECORD_BYTES])  # no name is so long
    kinds = sum(1 << bit for bit, kind in enumerate(KINDS) if options.kinds is None or kind in options.kinds)
    return Filters(
        kinds | 1 << OF_ANY_TABLE + TYPE_KIND,  # its names are those of a type
        np.array(patterns, np.int32).reshape(-1, 4),
        np.frombuffer(bytes(names), np.uint8),
    )


def make_change_filters(options: ReadOptions) -> Filters:
    """The filters that step over row changes of other tables, and keep all other records."""
    filters = make_filters(options)
    others = sum(1 << OF_ANY_TABLE + kind for kind in range(len(KINDS)) if not INSERT <= kind <= DELETE)
    return filters._replace(kinds=filters.kinds | others)
