"""Committed rows of which the scan's notes still have the cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...limits import COLUMN_BYTES
from ...options.reading import KINDS
from ...options.table_names import TableName
from ..arrays import Array
from ..codes import in_groups
from ..columns.known_layouts import LayoutsOfRows
from ..columns.last_columns import LastColumns
from ..columns.layouts import are_of_table
from ..committed.assembler import Transactions
from ..committed.facts import SettledRows, committed_rows
from ..row_changes import HIDDEN_KINDS, TABLE_DELETE, TABLE_KINDS
from ..schemas import committed_schema
from ..typed_tables.rows import check_tables_are_named, chosen_of_batch, rows_of_tables
from ..typed_tables.selections import BatchSelection
from ..typed_tables.tables import indices_by_table
from .copies import TransactionsOfRows, copied_rows
from .facts import FACT_COLUMNS, transaction_facts
from .rows import NotedRows
from .selection import (
    NotedSelection,
    selection_of,
    selections_of_tables,
    tables_of,
)


class NotedChanges(NamedTuple):
    """Committed rows of a scan; valid until the next rows of the scan are requested."""

    noted: NotedRows
    settled: SettledRows

    @property
    def kind_codes(self) -> Array:
        """uint8[n]: the index in KINDS of each row's kind."""
        return self.noted.kind_codes[self.settled.rows]

    def of_kind(self, kind: str) -> NotedChanges:
        """Returns the rows of one kind."""
        return self._replace(settled=self.settled.chosen(self.kind_codes == KINDS.index(kind)))

    def of_table(
        self, table: tuple[str, str], keep: Sequence[str], last: LastColumns | None
    ) -> pa.RecordBatch | NotedSelection | None:
        """Returns the rows of a table, copied out of the notes, and those that may be of any table.

        table   schema and name
        keep    columns of the committed rows that are kept
        last    of the rows before, of which this learns; None if the rows before are not known

        Where some of them cannot be copied out of the notes, all are those of a record batch; see `of_batch`. None if
        there are no rows.
        """
        rows = self.settled.rows
        is_noted = self.noted.are_noted_changes(rows)
        chosen = np.flatnonzero(is_noted)
        chosen = chosen[are_of_table(self.noted.scanned, self.noted.notes_of(rows[chosen]), table)]
        others = np.flatnonzero(~is_noted & _MAY_BE_OF_TABLE[self.kind_codes])
        if len(others) and len(rows_of_name(self._chosen(others).batch(), *table)):
            every = np.sort(np.concatenate([chosen, others]))
            if last is not None:
                last.forget(table)
            return of_batch(self._chosen(every).batch(), table, keep)
        if not len(chosen):
            return None
        own = self._chosen(chosen)
        found = own.noted.known.of(own.noted.scanned, own.noted.notes_of(own.settled.rows), last)
        return own._copied(keep, found, np.zeros(len(found.layouts), np.int64))

    def _chosen(self, chosen: Array) -> NotedChanges:
        return self._replace(settled=self.settled.chosen(chosen))

    def by_table(
        self, keep: Sequence[str], keeps_table: KeepsTable, last: LastColumns | None
    ) -> Iterator[tuple[TableName, NotedSelection]]:
        """Yields the tables of these rows, which must be row changes that the notes have; see `rows_by_table`."""
        own, found = self, self.noted.layouts_of(self.noted.notes_of(self.settled.rows), last)
        numbers, tables = tables_of(found.layouts)
        are_kept = np.array([keeps_table(table) for table in tables], bool)
        is_kept = are_kept[numbers[found.codes]]
        if not is_kept.all():
            chosen = np.flatnonzero(is_kept)
            own, found = self._chosen(chosen), found.chosen(chosen)
            numbers, _ = tables_of(found.layouts)
        if len(found.codes):
            yield from selections_of_tables(own._copied(keep, found, numbers))

    def _copied(self, keep: Sequence[str], found: LayoutsOfRows, groups: Array) -> NotedSelection:
        """Copies the rows out of the notes, those of a group together; see `copied_rows`."""
        noted, settled = self.noted, self.settled
        columns: dict[str, pa.Array] = {}
        others = [name for name in keep if name not in FACT_COLUMNS]
        if others:
            own = pa.schema([field for field in noted.schema if field.name in others])
            committed = committed_schema(noted.schema)
            schema = pa.schema([committed.field(name) for name in others])
            batch = committed_rows(noted.gathered(settled.rows, own), settled, schema)
            groups_of_rows = groups[found.codes]
            if groups_of_rows.any():  # the order in which `copied_rows` copies the rows
                batch = batch.take(pa.array(in_groups(groups_of_rows, int(groups.max()) + 1)[0]))
            columns = dict(zip(others, batch.columns, strict=True))
        transactions = TransactionsOfRows(settled.transactions, settled.ordinals, transaction_facts(settled.facts))
        notes = noted.notes_of(settled.rows)
        return copied_rows(noted.scanned, notes, found, groups, transactions, columns)

    def batch(self) -> pa.RecordBatch:
        """Returns the rows with all columns."""
        schema = committed_schema(self.noted.schema)
        return committed_rows(self.noted.batch_of(self.settled.rows), self.settled, schema)


