"""The schema of a table as a lake stores it, and the conversion of typed rows to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...arrow.typed_tables.columns import wider
from ...arrow.typed_tables.versions import TableVersions, Version
from ...errors import BadRows, OptionError
from ...options.table_names import written
from .manifest import StoredTable, StoredVersion

NAME = b"wireformat.column"
SQL_TYPE = b"wireformat.sql_type"
"""Keys of the metadata of a stored column: its name and its SQL type."""


class StoredColumn(NamedTuple):
    """A column as it is stored.

    source   its name in typed rows
    field    its field in stored rows
    """

    source: str
    field: pa.Field


class StoredSchema:
    """How the typed rows of a table are stored: their columns have names that differ in more than case.

    typed   the schema of the typed rows, without kept columns
    table   what the lake knows about the table
    types   the types of columns whose type differs from that in `typed`

    `columns` are the columns that are stored, `schema` is the schema of stored rows.
    """

    def __init__(self, typed: pa.Schema, table: StoredTable, types: Mapping[str, pa.DataType]) -> None:
        self._names = table.columns
        self._renamed = {name: stored for name, stored in table.columns.items() if name != stored}
        self.columns = []
        for field in typed:
            name = table.columns.get(field.name, field.name)
            type = self._type(field, types)
            metadata = {}
            if field.name in table.columns:
                metadata = {NAME: field.name.encode()}
                if table.types.get(field.name) is not None:
                    metadata[SQL_TYPE] = table.types[field.name].encode()
            self.columns.append(StoredColumn(field.name, pa.field(name, type, metadata=metadata)))
        self.schema = pa.schema([column.field for column in self.columns])

    def _type(self, field: pa.Field, types: Mapping[str, pa.DataType]) -> pa.DataType:
        if field.name == "_old":
            return pa.struct(
                [pa.field(self._names.get(one.name, one.name), types.get(one.name, one.type)) for one in field.type]
            )
        return types.get(field.name, field.type)

    def stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns typed rows as they are stored."""
        arrays = [_cast(batch[column.source], column.field.type) for column in self.columns]
        if self._renamed:
            arrays = [
                _renamed(array, self._renamed) if column.source == "_unchanged" else array
                for column, array in zip(self.columns, arrays, strict=True)
            ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _cast(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Returns an array with a wider type; fields of a struct may have other names."""
    if array.type == type:
        return array
    if pa.types.is_struct(type):
        children = [_cast(child, field.type) for child, field in zip(array.flatten(), type, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)
    if pa.types.is_list(type) and pa.types.is_list(array.type):
        values = _cast(array.values, type.value_type)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, type=type, mask=mask)
    return pc.cast(array, type)


def _renamed(lists: pa.Array, names: Mapping[str, str]) -> pa.Array:
    """Returns lists of names of columns with the names under which they are stored."""
    rows = [None if row is None else [names.get(name, name) for name in row] for row in lists.to_pylist()]
    return pa.array(rows, lists.type)


def without_empty_structs(schema: pa.Schema) -> pa.Schema:
    """Returns the columns that a file can hold, which are all but the old row of a table without columns."""
    return pa.schema([field for field in schema if not pa.types.is_struct(field.type) or field.type.num_fields])


def delta_type(type: pa.DataType) -> pa.DataType:
    """Returns the type of a column in a Delta table. A time of day becomes text, since Delta has no type for it."""
    if pa.types.is_time(type):
        return pa.string()
    if pa.types.is_list(type):
        return pa.list_(pa.field("element", delta_type(type.value_type)))
    return type


def _is_text(type: pa.DataType) -> bool:
    """Whether values of a type are the server's texts. Values of other types cannot be turned back into those texts."""
    return _is_text(type.value_type) if pa.types.is_list(type) else pa.types.is_string(type)


def type_onto(table: tuple[str, str], column: str, there: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Returns the type in which new values are written to a column of a Delta table, which is that of the column.

    there   the type of the column
    new     the type of the new values

    Raises OptionError if only the column is text, and BadRows if it does not hold values of the new type.
    """
    if there == new or (wider(there, new) == there and not _is_text(there)):
        return there
    if _is_text(there):
        raise OptionError(
            f"table {written(table)}: column {column} is text in the lake and {new} in this write; give it as text "
            "in the option schemas"
        )
    raise BadRows(
        f"values of type {there} in column {column}, as in the lake",
        f"{new} in the stream",
        table=written(table),
        hint="deltalake cannot widen a column: write the table to a new lake, or rewrite its Delta table with the "
        "wider type",
    )


def sql_types(listed: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the SQL type of each column in the last version that has it.

    listed   rows of the list of tables, of one table
    """
    found: dict[str, str] = {}
    for row in listed:
        types = zip(row["columns"], row["types"], strict=True)
        found.update({name: type for name, type in types if type is not None})
    return found


def stored_versions(listed: Sequence[Mapping[str, Any]]) -> tuple[list[StoredVersion], int]:
    """Returns the versions of a table, and the index of the version of its last row.

    listed   rows of the list of tables, of one table
    """

    def end(index: int) -> list[tuple[bool, Any]]:
        return [(number is not None, number) for number in (listed[index]["last"] or {}).values()]

    versions = [StoredVersion(row["columns"], row["types"], row["typmods"]) for row in listed]
    return versions, max(range(len(listed)), key=end, default=0)


def known_versions(table: StoredTable) -> TableVersions:
    """Returns the versions of a table in a lake."""
    columns = [*table.columns]
    stored = table.versions or [StoredVersion(columns, [table.types.get(name) for name in columns])]
    versions = []
    for columns, types, typmods in stored:
        of_columns = None if typmods is None else dict(zip(columns, typmods, strict=True))
        versions.append(Version(dict(zip(columns, types, strict=True)), True, of_columns))
    return TableVersions(versions, table.current)
