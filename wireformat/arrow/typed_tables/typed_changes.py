"""Typed record batches as changes of rows: of which row, at which position, with which values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BadRows, OptionError, counted
from ...options.table import nearest
from ..arrays import Array
from ..codes import codes_of_values, combined_codes, grouped
from ..row_changes import RELATION_ID_COLUMN, TABLE_DELETE, TABLE_INSERT, TABLE_TRUNCATE, TABLE_UPDATE
from .current_rows import Changes

CHANGE_TYPES = ("insert", "update", "delete", "truncate", "update_preimage", "update_postimage")
"""The values of `_change_type`. The first four are in the order of TABLE_KINDS."""

PREIMAGE, POSTIMAGE = (CHANGE_TYPES.index(name) for name in ("update_preimage", "update_postimage"))

UPDATES = ("update", "update_postimage")
"""The changes that update a row."""

ROW_CHANGE_TYPES = ("insert", *UPDATES, "delete")
"""The changes that set or delete a row."""

_IGNORED, UNKNOWN_CHANGE = -1, -2
_KINDS = np.array(
    [TABLE_INSERT, TABLE_UPDATE, TABLE_DELETE, TABLE_TRUNCATE, _IGNORED, TABLE_UPDATE, UNKNOWN_CHANGE], np.int8
)
"""The kind that each of CHANGE_TYPES means, and any other value."""

ABOUT_COLUMNS = ("_change_type", "_sequence", "_xid", "_commit_time", "_old", "_unchanged")
"""The columns that a typed table adds to those of the table. PERMISSIVE also adds `_error`, and `keep` its columns."""

_READABLE: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "_change_type": (
        lambda type: pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_dictionary(type),
        "string",
    ),
    "_sequence": (
        lambda type: (
            pa.types.is_struct(type)
            and all(
                type.get_field_index(name) >= 0 and pa.types.is_integer(type.field(name).type)
                for name in ("commit_lsn", "ordinal")
            )
        ),
        "struct<commit_lsn: int64, ordinal: int64>",
    ),
    "_unchanged": (
        lambda type: pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_null(type),
        "list<string>",
    ),
}
"""For columns that are read by their type: whether one can be read, and the type that it should have."""

OTHER_CHANGE = f"have a _change_type other than {', '.join(ROW_CHANGE_TYPES)}, update_preimage, truncate"
NO_SEQUENCE = "have no _sequence, by which changes are ordered: `transactions` adds it"
NO_OLD_ROW = "do not contain the whole old row, which keys=[] needs: set REPLICA IDENTITY FULL"
"""What is wrong with changes: ends of error messages, like the next two."""


def no_stream(stream_by: Sequence[str]) -> str:
    """Returns what is wrong with changes of an unknown stream."""
    return f"have no value in a column of stream_by: {', '.join(stream_by)}"


def no_key(keys: Sequence[str]) -> str:
    """Returns what is wrong with changes of an unknown row."""
    return (
        f"have no value in a column of keys: {', '.join(keys)}; in PERMISSIVE, one that does not fit is none (the type "
        "text takes all), and changes from before a key column was added, renamed or given another type have none"
    )


def bad_changes(count: int | None, fault: str) -> BadRows:
    """Returns the error for changes that cannot be ordered or applied.

    count   of all such changes; None if it is not known
    """
    verb, _, rest = fault.partition(" ")
    said = {"have": "has", "do": "does"}[verb] if count == 1 else verb
    changes = "changes" if count is None else counted(count, "change")
    return BadRows("changes that `latest` can order and apply", f"{changes} that {said} {rest}")


class TypedChanges:
    """Reads the record batches of a typed table, which come in commit order.

    schema    of the typed table
    columns   the columns to read
    fields    the table's columns
    keys      the columns that identify a row: all if the caller names none
    scopes    the streams and tables of the changes
    """

    def __init__(self, schema: pa.Schema, keys: Sequence[str], stream_by: Sequence[str]) -> None:
        for name in ABOUT_COLUMNS:
            _field(schema, "typed", name, schema.names)
        for name, (is_readable, expected) in _READABLE.items():
            if not is_readable(schema.field(name).type):
                raise OptionError(f"typed, column {name}: expected {expected}, got {schema.field(name).type}")
        old = schema.field("_old").type
        of_table = [field.name for field in old] if pa.types.is_struct(old) else []
        _check_names(schema, "keys", keys, of_table)
        _check_names(schema, "stream_by", stream_by, [name for name in schema.names if name not in of_table])
        self.schema = schema
        self.fields = [field for field in schema if field.name in of_table]
        for field in self.fields:
            own = old.field(field.name).type
            try:
                pa.nulls(0, own).cast(field.type)
            except pa.ArrowException:
                raise OptionError(
                    f"typed, column {field.name!r}: expected the type that it has in _old, {own}, got {field.type}; "
                    "cast both, or keep both as `typed` returned them"
                ) from None
        self.has_key = bool(keys)
        self.keys = tuple(keys) or tuple(field.name for field in self.fields)
        self.scopes = Scopes()
        self._stream_by = tuple(stream_by)
        self._rows = pa.schema([*map(schema.field, stream_by), *self.fields, schema.field("_sequence")])
        self._has_oids = RELATION_ID_COLUMN in schema.names and RELATION_ID_COLUMN not in of_table
        about = ("_change_type", "_old", "_unchanged", *([RELATION_ID_COLUMN] if self._has_oids else ()))
        self.columns = list(dict.fromkeys([*self._rows.names, *about]))
        self._last_lsns = np.zeros(0, np.uint64)
        """The commit LSN of the last transaction of each stream."""
        self._faults: Counter[str] = Counter()
        self._faults_of_scope: Counter[int] = Counter()

    def read(self, batch: pa.RecordBatch) -> Changes:
        """Returns the changes of a batch. Those that cannot be applied are left out, and counted for `check`."""
        kinds = kinds_of(batch["_change_type"])
        sequence = batch["_sequence"]
        faults = {
            OTHER_CHANGE: kinds == UNKNOWN_CHANGE,
            NO_SEQUENCE: is_null(pc.struct_field(sequence, "commit_lsn"))
            | is_null(pc.struct_field(sequence, "ordinal")),
            no_stream(self._stream_by): _any([is_null(batch[name]) for name in self._stream_by], len(kinds)),
        }
        is_change = kinds >= 0
        for fault, has_fault in faults.items():
            self._faults[fault] += int(np.count_nonzero(has_fault))
            is_change &= ~has_fault
        if not is_change.all():
            batch, kinds = batch.filter(pa.array(is_change)), kinds[is_change]
        oids = batch[RELATION_ID_COLUMN] if self._has_oids else None
        scopes = self.scopes.take([batch[name] for name in self._stream_by], oids, len(kinds))
        lsns, ordinals = lsns_and_ordinals(batch["_sequence"])
        streams = self.scopes.streams[scopes]
        missing = int(streams.max(initial=-1)) + 1 - len(self._last_lsns)
        self._last_lsns = np.append(self._last_lsns, np.zeros(max(missing, 0), np.uint64))
        self._last_lsns[streams] = lsns
        images = _Images(batch, kinds)
        after = {field.name: images.after(field.name, is_key=field.name in self.keys) for field in self.fields}
        unsent = {name: is_unsent for name in after if (is_unsent := images.unsent(name)) is not None}
        if self.has_key:
            has_fault = _any([is_null(after[name]) for name in self.keys], len(kinds))
            unsent = {name: unsent[name] for name in unsent if name not in self.keys}
        else:
            has_fault = images.is_update & ~images.has_old
        has_fault &= kinds != TABLE_TRUNCATE
        truncates, bad = np.flatnonzero(kinds == TABLE_TRUNCATE), np.flatnonzero(has_fault)
        for scope, last in zip(scopes[truncates].tolist(), truncates.tolist(), strict=True):
            del self._faults_of_scope[scope]  # changes of rows that have gone need not be known
            bad = bad[(bad > last) | (scopes[bad] != scope)]
        self._faults_of_scope.update(scopes[bad].tolist())
        moved, old_keys = images.moves({name: after[name] for name in self.keys}, all_updates=not self.has_key)
        columns = {**{name: batch[name] for name in self._stream_by}, **after, "_sequence": batch["_sequence"]}
        rows = pa.Table.from_arrays([columns[name] for name in self._rows.names], schema=self._rows)
        return Changes(kinds, scopes, lsns, ordinals, rows, moved, old_keys, unsent).where(~has_fault)

    def check(self) -> None:
        """Raises BadRows if changes could not be ordered, or could not be applied to the last table of their stream."""
        for fault, count in self._faults.items():
            if count:
                raise bad_changes(count, fault)
        count = sum(self._faults_of_scope[scope] for scope in self.scopes.last.values())
        if count:
            raise bad_changes(count, no_key(self.keys) if self.has_key else NO_OLD_ROW)

    def is_waiting(self, changes: Changes) -> Array:
        """Returns bool[n]: whether a change is in the last transaction of its stream, which may go on."""
        return self._last_lsns[self.scopes.streams[changes.scopes]] == changes.lsns

    def in_order(self, table: pa.Table) -> Array | None:
        """Returns the rows of a table in the order of their positions; None if they are in order."""
        streams = combined_codes(
            [np.zeros(len(table), np.int64), *(codes_of_values(table[name]) for name in self._stream_by)]
        )
        lsns, ordinals = lsns_and_ordinals(table["_sequence"])
        # a key change that was split is a delete and an insert with one position
        ordinals = ordinals * 2 + (kinds_of(table["_change_type"]) != TABLE_DELETE)
        return None if is_sorted(streams, lsns, ordinals) else np.lexsort((ordinals, lsns))


def _field(schema: pa.Schema, option: str, name: str, allowed: Sequence[str]) -> pa.Field:
    """Returns the only field of this name; raises OptionError, which lists the names that are allowed."""
    count = schema.names.count(name)
    if not count:
        near = nearest(name, allowed)
        there = f"there are {', '.join(allowed)}" if allowed else "there are none"
        raise OptionError(f"option {option}: no column {name!r}{near}; {there}")
    if count > 1:
        raise OptionError(f"option {option}: there are {count} columns {name!r}; rename them")
    return schema.field(name)


def _check_names(schema: pa.Schema, option: str, names: Sequence[str], allowed: Sequence[str]) -> None:
    for name in names:
        type = _field(schema, option, name, allowed).type
        if option == "stream_by" and not (
            pa.types.is_integer(type) or pa.types.is_string(type) or pa.types.is_large_string(type)
        ):
            raise OptionError(f"option stream_by: expected integers or strings, {name!r} is {type}")
        if names.count(name) > 1:
            raise OptionError(f"option {option}: {name!r} is named twice")
        if name in ABOUT_COLUMNS or name not in allowed:
            fault = "is not a column of the table" if option == "keys" else "is not a column that typed kept"
            raise OptionError(f"option {option}: {name!r} {fault}")


def lsns_and_ordinals(sequence: Any) -> tuple[Array, Array]:
    """Returns the commit LSNs, uint64[n], and the ordinals, int64[n]; 0 for null."""
    lsns, ordinals = (
        np.asarray(pc.fill_null(pc.struct_field(sequence, name), 0)) for name in ("commit_lsn", "ordinal")
    )
    return lsns.view(np.uint64), ordinals


def is_null(array: pa.Array) -> Array:
    """Returns bool[n]."""
    return np.asarray(array.is_null()) if array.null_count else np.zeros(len(array), bool)


def _any(flags: Sequence[Array], count: int) -> Array:
    """Returns bool[count]: whether any of the flags is set."""
    return np.logical_or.reduce([np.zeros(count, bool), *flags])


class _Images:
    """The rows before and after the changes of a batch.

    has_old     bool[n]: whether the change has an old image
    is_update   bool[n]
    """

    def __init__(self, batch: pa.RecordBatch, kinds: Array) -> None:
        old = batch["_old"]
        self._batch = batch
        types = {field.name: field.type for field in batch.schema}
        self._old = {
            field.name: column if column.type == (type := types.get(field.name, column.type)) else column.cast(type)
            for field, column in zip(old.type, old.flatten(), strict=True)
        }
        self._is_delete = kinds == TABLE_DELETE
        self._listed = _listed(batch["_unchanged"])
        self.has_old = ~is_null(old)
        self.is_update = kinds == TABLE_UPDATE

    def after(self, name: str, *, is_key: bool) -> pa.Array:
        """Returns a column after the changes, with values of the old image where the new one lacks them.

        A delete has no such values, but its key is that of the deleted row.
        """
        column, takes_old = self._batch[name], self._listed.get(name)
        if is_key:
            takes_old = (self._is_delete if takes_old is None else self._is_delete | takes_old) & is_null(column)
        if takes_old is None or not takes_old.any():
            return column
        return pc.if_else(pa.array(takes_old), self._old[name], column)

    def unsent(self, name: str) -> Array | None:
        """Returns bool[n]: whether a change lacks the column's value; None if none lists it.

        A value that was stored out of line is never NULL.
        """
        is_listed = self._listed.get(name)
        return None if is_listed is None else is_listed & is_null(self._old[name])

    def moves(self, keys: Mapping[str, pa.Array], *, all_updates: bool) -> tuple[Array, list[pa.ChunkedArray]]:
        """Returns int64[m]: the updates that may have changed the key, and the columns of their old keys.

        keys          the key after the changes
        all_updates   whether to return all updates that have an old image
        """
        may_move = self.is_update & self.has_old
        if not all_updates and may_move.any():
            may_move &= _any([_may_differ(self._old[name], new) for name, new in keys.items()], len(may_move))
        moved = np.flatnonzero(may_move)
        taken = pa.array(moved)
        old_keys = []
        for name, new in keys.items():
            old = self._old[name].take(taken)
            if not all_updates and old.null_count:
                old = pc.if_else(old.is_valid(), old, new.take(taken))
            old_keys.append(pa.chunked_array([old]))
        return moved, old_keys


def _may_differ(old: pa.Array, new: pa.Array) -> Array:
    """Returns bool[n]: whether two values that are not null may be different. Arrow does not compare lists."""
    if pa.types.is_nested(old.type):
        return ~is_null(old)
    return np.asarray(pc.fill_null(pc.not_equal(old, new), False))


def _listed(lists: pa.Array) -> dict[str, Array]:
    """Returns bool[n] for each name in lists of names: whether the list has it."""
    if lists.null_count == len(lists):
        return {}
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    lists_of_names = np.repeat(np.arange(len(lists)), lengths)
    names = lists.flatten().dictionary_encode()
    codes = np.asarray(pc.fill_null(names.indices, len(names.dictionary)))
    found = np.zeros((len(names.dictionary) + 1, len(lists)), bool)
    found[codes, lists_of_names] = True
    return dict(zip(names.dictionary.to_pylist(), found, strict=False))


class Scopes:
    """Numbers of streams, and of the tables in them, which have different OIDs: each such number is a scope.

    Changes without an OID, such as a copy of the table, belong to the table of the first OID.

    streams   int64: the stream of each scope
    last      the scope of the last table of each stream
    oids      all OIDs
    """

    def __init__(self) -> None:
        self.streams = np.zeros(0, np.int64)
        self.last: dict[int, int] = {}
        self.oids: set[int] = set()
        self._streams: dict[tuple[Any, ...], int] = {}
        self._first_oids: dict[int, int] = {}
        self._scopes: dict[tuple[int, int | None], int] = {}

    def take(self, stream_by: Sequence[pa.Array], oids: pa.Array | None, count: int) -> Array:
        """Returns int64[count]: the scopes of changes, which follow those of earlier calls.

        stream_by, oids   columns of the changes
        """
        columns = [*stream_by, *([] if oids is None else [oids])]
        codes = combined_codes(
            [np.zeros(count, np.int64), *(codes_of_values(pa.chunked_array([one])) for one in columns)]
        )
        firsts, found = grouped(codes)
        lasts = np.zeros(len(firsts), np.int64)
        lasts[found] = np.arange(count)
        scopes = np.zeros(len(firsts), np.int64)
        for index in np.argsort(firsts).tolist():
            first = int(firsts[index])
            stream = self._streams.setdefault(tuple(column[first].as_py() for column in stream_by), len(self._streams))
            oid = None if oids is None else oids[first].as_py()
            scopes[index] = self._scope(stream, oid)
        for index in np.argsort(lasts).tolist():
            scope = int(scopes[index])
            if oids is not None and oids[int(lasts[index])].is_valid:
                self.last[int(self.streams[scope])] = scope
            else:
                self.last.setdefault(int(self.streams[scope]), scope)
        return scopes[found]

    def ranks(self) -> Array:
        """Returns the rank of each scope's stream among the streams, sorted by their columns."""
        rank_of = {self._streams[stream]: rank for rank, stream in enumerate(sorted(self._streams))}
        return np.array([rank_of[stream] for stream in self.streams.tolist()], np.int64)

    def _scope(self, stream: int, oid: int | None) -> int:
        if oid is not None:
            self.oids.add(oid)
            if self._first_oids.setdefault(stream, oid) == oid:
                oid = None
        scope = self._scopes.setdefault((stream, oid), len(self._scopes))
        if scope == len(self.streams):
            self.streams = np.append(self.streams, stream)
        return scope


def is_sorted(streams: Array, lsns: Array, ordinals: Array) -> bool:
    """Returns whether no change precedes another one of its stream that has an earlier position."""
    order = np.argsort(streams, kind="stable") if streams.any() else np.arange(len(streams))
    before, after = order[:-1], order[1:]
    falls = (lsns[after] < lsns[before]) | ((lsns[after] == lsns[before]) & (ordinals[after] < ordinals[before]))
    return not (falls & (streams[after] == streams[before])).any()


def kinds_of(change_types: Any) -> Array:
    """Returns int8[n]: the kind of each change; -1 for an image before an update, UNKNOWN_CHANGE for other values."""
    return _KINDS[np.asarray(pc.fill_null(pc.index_in(change_types, pa.array(CHANGE_TYPES)), len(CHANGE_TYPES)))]
