"""The filters of ReadOptions as the scans take them: plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..options import ReadOptions
from ..options.reading import KINDS


class Wanted(NamedTuple):
    """Which good records become rows."""

    kinds: np.ndarray[Any, Any]
    """uint8[len(KINDS)]: 1 for a kind that is wanted"""
    by_table: bool
    patterns: np.ndarray[Any, Any]
    """int32[n, 4]: (start, length) of schema and of table in names; length -1 is *"""
    names: np.ndarray[Any, Any]
    """uint8[n], UTF-8: a good record's text is UTF-8 or ASCII, others are looked at after they are transcoded"""


def make_wanted(options: ReadOptions) -> Wanted:
    """The filters of checked options."""
    names = bytearray()
    patterns = []
    for pattern in options.tables or ():
        row: list[int] = []
        for part in pattern:
            data = part.encode()
            row += [len(names), -1 if part == "*" else len(data)]
            names += data
        patterns.append(row)
    kinds = [options.kinds is None or kind in options.kinds for kind in KINDS]
    return Wanted(
        np.array(kinds, np.uint8),
        options.tables is not None,
        np.array(patterns, np.int32).reshape(-1, 4),
        np.frombuffer(bytes(names), np.uint8),
    )
