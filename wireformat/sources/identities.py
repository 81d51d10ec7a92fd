"""Replica identities that change within a stream, and the rows that changes by several of them leave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow.noted.rows import other_records_of
from ..arrow.row_changes import RELATION_ID_COLUMN, TABLE_RELATION
from ..arrow.schemas import SEQUENCE
from ..arrow.typed_tables.latest import LatestRows
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.typed_tables.table import TypedPart
from ..arrow.typed_tables.typed_changes import positions_of
from ..arrow.typed_tables.versions import TableVersions
from ..events import Relation
from ..options.table_names import TableName
from ..stream.reader import BEFORE_ALL
from .resumption import relations_in

Keys = tuple[str, ...]
"""The columns of a replica identity; () for the whole row, or none: equal rows are counted."""

KeyedBatch = tuple[Keys, pa.RecordBatch]
"""Typed changes, and the columns by which they find their rows."""


class _Stated(NamedTuple):
    message: int
    keys: Keys


class Identities:
    """The replica identities that a stream of pgoutput states for its tables, each with the message that states it.

    known      relations that were described before the first message
    versions   those of tables before it

    The server describes a table before its first change, and again before the next one after ALTER TABLE.
    """

    def __init__(
        self, known: Iterable[Relation] = (), versions: Mapping[TableName, TableVersions] | None = None
    ) -> None:
        self._of: dict[TableName, list[_Stated]] = {}
        self._columns: dict[TableName, dict[str, bool]] = {
            table: {name: True for version in of_table.versions for name in version.types}
            for table, of_table in (versions or {}).items()
        }
        """All columns that a table has had, and whether it has them still."""
        for relation in known:
            self._learn(BEFORE_ALL, relation)

    def through(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yields all rows of the stream, and learns from them."""
        for item in rows:
            for message, relation in relations_in(other_records_of(item)):
                self._learn(message, relation)
            yield item

    def __contains__(self, table: TableName) -> bool:
        """Whether the stream has stated an identity of the table."""
        return table in self._of

    def dropped(self, table: TableName, part: TypedPart) -> list[str]:
        """Returns the columns that a table has had and does not have any more, as far as the stream has been read.

        part   reads the rows of the table. Where the stream does not describe it, they tell
        """
        if table not in self:
            return part.dropped
        return [name for name, is_there in self._columns[table].items() if not is_there]

    def cut(self, table: TableName, rows: ChangeRows, typed: pa.RecordBatch) -> Iterator[KeyedBatch]:
        """Yields typed rows of a table in ranges, each with the identity that its changes had: () if it is not stated.

        rows    the changes of which they are; some may have been left out
        """
        stated = [*self._of.get(table, ())]
        if len(stated) < 2:
            yield stated[0].keys if stated else (), typed
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
        table = relation.table_schema, relation.table_name
        self._columns[table] = dict.fromkeys(self._columns.get(table, ()), False) | dict.fromkeys(
            relation.columns, True
        )
        stated = self._of.setdefault(table, [])
        if not stated or stated[-1].keys != keys:
            stated.append(_Stated(message, keys))


class IdentifiedRows:
    """The current rows of a table, like LatestRows. Where the identity changes, the rows that are there go on with it.

    Between two changes of its definition, a table has one row for each key, also within a transaction.
    """

    def __init__(self) -> None:
        self._keys: Keys | None = None
        self._rows = LatestRows(())
        self._relation_id: int | None = None

    def take(self, keys: Keys, batch: pa.RecordBatch, dropped: Collection[str] = ()) -> None:
        """Applies changes, which follow the earlier ones; see LatestRows.take.

        dropped   the columns that the table does not have any more after them
        """
        if self._keys != keys:
            before = [] if self._keys is None else self._rows.result().to_batches()
            self._keys, self._rows = keys, LatestRows(keys)
            for rows in as_inserts(before, batch.schema, self._relation_id):
                self._rows.take(rows)
        self._rows.dropped = dropped
        if RELATION_ID_COLUMN in batch.schema.names:
            oids = batch[RELATION_ID_COLUMN].drop_null()
            self._relation_id = oids[-1].as_py() if len(oids) else self._relation_id
        self._rows.take(batch)

    def result(self) -> pa.Table:
        """Returns the rows; see LatestRows.result."""
        return self._rows.result()


def as_inserts(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, relation_id: int | None
) -> Iterator[pa.RecordBatch]:
    """Yields rows as inserts into a table, like typed changes with this schema.

    A column that the rows do not have was added later. Its values in them are not known.
    """
    for batch in batches:
        columns: dict[str, Any] = {name: batch[name] for name in batch.schema.names}
        added = [field.name for field in schema.field("_old").type if field.name not in columns]
        if added:
            columns["_unchanged"] = _and_more(columns["_unchanged"], added)
        columns["_change_type"] = pa.array(["insert"] * len(batch), pa.string())
        columns[RELATION_ID_COLUMN] = pa.array([relation_id] * len(batch), pa.int64())
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(batch), field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _and_more(lists: pa.Array, names: list[str]) -> pa.Array:
    """Returns lists of names with more names in each."""
    if lists.null_count == len(lists):
        return pa.array([names] * len(lists), lists.type)  # Arrow cannot repeat a list no times
    return pa.array([[*(one or ()), *names] for one in lists.to_pylist()], lists.type)
