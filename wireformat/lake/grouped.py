"""The rows of many tables on their way into typed batches: groups of one table each, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa

from ..arrow.noted.selection import NotedSelection

Table = tuple[str, str]
Parts: TypeAlias = "list[pa.RecordBatch | NotedSelection]"

GROUP_ROWS = 122_880
GROUP_BYTES = 32 << 20
"""At this number or size, the rows of a table become a typed batch, and a row group of its file."""


class Groups:
    """Rows that wait, by table.

    memory_bytes   when the rows that wait are so large together, the largest group becomes a row group, however small
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._held: dict[Table, Parts] = {}
        self._sizes: dict[Table, int] = {}
        self._counts: dict[Table, int] = {}
        self._size = 0

    def take(self, table: Table, rows: pa.RecordBatch | NotedSelection) -> Iterator[tuple[Table, Parts]]:
        """Takes the next rows of a table; yields the groups that are large enough."""
        self._held.setdefault(table, []).append(rows)
        self._sizes[table] = self._sizes.get(table, 0) + rows.nbytes
        self._counts[table] = self._counts.get(table, 0) + len(rows)
        self._size += rows.nbytes
        if self._sizes[table] >= GROUP_BYTES or self._counts[table] >= GROUP_ROWS:
            yield table, self._released(table)
        while self._size > self._memory_bytes:
            largest = max(self._sizes, key=self._sizes.__getitem__)
            yield largest, self._released(largest)

    def rest(self) -> Iterator[tuple[Table, Parts]]:
        """Yields the groups that are left."""
        for table in [*self._held]:
            yield table, self._released(table)

    def _released(self, table: Table) -> Parts:
        self._size -= self._sizes.pop(table)
        del self._counts[table]
        return self._held.pop(table)
