"""Changes merged into a Delta table with current rows: a MERGE of the rows that they touch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...arrow.arrays import Array
from ...errors import BadRows
from ...options.table_names import written
from ...sources.identities import DefinedBatch, IdentifiedRows, Keys, as_inserts, oids_of

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_IS_DELETED = "is_deleted"
_INDEX = "index"


class TouchedRows:
    """The rows of a table that its changes touch.

    changes       the changes since the last write
    relation_id   the OID of the table before them; None if it is not known
    is_merged     whether a MERGE keeps the values of all columns

    `keys_of_rows` has a table of keys for each identity, each key once; see _keys_of. `clears_table` is whether the
    changes remove all rows, by a TRUNCATE or because they are those of a new table of this name. `has_all_values` is
    whether each change has the values of all columns. `only_adds` is whether the changes only add rows to a table
    without a key. `relation_id` is the OID after the changes.
    """

    def __init__(self, changes: Iterable[DefinedBatch], relation_id: int | None, *, is_merged: bool) -> None:
        self.clears_table = False
        self.has_all_values = self.only_adds = True
        self._are_compared = is_merged  # a MERGE does not compare lists
        self.relation_id = relation_id
        found: dict[Keys, list[pa.Table]] = {}
        for definition, batch in changes:
            keys = definition.keys
            self._see_relation(batch)
            self.has_all_values = self.has_all_values and batch["_unchanged"].null_count == len(batch)
            self.only_adds = self.only_adds and not keys and pc.all(pc.equal(batch["_change_type"], "insert")).as_py()
            is_truncate = pc.equal(batch["_change_type"], "truncate")
            if pc.any(is_truncate).as_py():
                self.clears_table = True
                batch = batch.filter(pc.invert(is_truncate))
            of_keys = found.setdefault(keys, [])
            self._are_compared &= not any(pa.types.is_nested(batch.schema.field(key).type) for key in keys)
            if keys and self._are_compared:
                moved = batch.filter(batch["_old"].is_valid())
                old = dict(zip((field.name for field in moved["_old"].type), moved["_old"].flatten(), strict=True))
                # an old image may lack columns of a key that is not the replica identity
                columns = {key: pc.coalesce(old[key], moved[key]) for key in keys}
                of_keys += [_keys_of(batch, keys), _keys_of(columns, keys)]
        self.keys_of_rows = {keys: _unique(tables) for keys, tables in found.items()}
        self.only_adds = self.only_adds and not self.clears_table

    @property
    def identities(self) -> list[Keys]:
        """The identities that the changes had, in the order of the first change with each."""
        return [*self.keys_of_rows]

    @property
    def are_known(self) -> bool:
        """Whether the touched rows can be found by keys."""
        return all(self.keys_of_rows) and self._are_compared

    @property
    def needs_rows(self) -> bool:
        """Whether the current rows depend on rows that the Delta table has."""
        return not (self.only_adds or (self.has_all_values and self.are_known and len(self.keys_of_rows) == 1))

    def among(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields those of the rows that are touched, or all rows if they cannot be found by keys."""
        for batch in batches:
            if self.are_known:
                chosen = np.unique(
                    np.concatenate([_rows_with_keys(batch, keys, wanted) for keys, wanted in self.keys_of_rows.items()])
                )
                batch = batch.take(pa.array(chosen))
            if len(batch):
                yield batch

    def _see_relation(self, batch: pa.RecordBatch) -> None:
        for oid in oids_of(batch):
            self.clears_table = self.clears_table or self.relation_id not in (None, oid)
            self.relation_id = oid


def _keys_of(rows: pa.Table | pa.RecordBatch | Mapping[str, pa.Array], keys: Keys) -> pa.Table:
    """Returns the columns of a key, named k0, k1 and so on: Arrow does not find names that begin with a dot.

    A negative zero becomes zero, as PostgreSQL takes them as equal; Arrow's joins do not.
    """
    columns = [rows[key] for key in keys]
    columns = [pc.add(key, pa.scalar(0, key.type)) if pa.types.is_floating(key.type) else key for key in columns]
    return pa.Table.from_arrays(columns, names=[f"k{index}" for index in range(len(keys))])


def _unique(tables: Sequence[pa.Table]) -> pa.Table:
    if not tables:
        return pa.table({})
    rows = pa.concat_tables(tables)
    return rows.drop_null().group_by(rows.column_names).aggregate([])


def _rows_with_keys(batch: pa.RecordBatch, keys: Keys, wanted: pa.Table) -> Array:
    """Returns int64[n]: the indices of the rows that have one of these keys."""
    own = _keys_of(batch, keys).append_column(_INDEX, pa.array(np.arange(len(batch))))
    return np.asarray(own.join(wanted, wanted.column_names, join_type="left semi")[_INDEX])


def _plain(table: pa.Table) -> pa.Table:
    """Returns a table without the metadata of its fields."""
    return table.cast(pa.schema([pa.field(field.name, field.type) for field in table.schema]))


