"""Replica identities that change within a stream, and the rows that changes by several of them leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.noted.rows import other_records_of
from ..arrow.row_changes import RELATION_ID_COLUMN, TABLE_RELATION
from ..arrow.schemas import SEQUENCE
from ..arrow.typed_tables.latest import LatestRows
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.typed_tables.typed_changes import positions_of
from ..events import Relation
from .groups import TableName as Table
from .resumption import relations_in

_BEFORE_ALL = -1

Keys = tuple[str, ...]
"""The columns of a replica identity; () for the whole row, or none: equal rows are counted."""

KeyedBatch = tuple[Keys, pa.RecordBatch]
"""Typed changes, and the columns by which they find their rows."""


class _Stated(NamedTuple):
    message: int
    keys: Keys


class Identities:
    """The replica identities that a stream of pgoutput states for its tables, each with the message that states it.

    known   relations that were described before the first message

    The server describes a table before its first change, and again before the next one after ALTER TABLE.
    """

    def __init__(self, known: Iterable[Relation] = ()) -> None:
        self._of: dict[Table, list[_Stated]] = {}
        for relation in known:
            self._learn(_BEFORE_ALL, relation)

    def through(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yields all rows of the stream, and learns from them."""
        for item in rows:
            for message, relation in relations_in(other_records_of(item)):
                self._learn(message, relation)
            yield item

    def __contains__(self, table: Table) -> bool:
        """Whether the stream has stated an identity of the table."""
        return table in self._of

    def cut(self, table: Table, rows: ChangeRows, typed: pa.RecordBatch) -> Iterator[KeyedBatch]:
        """Yields typed rows of a table in ranges, each with the identity that its changes had.

        rows    the changes of which they are; some may have been left out
        """
        stated = [*self._of[table]]
        if len(stated) == 1:
            yield stated[0].keys, typed
            return
        changes = np.flatnonzero(rows.kinds != TABLE_RELATION)
        messages = np.asarray(rows.column("message", pa.int64()))[changes]
        numbers = np.maximum(np.searchsorted([one.message for one in stated], messages) - 1, 0)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        lsns, ordinals = positions_of(rows.column("sequence", SEQUENCE))
        own_lsns, own_ordinals = positions_of(typed["_sequence"])
        bounds = [
            int(np.count_nonzero((own_lsns < lsn) | ((own_lsns == lsn) & (own_ordinals < ordinal))))
            for lsn, ordinal in zip(lsns[changes[starts]], ordinals[changes[starts]], strict=True)
        ]
        for start, (begin, end) in zip(starts.tolist(), pairwise([*bounds, len(typed)]), strict=True):
            if begin < end:
                yield stated[int(numbers[start])].keys, typed[begin:end]

    def _learn(self, message: int, relation: Relation) -> None:
        keys = () if relation.replica_identity == "full" else relation.key_columns
        stated = self._of.setdefault((relation.table_schema, relation.table_name), [])
        if not stated or stated[-1].keys != keys:
            stated.append(_Stated(message, keys))


class IdentifiedRows:
    """The current rows of a table, like LatestRows. Where the identity changes, the rows that are there go on with it.

    are_null   whether added columns are NULL in the rows that were there. Their values are not sent, and a row is not
               found by its values if one of them is unknown

    Between two changes of its definition, a table has one row for each key, also within a transaction.
    """

    def __init__(self, *, are_null: bool = False) -> None:
        self._are_null = are_null
        self._keys: Keys | None = None
        self._rows = LatestRows(())
        self._relation_id: int | None = None

    def take(self, keys: Keys, batch: pa.RecordBatch) -> None:
        """Applies changes, which follow the earlier ones; see LatestRows.take."""
        if self._keys != keys:
            before = [] if self._keys is None else self._rows.result().to_batches()
            self._keys, self._rows = keys, LatestRows(keys)
            for rows in as_inserts(before, batch.schema, self._relation_id):
                self._take(rows)
        if RELATION_ID_COLUMN in batch.schema.names:
            oids = batch[RELATION_ID_COLUMN].drop_null()
            self._relation_id = oids[-1].as_py() if len(oids) else self._relation_id
        self._take(batch)

    def _take(self, batch: pa.RecordBatch) -> None:
        self._rows.take(with_nulls(batch) if self._are_null and not self._keys else batch)

    def result(self) -> pa.Table:
        """Returns the rows; see LatestRows.result."""
        return self._rows.result()


def with_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns typed changes of which nothing is unknown: values that are in no image are NULL."""
    lists, old = batch["_unchanged"], batch["_old"]
    if lists.null_count == len(lists):
        return batch
    names, rows = lists.flatten(), np.asarray(pc.list_parent_indices(lists))
    columns = dict(zip((field.name for field in old.type), old.flatten(), strict=True))
    is_sent = np.zeros(len(names), bool)
    for name in names.unique().to_pylist():
        is_of = np.asarray(pc.equal(names, name))
        is_sent[is_of] = np.asarray(columns[name].is_valid())[rows[is_of]]
    if is_sent.all():
        return batch
    counts = np.bincount(rows[is_sent], minlength=len(lists))
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
    sent = pa.ListArray.from_arrays(offsets, names.filter(is_sent), type=lists.type, mask=pa.array(counts == 0))
    return batch.set_column(batch.schema.get_field_index("_unchanged"), batch.schema.field("_unchanged"), sent)


def as_inserts(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, relation_id: int | None
) -> Iterator[pa.RecordBatch]:
    """Yields rows as inserts into a table, like typed changes with this schema."""
    for batch in batches:
        columns: dict[str, Any] = {name: batch[name] for name in batch.schema.names}
        columns["_change_type"] = pa.array(["insert"] * len(batch), pa.string())
        columns[RELATION_ID_COLUMN] = pa.array([relation_id] * len(batch), pa.int64())
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(batch), field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
