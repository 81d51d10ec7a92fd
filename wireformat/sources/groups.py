"""The rows of many tables on their way into typed batches: groups of one table each, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from ..arrow.batch_size import batch_size
from ..arrow.noted.changes import CommittedRows, KeepsTable, rows_by_table
from ..arrow.noted.selection import NotedSelection, joined_selections
from ..options.table_names import TableName

Parts: TypeAlias = "list[pa.RecordBatch | NotedSelection]"

GROUP_ROWS = 122_880
GROUP_BYTES = 32 << 20
"""At this number or size, the rows of a table become a typed batch, and a row group of its file."""

_LEFT_OF_MEMORY = 7 / 8
"""If too many bytes are waiting, so many go that this share of them may wait: not each next part makes room anew."""

MOST_SMALL, SMALL_BYTES = 8, 32 << 10
"""As soon as so many parts of a table that follow each other have at most this size, they become one part."""


def groups_of_tables(
    found: Iterable[CommittedRows | None],
    keep: Sequence[str],
    keeps_table: KeepsTable,
    memory_bytes: int,
    is_listed: Callable[[], bool],
    make_list: Callable[[], object],
) -> Iterator[tuple[TableName, Parts]]:
    """Yields committed rows by table, in groups. The list of tables is there when the first group is yielded.

    keep           columns of the committed rows that are kept
    keeps_table    whether the rows of a table are needed
    memory_bytes   the number of bytes that may wait
    is_listed      returns whether the list of tables is there
    make_list      gets the list, if it is not there

    Without the list, groups wait for the last row, with which it may be complete, unless they become too large.
    """
    groups = Groups(memory_bytes)
    for rows in found:
        for table, own in rows_by_table(rows, keep, keeps_table) if rows is not None else ():
            groups.take(table, own)
            if groups.are_too_large:
                make_list()
            if is_listed():
                yield from groups.full()
        groups.let_go()
    make_list()
    yield from groups.rest()


def size_of(rows: pa.RecordBatch | NotedSelection) -> int:
    """Returns about how many bytes rows take in memory."""
    return batch_size(rows) if isinstance(rows, pa.RecordBatch) else rows.nbytes


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

    def take(self, table: TableName, rows: pa.RecordBatch | NotedSelection) -> None:
        """Takes the next rows of a table."""
        parts = self._held.setdefault(table, [])
        self._shared.setdefault(table, len(parts))
        parts.append(rows)
        self._add_size(table, size_of(rows))
        self._counts[table] = self._counts.get(table, 0) + len(rows)
        self._join_small(table, parts)
        if self._sizes[table] >= GROUP_BYTES or self._counts[table] >= GROUP_ROWS:
            self._fill(table)

    @property
    def are_too_large(self) -> bool:
        """Whether more bytes are waiting than `memory_bytes`."""
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
        self._shared, self._has_gone = {}, False

    def rest(self) -> Iterator[tuple[TableName, Parts]]:
        """Yields all groups."""
        for table in [*self._held]:
            self._fill(table)
        yield from self.full()

    def _add_size(self, table: TableName, size: int) -> None:
        self._sizes[table] = self._sizes.get(table, 0) + size
        self._size += size

    def _join_small(self, table: TableName, parts: Parts) -> None:
        """Joins the last parts of a table if they are small: beside its rows, each takes some memory."""
        small = [
            rows for rows in parts[-MOST_SMALL:] if isinstance(rows, NotedSelection) and rows.nbytes <= SMALL_BYTES
        ]
        if len(small) < MOST_SMALL:
            return
        joined = joined_selections(small)
        parts[-MOST_SMALL:] = [joined]
        self._add_size(table, joined.nbytes - sum(rows.nbytes for rows in small))
        self._shared[table] = min(self._shared[table], len(parts))  # what was joined keeps nothing of other rows

    def _fill(self, table: TableName) -> None:
        del self._counts[table]
        self._shared.pop(table, None)
        self._full.append((table, self._held.pop(table), self._sizes.pop(table)))
