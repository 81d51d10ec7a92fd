"""Changes of one table with a column of its own type for each of the table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BadCell, BadRows, OptionError
from ..identifiers import split_pattern
from ..options.reading import MODES
from .change_rows import (
    DELETE,
    INSERT,
    RELATION,
    UPDATE,
    ChangeRows,
    Changes,
    Source,
    position,
    rows_of_table,
)
from .changes import DROPPED
from .compiled import Array
from .schemas import SEQUENCE
from .table_list import versions_of
from .table_versions import TableVersions, Version
from .typed_columns import TypedColumn, check_named, columns_of_versions, given_columns
from .unsent import is_unsent, unsent_columns, unsent_lists

_NAMES = pa.list_(pa.field("element", pa.string()))

ABOUT = ("_change_type", "_sequence", "_xid", "_commit_time", "_old", "_unchanged", "_error")
"""Columns beside those of the table, the last one in PERMISSIVE only."""

LABELS = ("insert", "update", "delete", "truncate", "update_preimage", "update_postimage")
"""What stands in `_change_type`."""
_PREIMAGE, _POSTIMAGE = 4, 5

IMAGES = ("new", "both")
EVOLUTIONS = ("union", "error", "versions")


class _Options:
    """What is asked for; raises OptionError.

    keys   those whose change splits an UPDATE; none if none is split
    """

    def __init__(self, mode: str, images: str, complete: bool, split: bool, keys: Sequence[str] | None) -> None:
        self.mode = _one_of("mode", mode, MODES)
        self.images = _one_of("images", images, IMAGES)
        self.complete = complete
        self.keys = _split_keys(split, keys)


def typed(
    changes: Changes,
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
    """The changes of one table, with real column types.

    changes    of `transactions`, or of `changes` (then `_sequence` is null): a table, or record batches
    table      `public.orders`; names with a dot in double quotes
    schema     None: from the types of the rows, and the typmods of RELATION rows. Else the result of `tables`; or a
               mapping of column to SQL type, as `numeric(10,2)`; or a pyarrow Schema: its columns come, and no others
    images     new: one row a change; both: an UPDATE whose old image was sent gives two, update_preimage and
               update_postimage
    mode       for values that do not fit their type. FAILFAST: raise; PERMISSIVE: null, and `_error` says which;
               DROPMALFORMED: leave the change out, and count it in the metadata `wireformat.dropped`
    evolution  where the columns change. union: all of them, of the wider type; error: raise; versions: a dict of
               tables, by the version's number as in `tables`
    complete   fill values that were not sent from the old image
    split_key_changes, keys   turn an UPDATE that changes a column of keys into a delete and an insert
    versions   the result of `tables` for a larger part of the stream, where schema is not: a column that an UPDATE
               leaves out is known from there
    format     that the changes were read from, where their metadata do not say it: it says what type names mean. Where
               it is not known, only names that are built in on PostgreSQL and on openGauss are, and all other values
               are text
    keep       columns of changes that come first, as they are; as which stream it was, or `lsn`

    The columns are described in docs/typed.md, the types in docs/types.md. Raises BadCell (FAILFAST), BadRows,
    OptionError, TypeError; OptionError also where a mapping or a pyarrow Schema has a column that no row names.
    """
    options = _Options(mode, images, complete, split_key_changes, keys)
    return _typed(changes, table, schema, versions, options, evolution, keep, format, whole=True)


def typed_part(
    changes: Changes,
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
    options = _Options(mode, images, complete, split_key_changes, keys)
    return _typed(changes, table, schema, versions, options, evolution, keep, format, whole=False)


def _typed(
    changes: Changes,
    table: str,
    schema: Any,
    given_versions: pa.Table | None,
    options: _Options,
    evolution: str,
    keep: Sequence[str],
    format: str | None,
    *,
    whole: bool,
) -> Any:
    namespace, name = _table_name(table)
    _one_of("evolution", evolution, EVOLUTIONS)
    _check_keep(keep)
    before = schema if isinstance(schema, pa.Table) else given_versions
    source = Source(changes, keep, said=[] if before is None else [before.schema], format=format, whole=whole)
    kept = [pa.field(name, pa.null()) if source.schema is None else source.schema.field(name) for name in keep]
    known = (
        TableVersions(format=source.format) if before is None else versions_of(before, namespace, name, source.format)
    )
    parts = []
    listed = len(known.versions)
    try:
        for rows in rows_of_table(source.batches(), namespace, name, keep):
            numbers = known.take(rows, np.arange(len(rows.kinds)))
            is_change = np.flatnonzero(rows.kinds != RELATION)
            parts.append(_Part(rows.chosen(is_change), numbers[is_change], table, known.versions))
    except BadRows as error:
        raise source.told(error) from None
    source.check()
    if schema is None and not known.versions:
        raise BadRows("changes of this table, or a schema", "none", table=table)
    if isinstance(schema, pa.Table):
        columns = columns_of_versions(known.versions[:listed])
    elif schema is None:
        _check_typed(known, parts, table)
        columns = columns_of_versions(known.versions)
    else:
        columns = given_columns(schema, known.versions)
        _schema(columns, kept, options)  # whose errors are plainer
        if whole and not any(part.rows.numbered.any() for part in parts):
            check_named(columns, known.versions, table)
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


@dataclass(frozen=True)
class _Part:
    """The changes of the table in one record batch, and the version of each."""

    rows: ChangeRows
    versions: Array
    table: str
    known: Sequence[Version]
    """Those versions."""

    def of_version(self, number: int) -> _Part:
        places = np.flatnonzero(self.versions == number)
        return _Part(self.rows.chosen(places), self.versions[places], self.table, self.known)

    def where(self, place: int) -> dict[str, Any]:
        """The place of a change, as attributes of an error."""
        return {"table": self.table, **position(*self.rows.at(place))}


def _table_name(table: str) -> tuple[str, str]:
    try:
        namespace, name = split_pattern(table)
    except ValueError as error:
        raise OptionError(f"option table: {error}") from None
    if namespace is None or name is None:
        raise OptionError(f'option table: expected one table, got the pattern "{table}"')
    return namespace, name


def _one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise OptionError(f"option {option}: expected {', '.join(allowed)}, got {value!r}")
    return value


def _split_keys(split: bool, keys: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(keys, str):
        raise OptionError(f"option keys: expected a list of columns, got the string {keys!r}")
    if split and not keys:
        raise OptionError("option split_key_changes: needs keys, the columns of the table's key")
    return tuple(keys or ()) if split else ()


def _check_typed(known: TableVersions, parts: list[_Part], table: str) -> None:
    """Values without types cannot be guessed at."""
    if any(version.is_untyped for version in known.versions):
        for part in parts:
            untyped = np.flatnonzero((part.rows.types.ids == 0) & (part.rows.new.valid | part.rows.old.valid))
            if len(untyped):
                raise BadRows(
                    "rows that say the types of their values, or a schema", "none", **part.where(int(untyped[0]))
                )


def _check_columns(known: TableVersions, parts: list[_Part], given: set[str] | None) -> None:
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


def _check_keep(keep: Sequence[str]) -> None:
    if isinstance(keep, str):
        raise OptionError(f"option keep: expected a list of columns, got the string {keep!r}")
    twice = [name for name in keep if keep.count(name) > 1]
    if twice:
        raise OptionError(f"option keep: {twice[0]!r} is named twice")


def _table(parts: list[_Part], columns: list[TypedColumn], kept: list[pa.Field], options: _Options) -> pa.Table:
    schema = _schema(columns, kept, options)
    dropped = 0
    batches = []
    for part in parts:
        batch, left_out = _typed_batch(part, columns, len(kept), schema, options)
        dropped += left_out
        batches.append(batch)
    table = pa.Table.from_batches(batches, schema)
    return table.replace_schema_metadata({DROPPED: str(dropped)}) if options.mode == "DROPMALFORMED" else table


def _schema(columns: list[TypedColumn], kept: list[pa.Field], options: _Options) -> pa.Schema:
    fields = [pa.field(column.name, column.type) for column in columns]
    taken = [field.name for field in fields if field.name in ABOUT]
    if taken:
        raise OptionError(f"option schema: the table has a column {taken[0]} of its own; give a schema without it")
    taken = [field.name for field in kept if field.name in {*ABOUT, *(column.name for column in columns)}]
    if taken:
        raise OptionError(f"option keep: the result has a column {taken[0]!r} of its own; rename the one in changes")
    missing = [key for key in options.keys if key not in {field.name for field in fields}]
    if missing:
        raise OptionError(f"option keys: the table has no column {missing[0]}")
    about = [
        pa.field("_change_type", pa.string()),
        pa.field("_sequence", SEQUENCE),
        pa.field("_xid", pa.int64()),
        pa.field("_commit_time", pa.timestamp("us", "UTC")),
        pa.field("_old", pa.struct(fields)),
        pa.field("_unchanged", _NAMES),
        *([pa.field("_error", pa.string())] if options.mode == "PERMISSIVE" else ()),
    ]
    return pa.schema([*kept, *fields, *about])


class _Wrong(NamedTuple):
    """A value that does not fit."""

    row: int
    image: str
    column: TypedColumn
    words: str

    @property
    def expected(self) -> str:
        return f"a value of the type {self.column.type}"


def _typed_batch(
    part: _Part, columns: list[TypedColumn], kept: int, schema: pa.Schema, options: _Options
) -> tuple[pa.RecordBatch, int]:
    """The typed rows of one record batch, and how many changes were left out.

    kept   so many columns of the schema come first, as they are in the changes
    """
    rows, count = part.rows, len(part.rows.kinds)
    _check_numbered(part, columns)
    is_delete = rows.kinds == DELETE
    has_old = rows.old.valid
    wrong: list[_Wrong] = []
    texts: dict[str, list[pa.StringArray]] = {}
    values, olds, filled = [], [], {}
    unsent = unsent_columns(rows, part.versions, part.known, [column.name for column in columns])
    for place, column in enumerate(columns):
        read = {}
        for image, cells in (("new", rows.new), ("old", rows.old)):
            text = cells.texts(column.name, place, rows.numbered if image == "new" else None)
            if column.name in options.keys:
                texts.setdefault(column.name, []).append(text)
            read[image], misfits = column.read(text, part.versions)
            wrong += [_Wrong(row, image, column, words) for row, words in misfits.items()]
        value = read["new"]
        takes_old = is_delete
        if options.complete:
            fills = is_unsent(unsent, column.name) & ~is_delete & read["old"].is_valid().to_numpy(zero_copy_only=False)
            if fills.any():
                filled[column.name] = fills
                takes_old = is_delete | fills
        if takes_old.any():
            value = read["old"] if takes_old.all() else pc.if_else(pa.array(takes_old), read["old"], value)
        values.append(value)
        olds.append(read["old"])
    if wrong and options.mode == "FAILFAST":
        first = min(wrong, key=lambda one: one.row)
        raise BadCell(
            first.expected,
            first.words,
            **part.where(first.row),
            column=first.column.name,
            sql_type=first.column.sql,
            path=first.image,
        )
    output = _output(rows, wrong, _changed_keys(rows, columns, values, olds, texts, options), options)
    fields = list(schema.field("_old").type)
    old = (
        pa.StructArray.from_arrays(olds, fields=fields, mask=pa.array(~has_old))
        if fields
        else pa.array([{} if valid else None for valid in has_old.tolist()], schema.field("_old").type)
    )
    plain = output.is_plain
    source = pa.array(output.source)

    def spread(array: pa.Array) -> pa.Array:
        return array if plain else array.take(source)

    def blanked(array: pa.Array, flags: Array) -> pa.Array:
        """Null where the flag is set."""
        return pc.if_else(pa.array(flags), pa.scalar(None, array.type), array) if flags.any() else array

    if not plain and output.is_first.any():
        pick = pa.array(np.where(output.is_first, output.source + count, output.source))
        values = [pa.concat_arrays([new, before]).take(pick) for new, before in zip(values, olds, strict=True)]
    else:
        values = [spread(value) for value in values]
    labels = output.labels
    as_they_are = [spread(rows.column(field.name, field.type)) for field in list(schema)[:kept]]
    about = [
        pa.DictionaryArray.from_arrays(pa.array(labels, pa.int32()), pa.array(LABELS)).cast(pa.string()),
        spread(rows.column("sequence", SEQUENCE)),
        spread(rows.column("xid", pa.int64())),
        spread(rows.column("commit_time", pa.timestamp("us", "UTC"))),
        blanked(spread(old), (labels == _PREIMAGE) | output.is_inserted),
        blanked(spread(unsent_lists(unsent, filled)), output.is_first),
    ]
    if options.mode == "PERMISSIVE":
        about.append(_errors(wrong, output))
    return pa.RecordBatch.from_arrays([*as_they_are, *values, *about], schema=schema), output.dropped


def _check_numbered(part: _Part, columns: list[TypedColumn]) -> None:
    """Values without names are those of all columns in their order. Raises BadRows where there are more or fewer."""
    shapes = part.rows.new.shapes
    counts = np.array([len(names or ()) for names in shapes.lists])[shapes.ids]
    others = np.flatnonzero(part.rows.numbered & (counts != len(columns)))
    if len(others):
        place = int(others[0])
        raise BadRows(
            f"{len(columns)} values, one for each column of the schema, where columns have no names",
            f"{counts[place]}",
            **part.where(place),
        )


def _changed_keys(
    rows: ChangeRows,
    columns: list[TypedColumn],
    values: list[pa.Array],
    olds: list[pa.Array],
    texts: Mapping[str, list[pa.StringArray]],
    options: _Options,
) -> Array:
    """bool[n]: UPDATEs whose old image has another key. Texts may differ where values do not, as those of 0 and -0."""
    changed = np.zeros(len(rows.kinds), bool)
    known = (rows.kinds == UPDATE) & rows.old.valid
    for column, value, old in zip(columns, values, olds, strict=True):
        if column.name in options.keys:
            new_text, old_text = texts[column.name]
            known &= old_text.is_valid().to_numpy(zero_copy_only=False)
            differs = pc.and_kleene(pc.not_equal(new_text, old_text), pc.not_equal(value, old))
            changed |= pc.fill_null(differs, False).to_numpy(zero_copy_only=False)
    return changed & known


@dataclass(frozen=True)
class _Output:
    """Which rows come out.

    source       int64[m], the change
    is_first     bool[m], whether it is the first of two rows of a change, which holds the old image
    is_inserted  bool[m], whether it is the second of a change of key
    labels       int64[m], places in LABELS
    """

    source: Array
    is_first: Array
    is_inserted: Array
    labels: Array
    is_plain: bool
    dropped: int


def _output(rows: ChangeRows, wrong: list[_Wrong], split: Array, options: _Options) -> _Output:
    count = len(rows.kinds)
    kept = np.ones(count, bool)
    if options.mode == "DROPMALFORMED":
        kept[[one.row for one in wrong]] = False
    is_update = rows.kinds == UPDATE
    both = options.images == "both"
    doubled = (split | (is_update & rows.old.valid)) if both else split
    labels = rows.kinds
    if both:
        labels = np.where(is_update, _POSTIMAGE, labels)
    times = np.where(doubled, 2, 1) * kept
    source = np.repeat(np.arange(count), times)
    is_first = doubled[source]
    is_first[1:] &= source[1:] != source[:-1]
    labels = labels[source]
    labels = np.where(split[source], np.where(is_first, DELETE, INSERT), np.where(is_first, _PREIMAGE, labels))
    is_plain = bool((times == 1).all())
    return _Output(source, is_first, split[source] & ~is_first, labels, is_plain, count - int(kept.sum()))


def _errors(wrong: list[_Wrong], output: _Output) -> pa.Array:
    """What does not fit, for each row that comes out; a row with the old image alone tells of that."""
    texts: dict[tuple[int, bool], list[str]] = {}
    for one in wrong:
        words = (
            f"column {one.column.name}, type {one.column.sql}, {one.image}: expected {one.expected}, got {one.words}"
        )
        texts.setdefault((one.row, False), []).append(words)
        if one.image == "old":
            texts.setdefault((one.row, True), []).append(words)
    if not texts:
        return pa.nulls(len(output.source), pa.string())
    keys = zip(output.source.tolist(), output.is_first.tolist(), strict=True)
    return pa.array(["; ".join(texts[key]) if key in texts else None for key in keys], pa.string())
