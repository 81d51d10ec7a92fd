"""`latest`: the rows that a table has after its typed changes, whole or batch by batch."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...errors import OptionError
from ...options.checks import texts
from ...options.keywords import checks_keywords
from ..arrays import TAKEN_BYTES, TAKEN_ROWS, Array, take_rows
from ..codes import combined_codes, grouped
from ..row_changes import RELATION_ID_COLUMN, TABLE_INSERT, TABLE_UPDATE, RowChanges, record_batches
from .current_rows import Changes, compacted, joined
from .typed_changes import TypedChanges, is_sorted

BATCH_ROWS = 1 << 13
"""Record batches are joined up to this many rows: reading a batch takes a millisecond, however small it is."""

COMPACTED_ROWS = 1 << 17
"""Changes wait until there are at least this many, and as many as the table has rows: each change then costs a copy of
about one row."""


@checks_keywords
def latest(typed: RowChanges, keys: Sequence[str], *, stream_by: Sequence[str] = ()) -> pa.Table:
    """Returns the current rows of a table, from its changes.

    typed       the result of `typed` for one table, from changes that went through `transactions`: a pyarrow Table or
                RecordBatch, or an iterable of them. An iterable is read batch by batch, in memory for the table's rows
                and the last transaction
    keys        the columns of the replica identity, or of another key of the table. []: the whole row is the key, and
                equal rows are counted; updates and deletes then need the complete old row (REPLICA IDENTITY FULL)
    stream_by   columns (integers or strings) that identify a stream, which `typed` kept: each stream has a table of
                this name, and all of them are processed at once
    returns     the columns stream_by; the table's columns; `_sequence` of the row's last change; `_unchanged`, the
                columns that are null because no change has sent their value, or null if there are none. The rows are
                in the order of the columns stream_by and `_sequence`

    Changes are ordered by `_sequence`. Those of a Table or RecordBatch may be in any order, those of an iterable must
    be in commit order in each stream, as `transactions` returns them. A value that was not sent keeps its previous
    value, even if the row had another key then. A TRUNCATE removes all rows. So does DROP TABLE, once the changes have
    a row of a new table of this name, in a format that sends the OIDs of tables (`_relation_id`). If the changes do not
    begin with the table's first row, the result has only the rows that they mention.

    Raises OptionError, and BadRows for changes that cannot be ordered or applied.
    """
    rows = LatestRows(keys, stream_by)
    if isinstance(typed, (pa.Table, pa.RecordBatch)):
        rows.take_all(typed)
    else:
        for batch in record_batches(typed, "typed"):
            rows.take(batch)
    return rows.result()


_NAMED = 10
"""So many OIDs a warning names."""


def earlier_tables(oids: Collection[int]) -> str:
    """Returns a warning that the changes are those of several tables."""
    named = ", ".join(map(str, sorted(oids)[:_NAMED])) + (f", … ({len(oids)})" if len(oids) > _NAMED else "")
    return (
        f"latest: the changes are of tables with the OIDs {named}, as after DROP TABLE and "
        "CREATE TABLE: only the rows of the last one are kept. If it is one table, of several servers for example, "
        f"call `latest` without the column {RELATION_ID_COLUMN}"
    )


class LatestRows:
    """`latest` of record batches that come in commit order. keys and stream_by are those of `latest`.

    Changes wait until there are as many as the table has rows, and then become its new rows. Those of the last
    transaction of a stream always wait, because a batch may end within it. The rows of earlier tables of the same name
    are kept too, because a table can get its old name back.

    follows_rows   see `compacted`
    dropped        columns that the table does not have: without a key, they are NULL in all rows, since changes do not
                   send them and find their row without them. One of which no value was sent is yet to come, and stays
                   unknown
    """

    dropped: Collection[str] = ()

    def __init__(self, keys: Sequence[str], stream_by: Sequence[str] = (), *, follows_rows: bool = False) -> None:
        self._follows_rows = follows_rows
        self._keys = texts("keys", keys)
        self._stream_by = texts("stream_by", stream_by)
        self._changes: TypedChanges | None = None
        self._small: list[pa.RecordBatch] = []
        self._small_rows = 0
        self._current: list[Changes] = []
        """Inserts of the rows after the last compaction; none before the first one."""
        self._waiting: list[Changes] = []
        """The changes after them."""
        self._count = 0
        """The number of both."""
        self._forgotten: dict[str, int] = {}
        """Columns to the number of the first changes whose values in them are not known."""
        self._compact_at = COMPACTED_ROWS

    def forget(self, names: Collection[str]) -> None:
        """Makes the values of columns, which are no keys, unknown in all rows so far: as if none had been sent."""
        if self._changes is not None:
            self._take_small(self._changes)
            known = [field.name for field in self._changes.fields if field.name in names]
            self._forgotten |= dict.fromkeys(known, self._count)

    def take(self, batch: pa.RecordBatch) -> None:
        """Applies the changes of a batch, which follow those of earlier batches.

        Raises OptionError, and BadRows if the changes of a row are not in the order of `_sequence`; `result` raises
        BadRows for other changes that cannot be applied.
        """
        self._take(self._begun(batch.schema), batch)

    def take_all(self, typed: pa.Table | pa.RecordBatch) -> None:
        """Applies the changes of a table, which may be in any order. Raises OptionError."""
        changes = self._begun(typed.schema)
        table = typed if isinstance(typed, pa.Table) else pa.Table.from_batches([typed])
        table = table.select(changes.columns)
        order = changes.in_order(table)
        if order is None:
            for batch in table.to_batches():
                self._take(changes, batch)
        else:
            for first in range(0, len(order), TAKEN_ROWS):
                for batch in take_rows(table, order[first : first + TAKEN_ROWS]).to_batches():
                    self._take(changes, batch)

    def result(self) -> pa.Table:
        """Returns the current rows. More batches can be taken afterwards.

        Raises OptionError if there was no batch, not even an empty one, and BadRows.
        """
        if self._changes is None:
            raise OptionError("option typed: expected a table or record batches, got none; they can be empty")
        changes = self._changes
        self._take_small(changes)
        changes.check()
        if len(changes.scopes.oids) > 1 and not self._stream_by:
            logging.getLogger("wireformat").warning(earlier_tables(changes.scopes.oids))
        whole = joined(self._known() or [changes.read(pa.RecordBatch.from_pylist([], changes.schema))])
        is_last = np.zeros(len(changes.scopes.streams), bool)
        is_last[list(changes.scopes.last.values())] = True
        rows = self._compacted(whole.where(is_last[whole.scopes]), changes)
        table = rows.rows.append_column(changes.schema.field("_unchanged"), _unsent_lists(rows, changes))
        ranks = changes.scopes.ranks()[rows.scopes]
        if not ranks.any() and is_sorted(ranks, rows.lsns, rows.ordinals):
            return table
        order = np.lexsort((rows.ordinals, rows.lsns, ranks))
        return table if (order[1:] > order[:-1]).all() else take_rows(table, order)

    def _begun(self, schema: pa.Schema) -> TypedChanges:
        """Checks the columns: those of the first batch against the options, those of later ones against the first."""
        if self._changes is None:
            self._changes = TypedChanges(schema, self._keys, self._stream_by)
        elif not schema.equals(self._changes.schema):
            raise OptionError("option typed: expected record batches with the same columns, got different ones")
        return self._changes

    def _take(self, changes: TypedChanges, batch: pa.RecordBatch) -> None:
        self._small.append(batch.select(changes.columns))
        self._small_rows += batch.num_rows
        if self._small_rows >= BATCH_ROWS:
            if self._count >= self._compact_at:
                self._compact(changes)
            self._take_small(changes)

    def _take_small(self, changes: TypedChanges) -> None:
        """Reads the batches that were joined."""
        if self._small_rows:
            table = pa.Table.from_batches(self._small)
            if len(self._small) > 1 and table.nbytes <= TAKEN_BYTES:
                table = table.combine_chunks()
            read = [changes.read(batch) for batch in table.to_batches()]
            self._waiting += read
            self._count += sum(map(len, read))
        self._small, self._small_rows = [], 0

    def _known(self) -> list[Changes]:
        """Returns the current rows and the changes after them, without the values that are forgotten."""
        found, first = [], 0
        for part in [*self._current, *self._waiting]:  # a column was forgotten before a part, or after it
            gone = {name: np.ones(len(part), bool) for name, count in self._forgotten.items() if count > first}
            found.append(replace(part, unsent={**part.unsent, **gone}) if gone else part)
            first += len(part)
        return found

    def _compacted(self, made: Changes, changes: TypedChanges) -> Changes:
        if self.dropped and not changes.has_key:
            has_values = (made.kinds == TABLE_INSERT) | (made.kinds == TABLE_UPDATE)
            unsent = {name for name, flags in made.unsent.items() if flags[has_values].all()}
            gone = [name for name in self.dropped if name not in unsent]
            made = made.without_values(gone, changes.keys) if gone else made
        return compacted(made, changes.keys, counts_rows=not changes.has_key, follows_rows=self._follows_rows)

    def _compact(self, changes: TypedChanges) -> None:
        """Replaces the rows and the changes of whole transactions by the rows after these."""
        done: list[Changes] = []
        waiting: list[Changes] = []
        for index, part in enumerate(self._known()):
            waits = changes.is_waiting(part) & (index >= len(self._current))  # rows that were gathered do not wait
            waiting.append(part.where(waits))
            done.append(part.where(~waits))
        self._current = [self._compacted(joined(done), changes)]
        self._waiting = [part for part in waiting if len(part)]
        self._forgotten = {}
        self._count = sum(map(len, [*self._current, *self._waiting]))
        self._compact_at = self._count + max(self._count, COMPACTED_ROWS)


def _unsent_lists(rows: Changes, changes: TypedChanges) -> pa.Array:
    """Returns the names of the columns whose value is not known; null if there are none."""
    type = changes.schema.field("_unchanged").type
    names = [field.name for field in changes.fields if field.name in rows.unsent]
    if not names:
        return pa.nulls(len(rows), type)
    flags: list[Array] = [rows.unsent[name] for name in names]
    firsts, found = grouped(combined_codes(flags))
    lists = [
        [name for name, is_unsent in zip(names, flags, strict=True) if is_unsent[first]] or None
        for first in firsts.tolist()
    ]
    return pa.array(lists, type).take(pa.array(found))
