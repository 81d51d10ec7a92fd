"""The rows of many tables on their way into typed batches: groups of one table each, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..arrow.arrays import batch_size
from ..arrow.columns.last_columns import LastColumns
from ..arrow.noted.changes import CommittedRows, KeepsTable, rows_by_table
from ..arrow.noted.selection import NotedSelection, joined_selections
from ..options.table_names import TableName

Parts: TypeAlias = "list[pa.RecordBatch | NotedSelection]"

GROUP_ROWS = 122_880
GROUP_BYTES = 32 << 20
"""At this number or size, the rows of a table become a typed batch, and a row group of its file."""

_LEFT_OF_MEMORY = 7 / 8
"""If too many bytes are waiting, groups are yielded until the rest fills this share of the memory, so that not every
further part has to make room."""

_COPIED_OF_MEMORY = 1 / 8
"""What was copied may be kept a second time, up to this share of the memory."""

JOINED_PARTS, SMALL_BYTES = 8, 32 << 10
"""This number of consecutive parts of a table is joined if each has at most this size; fewer are joined if too many
bytes are waiting."""


def groups_of_tables(
    found: Iterable[CommittedRows | None],
    keep: Sequence[str],
    keeps_table: KeepsTable,
    memory_bytes: int,
    may_go: Callable[[], bool],
    make_list: Callable[[], object],
) -> Iterator[tuple[TableName, Parts]]:
    """Yields committed rows by table, in groups.

    keep           columns of the committed rows that are kept
    keeps_table    whether the rows of a table are needed
    memory_bytes   the number of bytes that may wait
    may_go         returns whether groups may go before the last row: where the list of tables is there, or not needed
    make_list      gets the list, if it is not there

    Otherwise groups wait for the last row, with which the list may be complete, unless they become too large. The list
    is there when the last groups are yielded.
    """
    groups, last = Groups(memory_bytes), LastColumns()
    for rows in found:
        for table, own in rows_by_table(rows, keep, keeps_table, last) if rows is not None else ():
            groups.take(table, own)
            if groups.are_too_large and not may_go():
                make_list()
            if may_go():
                yield from groups.full()
        groups.let_go()
    make_list()
    yield from groups.rest()


def size_of(rows: pa.RecordBatch | NotedSelection) -> int:
    """Returns about how many bytes rows take in memory."""
    return batch_size(rows) if isinstance(rows, pa.RecordBatch) else rows.nbytes


def first_rows(parts: Parts, count: int) -> Parts:
    """Returns the first `count` rows of all parts."""
    found: Parts = []
    for rows in parts:
        if len(rows) > count:
            rows = rows.slice(0, count) if isinstance(rows, pa.RecordBatch) else rows.chosen(np.arange(count))
        count -= len(rows)
        if len(rows):
            found.append(rows)
    return found


class Groups:
    """Waiting rows, by table.

    memory_bytes   the number of bytes that may wait
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._held: dict[TableName, Parts] = {}
        self._sizes: dict[TableName, int] = {}
        self._counts: dict[TableName, int] = {}
        self._full: deque[tuple[TableName, Parts, int]] = deque()
        self._size = 0
        self._shared: dict[TableName, int] = {}
        """The first of the parts of a table that may keep something of other rows."""
        self._has_gone = False
        self._copied = 0
        """The size of what was joined since `let_go`: waiting rows of other tables may keep what it was copied from."""
        self._has_more: set[TableName] = set()
        """Tables with parts that came after those that were joined."""

    def take(self, table: TableName, rows: pa.RecordBatch | NotedSelection) -> None:
        """Takes the next rows of a table."""
        parts = self._held.setdefault(table, [])
        self._shared.setdefault(table, len(parts))
        parts.append(rows)
        self._add_size(table, size_of(rows))
        self._counts[table] = self._counts.get(table, 0) + len(rows)
        if len(parts) > 1:
            self._has_more.add(table)
        if len(parts) >= JOINED_PARTS:
            self._join_small(table, JOINED_PARTS)
        if self._sizes[table] >= GROUP_BYTES or self._counts[table] >= GROUP_ROWS:
            self._fill(table)
        if self.are_too_large:
            for joined in self._has_more:
                self._join_small(joined, 2)
            self._has_more.clear()

    @property
    def are_too_large(self) -> bool:
        """Whether more bytes are waiting than `memory_bytes`, though small parts were joined."""
        return self._size > self._memory_bytes

    def full(self) -> Iterator[tuple[TableName, Parts]]:
        """Yields the groups that are large enough; if too many bytes are waiting, also the largest of the others."""
        largest_last = sorted(self._sizes, key=self._sizes.__getitem__) if self.are_too_large else []
        while self._full or (largest_last and self._size > _LEFT_OF_MEMORY * self._memory_bytes):
            if not self._full:
                self._fill(largest_last.pop())
            table, parts, size = self._full.popleft()
            self._size -= size
            self._has_gone = True
            yield table, parts

    def let_go(self) -> None:
        """Lets go what waiting rows keep of others that have gone. Call it after all tables of some rows."""
        if not self._has_gone:
            return
        for table, first in self._shared.items():
            parts = self._held[table]
            parts[first:] = [rows.alone() if isinstance(rows, NotedSelection) else rows for rows in parts[first:]]
        self._shared, self._has_gone, self._copied = {}, False, 0

    def rest(self) -> Iterator[tuple[TableName, Parts]]:
        """Yields all groups."""
        for table in [*self._held]:
            self._fill(table)
        yield from self.full()

    def _add_size(self, table: TableName, size: int) -> None:
        self._sizes[table] = self._sizes.get(table, 0) + size
        self._size += size

    def _join_small(self, table: TableName, least: int) -> None:
        """Joins the last parts of a table if at least `least` are small: a part takes memory besides its rows."""
        parts = self._held[table]
        small: list[NotedSelection] = []
        for rows in reversed(parts[-JOINED_PARTS:]):
            if not isinstance(rows, NotedSelection) or rows.nbytes > SMALL_BYTES:
                break
            small.insert(0, rows)
        if len(small) < least:
            return
        joined = joined_selections(small)
        parts[-len(small) :] = [joined]
        self._add_size(table, joined.nbytes - sum(rows.nbytes for rows in small))
        if table in self._shared:  # what was joined keeps nothing of other rows
            self._shared[table] = min(self._shared[table], len(parts))
        self._copied += joined.nbytes
        self._has_gone |= self._copied > _COPIED_OF_MEMORY * self._memory_bytes

    def _fill(self, table: TableName) -> None:
        del self._counts[table]
        self._shared.pop(table, None)
        self._has_more.discard(table)
        self._full.append((table, self._held.pop(table), self._sizes.pop(table)))
