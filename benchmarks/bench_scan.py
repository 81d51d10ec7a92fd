"""The floor of what reads all rows: the scan alone, which notes where records and values are, and builds nothing."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from wireformat.arrow.engine.scanner import Scanner
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

from .contestants import Contestant

FLOOR = (
    " The scan alone, in one thread, notes where records and values are and builds nothing: nothing that reads all "
    "rows takes less time."
)
"""What a reader of the results must know of it."""


def count_noted(messages: pa.ChunkedArray, format: str) -> int:
    """Scans the messages, in one thread."""
    return sum(scanned.row_count for scanned in Scanner(find_format(format), ReadOptions.check()).scan(messages))


def scan_alone(format: str) -> Contestant:
    """Returns the scan of a format."""
    return Contestant(f"the scan alone, {format}", partial(count_noted, format=format), columns=0, source=format)
