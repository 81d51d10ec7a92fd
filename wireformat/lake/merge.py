"""Changes onto a Delta table that has the rows as they stand: a MERGE of the rows that they touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.row_changes import RELATION_ID_COLUMN
from ..arrow.typed_tables.latest import LatestRows

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_GONE = "gone"
_INDEX = "\0index"
"""No column of a server has this name."""


class Touched:
    """What the changes of a table touch.

    keys     the key columns
    rows     a table of the keys, each once
    clears   whether they remove all rows: there was a TRUNCATE, or they are those of a new table of this name
    whole    whether they have all values of all rows
    """

    def __init__(self, keys: Sequence[str], batches: Iterable[pa.RecordBatch], relation_id: int | None) -> None:
        self.clears = False
        self.whole = True
        self.relation_id = relation_id
        found: list[pa.RecordBatch] = []
        for batch in batches:
            self._see_relation(batch)
            self.whole = self.whole and batch["_unchanged"].null_count == len(batch)
            is_truncate = pc.equal(batch["_change_type"], "truncate")
            if pc.any(is_truncate).as_py():
                self.clears = True
                batch = batch.filter(pc.invert(is_truncate))
            old = batch["_old"].filter(batch["_old"].is_valid())
            columns = dict(zip((field.name for field in old.type), old.flatten(), strict=True))
            found += [batch.select([*keys]), pa.RecordBatch.from_arrays([columns[key] for key in keys], names=[*keys])]
        tables = [pa.Table.from_batches([one]) for one in found]
        self.rows = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
        self.rows = _plain(self.rows).drop_null().group_by([*keys]).aggregate([])

    def _see_relation(self, batch: pa.RecordBatch) -> None:
        if RELATION_ID_COLUMN in batch.schema.names:
            oids = batch[RELATION_ID_COLUMN].drop_null().unique().to_pylist()
            self.clears = self.clears or any(self.relation_id not in (None, oid) for oid in oids)
            self.relation_id = oids[-1] if oids else self.relation_id


def _plain(table: pa.Table) -> pa.Table:
    """Returns a table without the metadata of its fields."""
    return table.cast(pa.schema([pa.field(field.name, field.type) for field in table.schema]))


def rows_there(delta: DeltaTable, schema: pa.Schema, oid: int | None) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a Delta table as inserts, like stored changes with this schema.

    oid   of the table that they are of
    """
    for batch in delta.to_pyarrow_dataset().to_batches():
        columns: dict[str, Any] = {name: batch[name] for name in batch.schema.names}
        columns["_change_type"] = pa.array(["insert"] * len(batch), pa.string())
        columns[RELATION_ID_COLUMN] = pa.array([oid] * len(batch), pa.int64())
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(batch), field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def of_keys(batches: Iterable[pa.RecordBatch], keys: Sequence[str], wanted: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yields the rows that have one of these keys."""
    for batch in batches:
        own = _plain(pa.Table.from_batches([batch.select([*keys])]))
        own = own.append_column(_INDEX, pa.array(np.arange(len(batch))))
        found = own.join(wanted, [*keys], join_type="left semi")[_INDEX].sort()
        if len(found):
            yield batch.take(found.combine_chunks())


def merge(
    delta: DeltaTable,
    current: pa.Table,
    touched: Touched,
    keys: Sequence[str],
    properties: CommitProperties,
) -> None:
    """Makes the rows that were touched those that they are now, in one commit.

    current   the rows as they are now, as they are stored
    keys      the key columns, as they are stored
    """
    sources = [f"v{index}" for index in range(current.num_columns)]
    of_key = [sources[current.column_names.index(key)] for key in keys]
    current = _plain(current)
    gone = touched.rows.join(current.select([*keys]), [*keys], join_type="left anti")
    upserts = current.rename_columns(sources).append_column(_GONE, pa.array([False] * len(current), pa.bool_()))
    removed = pa.Table.from_arrays(
        [
            *(
                gone[name] if name in keys else pa.nulls(len(gone), current.schema.field(name).type)
                for name in current.column_names
            ),
            pa.array([True] * len(gone), pa.bool_()),
        ],
        schema=upserts.schema,
    )
    source = pa.concat_tables([upserts, removed])
    same = " and ".join(f"t.{_quoted(key)} = s.{source}" for key, source in zip(keys, of_key, strict=True))
    values = {_quoted(name): f"s.{source}" for name, source in zip(current.column_names, sources, strict=True)}
    merger = (
        delta.merge(source, same, source_alias="s", target_alias="t", commit_properties=properties)
        .when_matched_delete(f"s.{_GONE}")
        .when_matched_update(values)
        .when_not_matched_insert(values, f"not s.{_GONE}")
    )
    if touched.clears:
        merger = merger.when_not_matched_by_source_delete()
    merger.execute()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def current_rows(
    keys: Sequence[str], batches: Iterable[pa.RecordBatch], before: Iterable[pa.RecordBatch] = ()
) -> pa.Table:
    """Returns the rows of a table after its changes.

    before   the rows before them, as inserts
    """
    rows = LatestRows(keys)
    for batch in before:
        rows.take(batch)
    for batch in batches:
        rows.take(batch)
    return rows.result()
