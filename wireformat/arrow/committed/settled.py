"""Committed rows that have not been copied out of the rows that are being read."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from ..arrays import Array
from ..schemas import SEQUENCE


class SettledRows(NamedTuple):
    """Rows of a source whose transactions were committed, in commit order. They have not been copied.

    rows          int64[m]: indices of rows of the source
    facts         TRANSACTION_FACTS of their transactions, and perhaps of others
    transactions  int64[m]: for each row, the index of its transaction in `facts`
    ordinals      int64[m]: of the row in its transaction
    """

    rows: Array
    facts: pa.RecordBatch
    transactions: Array
    ordinals: Array

    def chosen(self, chosen: Array) -> SettledRows:
        """Returns some of the rows, by indices or flags."""
        return SettledRows(self.rows[chosen], self.facts, self.transactions[chosen], self.ordinals[chosen])

    def of_transactions(self, name: str) -> pa.Array:
        """Returns a fact of the transaction of each row."""
        column = self.facts[name]
        if column.null_count == len(column):
            return pa.nulls(len(self.rows), column.type)
        return column.take(pa.array(self.transactions))

    @property
    def sequence(self) -> pa.StructArray:
        """The column `sequence` of the rows. Rows that belong to no transaction have none."""
        sequence = self.of_transactions("sequence")
        is_null = sequence.is_null() if sequence.null_count else None
        columns = [sequence.fill_null(0), pa.array(self.ordinals)]
        return pa.StructArray.from_arrays(columns, fields=list(SEQUENCE), mask=is_null)
