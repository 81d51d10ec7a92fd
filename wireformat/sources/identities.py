"""Definitions of tables that change within a stream, and current rows of changes with several definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate, pairwise, zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.codes import codes_of_values, grouped
from ..arrow.noted.relation_events import relations_in
from ..arrow.noted.rows import other_records_of
from ..arrow.noted.tables import without_other_relations
from ..arrow.row_changes import RELATION_ID_COLUMN, TABLE_RELATION
from ..arrow.schemas import SEQUENCE
from ..arrow.typed_tables.latest import LatestRows
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.typed_tables.typed_changes import lsns_and_ordinals
from ..arrow.typed_tables.versions import Version
from ..events import Relation
from ..options.table_names import TableName
from ..pgtypes import type_name
from ..pgtypes.sql_types import SqlType, keeps_values, with_typmod
from ..stream.reader import BEFORE_ALL

Keys = tuple[str, ...]
"""The columns of a replica identity; () for the whole row, or none: equal rows are counted."""


class Definition(NamedTuple):
    """The definition of a table for some of its changes.

    keys      the columns that identify the rows
    columns   of the table, in its order; None if the stream does not describe it
    types     of the columns, as far as they are known
    is_whole  whether whole rows are identified if there are no keys; otherwise rows are only added
    """

    keys: Keys
    columns: tuple[str, ...] | None = None
    types: tuple[SqlType, ...] = ()
    is_whole: bool = True

    @property
    def identifying(self) -> Keys:
        """The columns whose values identify rows."""
        return self.keys or (self.columns if self.is_whole else None) or ()

    def retyped_after(self, before: Definition, typed: pa.Schema | None) -> set[str]:
        """Returns the columns that got a type in which the server has other values.

        typed   the schema of typed rows; None if each value may be a text
        """
        types = dict(zip(before.columns or (), before.types, strict=False))
        found = set()
        for name, after in zip(self.columns or (), self.types, strict=False):
            as_texts = typed is None or name not in typed.names or not _are_values(typed.field(name).type)
            if name in types and not keeps_values(types[name], after, as_texts=as_texts):
                found.add(name)
        return found

    def has_columns_of(self, other: Definition) -> bool:
        """Whether the columns are the same, in any order, and their types as far as they are known."""
        own, others = (dict(zip_longest(one.columns or (), one.types)) for one in (self, other))
        return own.keys() == others.keys() and (not self.types or not other.types or own == others)

    def renamed(self, names: Mapping[str, str]) -> Definition:
        """Returns the definition with other names of columns, without columns that have none."""
        keys = tuple(names[key] for key in self.keys)
        if self.columns is None:
            return Definition(keys)
        types = tuple(type for name, type in zip(self.columns, self.types, strict=False) if name in names)
        return Definition(keys, tuple(names[name] for name in self.columns if name in names), types, self.is_whole)

    def added_after(self, before: Definition) -> list[str]:
        """Returns the columns that the table got since it had another definition.

        Among them are names that it had then, if they may be those of other columns now. Columns are in the order in
        which they were added, and renamed ones stay in their place. So of the columns before one that has been there
        all the time, none is new, and of those before the next one at least as many are gone. But where no name is
        gone, the publication's list of columns may have more of them now.
        """
        if before.columns is None or self.columns is None:
            return []
        index_of = {name: index for index, name in enumerate(before.columns)}
        new = [name for name in self.columns if name not in index_of]
        if [name for name in self.columns if name in index_of] == [*before.columns]:
            return new
        keys = {*self.keys} & {*before.keys}  # keep their names, whatever columns a publication's list has now
        there: dict[str, int] = {}  # to the number of columns before it that are gone
        sure = set()
        reached = -1
        for position, name in enumerate(self.columns):
            index = index_of.get(name, -1)
            if index > reached and name in keys:
                reached = index
                sure.add(name)
            elif index > reached and index >= position:
                reached = index
                there[name] = index - position
        most = accumulate(there.values(), max)
        least = reversed([*accumulate(reversed(there.values()), min)])
        sure.update(name for name, *numbers in zip(there, most, least, strict=True) if numbers[0] == numbers[1])
        return [name for name in self.columns if name not in sure]


def _are_values(type: pa.DataType) -> bool:
    return any(check(type) for check in (pa.types.is_decimal, pa.types.is_floating, pa.types.is_timestamp))


DefinedBatch = tuple[Definition, pa.RecordBatch]
"""Typed changes, and the definition of their table at that time."""


@lru_cache(maxsize=1024)  # many streams describe their tables again and again
def column_types(oids: Sequence[int], typmods: Sequence[int]) -> tuple[SqlType, ...]:
    """Returns the types of the columns of a relation."""
    return tuple(_sql_type(type_name(oid), typmod) for oid, typmod in zip(oids, typmods, strict=True))


def types_of(version: Version) -> Definition:
    """Returns a definition with the columns of a version, and their types if all modifiers are known; without keys."""
    if version.typmods is None or None in version.types.values():
        return Definition((), tuple(version.types))
    types = tuple(_sql_type(str(type), version.typmods[name]) for name, type in version.types.items())
    return Definition((), tuple(version.types), types)


def _sql_type(name: str, typmod: int) -> SqlType:
    """Returns a type, of intervals with the modifier as it is: it says what is rounded, or left out."""
    found = with_typmod(name, typmod, "any")
    return replace(found, modifiers=(typmod,)) if found.name == "interval" and typmod >= 0 else found


class UnknownValues:
    """The columns whose values in the rows of a table are not known, as its definition changes.

    typed   the schema of typed rows; None if each value may be a text
    stale   columns in which the server has other values since they got another type: they are not known either, once
            they identify rows
    """

    def __init__(self, typed: pa.Schema | None = None) -> None:
        self.typed = typed
        self.stale: set[str] = set()

    def after(self, before: Definition, definition: Definition) -> list[str]:
        """Returns those of the rows that the table had before it got a definition."""
        added = definition.added_after(before)
        self.stale |= definition.retyped_after(before, self.typed)
        self.stale.difference_update(added)
        found = [*added, *(name for name in definition.identifying if name in self.stale)]
        self.stale.difference_update(found)
        return found

    def over(self, definitions: Iterable[Definition]) -> set[str]:
        """Returns those of the rows before the last of these definitions."""
        return {name for before, definition in pairwise(definitions) for name in self.after(before, definition)}


class _Stated(NamedTuple):
    message: int
    definition: Definition


class Identities:
    """The definitions that a stream of pgoutput states of its tables, each with the message that states it.

    known   relations that were described before the first message
    only    the table whose definitions are needed; None for all

    The server describes a table before its first change, and again before the next one after ALTER TABLE.
    """

    def __init__(self, known: Iterable[Relation] = (), only: TableName | None = None) -> None:
        self._only = only
        self._of: dict[TableName, list[_Stated]] = {}
        for relation in known:
            self._learn(BEFORE_ALL, relation)

    def through(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yields all rows of the stream, and learns from them."""
        for item in rows:
            others = other_records_of(item)
            described = others if self._only is None else without_other_relations(others, self._only)
            for message, relation in relations_in(described):
                self._learn(message, relation)
            yield item

    def __contains__(self, table: TableName) -> bool:
        """Whether the stream has described the table."""
        return table in self._of

    def before(self, table: TableName) -> Definition | None:
        """Returns what a table was before the first message, if it was described.

        An earlier table of this name, which was dropped or renamed, may have been described before it.
        """
        found = [one.definition for one in self._of.get(table, ()) if one.message == BEFORE_ALL]
        return found[-1] if found else None

    def cut(self, table: TableName, rows: ChangeRows, typed: pa.RecordBatch, keys: Keys = ()) -> Iterator[DefinedBatch]:
        """Yields typed rows of a table in ranges, each with the definition that its changes had.

        rows    the changes of which they are; some may have been left out
        keys    of all changes; () for the identity that the stream states
        """
        stated = [*self._of.get(table, ())]
        defined = [one.definition._replace(keys=keys) if keys else one.definition for one in stated]
        if len(stated) < 2:
            yield defined[0] if defined else Definition(keys), typed
            return
        changes = np.flatnonzero(rows.kinds != TABLE_RELATION)
        messages = np.asarray(rows.column("message", pa.int64()))[changes]
        numbers = np.maximum(np.searchsorted([one.message for one in stated], messages) - 1, 0)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        lsns, ordinals = lsns_and_ordinals(rows.column("sequence", SEQUENCE))
        own_lsns, own_ordinals = lsns_and_ordinals(typed["_sequence"])
        bounds = [
            int(np.count_nonzero((own_lsns < lsn) | ((own_lsns == lsn) & (own_ordinals < ordinal))))
            for lsn, ordinal in zip(lsns[changes[starts]], ordinals[changes[starts]], strict=True)
        ]
        for start, (begin, end) in zip(starts.tolist(), pairwise([*bounds, len(typed)]), strict=True):
            if begin < end:
                yield defined[int(numbers[start])], typed[begin:end]

    def _learn(self, message: int, relation: Relation) -> None:
        is_full = relation.replica_identity == "full"
        keys = () if is_full else relation.key_columns
        stated = self._of.setdefault((relation.table_schema, relation.table_name), [])
        types = column_types(relation.type_oids, relation.typmods)
        definition = Definition(keys, relation.columns, types, is_full or bool(keys))
        if not stated or stated[-1].definition != definition:
            stated.append(_Stated(message, definition))


