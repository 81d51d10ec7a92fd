"""The facts of committed transactions as columns, and rows with the facts of their transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...stream.attempts import TransactionFacts
from ...stream.positions import Position
from ...stream.transactions import CountedTransactions
from ..arrays import Array
from ..schemas import SEQUENCE
from .batch import InputRows, PlainTransactions
from .cells import NumberColumn

TRANSACTION_FACTS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("xid", pa.int64()),
        ("csn", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_time", pa.int64()),
        ("username", pa.string()),
        ("origin", pa.string()),
    ]
)
"""The schema of facts, with one row per transaction. Times are microseconds since 1970."""


def facts_batch(facts: Sequence[TransactionFacts]) -> pa.RecordBatch:
    """Returns the facts that the machine settled, as columns."""
    sequence, xid, csn, commit_lsn, *others = zip(*facts, strict=True) if facts else [()] * len(TRANSACTION_FACTS)
    numbers = [pa.array(column, pa.uint64()).view(pa.int64()) for column in (sequence, xid, csn, commit_lsn)]
    signed = [pa.array(column, field.type) for column, field in zip(others, [*TRANSACTION_FACTS][4:], strict=True)]
    return pa.RecordBatch.from_arrays([*numbers, *signed], schema=TRANSACTION_FACTS)


class PlainTransactionsFacts(NamedTuple):
    """The facts of plain transactions that directly follow each other.

    facts     TRANSACTION_FACTS, with one row per transaction
    resent    bool[n]: whether the transaction has been sent before, among these or before them
    highest   the highest commit_lsn and csn, unsigned
    """

    facts: pa.RecordBatch
    resent: Array
    highest: tuple[int | None, int | None]


def plain_transactions_facts(rows: InputRows, plain: PlainTransactions, position: Position) -> PlainTransactionsFacts:
    """Returns the facts of plain transactions, as `facts_of` returns them for one transaction.

    position   of the stream before them
    """
    begins, commits = plain
    count = len(begins)
    first, last = int(begins[0]), int(commits[-1]) + 1
    ends = {name: rows.numbers(name, commits) for name in ("xid", "csn", "commit_lsn", "lsn", "commit_time")}
    xid, csn, time = (
        ends[name] if ends[name].valid.all() else ends[name].or_else(rows.numbers(name, begins))
        for name in ("xid", "csn", "commit_time")
    )
    commit_lsn = ends["commit_lsn"].or_else(ends["lsn"])
    number = NumberColumn(position.transactions + 1 + np.arange(count), np.ones(count, bool))
    sequence = commit_lsn.or_else(csn).or_else(number)
    facts = [
        sequence.arrow(pa.int64()),
        *(column.arrow(pa.int64()) for column in (xid, csn, commit_lsn, time)),
        *_names(rows, begins, commits, first, last),
    ]
    resent, highest = _resent(commit_lsn, csn, position)
    return PlainTransactionsFacts(pa.RecordBatch.from_arrays(facts, schema=TRANSACTION_FACTS), resent, highest)


def counted_transactions(
    rows: InputRows, plain: PlainTransactions, highest: tuple[int | None, int | None]
) -> CountedTransactions:
    """Returns plain transactions as the machine takes them."""
    return CountedTransactions(rows.control(int(plain.begins[0])), len(plain.begins), *highest)


def _names(rows: InputRows, begins: Array, commits: Array, first: int, last: int) -> tuple[pa.Array, pa.Array]:
    """Returns username and origin: of the COMMIT, or else of an ORIGIN record, or else of the BEGIN."""
    columns = []
    for key in ("username", "origin"):
        texts = [rows.detail(indices, key) for indices in (commits, begins)] if key in rows.detail_keys else []
        columns.append(pc.coalesce(*texts) if texts else pa.nulls(len(begins), pa.string()))
    username, origin = columns
    origins = first + np.flatnonzero(rows.is_origin[first:last])
    if len(origins):
        names = np.full(len(begins), None, object)
        names[np.searchsorted(begins, origins, "right") - 1] = rows.detail(origins, "origin").to_pylist()
        origin = pc.coalesce(rows.detail(commits, "origin"), pa.array(names.tolist(), pa.string()), origin)
    return username, origin


def _resent(lsn: NumberColumn, csn: NumberColumn, position: Position) -> tuple[Array, tuple[int | None, int | None]]:
    """Returns `Position.covers` for each transaction, at the position before it, and the highest commit_lsn and csn."""
    lsns, before_lsn, has_lsn = _highest_before(lsn, position.lsn)
    csns, before_csn, has_csn = _highest_before(csn, position.csn)
    covered = lsn.valid & has_lsn & (lsns <= before_lsn)
    resent = covered & (~csn.valid | (has_csn & (csns <= before_csn)))
    return resent, (_highest(lsns, lsn.valid), _highest(csns, csn.valid))


def _highest_before(column: NumberColumn, start: int | None) -> tuple[Array, Array, Array]:
    """Returns the numbers, unsigned; for each the highest number before it; and whether there is one."""
    values = np.where(column.valid, column.values, 0).view(np.uint64)
    before = np.empty(len(values), np.uint64)
    is_valid = np.empty(len(values), bool)
    before[0], is_valid[0] = (0, False) if start is None else (start, True)
    before[1:], is_valid[1:] = values[:-1], column.valid[:-1]
    return values, np.maximum.accumulate(before), np.logical_or.accumulate(is_valid)


def _highest(values: Array, valid: Array) -> int | None:
    return int(values[valid].max()) if valid.any() else None


def committed_rows(rows: pa.RecordBatch, settled: SettledRows, schema: pa.Schema) -> pa.RecordBatch:
    """Returns row changes with the facts of their transactions, and the columns of the schema.

    rows   the rows of `settled`, with their own columns
    """
    added = {name: settled.of_transactions(name) for name in TRANSACTION_FACTS.names}
    added["sequence"] = settled.sequence
    columns = [added[field.name].cast(field.type) if field.name in added else rows[field.name] for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
