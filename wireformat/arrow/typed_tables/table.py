"""Changes of one table with a column of its own type for each of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import BadRows, OptionError
from ...identifiers import split_pattern
from ...options.checks import one_of, shown, texts
from ..row_changes import RowChanges
from ..schemas import DROPPED
from ..unread import TablesSeen
from .batch import TableBatch, TypedOptions, typed_batch, typed_schema
from .columns import TypedColumn, check_has_all, check_named, columns_of_versions, given_columns
from .rows import RELATION, Source, rows_of_table
from .tables import versions_of
from .versions import TableVersions

EVOLUTIONS = ("union", "error", "versions")


def typed(
    changes: RowChanges,
    table: str,
    *,
    schema: Any = None,
    images: str = "new",
    mode: str = "FAILFAST",
    evolution: str = "union",
    complete: bool = False,
    split_key_changes: bool = False,
    keys: Sequence[str] | None = None,
    versions: pa.Table | None = None,
    keep: Sequence[str] = (),
    format: str | None = None,
) -> Any:
    """Returns the changes of one table, with real column types.

    changes    the result of `transactions`, or of `changes` (then `_sequence` is null): a table, or record batches
    table      `public.orders`; names with a dot in double quotes
    schema     the columns of the result. None: those of the rows, with the types of the rows and the type modifiers of
               RELATION rows. Otherwise the result of `tables`, a mapping of column to SQL type such as `numeric(10,2)`,
               or a pyarrow Schema
    images     new: one row per change. both: two rows for an UPDATE with an old image, update_preimage and
               update_postimage
    mode       for values that do not fit their type. FAILFAST raises BadCell. PERMISSIVE returns null and names the
               cell in `_error`. DROPMALFORMED drops the change and counts it in the metadata `wireformat.dropped`
    evolution  for columns that change. union returns all columns, with a type that holds all values. error raises
               BadRows. versions returns a dict of tables, keyed by the version numbers of `tables`
    complete   fill values that were not sent from the old image
    split_key_changes, keys   split an UPDATE that changes a column of keys into a delete and an insert
    versions   the result of `tables` for a larger part of the stream, if schema is not: it lists columns that an UPDATE
               omits
    keep       columns of changes that come first in the result, such as `lsn` or the columns that identify a stream
    format     the format of the changes, if their metadata do not name it. It determines the meaning of type names. If
               the format is unknown, only types that PostgreSQL and openGauss share are built in, and all other values
               are text

    docs/typed.md describes the columns, docs/types.md the types. Raises BadCell (FAILFAST), BadRows, TypeError and
    OptionError; OptionError also if a mapping or a pyarrow Schema has a column that no row names.
    """
    options = TypedOptions(mode, images, complete, split_key_changes, keys)
    return _typed(changes, table, schema, versions, options, evolution, keep, format, whole=True)


def typed_part(
    changes: RowChanges,
    table: str,
    *,
    schema: Any,
    images: str = "new",
    mode: str = "FAILFAST",
    evolution: str = "union",
    complete: bool = False,
    split_key_changes: bool = False,
    keys: Sequence[str] | None = None,
    versions: pa.Table | None = None,
    keep: Sequence[str] = (),
    format: str | None = None,
) -> Any:
    """`typed` of some changes of an input, as one of many tasks has them: what needs all of them is not judged."""
    options = TypedOptions(mode, images, complete, split_key_changes, keys)
    return _typed(changes, table, schema, versions, options, evolution, keep, format, whole=False)


def _typed(
    changes: RowChanges,
    table: str,
    schema: Any,
    given_versions: pa.Table | None,
    options: TypedOptions,
    evolution: str,
    keep: Sequence[str],
    format: str | None,
    *,
    whole: bool,
) -> Any:
    namespace, name = _table_name(table)
    one_of("evolution", evolution, EVOLUTIONS)
    if given_versions is not None and not isinstance(given_versions, pa.Table):
        raise OptionError(
            f"option versions: expected the pyarrow Table that `tables` gives, got {shown(given_versions)}"
        )
    keep = _checked_keep(keep)
    before = schema if isinstance(schema, pa.Table) else given_versions
    source = Source(changes, keep, others=[] if before is None else [before.schema], format=format, whole=whole)
    kept = [pa.field(name, pa.null()) if source.schema is None else source.schema.field(name) for name in keep]
    known = (
        TableVersions(format=source.format) if before is None else versions_of(before, namespace, name, source.format)
    )
    parts = []
    listed = len(known.versions)
    tables = TablesSeen((namespace, name))
    try:
        for rows in rows_of_table(tables.noted(source.batches()), namespace, name, keep):
            numbers = known.take(rows, np.arange(len(rows.kinds)))
            is_change = np.flatnonzero(rows.kinds != RELATION)
            parts.append(TableBatch(rows.chosen(is_change), numbers[is_change], table, known.versions))
    except BadRows as error:
        raise source.told(error) from None
    source.check()
    if schema is None and not known.versions:
        raise tables.error()
    if isinstance(schema, pa.Table):
        columns = columns_of_versions(known.versions[:listed])
    elif schema is None:
        _check_typed(known, parts, table)
        columns = columns_of_versions(known.versions)
    else:
        columns = given_columns(schema, known.versions)
        typed_schema(columns, kept, options)  # whose errors are plainer
        if whole:
            is_numbered = any(part.rows.numbered.any() for part in parts)
            (check_has_all if is_numbered else check_named)(columns, known.versions, table)
    if evolution == "error":
        _check_columns(known, parts, None if schema is None else {column.name for column in columns})
    if evolution != "versions":
        return _table(parts, columns, kept, options)
    found = sorted({int(version) for part in parts for version in np.unique(part.versions)})
    return {
        number + 1: _table(
            [part.of_version(number) for part in parts],
            columns_of_versions([known.versions[number]])
            if schema is None or isinstance(schema, pa.Table)
            else columns,
            kept,
            options,
        )
        for number in found
    }


def _table_name(table: str) -> tuple[str, str]:
    if not isinstance(table, str):
        raise OptionError(f"option table: expected a name, schema.table, got {shown(table)}")
    try:
        namespace, name = split_pattern(table)
    except ValueError as error:
        raise OptionError(f"option table: {error}") from None
    if namespace is None or name is None:
        raise OptionError(f'option table: expected one table, got the pattern "{table}"')
    return namespace, name


def _check_typed(known: TableVersions, parts: list[TableBatch], table: str) -> None:
    """Values without types cannot be guessed at."""
    if any(version.is_untyped for version in known.versions):
        for part in parts:
            untyped = np.flatnonzero((part.rows.types.ids == 0) & (part.rows.new.valid | part.rows.old.valid))
            if len(untyped):
                raise BadRows(
                    "rows that say the types of their values, or a schema", "none", **part.where(int(untyped[0]))
                )


def _check_columns(known: TableVersions, parts: list[TableBatch], given: set[str] | None) -> None:
    """Raise BadRows at the first change with other columns than the first, or than those given."""
    for part in parts:
        for version in np.unique(part.versions).tolist():
            names = known.versions[version].types.keys()
            if (names > given or not names <= given) if given is not None else version > 0:
                place = int(np.flatnonzero(part.versions == version)[0])
                raise BadRows(
                    "the same columns all the time, as evolution=error wants",
                    f"other columns, or types: version {version + 1} of the table",
                    **part.where(place),
                )


def _checked_keep(keep: Sequence[str]) -> Sequence[str]:
    keep = texts("keep", keep)
    twice = [name for name in keep if keep.count(name) > 1]
    if twice:
        raise OptionError(f"option keep: {twice[0]!r} is named twice")
    return keep


def _table(
    parts: list[TableBatch], columns: list[TypedColumn], kept: list[pa.Field], options: TypedOptions
) -> pa.Table:
    schema = typed_schema(columns, kept, options)
    dropped = 0
    batches = []
    for part in parts:
        batch, left_out = typed_batch(part, columns, len(kept), schema, options)
        dropped += left_out
        batches.append(batch)
    table = pa.Table.from_batches(batches, schema)
    return table.replace_schema_metadata({DROPPED: str(dropped)}) if options.mode == "DROPMALFORMED" else table
