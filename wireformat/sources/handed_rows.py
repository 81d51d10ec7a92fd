"""Committed rows on their way to a caller: with the position after them, of chosen tables, in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow.columns.last_columns import LastColumns
from ..arrow.noted.changes import CommittedRows, of_batch
from ..arrow.noted.selection import NotedSelection, change_rows, joined_selections
from ..arrow.typed_tables.rows import ChangeRows, joined_rows, rows_of_table
from ..options import ReadOptions
from ..stream.capture_position import CapturePosition
from .groups import size_of
from .identities import Identities

_GROUP_BYTES = 16 << 20
_GROUP_ROWS = 1 << 15
"""Rows are grouped up to about this size, because a typed batch costs as much as a few thousand rows. Larger groups
would take more memory, and hardly less time."""


KEEP_MESSAGES = "give a list, an Arrow table or files that stay as they are"
"""What to do where a second reading has found less than the first one."""

Reached = Callable[[], CapturePosition]
"""A position that was reached. It is made where someone asks: thousands of relations take a while."""


class HandedRows(NamedTuple):
    """Rows, and the position after them; None if more rows of the same input follow first."""

    rows: CommittedRows | None
    position: Reached | None


class HeldRows(NamedTuple):
    """The rows of one table, read while the tables were listed.

    table, keep        as `grouped_rows` takes them
    groups             as it yields them
    identities         the replica identities that the stream states
    dropped            the number of records that DROPMALFORMED left out
    unknown_prepared   see `Capture.unknown_prepared`
    """

    table: tuple[str, str]
    keep: tuple[str, ...]
    groups: list[tuple[ChangeRows | None, Reached | None]]
    identities: Identities
    dropped: int
    unknown_prepared: tuple[str, ...] | None


def as_batch(rows: CommittedRows, kind: str | None = None) -> pa.RecordBatch:
    """Returns committed rows as a record batch.

    kind   only rows of this kind need be among them
    """
    if isinstance(rows, pa.RecordBatch):
        return rows
    return (rows if kind is None else rows.of_kind(kind)).batch()


def grouped_rows(
    found: Iterable[HandedRows], table: tuple[str, str], keep: Sequence[str]
) -> Iterator[tuple[ChangeRows | None, Reached | None]]:
    """Yields the rows of one table in groups, each with the last position that is known in it: at its end, or before
    rows of which more follow.

    table   schema and name
    keep    columns of the committed rows that are kept
    """
    held: list[pa.RecordBatch | NotedSelection] = []
    columns = LastColumns()
    size = count = 0
    last: Reached | None = None
    for rows, position in found:
        last = position or last
        if rows is None:
            continue
        if isinstance(rows, pa.RecordBatch):
            own = of_batch(rows, table, keep)
            columns.forget(table)
        else:
            own = rows.of_table(table, keep, columns)
        if own is not None and len(own):
            held.append(own)
            size += size_of(own)
            count += len(own)
        rows = own = None  # not in memory while the next ones are read
        if size >= _GROUP_BYTES or count >= _GROUP_ROWS:
            yield joined_parts(held, table, keep), last
            held, size, count, last = [], 0, 0, None
    yield joined_parts(held, table, keep) if held else None, last


def joined_parts(
    held: Sequence[pa.RecordBatch | NotedSelection], table: tuple[str, str], keep: Sequence[str]
) -> ChangeRows:
    """Joins the rows of one table; raises BadRows for rows that may be of it, but do not name their table."""
    parts: list[ChangeRows] = []
    for is_batch, run in groupby(held, _is_batch):
        rows = [*run]
        parts += rows_of_table(rows, *table, keep) if is_batch else [change_rows(joined_selections(rows))]
    return joined_rows(parts)


def _is_batch(rows: pa.RecordBatch | NotedSelection) -> bool:
    return isinstance(rows, pa.RecordBatch)


def rows_of_patterns(batch: pa.RecordBatch, options: ReadOptions) -> pa.RecordBatch:
    """Returns the rows that the option `tables` keeps."""
    if options.tables is None:
        return batch
    names = [batch[name].dictionary_encode() for name in ("table_schema", "table_name")]
    texts = [column.dictionary.to_pylist() for column in names]
    codes = [np.asarray(column.indices.fill_null(-1)) for column in names]
    pairs, inverse = np.unique(np.stack(codes), axis=1, return_inverse=True)
    kept = [
        schema < 0 or table < 0 or options.keeps("INSERT", (texts[0][schema], texts[1][table]))
        for schema, table in pairs.T.tolist()
    ]
    return batch.filter(pa.array(np.array(kept, bool)[inverse.reshape(-1)]))
