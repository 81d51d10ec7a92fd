"""Commit times of a whole column: Arrow's own parser for the common form, one by one for the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..times import FIRST_MICROS, LAST_MICROS, parse_commit_time, table_time
from .arrays import Array

_COMMON = r"^[1-9]\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d)?$"
"""What `parse_commit_time` and Arrow read in the same way, if Arrow reads it at all."""

_TIMESTAMP = pa.timestamp("us", "UTC")


def parse_times(texts: pa.StringArray) -> tuple[Array, Array]:
    """Times as the servers print them: int64[n], microseconds since 1970 in UTC, and bool[n], whether it is one.

    The results are those of `parse_commit_time`. A text that is not a time, or that `table_time` leaves out, gives 0.
    """
    import pyarrow.compute as pc  # slow to load, and not needed without commit times

    if pc.all(pc.match_substring_regex(texts, _COMMON)).as_py():
        try:
            _, data = texts.cast(_TIMESTAMP).buffers()  # to_numpy would load pandas
            micros = np.frombuffer(data, np.int64, len(texts))
            known = (micros >= FIRST_MICROS) & (micros <= LAST_MICROS)  # the offset may lead out of the last year
            return np.where(known, micros, 0), known
        except pa.ArrowInvalid:  # a 30th of February
            pass
    found = [table_time(parse_commit_time(text)) for text in texts.to_pylist()]
    return np.array([micros or 0 for micros in found], np.int64), np.array([micros is not None for micros in found])
