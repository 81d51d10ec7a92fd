"""Commit times of a whole column: Arrow's own parser for the common form, one by one for the others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..times import parse_commit_time

_COMMON = r"^[1-9]\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d)?$"
"""What `parse_commit_time` and Arrow read in the same way, if Arrow reads it at all."""

_TIMESTAMP = pa.timestamp("us", "UTC")


def parse_times(texts: pa.StringArray) -> pa.TimestampArray:
    """Times as the servers print them to timestamps; null where `parse_commit_time` finds none."""
    common = pc.match_substring_regex(texts, _COMMON)
    if pc.all(common).as_py():
        try:
            return texts.cast(_TIMESTAMP)
        except pa.ArrowInvalid:  # a 30th of February
            pass
    return pa.array([parse_commit_time(text) for text in texts.to_pylist()], pa.int64()).cast(_TIMESTAMP)
