"""`TableWriter`: a table while it is written, from committed rows to its files or its Delta table; and its `Spill`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Array, batch_size, unsigned_values
from ..arrow.schemas import committed_schema
from ..arrow.typed_tables.batch import TypedOptions
from ..arrow.typed_tables.current_rows import RowsNeeded
from ..arrow.typed_tables.listed import check_listed
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.typed_tables.table import TypedPart, kept_fields
from ..arrow.typed_tables.versions import TableVersions
from ..errors import BadRows, OptionError
from ..options.table_names import TableName, one_table, written
from ..sources.groups import Parts
from ..sources.handed_rows import joined_parts
from ..sources.identities import DefinedBatch, Definition, UnknownValues, oids_of, types_of
from ..stream.capture_position import CapturePosition
from ..stream.positions import Position
from ..temporary import TemporaryFolder, naming_the_folder
from .delta.folder import DeltaFolder
from .delta.log import commit_properties
from .delta.merge import (
    TouchedRows,
    checked_columns,
    current_rows,
    delta_rows,
    merge,
    plan_merge,
)
from .lake import Lake
from .options import Choice, LakeInput
from .rejects import Rejects
from .result import TableFiles
from .stored.schema import known_versions, sql_types, stored_versions

_POSITION_COLUMNS = ("commit_lsn", "csn")
"""Kept columns, by which rows are found that a Delta table has already."""

_RELEASED_BYTES = 1 << 20
"""From this size on, memory of record batches is given back: it came and went in two threads."""


class Spill:
    """The typed rows of tables, each table's in their order. As a context manager, it deletes the files at its end.

    memory_bytes   the most bytes that stay in memory; when there are more, the rows of the largest table go to a file
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._folder = TemporaryFolder()
        self._files: dict[TableName, list[Path]] = {}
        self._held: dict[TableName, list[pa.RecordBatch]] = {}
        self._sizes: dict[TableName, int] = {}
        self._size = 0
        self._lock = threading.Lock()
        self._count = 0

    def take(self, table: TableName, batch: pa.RecordBatch) -> None:
        """Takes the next rows of a table. Raises OSError."""
        with self._lock:
            size = batch_size(batch)
            self._held.setdefault(table, []).append(batch)
            self._sizes[table] = self._sizes.get(table, 0) + size
            self._size += size
            while self._size > self._memory_bytes:
                self._write(max(self._sizes, key=self._sizes.__getitem__))

    @property
    def tables(self) -> list[TableName]:
        """The tables that have rows."""
        return list(dict.fromkeys([*self._files, *self._held]))

    def rows(self, table: TableName) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a table; they can be read again."""
        for path in self._files.get(table, ()):
            with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader
        yield from self._held.get(table, ())

    def release(self, table: TableName) -> None:
        """Drops the rows of a table."""
        with self._lock:
            self._held.pop(table, None)
            self._size -= self._sizes.pop(table, 0)
            for path in self._files.pop(table, ()):
                path.unlink(missing_ok=True)

    def _write(self, table: TableName) -> None:
        """Moves the rows of a table from memory to a file."""
        path = self._folder.path / f"{self._count}.arrow"
        self._count += 1
        batches = self._held.pop(table)
        self._size -= self._sizes.pop(table)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            naming_the_folder(),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, batches[0].schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        self._files.setdefault(table, []).append(path)

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held, self._sizes, self._size = {}, {}, 0
        self._folder.close()


class WriteContext:
    """What the tables of one write share.

    spill   takes the typed rows that wait for the last ones
    mode    for values that do not fit: rejects need to see them
    drops   whether rows with values that do not fit are left out
    done    what the lake has already
    kept    the columns of committed rows with which typed rows begin: _POSITION_COLUMNS, or none
    """

    def __init__(self, stream: LakeInput, lake: Lake, choice: Choice, rejects: Rejects | None, memory: int) -> None:
        self.stream, self.lake, self.choice, self.rejects = stream, lake, choice, rejects
        self.spill = Spill(memory)
        self.mode = "PERMISSIVE" if rejects is not None else stream.mode
        self.drops = stream.mode == "DROPMALFORMED"
        self.done = None if lake.position is None else lake.position.delivered
        self.kept = _POSITION_COLUMNS if lake.format == "delta" and not lake.store.is_empty else ()
        self.kept_fields = kept_fields(self.kept, committed_schema(stream.schema))


class KnownColumns(NamedTuple):
    """What is known of the columns of a table before all rows were read.

    listed     the list of tables, of this table alone
    versions   the versions of its columns
    """

    listed: pa.Table
    versions: TableVersions


class TableWriter:
    """Writes the committed changes of one table; with state="latest", the rows that they leave.

    listed    the rows of the list of tables, of this table
    so_far    what is known of the table, if the list is not there

    Raises OptionError, and BadRows if the columns have no types.
    """

    def __init__(
        self,
        context: WriteContext,
        name: TableName,
        listed: Sequence[Mapping[str, Any]],
        so_far: KnownColumns | None = None,
    ) -> None:
        self.name = name
        self._context = context
        stream, lake = context.stream, context.lake
        label = written(name)
        schema = context.choice.schemas.get(label)
        current = -1
        if schema is None:
            if so_far is None:
                schema = stream.schema_of(label)
            else:
                schema = so_far.listed
                check_listed(schema, label, stream.format)
            current = stream.version_before(name)
        own = {column for row in listed for column in row["columns"]}
        has_room = own.isdisjoint(_POSITION_COLUMNS)
        self._kept = context.kept if has_room else ()
        try:
            self._part = TypedPart(
                label,
                schema=schema,
                options=TypedOptions(context.mode, "new", False, False, None),
                evolution="union",
                kept=context.kept_fields if has_room else [],
                format=stream.format,
                current=current,
                found=stream.found(name) if so_far is None else so_far.versions,
            )
        except OptionError as error:
            raise OptionError(f"table {label}: {error}") from None
        typed = pa.schema([item for item in self._part.schema if item.name not in self._kept])
        if context.mode == "PERMISSIVE" and (lake.state == "latest" or (context.drops and context.rejects is not None)):
            typed = typed.remove(typed.get_field_index("_error"))
        self._target = lake.target(name, typed, sql_types(listed))
        self.set_versions(listed)
        self._has_given_keys = False
        self._cut = self._cut_by_definitions(label) if lake.state == "latest" else None
        """Divides typed rows by the definition that the table had, as it is stored; None if changes are written."""
        self._definitions: list[Definition] = []
        """Those of each batch of rows that waits."""
        self._before: Definition | None = None
        """That of the last change that a Delta table has already, if a write to it was stopped."""
        self._rows = self._dropped = self._corrupt = 0
        self._relation_id: int | None = None

    def set_versions(self, listed: Sequence[Mapping[str, Any]]) -> None:
        """Sets what the manifest says of the versions of the table: its rows in the list of tables."""
        self._target.table.versions, self._target.table.current = stored_versions(listed)

    def _cut_by_definitions(self, label: str) -> Callable[[ChangeRows, pa.RecordBatch], Iterator[DefinedBatch]]:
        """Returns what divides typed rows by the definition that the table had, as it is stored."""
        context, target = self._context, self._target
        given = context.choice.keys
        if isinstance(given, Mapping):
            found = next((keys for name, keys in given.items() if one_table(name) == target.name), None)
        else:
            found = given
        identities = context.stream.identities
        own = {column.source for column in target.stored.columns} & {*target.table.columns}

        def stored(definition: Definition) -> Definition:
            if not own:  # so far the table has changes without columns, such as TRUNCATE
                return Definition(())
            self._part.check_has_keys(definition.keys)
            missing = [key for key in definition.keys if key not in own]
            if missing:
                raise OptionError(f"option keys: table {label} has no column {missing[0]!r}")
            return definition.renamed(target.table.columns)

        def cut(rows: ChangeRows, typed: pa.RecordBatch) -> Iterator[DefinedBatch]:
            return ((stored(one), batch) for one, batch in identities.cut(target.name, rows, typed, keys))

        keys = tuple(found or ())
        self._has_given_keys = bool(keys)
        if found is None and target.name not in identities:
            keys = tuple(context.stream.keys(label))
        stored(Definition(keys))
        return cut

    def take(self, parts: Parts, most_column_chunks: int) -> None:
        """Takes the next committed rows: writes them, or lets them wait until `write_current` or `publish`.

        most_column_chunks   see TableFolder.write
        """
        context = self._context
        if sum(part.nbytes for part in parts if isinstance(part, pa.RecordBatch)) >= _RELEASED_BYTES:
            pa.default_memory_pool().release_unused()
        rows = joined_parts(parts, self.name, self._kept)
        batch, dropped = self._part.read(rows)
        self._dropped += dropped
        if context.mode == "PERMISSIVE":
            batch = self._without_rejects(rows, batch)
        done = None if self._target.delta is None else self._target.delta.done
        if done is not None and done.is_ahead(context.done):
            is_new = pa.array(_not_covered(batch, done))
            there = batch.filter(pc.invert(is_new))
            if self._cut is not None and len(there):
                *_, (self._before, _) = self._cut(rows, there)
            batch = batch.filter(is_new)
        if not len(batch):
            return
        self._relation_id = [self._relation_id, *oids_of(batch)][-1]
        self._rows += len(batch)
        if self._cut is None:
            self._target.write(self._target.stored_rows(batch), most_column_chunks)
            return
        for definition, changes in self._cut(rows, batch):
            self._definitions.append(definition)
            context.spill.take(self.name, self._target.stored_rows(changes))

    def _without_rejects(self, rows: ChangeRows, typed: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the typed rows that are written; rejects take those that do not fit."""
        is_good = typed["_error"].is_null()
        bad = len(typed) - is_good.true_count
        self._corrupt += bad
        if self._context.rejects is None:
            return typed
        self._context.rejects.take(self.name, rows, typed)
        if not self._context.drops or not bad:
            return typed
        self._dropped += bad
        return typed.filter(is_good)

    def write_current(self) -> None:
        """Writes the rows of the table as it stands. Those of a Delta table that is there are merged later."""
        spill = self._context.spill
        if self.name not in spill.tables:
            return
        delta = self._target.delta
        if delta is None or delta.table is None:
            current = self._current_rows()
            spill.release(self.name)
            self._rows = len(current)
            self._write(current)

    def close(self, metadata: Mapping[str, str]) -> None:
        """Ends the files."""
        self._set_current()
        self._target.close(metadata)

    def _set_current(self) -> None:
        """Corrects the version of the last row: that of the list may be of a transaction that is open."""
        last = self._definitions[-1] if self._definitions else None
        for index, version in enumerate(known_versions(self._target.table).versions):
            one = types_of(version).renamed(self._target.table.columns)
            if last is not None and last.columns is not None and one.has_columns_of(last):
                self._target.table.current = index

    def publish(self, position: CapturePosition) -> None:
        """Adds what was written to the lake, whose manifest does not name it yet."""
        delta = self._target.delta
        if delta is not None and (self._target.has_schema or self.name in self._context.spill.tables):
            if self._cut is not None and delta.table is not None:
                self._merge(delta, position)
            elif self._target.has_schema:
                delta.evolve(self._target.schema)
                self._target.may_be_logged = True
                delta.append(self._target.schema, self._target.written, commit_properties(position, self._relation_id))
            self._target.table.reached = position.delivered
            delta.flush()
            delta.keep(position, self._relation_id)
        self._target.publish()

    def files(self) -> TableFiles:
        """Returns what was written. Its rows are those of the changes, or of the table and those that they touched."""
        target = self._target
        return TableFiles(
            self.name,
            target.table,
            target.written,
            target.schema if target.written else None,
            self._rows,
            self._dropped,
            self._corrupt,
            self._relation_id,
        )

    def _merge(self, delta: DeltaFolder, position: CapturePosition) -> None:
        """Merges the changes into the Delta table."""
        assert delta.table is not None, "only current rows of a Delta table that is there are merged"
        target = self._target
        before: list[pa.RecordBatch] | None = None
        stored, oid = target.stored.schema, delta.relation_id
        # a MERGE writes the bytes of a partition in another form than it reads
        has_bytes = any(pa.types.is_binary(stored.field(name).type) for name in delta.partitions)
        touched = TouchedRows(self._changes(), oid, is_merged=not has_bytes)
        with delta.errors():
            columns = checked_columns(self._added(), touched, delta.table, delta.row_columns, self.name)
            current = None
            with suppress(RowsNeeded):
                # an identity that the stream states is never deferrable: a key to which a row came was free
                current = None if touched.needs_rows else self._current_rows(None if self._has_given_keys else ())
            if current is None:
                before = [*touched.among(delta_rows(delta.table, stored, oid, columns))]
                current = self._current_rows(before)
        properties = commit_properties(position, self._relation_id)
        self._rows = len(current)
        plan = plan_merge(touched, current, before)
        if plan is not None:
            delta.evolve(current.schema)
            version = delta.table.version()
            with delta.errors():
                merge(delta.table, plan, properties)
            if delta.table.version() == version:  # no row was changed: the position is still missing
                delta.append(current.schema, [], properties)
            return
        is_marked = touched.only_adds and not columns.issuperset(target.table.columns.values())
        if is_marked:  # a row from before an added column says that its value is not known
            with delta.errors():
                for rows in delta_rows(delta.table, stored, oid, columns):
                    target.write(rows.select(current.column_names))
        self._write(current)
        target.close({})
        delta.evolve(target.schema)
        target.may_be_logged = True
        add = delta.append if touched.only_adds and not is_marked else delta.replace
        add(target.schema, target.written, properties)

    def _write(self, rows: pa.Table) -> None:
        for batch in rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]:
            self._target.write(batch)

    def _current_rows(self, before: Sequence[pa.RecordBatch] | None = ()) -> pa.Table:
        """Returns the rows of the table after its changes; raises BadRows, which names the table, and RowsNeeded.

        before   the rows before them, as inserts; () if none are needed, None if they have not been read
        """
        stored = self._target.table.columns
        dropped = [stored[name] for name in self._part.dropped if name in stored]
        try:
            return current_rows(self._changes(), dropped, before)
        except BadRows as error:
            error.table = error.table or written(self.name)
            raise

    def _changes(self) -> Iterator[DefinedBatch]:
        """Yields the changes that wait."""
        return zip(self._definitions, self._context.spill.rows(self.name), strict=True)

    def _added(self) -> set[str]:
        """Returns the columns that the table got since the last write, or that got other values, as they are stored."""
        stream, unknown = self._context.stream, UnknownValues(self._target.stored.schema)
        first = self._definitions[0]
        if self._before is not None:  # what the manifest has is older
            return unknown.over([self._before, *self._definitions])
        found: set[str] = set()
        known, before = stream.known.get(self.name), stream.identities.before(self.name)
        if first.columns is not None and known is not None and known.current >= 0:
            versions = [types_of(one).renamed(self._target.table.columns) for one in known.versions]
            found.update({*first.columns}.difference(versions[known.current].columns or ()))
            unknown.stale = first.retyped_after(versions[known.current], unknown.typed)
            identified = first.identifying if before is None else self._stored_names(before.identifying)
            if not self._has_given_keys and not {*first.identifying} <= {*identified}:
                for one, other in pairwise(versions[: known.current + 1]):
                    unknown.stale |= other.retyped_after(one, unknown.typed)
            found.update(unknown.after(first, first))
        if before is not None and before.columns is not None:  # in their order, which the lake does not know
            columns = self._stored_names(before.columns)
            found.update({*first.added_after(Definition((), columns))} & {*columns})
        return found | unknown.over(self._definitions)

    def _stored_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns the names of columns as they are stored, without those that are not."""
        stored = self._target.table.columns
        return tuple(stored[name] for name in names if name in stored)


def _not_covered(batch: pa.RecordBatch, done: Position) -> Array:
    """Returns bool[n]: whether a typed row comes after a position. A write that was stopped has written the others.

    batch   typed rows that begin with the kept columns commit_lsn and csn. If the table has columns of these names,
            they are not kept, and `_sequence` is compared: the LSN, CSN or transaction number, the first of these
            that the stream has
    """
    if batch.schema.names[:2] != ["commit_lsn", "csn"]:
        end = next(number for number in (done.lsn, done.csn, done.transactions) if number is not None)
        return np.asarray(unsigned_values(batch["_sequence"].field("commit_lsn"))[0] > np.uint64(end))
    lsns, has_lsn = unsigned_values(batch["commit_lsn"])
    csns, has_csn = unsigned_values(batch["csn"])
    sequence, _ = unsigned_values(batch["_sequence"].field("commit_lsn"))
    covered = sequence <= np.uint64(done.transactions)
    covered = np.where(has_csn, csns <= np.uint64(done.csn or 0), covered)
    by_lsn = (lsns <= np.uint64(done.lsn or 0)) & (~has_csn | (csns <= np.uint64(done.csn or 0)))
    return np.asarray(~np.where(has_lsn, by_lsn, covered))
