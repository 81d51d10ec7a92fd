"""The steps of keys that the changes of a table make, found in the worker: what Spark sorts by key and position.

They are those of `latest_by_key`, of changes that have whole new rows: a row comes to a key, is set, or goes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wireformat.arrow.arrays import Array
from wireformat.arrow.codes import codes_of_values, combined_codes, grouped
from wireformat.arrow.row_changes import TABLE_DELETE, TABLE_UPDATE
from wireformat.arrow.typed_tables.current_rows import COMES, GOES, SETS
from wireformat.arrow.typed_tables.typed_changes import bad_changes, kinds_of, no_key

_ROLES = np.array([COMES, SETS, GOES], np.int32)
"""The role of a change that stays at its key: INSERT, UPDATE, DELETE."""


def steps_schema(typed: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    """Returns the schema of steps: the keys, lsn, ordinal, role, row.

    typed    the schema of typed changes
    lsn      of the commit, with another sign, so that it sorts like an unsigned number
    row      `_sequence` and the columns that are not keys; null if the row goes, or if a later step has the row

    The columns are found by their order: a column of the table may have any name.
    """
    names = [field.name for field in typed.field("_old").type]
    row = [typed.field(name).with_name(str(index)) for index, name in enumerate(_of_row(names, keys))]
    fields = [("lsn", pa.int64()), ("ordinal", pa.int64()), ("role", pa.int32()), ("row", pa.struct(row))]
    return pa.schema([*(typed.field(name) for name in keys), *(pa.field(name, type) for name, type in fields)])


def _of_row(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    return ["_sequence", *(name for name in names if name not in keys)]


def steps_of(typed: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    """Returns the steps of typed changes, with the columns of `steps_schema`; raises BadRows for a row without a key.

    If a key has several steps, only the last one with a row keeps it: the others are never shown.
    """
    schema = steps_schema(typed.schema, keys)
    kinds = kinds_of(typed["_change_type"])
    is_row = (kinds >= 0) & (kinds <= TABLE_DELETE)
    if not is_row.all():
        typed, kinds = typed.filter(pa.array(is_row)), kinds[is_row]
    old = typed["_old"]
    old_columns = dict(zip((field.name for field in old.type), old.flatten(), strict=True))
    is_delete = pa.array(kinds == TABLE_DELETE)
    new = [pc.if_else(is_delete, pc.coalesce(typed[key], old_columns[key]), typed[key]) for key in keys]
    if any(column.null_count for column in new):
        raise bad_changes(None, no_key(keys))  # other batches may have more
    lsns, ordinals = (np.asarray(column) for column in typed["_sequence"].flatten())
    lsns = (lsns.view(np.uint64) ^ np.uint64(1 << 63)).view(np.int64)
    roles = _ROLES[kinds]
    moved = np.flatnonzero((kinds == TABLE_UPDATE) & np.asarray(old.is_valid()))
    left = [pc.coalesce(old_columns[key], column).take(pa.array(moved)) for key, column in zip(keys, new, strict=True)]
    moves = _differ([column.take(pa.array(moved)) for column in new], left)
    moved = moved[moves]
    roles[moved] = COMES
    rows = _rows(typed, _of_row([*old_columns], keys), schema.field("row").type, _shown(new, lsns, ordinals, roles))
    leaves = [
        *(column.filter(pa.array(moves)) for column in left),
        *(pa.array(column[moved]) for column in (lsns, ordinals)),
        pa.array(np.full(len(moved), GOES, np.int32)),
        pa.nulls(len(moved), rows.type),
    ]
    arrives = [*new, *map(pa.array, (lsns, ordinals, roles)), rows]
    columns = arrives if not len(moved) else [*map(pa.concat_arrays, zip(arrives, leaves, strict=True))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _differ(columns: Sequence[pa.Array], others: Sequence[pa.Array]) -> Array:
    """Returns bool[n]: whether rows differ in one of the columns. NaNs are equal, and 0 and -0."""
    found = np.zeros(len(columns[0]), bool)
    for column, other in zip(columns, others, strict=True):
        codes = codes_of_values(pa.chunked_array([column, other]))
        found |= codes[: len(column)] != codes[len(column) :]
    return found


def _shown(keys: Sequence[pa.Array], lsns: Array, ordinals: Array, roles: Array) -> Array:
    """Returns bool[n]: whether a change is the last one of its key that has a row."""
    has_row = np.flatnonzero(roles != GOES)
    codes = combined_codes([codes_of_values(pa.chunked_array([column.take(pa.array(has_row))])) for column in keys])
    order = np.lexsort((ordinals[has_row], lsns[has_row]))[::-1]
    shown = np.zeros(len(roles), bool)
    shown[has_row[order[grouped(codes[order])[0]]]] = True
    return shown


def _rows(typed: pa.RecordBatch, names: Sequence[str], type: pa.DataType, shown: Array) -> pa.StructArray:
    """Returns the rows of changes, null if they are not shown: then none of their values are sent to Spark."""
    columns = [typed[name] for name in names]
    if not shown.all():
        indices = pa.array(np.arange(len(shown)), mask=~shown)
        columns = [column.take(indices) for column in columns]
    return pa.StructArray.from_arrays(columns, fields=[*type], mask=pa.array(~shown))
