"""The list of tables that changes are about, with their columns as they were over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import OptionError
from ...options.table_names import suggestion, written
from ..arrays import Array
from ..row_changes import RowChanges
from ..schemas import with_format
from .images import combined
from .rows import RELATION, ChangeRows, Source, rows_of_tables
from .versions import TableVersions, Version

_NAMES = pa.list_(pa.field("element", pa.string()))
_POSITIONS = {"message": pa.int64(), "record": pa.int32()}

Table = tuple[str, str]


def tables(changes: RowChanges, *, format: str | None = None) -> pa.Table:
    """Lists the tables of a stream, with one row per version of each table, sorted by name and version.

    changes    the result of `changes` or `transactions`: a table, or record batches
    format     the format of the changes, if their metadata do not name it; it determines the meaning of type names
    returns    table_schema, table_name; version, from 1; columns and types; typmods (-1 for none; null without
               RELATION); key_columns of the replica identity (null if unknown); first and last: `sequence` of the rows
               if there is one, otherwise message and record; changes: the number of rows, without RELATION

    A version is a set of columns with their types. A version that is known only from a key has only some of its
    columns. The schema metadata name the format if it is known. Raises BadRows if no row could be read, OptionError,
    TypeError.
    """
    source = Source(changes, format=format)
    versions: dict[Table, TableVersions] = {}
    totals: dict[tuple[Table, int], list[Any]] = {}
    position: pa.StructType | None = None
    for batch in source.batches():
        rows = rows_of_tables(batch)
        positions = _positions(batch)
        position = position or positions.type
        for table, places in _by_table(rows):
            numbers = versions.setdefault(table, TableVersions()).take(rows, places)
            for number in np.unique(numbers).tolist():
                own = places[numbers == number]
                first, last = (positions[rows.at(int(place))[1]].as_py() for place in (own[0], own[-1]))
                total = totals.setdefault((table, number), [first, last, 0])
                total[1] = last
                total[2] += int((rows.kinds[own] != RELATION).sum())
    source.check()
    listed = [
        {
            "table_schema": table[0],
            "table_name": table[1],
            "version": number + 1,
            **version_columns(versions[table].versions[number]),
            **dict(zip(("first", "last", "changes"), totals[table, number], strict=True)),
        }
        for table, number in sorted(totals)
    ]
    return pa.Table.from_pylist(listed, with_format(tables_schema(position or pa.struct(_POSITIONS)), source.format))


def tables_schema(position: pa.DataType) -> pa.Schema:
    """The schema of the list of tables, with positions of this type."""
    return pa.schema(
        [
            pa.field("table_schema", pa.string()),
            pa.field("table_name", pa.string()),
            pa.field("version", pa.int32()),
            pa.field("columns", _NAMES),
            pa.field("types", _NAMES),
            pa.field("typmods", pa.list_(pa.field("element", pa.int32()))),
            pa.field("key_columns", _NAMES),
            pa.field("first", position),
            pa.field("last", position),
            pa.field("changes", pa.int64()),
        ]
    )


def version_columns(version: Version) -> dict[str, Any]:
    """What the list says about a version's columns."""
    return {
        "columns": list(version.types),
        "types": list(version.types.values()),
        "typmods": None if version.typmods is None else [version.typmods[name] for name in version.types],
        "key_columns": None if version.keys is None else list(version.keys),
    }


def _positions(batch: pa.RecordBatch) -> pa.StructArray:
    if "sequence" in batch.schema.names:
        return batch["sequence"]
    names = [name for name in _POSITIONS if name in batch.schema.names]
    return pa.StructArray.from_arrays([batch[name] for name in names], names)


def _by_table(rows: ChangeRows) -> list[tuple[Table, Array]]:
    """The tables, and for each the places of its rows, in order."""
    if not len(rows.kinds):
        return []
    texts = [rows.column(name, pa.string()) for name in ("table_schema", "table_name")]
    codes = combined(
        [np.asarray(text.dictionary_encode().indices.fill_null(-1)).astype(np.int64) + 1 for text in texts]
    )
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    schemas, names = texts
    return [((schemas[int(own[0])].as_py() or "", names[int(own[0])].as_py()), own) for own in groups]


def _hint(listed: pa.Table, schema: str, table: str) -> str:
    there = {written((row["table_schema"], row["table_name"])) for row in listed.to_pylist()}
    wanted = written((schema, table))
    return wanted + suggestion(wanted, there)


def versions_of(listed: pa.Table, schema: str, table: str, format: str | None) -> TableVersions:
    """The versions of a table out of the list that `tables` made; raises OptionError if it is not in it.

    format   of the rows that name the types; None where it is not known
    """
    found = TableVersions(format=format)
    missing = [name for name in tables_schema(pa.null()).names if name not in listed.column_names]
    if missing:
        raise OptionError(f"option schema: expected the list that `tables` gives, missing: {', '.join(missing)}")
    for row in listed.to_pylist():
        if (row["table_schema"], row["table_name"]) != (schema, table):
            continue
        types = dict(zip(row["columns"], row["types"], strict=True))
        typmods = None if row["typmods"] is None else dict(zip(types, row["typmods"], strict=True))
        keys = None if row["key_columns"] is None else tuple(row["key_columns"])
        found.versions.append(Version(types, True, typmods, keys, format=format))
    if not found.versions:
        raise OptionError(f"option schema: the list of tables has no {_hint(listed, schema, table)}")
    return found
