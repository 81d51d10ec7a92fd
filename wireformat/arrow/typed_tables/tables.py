"""The list of the tables of a stream, with the versions of their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import OptionError
from ...formats.pgoutput.undelivered import Described, Descriptions, undelivered
from ...options.keywords import checks_keywords
from ...options.table_names import TableName, suggestion, written
from ..arrays import Array
from ..codes import combined_codes, groups_of
from ..row_changes import TABLE_RELATION, RowChanges
from ..schemas import NAME_LIST, with_format
from .listed import of_table, with_switched_keys, with_undelivered
from .rows import ChangeRows, RowChangeSource, chosen_of_batch, rows_of_tables
from .versions import ColumnFacts, TableVersions, Version, copies_of

POSITION = pa.struct({"message": pa.int64(), "record": pa.int32()})
"""The position of a row that is in no transaction."""

NOTHING_KNOWN: Mapping[TableName, TableVersions] = MappingProxyType({})
"""The versions of tables before the first row of a stream that begins."""


@checks_keywords
def tables(changes: RowChanges, *, format: str | None = None) -> pa.Table:
    """Lists the tables of a stream, with one row per version of each table, sorted by name and version.

    changes    the result of `changes` or `transactions`: a table, or record batches
    format     the format of the changes, if their metadata do not name it; it determines the meaning of type names
    returns    table_schema, table_name; version, from 1; columns and types; typmods (-1 for none; null without
               RELATION); key_columns of the replica identity (null if unknown); first and last: `sequence` of the rows
               if there is one, otherwise message and record, null without these; changes: the number of rows, without
               RELATION

    A version is a set of columns with their types. A version that is known only from a key has only some of its
    columns. The schema metadata name the format if it is known. Raises BadRows if no row could be read, OptionError,
    TypeError.
    """
    source = RowChangeSource(changes, format=format)
    found = TablesFound(format=source.format)
    position: pa.StructType | None = None
    for batch in source.batches():
        position = position or positions_of(batch).type
        found.take_batch(batch)
    source.check()
    return found.listed(source.format, position or POSITION)


class TablesFound:
    """The tables of a stream, as far as its rows have been taken, in order.

    known    the versions that tables had before, which the list has too, first
    format   of the rows; None if it is not known
    descriptions   of the stream; None if what it describes is not told apart
    """

    def __init__(
        self,
        known: Mapping[TableName, TableVersions] = NOTHING_KNOWN,
        *,
        format: str | None = None,
        descriptions: Descriptions | None = None,
    ) -> None:
        self._format = format
        self._descriptions = descriptions
        self._versions = copies_of(known, format)
        self._known = {table: len(versions.versions) for table, versions in known.items()}
        self._totals: dict[tuple[TableName, int], list[Any]] = {}

    def take_batch(self, batch: pa.RecordBatch) -> None:
        """Takes the rows of a record batch."""
        self.take(*tables_of_batch(batch))

    def take(
        self, rows: ChangeRows, tables: Iterable[tuple[TableName, Array]], position_of: Callable[[int], dict[str, Any]]
    ) -> None:
        """Takes rows.

        tables        the tables, each with the indices of its rows, in order
        position_of   returns the position of a row, by its index
        """
        for table, indices in tables:
            of_table = self._versions.setdefault(table, TableVersions(format=self._format))
            described = of_table.described
            version_indices = of_table.take(rows, indices)
            if self._descriptions is not None and of_table.described > described:
                self._descriptions.is_behind = True
            versions = np.flatnonzero(np.bincount(version_indices)).tolist()
            for version in versions:
                of_version = indices if len(versions) == 1 else indices[version_indices == version]
                first, last = (position_of(int(index)) for index in of_version[[0, -1]])
                total = self._totals.setdefault((table, version), [first, last, 0])
                total[1] = last
                total[2] += int(np.count_nonzero(rows.kinds[of_version] != TABLE_RELATION))

    def versions_of(self, table: TableName) -> TableVersions | None:
        """Returns the versions of a table as far as its rows have been taken; None if there are none."""
        return self._versions.get(table)

    def so_far(self, table: TableName) -> TablesFound | None:
        """Returns a copy of what was found of a table; None if it may lack columns of the rows so far."""
        versions = self._versions.get(table)
        if versions is None or not versions.versions or not all(one.is_complete for one in versions.versions):
            return None
        found = TablesFound(format=self._format, descriptions=self._descriptions)
        found._versions, found._known = deepcopy({table: versions}), {table: self._known.get(table, 0)}
        keys = [(table, version) for version in range(len(versions.versions))]
        found._totals = {key: [*self._totals[key]] for key in keys if key in self._totals}
        return found

    def settle(self, table: TableName, layout: Hashable, facts: ColumnFacts) -> None:
        """See CountedTables."""
        self._versions[table].settle(layout, facts)

    def is_settled(self, table: TableName, layout: Hashable) -> bool:
        """See CountedTables."""
        return table in self._versions and self._versions[table].is_settled(layout)

    def count(
        self, table: TableName, layout: Hashable, first: dict[str, Any], last: dict[str, Any], changes: int
    ) -> None:
        """See CountedTables."""
        total = self._totals[table, 0]
        total[1] = max(total[1], last, key=lambda position: (*position.values(),))
        total[2] += changes

    def listed(self, format: str | None, position: pa.DataType) -> pa.Table:
        """Returns the list; see `tables`.

        position   the type of the positions
        """
        left_out = () if self._descriptions is None else undelivered([self._descriptions])
        return list_of(self._totals, self._versions, position, format, left_out, self._known)


def undelivered_versions(
    versions: Mapping[TableName, TableVersions], described: Collection[Described], known: Mapping[TableName, int]
) -> list[tuple[TableName, int]]:
    """Returns the tables and numbers of the versions that were not described in a committed transaction.

    described   what was not
    known       how many versions of each table were known before, which are not among them
    """
    return [
        (table, number)
        for table in {(one.schema, one.table) for one in described}
        if table in versions
        for number, version in enumerate(versions[table].versions, 1)
        if number > known.get(table, 0) and Described(*table, version.described) in described
    ]


def list_of(
    totals: Mapping[tuple[TableName, int], Sequence[Any]],
    versions: Mapping[TableName, TableVersions],
    position: pa.DataType,
    format: str | None,
    described: Collection[Described],
    known: Mapping[TableName, int],
) -> pa.Table:
    """Returns a list of tables.

    totals      first, last and changes, by the table and the index of its version
    versions    of all tables
    position    the type of the positions
    described, known   see `undelivered_versions`
    """
    before = {(table, version) for table, _ in totals for version in range(known.get(table, 0))}
    rows = []
    for table, version in sorted(before | totals.keys()):
        first, last, changes = totals.get((table, version), (None, None, 0))
        of_version = {**version_columns(versions[table].versions[version]), "first": first, "last": last}
        names = {"table_schema": table[0], "table_name": table[1], "version": version + 1}
        rows.append({**names, **of_version, "changes": changes})
    switched = {
        (*table, number): version.all_keys
        for table, of_table in versions.items()
        for number, version in enumerate(of_table.versions, 1)
        if len(version.all_keys) > 1
    }
    schema = with_switched_keys(with_format(tables_schema(position), format), switched)
    left_out = undelivered_versions(versions, described, known)
    schema = with_undelivered(schema, [(*table, number) for table, number in left_out])
    return pa.Table.from_pylist(rows, schema)


def tables_schema(position: pa.DataType) -> pa.Schema:
    """Returns the schema of the list of tables, with positions of this type."""
    return pa.schema(
        [
            pa.field("table_schema", pa.string()),
            pa.field("table_name", pa.string()),
            pa.field("version", pa.int32()),
            pa.field("columns", NAME_LIST),
            pa.field("types", NAME_LIST),
            pa.field("typmods", pa.list_(pa.field("element", pa.int32()))),
            pa.field("key_columns", NAME_LIST),
            pa.field("first", position),
            pa.field("last", position),
            pa.field("changes", pa.int64()),
        ]
    )


def version_columns(version: Version) -> dict[str, Any]:
    """Returns the fields of a version's columns, as in the list of tables."""
    return {
        "columns": list(version.types),
        "types": [version.type_of(name) for name in version.types],
        "typmods": None if version.typmods is None else [version.typmods[name] for name in version.types],
        "key_columns": None if version.keys is None else list(version.keys),
    }


