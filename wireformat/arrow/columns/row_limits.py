"""Splits the rows of a scan into ranges whose columns fit: a column of a record batch holds 2 GiB of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...errors import LimitExceeded
from ...limits import BATCH_TEXT_BYTES, COLUMN_BYTES
from ..scan.notes import ENDS, MAPS, MESSAGE, RECORD

if TYPE_CHECKING:
    from ..scan.notes import ScannedRows

Made = TypeVar("Made")


class TooMuchText(Exception):
    """Several rows have too much text for one record batch; fewer rows have less."""


def check_text(scanned: ScannedRows, size: int) -> int:
    """Returns the size if a column of these rows can have this many bytes of text.

    Raises TooMuchText if the rows must be split, LimitExceeded if a single row has too much text.
    """
    if size > BATCH_TEXT_BYTES and scanned.row_count > 1:
        raise TooMuchText
    check_column(size, int(scanned.rows[MESSAGE, 0]), int(scanned.rows[RECORD, 0]))
    return size


def check_column(size: int, message: int, record: int) -> None:
    """Raises LimitExceeded if a column of one record has more bytes of text than fit in a column."""
    if size > COLUMN_BYTES:
        raise LimitExceeded(
            f"limits.COLUMN_BYTES is {COLUMN_BYTES}, a column of record {record} of message {message} has {size} bytes"
        )


def in_ranges(scanned: ScannedRows, make: Callable[[ScannedRows], Made]) -> Iterator[Made]:
    """Yields the result of `make` for all rows, or for ever smaller halves of them while it raises TooMuchText."""
    try:
        made = make(scanned)
    except TooMuchText:
        middle = scanned.row_count // 2
        yield from in_ranges(rows_between(scanned, 0, middle), make)
        yield from in_ranges(rows_between(scanned, middle, scanned.row_count), make)
    else:
        yield made


def rows_between(scanned: ScannedRows, begin: int, end: int) -> ScannedRows:
    """Returns a range of the rows. Their notes are copied, their texts are not."""
    maps = slice(ENDS, ENDS + len(MAPS))
    rows = scanned.rows[:, begin:end].copy()
    first = scanned.rows[maps, begin - 1] if begin else np.zeros(len(MAPS), np.int64)
    last = rows[maps, -1] if begin < end else first
    cells = np.empty((*scanned.cells.shape[:2], int((last - first).max()), 2), np.int32)
    for map_index, (start, stop) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        cells[map_index, :, : stop - start] = scanned.cells[map_index, :, start:stop]
    rows[maps] -= first[:, np.newaxis]
    events = {row - begin: located for row, located in scanned.events.items() if begin <= row < end}
    stepped = scanned.stepped.between(scanned.rows, scanned.row_count, begin, end)
    return scanned._replace(rows=rows, row_count=end - begin, cells=cells, events=events, stepped=stepped)
