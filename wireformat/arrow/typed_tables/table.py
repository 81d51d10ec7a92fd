"""`typed`: the changes of one table, with a typed column for each column of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import BadRows, OptionError
from ...formats.registry import find_row
from ...options.checks import once, one_of, shown, texts
from ...options.keywords import checks_keywords
from ...options.table import listed, nearest
from ...options.table_names import one_table
from ..arrays import Array
from ..row_changes import TABLE_RELATION, RowChanges
from ..schemas import DROPPED, format_of
from ..unread import TablesSeen
from .batch import TableBatch, TypedOptions, typed_batch, typed_schema
from .columns import TypedColumn, check_has_all, check_named, columns_of_versions, given_columns, with_later_versions
from .images import is_null
from .listed import leaves_out
from .rows import ChangeRows, RowChangeSource, check_columns, rows_of_table
from .tables import versions_of
from .versions import TableVersions, Version

EVOLUTIONS = ("union", "error", "versions")


@checks_keywords
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
    images     new: one row per change. both: two rows for an UPDATE with a before image, update_preimage and
               update_postimage
    mode       for values that do not fit their type. FAILFAST raises BadCell. PERMISSIVE returns null and names the
               cell in `_error`. DROPMALFORMED drops the change and counts it in the metadata `wireformat.dropped`
    evolution  for columns that change. union returns all columns, with a type that holds all values. error raises
               BadRows. versions returns a dict of tables, keyed by the version numbers of `tables`
    complete   fill values that were not sent from the before image
    split_key_changes, keys   split an UPDATE that changes a column of keys into a delete and an insert
    versions   the result of `tables` for a larger part of the stream, if schema is not: it lists columns that an UPDATE
               omits
    keep       columns of changes that come first in the result, such as `lsn` or the columns that identify a stream
    format     the format of the changes, if their metadata do not name it. It determines the meaning of type names. If
               the format is unknown, only types that PostgreSQL and openGauss share are built in, and all other values
               are text
    returns    a pyarrow Table; with evolution="versions" a dict of them

    docs/typed.md describes the columns, docs/types.md the types. Raises BadCell (FAILFAST), BadRows, TypeError and
    OptionError; OptionError also if a mapping or a pyarrow Schema has a column that no row names.
    """
    asked = _Asked(table, schema, evolution, versions, keep, format)
    return _typed(changes, asked, TypedOptions(mode, images, complete, split_key_changes, keys), is_whole=True)


def typed_part(
    changes: RowChanges,
    table: str,
    *,
    schema: Any,
    images: str,
    mode: str,
    complete: bool,
    format: str,
) -> Any:
    """`typed` for some changes of an input, in one of many tasks. It skips the checks that need the whole input."""
    asked = _Asked(table, schema, "union", None, (), format)
    return _typed(changes, asked, TypedOptions(mode, images, complete, False, None), is_whole=False)


class _Asked(NamedTuple):
    """The arguments of `typed` that say which rows and columns are asked for; see there."""

    table: str
    schema: Any
    evolution: str
    versions: pa.Table | None
    keep: Sequence[str]
    format: str | None

    def checked(self) -> _Asked:
        """Returns the arguments; raises OptionError."""
        one_of("evolution", self.evolution, EVOLUTIONS)
        if self.versions is not None and not isinstance(self.versions, pa.Table):
            raise OptionError(
                f"option versions: expected the pyarrow Table that `tables` gives, got {shown(self.versions)}"
            )
        return self._replace(keep=once("keep", texts("keep", self.keep)))

    @property
    def listed(self) -> pa.Table | None:
        """The list of tables that was given, as one of two options."""
        return self.schema if isinstance(self.schema, pa.Table) else self.versions

    def known_versions(self, format: str | None) -> TableVersions:
        """Returns the versions of the table that the list has; raises OptionError."""
        if self.listed is None:
            return TableVersions(format=format)
        option = "schema" if self.listed is self.schema else "versions"
        return versions_of(self.listed, *one_table(self.table), format, option)