class IdentifiedRows:
    """The current rows of a table, like LatestRows. After a change of its definition, the rows have the new one.

    Their values of an added column were never sent, also if the table had a column of this name before; nor were those
    of a column with another type. Between two changes of its definition, a table has one row for each key, also within
    a transaction.

    follows_rows   whether the table may have had rows before. Then `take` and `result` may raise RowsNeeded
    """

    def __init__(self, *, follows_rows: bool = False) -> None:
        self._definition: Definition | None = None
        self._rows_of = partial(LatestRows, follows_rows=follows_rows)
        self._rows = self._rows_of(())
        self._unknown = UnknownValues()
        self._relation_id: int | None = None

    def take(self, definition: Definition, batch: pa.RecordBatch, dropped: Collection[str] = ()) -> None:
        """Applies changes, which follow the earlier ones; see LatestRows.take.

        dropped   the columns that the table does not have any more after them, if the definition does not say it
        """
        before, self._definition = self._definition, definition
        oids = oids_of(batch)
        if before is None:
            self._rows = self._rows_of(definition.keys)
        elif before != definition:
            self._unknown.typed = batch.schema
            unknown = self._unknown.after(before, definition)
            if oids and self._relation_id not in (
                None,
                oids[0],
            ):  # the rows of another table of this name, which may come back
                unknown = [name for name in definition.columns or () if name not in definition.keys]
            if unknown and before.keys == definition.keys != () and {*unknown}.isdisjoint(definition.keys):
                self._rows.forget(unknown)
            elif unknown or before.keys != definition.keys:
                there = self._rows.result().to_batches()
                self._rows = self._rows_of(definition.keys)
                for rows in as_inserts(there, batch.schema, self._relation_id, unknown):
                    self._rows.take(rows)
        if definition.columns is not None:
            dropped = [field.name for field in batch.schema.field("_old").type if field.name not in definition.columns]
        self._rows.dropped = dropped
        if {*oids} - {self._relation_id} or pc.any(pc.equal(batch["_change_type"], "truncate")).as_py():
            self._unknown.stale.clear()  # the rows from before have gone
        self._relation_id = [self._relation_id, *oids][-1]
        self._rows.take(batch)

    def result(self) -> pa.Table:
        """Returns the rows; see LatestRows.result."""
        return self._rows.result()