_MAY_BE_OF_TABLE = np.array([kind in (*TABLE_KINDS, *HIDDEN_KINDS) for kind in KINDS])


def rows_of_name(batch: pa.RecordBatch, schema: str, table: str) -> pa.RecordBatch:
    """Returns the rows of a table, and those that may be of any table."""
    is_of = pc.and_(pc.equal(batch["table_name"], table), pc.equal(batch["table_schema"], schema))
    is_hidden = pc.is_in(batch["kind"], pa.array([*HIDDEN_KINDS]))
    nameless = pc.and_(pc.equal(batch["kind"], "TRUNCATE"), pc.is_null(batch["table_name"]))
    return batch.filter(pc.or_(pc.or_(pc.fill_null(is_of, False), is_hidden), nameless))


CommittedRows: TypeAlias = "pa.RecordBatch | NotedChanges"


KeepsTable: TypeAlias = Callable[[TableName], bool]


def every_table(table: TableName) -> bool:
    """Keeps all tables."""
    return True


def rows_by_table(
    rows: CommittedRows, keep: Sequence[str], keeps_table: KeepsTable = every_table, last: LastColumns | None = None
) -> Iterator[tuple[TableName, pa.RecordBatch | NotedSelection]]:
    """Yields the tables of committed rows, each with its rows in order.

    keep          columns of the committed rows that are kept
    keeps_table   whether the rows of a table are needed: those of different tables are kept together
    last          of the rows before, of which this learns; None if the rows before are not known

    Rows of a table that was truncated are a record batch. Raises BadRows for rows that may be of any table.
    """
    if isinstance(rows, pa.RecordBatch):
        yield from _batch_by_table(rows, keep, keeps_table, last)
        return
    changes = rows.settled.rows
    is_noted = rows.noted.are_noted_changes(changes)
    if is_noted.all():
        if len(changes):
            yield from rows.by_table(keep, keeps_table, last)
        return
    others = np.flatnonzero(~is_noted & _MAY_BE_OF_TABLE[rows.kind_codes])
    noted = np.flatnonzero(is_noted)
    if len(others):
        of_others = rows._chosen(others).batch()
        check_tables_are_named(of_others)
        every = others
        for table, _ in indices_by_table(rows_of_tables(of_others)):
            is_of = are_of_table(rows.noted.scanned, rows.noted.notes_of(changes[noted]), table)
            every, noted = np.concatenate([every, noted[is_of]]), noted[~is_of]
        yield from _batch_by_table(rows._chosen(np.sort(every)).batch(), keep, keeps_table, last)
    if len(noted):
        yield from rows._chosen(noted).by_table(keep, keeps_table, last)


def of_batch(
    batch: pa.RecordBatch, table: tuple[str, str], keep: Sequence[str]
) -> pa.RecordBatch | NotedSelection | None:
    """Returns the rows of a table in a record batch; see `rows_by_table`. None if there are none."""
    found = dict(_batch_by_table(rows_of_name(batch, *table), keep))
    return found.get(table)


_MOST_BYTES = COLUMN_BYTES // 4
"""The values of a selection must fit into a column."""


def _batch_by_table(
    batch: pa.RecordBatch, keep: Sequence[str], keeps_table: KeepsTable = every_table, last: LastColumns | None = None
) -> Iterator[tuple[TableName, pa.RecordBatch | NotedSelection]]:
    check_tables_are_named(batch)
    rows = rows_of_tables(batch)
    chosen = chosen_of_batch(rows)
    changed: list[tuple[TableName, Array]] = []
    for table, indices in indices_by_table(rows):
        if not keeps_table(table):
            continue
        if last is not None:
            last.forget(table)
        if (rows.kinds[indices] <= TABLE_DELETE).all() and batch.nbytes < _MOST_BYTES:
            changed.append((table, indices))
        else:
            yield table, batch.take(pa.array(chosen[indices]))
    if not changed:
        return
    tables, of_tables = zip(*changed, strict=True)
    order = np.concatenate(of_tables)
    counts = [len(indices) for indices in of_tables]
    types = {name: batch.schema.field(name).type for name in keep if name not in FACT_COLUMNS}
    own = BatchSelection(batch, chosen[order])
    copied = selection_of(own, rows.kinds[order], tables, np.repeat(np.arange(len(tables)), counts), types)
    yield from selections_of_tables(copied)


def newly_committed(transactions: Transactions, rows: pa.RecordBatch | NotedRows) -> Iterator[CommittedRows]:
    """Yields the committed rows that these rows complete, in commit order."""
    if isinstance(rows, pa.RecordBatch):
        yield from transactions.take(rows)
        return
    for settled in transactions.take_noted(rows, rows.schema):
        yield settled if isinstance(settled, pa.RecordBatch) else NotedChanges(rows, settled)