def delta_rows(
    delta: DeltaTable, schema: pa.Schema, oid: int | None, columns: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a Delta table as inserts.

    schema    the schema of stored changes, which the inserts get
    oid       the OID of the table; None if it is not known
    columns   the columns with which the rows were written
    """
    new = {field.name for field in delta.schema().fields}.difference(columns)
    return as_inserts(delta.to_pyarrow_dataset().to_batches(), schema, oid, new)


def checked_columns(
    added: Collection[str], touched: TouchedRows, delta: DeltaTable, columns: Collection[str], table: tuple[str, str]
) -> set[str]:
    """Returns the columns of which the rows of a Delta table have values.

    Raises BadRows if those of a column are not known. That is so for a column of a key that the rows lack, for a column
    that was dropped and added again, and for one that identifies rows and got another type: the stream does not send
    the values that existing rows got in it. If no row has a value in it, it is as good as a column that is added now:
    an earlier write has seen it in a transaction that was open, or that was rolled back later.

    added     the columns that were added to the table since the last write, or whose values changed with their type
    columns   the columns with which the rows were written
    """
    found = {*columns}
    again = found.intersection(added)
    keys = [key for keys in touched.identities for key in keys]
    if touched.clears_table or not (again or {*keys} - found) or not delta.to_pyarrow_dataset().count_rows():
        return found
    found -= {name for name in again if not _has_values(delta, name)}
    lacking, again = [key for key in keys if key not in found], again & found
    if not (lacking or again):
        return found
    if lacking:
        expected, got = "the replica identity", f"none with the column {lacking[0]}, which was added or renamed"
    else:
        how = f"the column {min(again)}, which was dropped and added again, or got another type"
        expected, got = "the table", f"rows with {how}: its values in them are not known"
    raise BadRows(
        f"rows in the lake that have the columns of {expected}",
        got,
        table=written(table),
        hint="begin a new lake with a snapshot",
    )


def _has_values(delta: DeltaTable, column: str) -> bool:
    """Whether a row has a value in a column. A filter would also count rows of files without this column."""
    batches = delta.to_pyarrow_dataset().to_batches(columns=[column])
    return any(batch.column(0).null_count < len(batch) for batch in batches)


class MergePlan(NamedTuple):
    """What a MERGE does to a Delta table. The rows have its columns.

    keys             the key columns
    upserts          rows that replace those of their keys
    inserts          other rows
    deleted          the keys of rows that are deleted; see _keys_of
    deletes_others   whether all other rows are deleted too
    """

    keys: Keys
    upserts: pa.Table
    inserts: pa.Table
    deleted: pa.Table
    deletes_others: bool = False


def plan_merge(touched: TouchedRows, current: pa.Table, before: Sequence[pa.RecordBatch] | None) -> MergePlan | None:
    """Returns the MERGE that makes the rows of a Delta table the current ones; None if it cannot find them by keys.

    current   the touched rows as they are now, in stored form
    before    those of them that the Delta table has; they are there if the changes had several identities

    Rows of changes with several identities are found by the first one, which the table had before them.
    """
    keys = touched.identities[0]
    if not touched.are_known or (touched.clears_table and len(touched.identities) > 1):
        return None
    current = _plain(current)
    if len(touched.identities) == 1:
        rows = touched.keys_of_rows[keys]
        deleted = rows.join(_keys_of(current, keys), rows.column_names, join_type="left anti")
        return MergePlan(keys, current, current.slice(0, 0), deleted, touched.clears_table)
    deleted = pa.concat_tables([_keys_of(rows, keys) for rows in (current.slice(0, 0), *(before or ()))])
    return MergePlan(keys, current.slice(0, 0), current, deleted)


def merge(delta: DeltaTable, plan: MergePlan, properties: CommitProperties) -> None:
    """Carries out a plan, in one commit of a Delta table. Raises deltalake's errors."""
    names, schema = plan.upserts.column_names, plan.upserts.schema
    values, of_key = [f"v{index}" for index in range(len(names))], plan.deleted.column_names

    def rows(given: pa.Table | None, keys: pa.Table | None) -> pa.Table:
        """Returns rows of the source: those without keys match nothing, those without values are deleted."""
        count = len(plan.deleted) if given is None else len(given)
        columns = [pa.nulls(count, field.type) for field in schema] if given is None else given.columns
        key_columns = [pa.nulls(count, schema.field(key).type) for key in plan.keys] if keys is None else keys.columns
        is_deleted = pa.array([given is None] * count, pa.bool_())
        return pa.Table.from_arrays([*columns, *key_columns, is_deleted], names=[*values, *of_key, _IS_DELETED])

    source = pa.concat_tables(
        [rows(plan.upserts, _keys_of(plan.upserts, plan.keys)), rows(plan.inserts, None), rows(None, plan.deleted)]
    )
    same = " and ".join(f"{_compared(key, schema)} = s.{column}" for key, column in zip(plan.keys, of_key, strict=True))
    updates = {_quoted(name): f"s.{column}" for name, column in zip(names, values, strict=True)}
    merger = (
        delta.merge(source, same, source_alias="s", target_alias="t", commit_properties=properties)
        .when_matched_delete(f"s.{_IS_DELETED}")
        .when_matched_update(updates)
        .when_not_matched_insert(updates, f"not s.{_IS_DELETED}")
    )
    if plan.deletes_others:
        merger = merger.when_not_matched_by_source_delete()
    merger.execute()


def _compared(key: str, schema: pa.Schema) -> str:
    """Returns what a MERGE compares of the table's rows: a negative zero becomes zero, as in `_keys_of`.

    deltalake 1.6.0 does not take the two as equal.
    """
    column = f"t.{_quoted(key)}"
    return f"{column} + 0.0" if pa.types.is_floating(schema.field(key).type) else column


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def current_rows(
    changes: Iterable[DefinedBatch], dropped: Collection[str], before: Iterable[pa.RecordBatch] | None = ()
) -> pa.Table:
    """Returns the rows of a table after its changes.

    dropped   the columns that the table no longer has
    before    the rows before the changes, as inserts; None if they have not been read

    Raises BadRows, and RowsNeeded if they must be read.
    """
    rows = IdentifiedRows(follows_rows=before is None)
    for definition, batch in changes:
        for there in before or ():
            rows.take(definition, there, dropped)
        before = ()
        rows.take(definition, batch, dropped)
    return rows.result()