def tables_of_batch(
    batch: pa.RecordBatch,
) -> tuple[ChangeRows, list[tuple[TableName, Array]], Callable[[int], dict[str, Any]]]:
    """Returns the rows of a record batch that name tables, as TablesFound.take takes them."""
    rows, positions = rows_of_tables(batch), positions_of(batch)
    chosen = chosen_of_batch(rows)
    return rows, indices_by_table(rows), lambda index: positions[int(chosen[index])].as_py()


def positions_of(batch: pa.RecordBatch) -> pa.StructArray:
    """Returns the position of each row: its `sequence`, or else its message and record; null without these."""
    if "sequence" in batch.schema.names:
        return batch["sequence"]
    names = [field.name for field in POSITION if field.name in batch.schema.names]
    if not names:
        return pa.nulls(len(batch), POSITION)
    return pa.StructArray.from_arrays([batch[name] for name in names], names)


def indices_by_table(rows: ChangeRows) -> list[tuple[TableName, Array]]:
    """Returns the tables, each with the indices of its rows, in order."""
    if not len(rows.kinds):
        return []
    texts = [rows.column(name, pa.string()) for name in ("table_schema", "table_name")]
    codes = combined_codes(
        [np.asarray(text.dictionary_encode().indices.fill_null(-1)).astype(np.int64) + 1 for text in texts]
    )
    schemas, names = texts
    return [((schemas[int(group[0])].as_py() or "", names[int(group[0])].as_py()), group) for group in groups_of(codes)]


def _hint(listed: pa.Table, schema: str, table: str) -> str:
    there = {written((row["table_schema"], row["table_name"])) for row in listed.to_pylist()}
    wanted = written((schema, table))
    return wanted + suggestion(wanted, there)


_OF_VERSIONS = ["columns", "types", "typmods", "key_columns"]
"""What a list of tables says of the columns of a version."""


def versions_of(listed: pa.Table, schema: str, table: str, format: str | None, option: str = "schema") -> TableVersions:
    """Returns the versions of a table from the result of `tables`; raises OptionError if the table is not listed.

    format   the format of the rows that name the types; None if it is not known
    option   the name of the option that gave the list
    """
    versions = TableVersions(format=format)
    names = {*listed.column_names}
    missing = [name for name in tables_schema(pa.null()).names if name not in names]
    if missing:
        raise OptionError(f"option {option}: expected the list that `tables` gives, missing: {', '.join(missing)}")
    for row in of_table(listed, (schema, table)).select(_OF_VERSIONS).to_pylist():
        types = dict(zip(row["columns"], row["types"], strict=True))
        typmods = None if row["typmods"] is None else dict(zip(types, row["typmods"], strict=True))
        keys = None if row["key_columns"] is None else tuple(row["key_columns"])
        versions.versions.append(Version(types, True, typmods, keys, format=format))
    if not versions.versions:
        raise OptionError(f"option {option}: the list of tables has no {_hint(listed, schema, table)}")
    return versions
