"""The typed rows of one record batch: typed values, old images, key changes, and values that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadCell, BadRows, OptionError, counted
from ...options.checks import flag, once, one_of, texts
from ...options.reading import MODES
from ...options.table import listed, nearest
from ..arrays import Array, null_where
from ..readers.reader import Misfits, as_strings
from ..row_changes import RELATION_ID_COLUMN, TABLE_DELETE, TABLE_INSERT, TABLE_UPDATE
from ..schemas import NAME_LIST, SEQUENCE
from .columns import TypedColumn
from .images import EncodedLists
from .rows import ChangeRows
from .typed_changes import CHANGE_TYPES, POSTIMAGE, PREIMAGE
from .unsent import is_unsent, unsent_columns, unsent_lists
from .versions import Version

IMAGES = ("new", "both")


class TypedOptions:
    """The checked options of `typed`; raises OptionError.

    keys               an UPDATE that changes one of these columns is split; empty if no UPDATE is split
    has_relation_ids   whether the format sends the OIDs of tables; set when the format is known
    """

    def __init__(self, mode: str, images: str, complete: bool, split: bool, keys: Sequence[str] | None) -> None:
        self.mode = one_of("mode", mode, MODES)
        self.images = one_of("images", images, IMAGES)
        self.complete = flag("complete", complete)
        self.keys = _split_keys(split, keys)
        self.has_relation_ids = False


@dataclass(frozen=True)
class TableBatch:
    """The changes of one table in one record batch.

    version_indices   int64[n]: for each change, the index of its version in `versions`
    """

    rows: ChangeRows
    version_indices: Array
    versions: Sequence[Version]
    table: str

    def of_version(self, version: int) -> TableBatch:
        """Returns the changes of one version of the table."""
        indices = np.flatnonzero(self.version_indices == version)
        return TableBatch(self.rows.chosen(indices), self.version_indices[indices], self.versions, self.table)

    def location(self, index: int) -> dict[str, Any]:
        """Returns the table and the position of a change, as attributes of an error."""
        return {"table": self.table, **self.rows.position(index)}


def _split_keys(split: bool, keys: Sequence[str] | None) -> tuple[str, ...]:
    checked = () if keys is None else once("keys", texts("keys", keys))
    if flag("split_key_changes", split) and not checked:
        raise OptionError("option split_key_changes: needs keys, the columns of the table's key")
    if checked and not split:
        raise OptionError(
            "option keys: needs split_key_changes=True; keys are the columns whose change splits an UPDATE"
        )
    return checked


def typed_schema(columns: list[TypedColumn], kept: list[pa.Field], options: TypedOptions) -> pa.Schema:
    """Returns the schema of typed rows; raises OptionError if names collide.

    kept   the columns that are copied from the changes, and come first
    """
    fields = [pa.field(column.name, column.type) for column in columns]
    added = [
        pa.field("_change_type", pa.string()),
        pa.field("_sequence", SEQUENCE),
        pa.field("_xid", pa.int64()),
        pa.field("_commit_time", pa.timestamp("us", "UTC")),
        pa.field("_old", pa.struct(fields)),
        pa.field("_unchanged", NAME_LIST),
        *([pa.field(RELATION_ID_COLUMN, pa.int64())] if options.has_relation_ids else ()),
        *([pa.field("_error", pa.string())] if options.mode == "PERMISSIVE" else ()),
    ]
    names = {field.name for field in added}
    colliding = [field.name for field in fields if field.name in names]
    if colliding:
        raise OptionError(f"option schema: the table has a column {colliding[0]} of its own; give a schema without it")
    colliding = [field.name for field in kept if field.name in {*names, *(column.name for column in columns)}]
    if colliding:
        raise OptionError(
            f"option keep: the result has a column {colliding[0]!r} of its own; rename the one in changes"
        )
    own = [field.name for field in fields]
    missing = [key for key in options.keys if key not in own]
    if missing:
        near = nearest(missing[0], own)
        raise OptionError(f"option keys: the table, or its schema, has no column {missing[0]!r}{near}{listed(own)}")
    return pa.schema([*kept, *fields, *added])


class _BadValues(NamedTuple):
    """The values of a column that do not fit its type, of one image.

    image   `new` or `old`
    found   index of the change to a description of the value, without the value itself; at least one
    """

    image: str
    column: TypedColumn
    found: Misfits

    @property
    def expected(self) -> str:
        return f"a value of the type {self.column.type}"

    @property
    def rows(self) -> Array:
        """int64[m]: the indexes of the changes."""
        return np.fromiter(self.found, np.int64, len(self.found))

    def texts(self, count: int) -> pa.StringArray:
        """Returns what is wrong with the value of each of `count` changes, null for those that fit."""
        numbers = {found: number for number, found in enumerate(dict.fromkeys(self.found.values()))}
        codes = np.full(count, -1)
        codes[self.rows] = [numbers[found] for found in self.found.values()]
        begin = f"column {self.column.name}, type {self.column.sql}, {self.image}: expected {self.expected}, got "
        return pa.array([begin + found for found in numbers]).take(pa.array(codes, mask=codes < 0))


class _ReadValues(NamedTuple):
    """The values of changes, as arrays with a value for each change.

    values      by column, of the row after the change; of a DELETE, of the row before
    olds        by column, of the row before the change
    key_texts   the texts of the columns of the key, of new and old images
    unsent      the columns whose values were not sent
    filled      column to bool[n]: whether the value was filled from the old image
    bad         the values that do not fit
    """

    values: list[pa.Array]
    olds: list[pa.Array]
    key_texts: dict[str, list[pa.StringArray]]
    unsent: EncodedLists
    filled: dict[str, Array]
    bad: list[_BadValues]


def typed_batch(
    changes: TableBatch, columns: list[TypedColumn], kept: int, schema: pa.Schema, options: TypedOptions
) -> tuple[pa.RecordBatch, int]:
    """Returns the typed rows of one record batch, and the number of changes that DROPMALFORMED dropped.

    kept   the number of columns at the beginning of the schema that are copied from the changes
    """
    rows, count = changes.rows, len(changes.rows.kinds)
    _check_numbered(changes, columns)
    read = _read_values(changes, columns, options)
    if read.bad and options.mode == "FAILFAST":
        raise _first_error(read.bad, changes)
    output = _output(rows, read.bad, _changes_key(rows, columns, read, options), options)
    change_of_row = pa.array(output.changes)

    def per_row(array: pa.Array) -> pa.Array:
        """Repeats or drops the values of the changes, as the output has two rows of a change, one or none."""
        return array if output.is_one_to_one else array.take(change_of_row)

    if not output.is_one_to_one and output.is_before.any():
        in_both = pa.array(np.where(output.is_before, output.changes + count, output.changes))
        pairs = zip(read.values, read.olds, strict=True)
        values = [pa.concat_arrays([new, before]).take(in_both) for new, before in pairs]
    else:
        values = [per_row(value) for value in read.values]
    change_types = output.change_types
    has_no_old = (change_types == PREIMAGE) | output.is_split_insert
    added = [
        pa.array(CHANGE_TYPES).take(pa.array(change_types)),
        per_row(rows.column("sequence", SEQUENCE)),
        per_row(rows.column("xid", pa.int64())),
        per_row(rows.column("commit_time", pa.timestamp("us", "UTC"))),
        _null_where(has_no_old, per_row(_old_rows(read.olds, rows.old.valid, schema.field("_old").type))),
        _null_where(output.is_before, per_row(unsent_lists(read.unsent, read.filled))),
    ]
    if options.has_relation_ids:
        added.append(per_row(rows.relation_ids))
    if options.mode == "PERMISSIVE":
        added.append(_errors(read.bad, output, count))
    kept_columns = [per_row(rows.column(field.name, field.type)) for field in list(schema)[:kept]]
    return pa.RecordBatch.from_arrays([*kept_columns, *values, *added], schema=schema), output.dropped


def _read_values(changes: TableBatch, columns: list[TypedColumn], options: TypedOptions) -> _ReadValues:
    """Reads the values of all columns, of both images."""
    rows, count = changes.rows, len(changes.rows.kinds)
    is_delete = rows.kinds == TABLE_DELETE
    is_numbered = bool(rows.numbered.any())
    has_new_of_deletes = bool((is_delete & rows.new.valid).any())
    names = [column.name for column in columns]
    are_named = options.has_relation_ids
    unsent = unsent_columns(rows, changes.version_indices, changes.versions, names, are_named=are_named)
    read = _ReadValues([], [], {}, unsent, {}, [])
    for column_index, column in enumerate(columns):
        value_of_image = {}
        for image, images in (("new", rows.new), ("old", rows.old)):
            if not (is_numbered or column.name in images.named or column.name in options.keys):
                value_of_image[image] = pa.nulls(count, column.type)
                continue
            text = images.texts(column.name, column_index, rows.numbered if image == "new" else None)
            if column.name in options.keys:
                read.key_texts.setdefault(column.name, []).append(as_strings(text))
            value_of_image[image], misfits = column.read(text, changes.version_indices)
            if misfits:
                read.bad.append(_BadValues(image, column, misfits))
        value, old_value = value_of_image["new"], value_of_image["old"]
        takes_old = is_delete
        if options.complete:
            fills = is_unsent(unsent, column.name) & ~is_delete & np.asarray(old_value.is_valid())
            if fills.any():
                read.filled[column.name] = fills
                takes_old = is_delete | fills
        has_values = old_value.null_count < count or has_new_of_deletes  # otherwise both are null
        if has_values and takes_old.any():
            value = old_value if takes_old.all() else pc.if_else(pa.array(takes_old), old_value, value)
        read.values.append(value)
        read.olds.append(old_value)
    return read


def _first_error(bad: list[_BadValues], changes: TableBatch) -> BadCell:
    row, first = min(((min(one.found), one) for one in bad), key=itemgetter(0))
    return BadCell(
        first.expected,
        first.found[row],
        **changes.location(row),
        column=first.column.name,
        sql_type=first.column.sql,
        path=first.image,
    )


def _old_rows(olds: list[pa.Array], has_old: Array, type: pa.StructType) -> pa.StructArray:
    """Returns the rows before the changes, null where there is no old image."""
    if not olds:
        return pa.array([{} if valid else None for valid in has_old.tolist()], type)
    return pa.StructArray.from_arrays(olds, fields=list(type), mask=pa.array(~has_old))


def _null_where(flags: Array, array: pa.Array) -> pa.Array:
    return null_where(flags, array) if flags.any() else array


def _check_numbered(changes: TableBatch, columns: list[TypedColumn]) -> None:
    """Raises BadRows if a row whose columns have no names has more or fewer values than the schema has columns."""
    rows = changes.rows
    others = np.flatnonzero(rows.numbered & rows.new.names.where(lambda image: len(image or ()) != len(columns)))
    if len(others):
        first = int(others[0])
        names = rows.new.names[first]
        raise BadRows(
            f"{counted(len(columns), 'value')}, one for each column of the schema, since the row does not name its "
            "columns",
            f"{len(names or ())}",
            **changes.location(first),
        )


def _changes_key(rows: ChangeRows, columns: list[TypedColumn], read: _ReadValues, options: TypedOptions) -> Array:
    """Returns bool[n]: whether the change is an UPDATE whose old image has another key.

    Values are compared, not their texts alone: 0 and -0 are equal.
    """
    changed = np.zeros(len(rows.kinds), bool)
    if not options.keys:
        return changed
    has_old_key = (rows.kinds == TABLE_UPDATE) & rows.old.valid
    for column, value, old in zip(columns, read.values, read.olds, strict=True):
        if column.name in options.keys:
            new_text, old_text = read.key_texts[column.name]
            has_old_key &= np.asarray(old_text.is_valid())
            texts_differ = np.asarray(pc.fill_null(pc.not_equal(new_text, old_text), False))
            changed |= _differ(value, old, texts_differ & has_old_key)
    return changed & has_old_key


def _differ(left: pa.Array, right: pa.Array, among: Array) -> Array:
    """Returns bool[n]: whether the row is among those to compare, and has two different values, both not null."""
    differs = np.zeros(len(among), bool)
    indices = np.flatnonzero(among)
    chosen = [array.take(pa.array(indices)) for array in (left, right)]
    if pa.types.is_nested(left.type):  # Arrow does not compare lists
        pairs = zip(*(array.to_pylist() for array in chosen), strict=True)
        differs[indices] = [one is not None and other is not None and one != other for one, other in pairs]
    else:
        differs[indices] = np.asarray(pc.fill_null(pc.not_equal(*chosen), False))
    return differs


@dataclass(frozen=True)
class _Output:
    """The rows of the result: one for each change, two for a change that is split or returned with both images.

    changes          int64[m]: the index of the change
    is_before        bool[m]: whether it is the first of two rows of a change, which has the old image
    is_split_insert  bool[m]: whether it is the second row of a change of the key
    change_types     int64[m]: indices in CHANGE_TYPES
    is_one_to_one    whether each change has exactly one row
    dropped          the number of changes without a row
    """

    changes: Array
    is_before: Array
    is_split_insert: Array
    change_types: Array
    is_one_to_one: bool
    dropped: int


def _output(rows: ChangeRows, bad: list[_BadValues], is_split: Array, options: TypedOptions) -> _Output:
    """Returns the rows of the result.

    is_split   bool[n]: whether the change becomes a delete and an insert
    """
    count = len(rows.kinds)
    is_kept = np.ones(count, bool)
    if options.mode == "DROPMALFORMED":
        for one in bad:
            is_kept[one.rows] = False
    is_update = rows.kinds == TABLE_UPDATE
    with_both_images = options.images == "both"
    has_two_rows = (is_split | (is_update & rows.old.valid)) if with_both_images else is_split
    types = np.where(is_update, POSTIMAGE, rows.kinds) if with_both_images else rows.kinds
    if is_kept.all() and not has_two_rows.any():
        return _Output(np.arange(count), has_two_rows, has_two_rows, types, is_one_to_one=True, dropped=0)
    row_counts = np.where(has_two_rows, 2, 1) * is_kept
    changes = np.repeat(np.arange(count), row_counts)
    is_before = has_two_rows[changes]
    is_before[1:] &= changes[1:] != changes[:-1]
    types = np.where(
        is_split[changes],
        np.where(is_before, TABLE_DELETE, TABLE_INSERT),
        np.where(is_before, PREIMAGE, types[changes]),
    )
    return _Output(
        changes,
        is_before,
        is_split[changes] & ~is_before,
        types,
        is_one_to_one=False,
        dropped=count - int(is_kept.sum()),
    )


def _errors(bad: list[_BadValues], output: _Output, count: int) -> pa.Array:
    """Returns the error text of each row of the result. A row that has the old image alone has its errors alone.

    count   the number of changes
    """
    if not bad:
        return pa.nulls(len(output.changes), pa.string())
    texts = [(one.image, one.texts(count)) for one in bad]
    errors = _joined([text for _, text in texts], count)
    if not output.is_before.any():
        return errors if output.is_one_to_one else errors.take(pa.array(output.changes))
    of_old = _joined([text for image, text in texts if image == "old"], count)
    in_both = np.where(output.is_before, output.changes + count, output.changes)
    return pa.concat_arrays([errors, of_old]).take(pa.array(in_both))


_BETWEEN = "; "


def _joined(texts: list[pa.StringArray], count: int) -> pa.StringArray:
    """Returns the texts of each of `count` rows, joined; null for none."""
    if not texts:
        return pa.nulls(count, pa.string())
    # after a text that each row has: Arrow leaves out the rows that have none
    joined = pc.binary_join_element_wise("", *texts, _BETWEEN, null_handling="skip")
    return null_where(pc.equal(joined, ""), pc.utf8_slice_codeunits(joined, len(_BETWEEN)))
