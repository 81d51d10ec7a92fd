"""The typed rows of one record batch: values read, old images, key changes, values that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadCell, BadRows, OptionError
from ...options.checks import flag, one_of, texts
from ...options.reading import MODES
from ..arrays import Array
from ..schemas import SEQUENCE
from .columns import TypedColumn
from .rows import DELETE, INSERT, UPDATE, ChangeRows, position
from .unsent import is_unsent, unsent_columns, unsent_lists
from .versions import Version

_NAMES = pa.list_(pa.field("element", pa.string()))
ABOUT = ("_change_type", "_sequence", "_xid", "_commit_time", "_old", "_unchanged", "_error")
"""Columns beside those of the table, the last one in PERMISSIVE only."""

LABELS = ("insert", "update", "delete", "truncate", "update_preimage", "update_postimage")
"""What stands in `_change_type`."""

_PREIMAGE, _POSTIMAGE = 4, 5
IMAGES = ("new", "both")


class TypedOptions:
    """What is asked for; raises OptionError.

    keys   those whose change splits an UPDATE; none if none is split
    """

    def __init__(self, mode: str, images: str, complete: bool, split: bool, keys: Sequence[str] | None) -> None:
        self.mode = one_of("mode", mode, MODES)
        self.images = one_of("images", images, IMAGES)
        self.complete = flag("complete", complete)
        self.keys = _split_keys(split, keys)


@dataclass(frozen=True)
class TableBatch:
    """The changes of the table in one record batch, and the version of each."""

    rows: ChangeRows
    versions: Array
    table: str
    known: Sequence[Version]
    """Those versions."""

    def of_version(self, number: int) -> TableBatch:
        """The changes of one version of the table."""
        places = np.flatnonzero(self.versions == number)
        return TableBatch(self.rows.chosen(places), self.versions[places], self.table, self.known)

    def where(self, place: int) -> dict[str, Any]:
        """The place of a change, as attributes of an error."""
        return {"table": self.table, **position(*self.rows.at(place))}


def _split_keys(split: bool, keys: Sequence[str] | None) -> tuple[str, ...]:
    named = () if keys is None else texts("keys", keys)
    if flag("split_key_changes", split) and not named:
        raise OptionError("option split_key_changes: needs keys, the columns of the table's key")
    if named and not split:
        raise OptionError(
            "option keys: needs split_key_changes=True; keys are the columns whose change splits an UPDATE"
        )
    return named


def typed_schema(columns: list[TypedColumn], kept: list[pa.Field], options: TypedOptions) -> pa.Schema:
    """The schema of typed rows; raises OptionError where names collide."""
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


def typed_batch(
    part: TableBatch, columns: list[TypedColumn], kept: int, schema: pa.Schema, options: TypedOptions
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


def _check_numbered(part: TableBatch, columns: list[TypedColumn]) -> None:
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
    options: TypedOptions,
) -> Array:
    """bool[n]: UPDATEs whose old image has another key. Texts may differ where values do not, as those of 0 and -0."""
    changed = np.zeros(len(rows.kinds), bool)
    known = (rows.kinds == UPDATE) & rows.old.valid
    for column, value, old in zip(columns, values, olds, strict=True):
        if column.name in options.keys:
            new_text, old_text = texts[column.name]
            known &= old_text.is_valid().to_numpy(zero_copy_only=False)
            other_text = pc.fill_null(pc.not_equal(new_text, old_text), False).to_numpy(zero_copy_only=False)
            changed |= _differ(value, old, other_text & known)
    return changed & known


def _differ(left: pa.Array, right: pa.Array, among: Array) -> Array:
    """bool[n]: which of some pairs are two values that are not the same; a null is no value."""
    differs = np.zeros(len(among), bool)
    places = np.flatnonzero(among)
    chosen = [array.take(pa.array(places)) for array in (left, right)]
    if pa.types.is_nested(left.type):  # Arrow does not compare lists
        pairs = zip(*(array.to_pylist() for array in chosen), strict=True)
        differs[places] = [one is not None and other is not None and one != other for one, other in pairs]
    else:
        differs[places] = pc.fill_null(pc.not_equal(*chosen), False).to_numpy(zero_copy_only=False)
    return differs


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


def _output(rows: ChangeRows, wrong: list[_Wrong], split: Array, options: TypedOptions) -> _Output:
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