def oids_of(batch: pa.RecordBatch) -> list[int]:
    """Returns the OIDs of the table in typed changes, those that follow each other once; none if there are none."""
    if not _has_oids(batch.schema):
        return []
    return list(pc.run_end_encode(batch[RELATION_ID_COLUMN].drop_null()).values.to_pylist())


def _has_oids(schema: pa.Schema) -> bool:
    """Whether typed changes have OIDs, which a column of the table with this name does not have."""
    own = [field.name for field in schema.field("_old").type]
    return RELATION_ID_COLUMN in schema.names and RELATION_ID_COLUMN not in own


def as_inserts(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, relation_id: int | None, new: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yields rows as inserts into a table, like typed changes with this schema.

    new   columns that were added later, like those that the rows do not have: their values in them are not known
    """
    for batch in batches:
        columns: dict[str, Any] = {name: batch[name] for name in batch.schema.names if name not in new}
        added = [field.name for field in schema.field("_old").type if field.name not in columns]
        if added:
            columns["_unchanged"] = _and_more(columns["_unchanged"], added)
        columns["_change_type"] = pa.repeat("insert", len(batch))
        if _has_oids(schema):
            columns[RELATION_ID_COLUMN] = pa.repeat(pa.scalar(relation_id, pa.int64()), len(batch))
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(batch), field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _and_more(lists: pa.Array, names: list[str]) -> pa.Array:
    """Returns lists with these names added to each."""
    firsts, codes = grouped(codes_of_values(pa.chunked_array([lists])))
    different = [[*dict.fromkeys([*(one or ()), *names])] for one in lists.take(pa.array(firsts)).to_pylist()]
    return pa.array(different, lists.type).take(pa.array(codes))
