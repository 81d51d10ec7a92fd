"""Committed rows of which the scan's notes still have the cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from ...options.reading import KINDS
from ..arrays import Array
from ..committed.assembler import Transactions
from ..committed.facts import committed_rows
from ..committed.settled import SettledRows
from ..schemas import committed_schema
from .rows import NotedRows


class NotedChanges(NamedTuple):
    """Committed rows of a scan; valid until the next rows of the scan are requested."""

    noted: NotedRows
    settled: SettledRows

    @property
    def codes(self) -> Array:
        """uint8[n]: the index in KINDS of each row's kind."""
        return self.noted.codes[self.settled.rows]

    def of_kind(self, kind: str) -> NotedChanges:
        """Returns the rows of one kind."""
        return self._replace(settled=self.settled.chosen(self.codes == KINDS.index(kind)))

    def batch(self) -> pa.RecordBatch:
        """Returns the rows with all columns."""
        schema = committed_schema(self.noted.schema)
        return committed_rows(self.noted.taken(self.settled.rows), self.settled, schema)


CommittedRows: TypeAlias = "pa.RecordBatch | NotedChanges"


def take_rows(transactions: Transactions, rows: pa.RecordBatch | NotedRows) -> Iterator[CommittedRows]:
    """Yields the committed rows that these rows complete, in commit order."""
    if isinstance(rows, pa.RecordBatch):
        yield from transactions.take(rows)
        return
    for found in transactions.take_noted(rows, rows.schema):
        yield found if isinstance(found, pa.RecordBatch) else NotedChanges(rows, found)
