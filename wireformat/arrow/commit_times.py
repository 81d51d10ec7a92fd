"""Commit times of a whole column: Arrow's own parser for the common form, one by one for the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..times import FIRST_MICROS, LAST_MICROS, parse_commit_time, table_time
from .arrays import Array

_COMMON = r"^[1-9]\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d)?$"
"""What `parse_commit_time` and Arrow read in the same way, if Arrow reads it at all."""

_OTHER = r"^\d{4,6}-.* BC$|^\d{5,6}-|^0\d{3}-|^\d{4}-.*[+-]\d\d:\d\d:\d\d$"
"""All other forms of what `parse_commit_time` reads: years before 1000 or after 9999, offsets with seconds."""

_TIMESTAMP = pa.timestamp("us", "UTC")

FEW_TIMES = 32
"""Up to this many times are read one by one if Arrow does not read one of them."""


def parse_times(texts: pa.StringArray) -> tuple[Array, Array]:
    """Times as the servers print them: int64[n], microseconds since 1970 in UTC, and bool[n], whether it is one.

    The results are those of `parse_commit_time`. A text that is not a time, or that `table_time` leaves out, gives 0.
    """
    import pyarrow.compute as pc  # slow to load, and not needed without commit times

    common = pc.match_substring_regex(texts, _COMMON)
    if pc.all(common).as_py():
        return _cast(texts)
    micros, is_time = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    for pattern, parse in ((common, _cast), (pc.match_substring_regex(texts, _OTHER), _one_by_one)):
        chosen = pc.indices_nonzero(pattern)
        if len(chosen):
            rows = np.frombuffer(chosen.buffers()[1], np.uint64, len(chosen))  # to_numpy would load pandas
            micros[rows], is_time[rows] = parse(texts.take(chosen))
    return micros, is_time


def _cast(texts: pa.StringArray) -> tuple[Array, Array]:
    """Times of the common form. Where Arrow refuses one, as a 30th of February, ever smaller halves are tried."""
    try:
        _, data = texts.cast(_TIMESTAMP).buffers()
    except pa.ArrowInvalid:
        if len(texts) <= FEW_TIMES:
            return _one_by_one(texts)
        middle = len(texts) // 2
        halves = _cast(texts[:middle]), _cast(texts[middle:])
        micros, known = (np.concatenate(pair) for pair in zip(*halves, strict=True))
        return micros, known
    micros = np.frombuffer(data, np.int64, len(texts))
    known = (micros >= FIRST_MICROS) & (micros <= LAST_MICROS)  # the offset may lead out of the last year
    return np.where(known, micros, 0), known


def _one_by_one(texts: pa.StringArray) -> tuple[Array, Array]:
    found = [table_time(parse_commit_time(text)) for text in texts.to_pylist()]
    return np.array([one or 0 for one in found], np.int64), np.array([one is not None for one in found], np.bool_)