def _typed(changes: RowChanges, asked: _Asked, options: TypedOptions, *, is_whole: bool) -> Any:
    namespace, name = one_table(asked.table)
    asked = asked.checked()
    table, schema, keep = asked.table, asked.schema, asked.keep
    other_schemas = [] if asked.listed is None else [asked.listed.schema]
    source = RowChangeSource(changes, keep, other_schemas=other_schemas, format=asked.format, is_whole=is_whole)
    options.has_relation_ids = source.format is not None and find_row(source.format).has_relation_ids
    kept = [pa.field(name, pa.null()) if source.schema is None else source.schema.field(name) for name in keep]
    versions = asked.known_versions(source.format)
    batches = []
    listed = len(versions.versions)
    if listed and is_whole:
        versions.current = 0  # that of the first row, as in `Capture.typed`
    tables = TablesSeen((namespace, name))
    try:
        for rows in rows_of_table(tables.noted(source.batches()), namespace, name, keep):
            version_indices = versions.take(rows, np.arange(len(rows.kinds)))
            is_change = np.flatnonzero(rows.kinds != TABLE_RELATION)
            batches.append(TableBatch(rows.chosen(is_change), version_indices[is_change], versions.versions, table))
    except BadRows as error:
        raise source.with_hint(error) from None
    source.check()
    if schema is None and not versions.versions:
        raise tables.error()
    if isinstance(schema, pa.Table):
        columns = with_later_versions(columns_of_versions(versions.versions[:listed]), versions.versions, listed)
    elif schema is None:
        _check_types_are_known(versions, batches)
        columns = columns_of_versions(versions.versions)
    else:
        columns = given_columns(schema, versions.versions)
        typed_schema(columns, kept, options)  # its errors are plainer than those of the checks below
        if is_whole:
            is_numbered = any(batch.rows.numbered.any() for batch in batches)
            (check_has_all if is_numbered else check_named)(columns, versions.versions, table)
    if asked.evolution == "error":
        _check_same_columns(versions, batches, None if schema is None else {column.name for column in columns})
    if asked.evolution != "versions":
        return _table(batches, columns, kept, options)
    found = sorted({int(version) for batch in batches for version in np.unique(batch.version_indices)})
    return {
        version + 1: _table(
            [batch.of_version(version) for batch in batches],
            columns_of_versions([versions.versions[version]])
            if schema is None or isinstance(schema, pa.Table)
            else columns,
            kept,
            options,
        )
        for version in found
    }


class TypedPart:
    """Reads the committed changes of one table group by group. It knows the columns of the table beforehand.

    schema     of the result
    kept       the fields of the kept columns
    versions   the list of tables, if schema is another one
    current    the index of the version that the table had before the first row; -1 if it is not known
    found      the versions of the table as a reading that listed the tables has found them: the same rows teach nothing

    The options are those of `typed`. It skips the checks that need the whole input. Raises OptionError.
    """

    def __init__(
        self,
        table: str,
        *,
        schema: Any,
        options: TypedOptions,
        evolution: str,
        kept: Sequence[pa.Field],
        format: str,
        versions: pa.Table | None = None,
        current: int = -1,
        found: TableVersions | None = None,
    ) -> None:
        self._table = table
        self._given = schema
        self._options = options
        self._evolution = evolution
        self._kept = [*kept]
        self._is_numbered = False  # whether an INSERT had no names of columns
        options.has_relation_ids = find_row(format).has_relation_ids
        listed = schema if isinstance(schema, pa.Table) else versions
        if listed is not None:
            format_of([listed.schema], format)
        self._versions = (
            TableVersions(format=format) if listed is None else versions_of(listed, *one_table(table), format)
        )
        self._listed = len(self._versions.versions)
        self._versions.current = current
        if found is not None:
            self._versions.settle_like(found)
        self._columns = columns_of_versions(self._versions.versions) if isinstance(schema, pa.Table) else None
        self._lacks_versions = isinstance(schema, pa.Table) and leaves_out(schema, one_table(table))
        self.schema = typed_schema(self._columns_of(()), self._kept, options)

    def read(self, rows: ChangeRows) -> tuple[pa.RecordBatch, int]:
        """Returns the typed rows, and the number of changes that DROPMALFORMED dropped. Raises BadCell and BadRows."""
        version_indices = self._version_indices(rows)
        chosen = np.flatnonzero(rows.kinds != TABLE_RELATION)
        versions = self._versions.versions
        changes = TableBatch(rows.chosen(chosen), version_indices[chosen], versions, self._table)
        columns = self._columns_of(versions)
        if self._lacks_versions:
            _check_are_listed(changes, self._listed)
        self._is_numbered |= bool(changes.rows.numbered.any())
        if self._is_numbered and self._columns is None:
            check_has_all(columns, versions, self._table)
        if self._evolution == "error":
            _check_same_columns(self._versions, [changes], {column.name for column in columns})
        return typed_batch(changes, columns, len(self._kept), self.schema, self._options)

    def _version_indices(self, rows: ChangeRows) -> Array:
        """Returns int64[n]: the index of each row's version. The versions learn from the rows."""
        if self._versions.settle_all(rows):
            return np.zeros(len(rows.kinds), np.int64)
        found = self._versions.take(rows, np.arange(len(rows.kinds)))
        self._versions.settle_all(rows)  # for those that come next
        return found

    def check_has_keys(self, keys: Iterable[str]) -> None:
        """Raises OptionError if the schema was given, and lacks one of these columns."""
        own = [field.name for field in self.schema.field("_old").type]
        missing = [key for key in keys if key not in own]
        if missing and not isinstance(self._given, pa.Table):
            raise OptionError(
                f"option schema: no column {missing[0]!r}, which identifies the rows of {self._table}"
                f"{nearest(missing[0], own)}{listed(own)}; add it to the schema, or pass other columns as keys"
            )

    @property
    def dropped(self) -> list[str]:
        """The columns that the table had in other versions, and does not have after the last row that was read."""
        versions, current = self._versions.versions, self._versions.current
        if current < 0 or not versions[current].is_complete:
            return []
        all_names = dict.fromkeys(name for version in versions for name in version.types)
        own = {field.name for field in self.schema.field("_old").type}
        return [name for name in all_names if name in own and name not in versions[current].types]

    def _columns_of(self, versions: Sequence[Version]) -> list[TypedColumn]:
        if self._columns is None:
            return given_columns(self._given, versions)
        return with_later_versions(self._columns, versions, self._listed)


def kept_fields(keep: Sequence[str], schema: pa.Schema) -> list[pa.Field]:
    """Returns the fields of the columns to keep; raises OptionError if the schema does not have them."""
    names = once("keep", texts("keep", keep))
    check_columns(schema.names, names)
    return [schema.field(name) for name in names]


def _check_types_are_known(versions: TableVersions, batches: list[TableBatch]) -> None:
    """Raises BadRows at the first row whose values have no types: types are not guessed."""
    if any(version.is_untyped for version in versions.versions):
        for batch in batches:
            rows = batch.rows
            untyped = np.flatnonzero(rows.types.where(is_null) & (rows.new.valid | rows.old.valid))
            if len(untyped):
                raise BadRows(
                    "rows that name the types of their values, or a schema", "none", **batch.location(int(untyped[0]))
                )


def _check_are_listed(batch: TableBatch, listed: int) -> None:
    """Raises BadRows at the first change that is not of the first, listed versions."""
    others = np.flatnonzero(batch.version_indices >= listed)
    if len(others):
        raise BadRows(
            "a change with columns and types that a committed transaction describes",
            "one with others, which only a streamed transaction describes that was rolled back, or has not ended",
            **batch.location(int(others[0])),
            hint="give the columns of the table as schema",
        )


def _check_same_columns(versions: TableVersions, batches: list[TableBatch], given: set[str] | None) -> None:
    """Raises BadRows at the first change whose columns are not those of the first change, or not among those given."""
    first = next((int(batch.version_indices[0]) for batch in batches if len(batch.version_indices)), 0)
    is_other = np.array(
        [
            number != first if given is None else not version.types.keys() <= given
            for number, version in enumerate(versions.versions)
        ],
        bool,
    )
    for batch in batches:
        others = np.flatnonzero(is_other[batch.version_indices])
        if len(others):
            raise BadRows(
                "the same columns and types in all changes, because of evolution='error'",
                f"other columns or types: version {batch.version_indices[others[0]] + 1} of the table",
                **batch.location(int(others[0])),
            )


def _table(
    batches: list[TableBatch], columns: list[TypedColumn], kept: list[pa.Field], options: TypedOptions
) -> pa.Table:
    schema = typed_schema(columns, kept, options)
    dropped = 0
    typed_batches = []
    for batch in batches:
        rows, dropped_of_batch = typed_batch(batch, columns, len(kept), schema, options)
        dropped += dropped_of_batch
        typed_batches.append(rows)
    table = pa.Table.from_batches(typed_batches, schema)
    return table.replace_schema_metadata({DROPPED: str(dropped)}) if options.mode == "DROPMALFORMED" else table
