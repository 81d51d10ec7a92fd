"""One pass over a stream that writes all its tables to a lake."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.noted.changes import CommittedRows
from ..arrow.row_changes import RELATION_ID_COLUMN
from ..arrow.schemas import committed_schema
from ..arrow.typed_tables.batch import TypedOptions
from ..arrow.typed_tables.rows import ChangeRows
from ..arrow.typed_tables.table import TypedPart, kept_fields
from ..arrow.typed_tables.versions import TableVersions
from ..errors import BadRows, OptionError
from ..options import ReadOptions
from ..options.table_names import TableName, one_table, suggestion, written
from ..sources.groups import Parts, groups_of_tables
from ..sources.handed_rows import HandedRows, joined_parts
from ..sources.identities import DefinedBatch, Definition, Identities
from ..stream.capture_position import CapturePosition
from .delta import commit_properties, not_covered
from .lake import Lake, TableFolder
from .manifest import StoredTable
from .merge import (
    TouchedRows,
    check_columns_are_not_new,
    check_key_columns,
    current_rows,
    delta_rows,
    merge,
    plan_merge,
)
from .parquet import COLUMN_CHUNK_BYTES, WrittenFile
from .rejects import Rejects
from .spill import Spill
from .stored import sql_types, stored_versions

_POSITION_COLUMNS = ("commit_lsn", "csn")
"""Kept columns, by which rows are found that a Delta table has already."""

_RELEASED_BYTES = 1 << 20
"""From this size on, memory of record batches is given back: it came and went in two threads."""

RESULT = pa.schema(
    [
        pa.field("table_schema", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("folder", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("open", pa.int64()),
        pa.field("dropped", pa.int64()),
        pa.field("corrupt", pa.int64()),
    ]
)
"""What `write` returns; see `Capture.write`."""


class LakeInput(NamedTuple):
    """What a capture hands to a lake.

    format      its name
    mode        for values that do not fit, and records that cannot be read
    schema      of its row changes
    listed      returns the list of its tables; before the last row of `rows`, this reads the stream once more
    rows        reads the committed rows; with a function, which takes the rows that were read, and returns some of them
    keys        returns the columns of the replica identity of a table, [] for the whole row; raises OptionError
    identities  the replica identities that the stream states, as far as it has been read
    schema_of   returns what `typed` takes as the schema of a table; raises BadRows if its columns have no types
    known       the versions with which the list of its tables begins: what the lake has, if this is one stream with it
    version_before   returns the index of the version of a table before its first row; -1 if it is not known
    dropped     returns the number of records that DROPMALFORMED left out, after the last row
    threads     the number of threads
    memory      how many bytes of rows wait in memory
    """

    format: str
    mode: str
    schema: pa.Schema
    listed: Callable[[], pa.Table]
    rows: Callable[[Callable[[Iterable[Any]], Iterator[Any]] | None], Iterator[HandedRows]]
    keys: Callable[[str], list[str]]
    identities: Identities
    schema_of: Callable[[str], Any]
    known: Mapping[TableName, TableVersions]
    version_before: Callable[[TableName], int]
    dropped: Callable[[], int]
    threads: int
    memory: int


class Choice(NamedTuple):
    """What to write.

    options   its `tables` are the patterns of the tables to write
    keys      the key columns of tables, by name; a list is that of all tables
    schemas   schemas of tables, by name
    is_batch  whether keys and schemas may name tables that the stream does not have yet
    """

    options: ReadOptions
    keys: Mapping[str, Sequence[str]] | Sequence[str] | None
    schemas: Mapping[str, Any]
    is_batch: bool = False


@dataclass
class _TableWriter:
    """A table while it is written.

    part       reads its typed rows
    cut        divides typed rows by the definition that the table had, as it is stored; None if changes are written
    definitions   those of each batch of rows that waits
    kept       the columns with which its typed rows begin: _POSITION_COLUMNS, or none
    before     the definition of the last change that a Delta table has already, if a write to it was stopped
    rows       that were written; of state="latest", that it has in the end and that the changes have touched
    relation_id   the OID that the last change had
    """

    name: TableName
    target: TableFolder
    part: TypedPart
    cut: Callable[[ChangeRows, pa.RecordBatch], Iterator[DefinedBatch]] | None
    kept: tuple[str, ...]
    definitions: list[Definition] = field(default_factory=list)
    before: Definition | None = None
    rows: int = 0
    dropped: int = 0
    corrupt: int = 0
    relation_id: int | None = None


class TableFiles(NamedTuple):
    """The files of a table that a chunk has, or several chunks.

    table         as the manifest has it, without these files
    schema        of the files; None if there are none
    rows          that were written; dropped: that DROPMALFORMED left out; corrupt: with values that do not fit
    relation_id   the OID that the last change had
    """

    name: TableName
    table: StoredTable
    files: list[WrittenFile]
    schema: pa.Schema | None
    rows: int
    dropped: int
    corrupt: int
    relation_id: int | None

    def and_later(self, later: TableFiles) -> TableFiles:
        """Returns these files and those of a later chunk."""
        oid = self.relation_id if later.relation_id is None else later.relation_id
        schema = self.schema or later.schema
        return TableFiles(
            self.name,
            self.table,
            self.files + later.files,
            schema,
            self.rows + later.rows,
            self.dropped + later.dropped,
            self.corrupt + later.corrupt,
            oid,
        )


class LakeWriter:
    """Writes a stream to a lake."""

    def __init__(self, stream: LakeInput, lake: Lake, choice: Choice, rejects: Rejects | None, memory: int) -> None:
        self._stream = stream
        self._lake = lake
        self._choice = choice
        self._rejects = rejects
        self._memory = memory
        self._column_chunks = memory // 4 // COLUMN_CHUNK_BYTES
        """How many columns of row groups all files may have that have not ended."""
        self._mode = "PERMISSIVE" if rejects is not None else stream.mode
        self._drops = stream.mode == "DROPMALFORMED"
        self._listed: dict[TableName, list[dict[str, Any]]] | None = None
        self._tables: dict[TableName, _TableWriter] = {}
        self._last: dict[TableName, Future[None]] = {}
        """The last task of the rows of each table."""
        self._position: CapturePosition | None = None
        self._spill = Spill(memory)
        self._done = None if lake.position is None else lake.position.delivered
        self._kept = _POSITION_COLUMNS if lake.format == "delta" and not lake.store.is_empty else ()
        self._kept_fields = kept_fields(self._kept, committed_schema(stream.schema))

    def write(self) -> tuple[pa.Table, CapturePosition]:
        """Returns what was written, and the position after it."""
        try:
            with self._spill:
                self._read()
                assert self._position is not None, "a stream ends with its position"
                if self._lake.state == "latest":
                    self._in_threads(self._write_current, self._tables.values())
                self._publish(self._position)
        except BaseException:
            self._lake.discard()
            if self._rejects is not None:
                self._rejects.discard()
            raise
        return self._result(self._position), self._position

    def write_files(self) -> list[TableFiles]:
        """Writes the changes of a chunk to files that nobody sees until the whole stream is published."""
        try:
            with self._spill:
                self._read()
            for table in self._tables.values():
                table.target.close({})
            self._lake.check_alone()
        except BaseException:
            self._lake.discard()
            raise
        return [
            TableFiles(
                table.target.name,
                table.target.table,
                table.target.written,
                table.target.schema if table.target.written else None,
                table.rows,
                table.dropped,
                table.corrupt,
                table.relation_id,
            )
            for table in self._tables.values()
        ]

    def _read(self) -> None:
        """Reads the stream, and writes the typed changes of all tables to files, or to where they wait."""
        pending: deque[tuple[Future[None], int]] = deque()
        with ThreadPoolExecutor(self._stream.threads, "wireformat-lake") as pool:
            try:
                for table, parts in self._groups():
                    self._submit(pool, pending, table, parts)
                while pending:
                    pending.popleft()[0].result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _groups(self) -> Iterator[tuple[TableName, Parts]]:
        """Yields the rows of the tables to write, in groups."""
        through = None if self._rejects is None else self._rejects.without_unread
        yield from groups_of_tables(
            self._committed(self._stream.rows(through)),
            self._kept,
            self._choice.options.keeps_table,
            self._memory // 2,
            is_listed=lambda: self._listed is not None,
            make_list=self._learn_tables,
        )

    def _committed(self, found: Iterable[HandedRows]) -> Iterator[CommittedRows | None]:
        for rows, position in found:
            self._position = position or self._position
            yield rows

    def _learn_tables(self) -> None:
        """Gets the list of tables.

        Raises OptionError if an option names a table that neither the stream nor the lake has.
        """
        if self._listed is None:
            self._listed = {}
            for row in self._stream.listed().to_pylist():
                self._listed.setdefault((row["table_schema"], row["table_name"]), []).append(row)
            if not self._choice.is_batch:
                options = {"keys": self._choice.keys, "schemas": self._choice.schemas}
                check_named_tables(options, {*self._listed, *self._stream.known}, self._choice.options)

    def _submit(
        self, pool: ThreadPoolExecutor, pending: deque[tuple[Future[None], int]], name: TableName, parts: Parts
    ) -> None:
        """Has the rows of a table written by a thread, and waits until those that wait for it fit into memory."""
        task = self._last[name] = pool.submit(self._write_group, name, parts, self._last.get(name))
        pending.append((task, sum(rows.nbytes for rows in parts)))
        most = 2 * self._stream.threads
        while len(pending) > most or (len(pending) > 1 and sum(size for _, size in pending) > self._memory // 2):
            pending.popleft()[0].result()

    def _opened(self, name: TableName) -> _TableWriter:
        """Returns a table that is written to; raises OptionError and BadRows."""
        assert self._listed is not None, "the tables are known when their rows are written"
        label, listed = written(name), self._listed.get(name, [])
        schema = self._choice.schemas.get(label)
        current = -1
        if schema is None:
            schema = self._stream.schema_of(label)
            current = self._stream.version_before(name)
        options = TypedOptions(self._mode, "new", False, False, None)
        own = {column for row in listed for column in row["columns"]}
        kept, fields = (self._kept, self._kept_fields) if own.isdisjoint(_POSITION_COLUMNS) else ((), [])
        try:
            part = TypedPart(
                label,
                schema=schema,
                options=options,
                evolution="union",
                kept=fields,
                format=self._stream.format,
                current=current,
            )
        except OptionError as error:
            raise OptionError(f"table {label}: {error}") from None
        typed = pa.schema([item for item in part.schema if item.name not in kept])
        if "_error" in typed.names and (self._lake.state == "latest" or (self._drops and self._rejects is not None)):
            typed = typed.remove(typed.get_field_index("_error"))
        target = self._lake.target(name, typed, sql_types(listed))
        target.table.versions, target.table.current = stored_versions(listed)
        cut = self._cut_by_definitions(label, target) if self._lake.state == "latest" else None
        return _TableWriter(name, target, part, cut, kept)

    def _cut_by_definitions(
        self, label: str, target: TableFolder
    ) -> Callable[[ChangeRows, pa.RecordBatch], Iterator[DefinedBatch]]:
        """Returns what divides the typed rows of a table by the definition that it had, as it is stored."""
        given = self._choice.keys
        if isinstance(given, Mapping):
            found = next((keys for name, keys in given.items() if one_table(name) == target.name), None)
        else:
            found = given
        identities = self._stream.identities
        own = {column.source for column in target.stored.columns} & {*target.table.columns}

        def stored(definition: Definition) -> Definition:
            missing = [key for key in definition.keys if key not in own]
            if missing:
                raise OptionError(f"option keys: table {label} has no column {missing[0]!r}")
            keys = tuple(target.table.columns[key] for key in definition.keys)
            return Definition(keys, definition.columns and _stored_names(definition.columns, target))

        def cut(rows: ChangeRows, typed: pa.RecordBatch) -> Iterator[DefinedBatch]:
            return ((stored(one), batch) for one, batch in identities.cut(target.name, rows, typed, keys))

        keys = tuple(found or ())
        if found is None and target.name not in identities:
            keys = tuple(self._stream.keys(label))
        stored(Definition(keys))
        return cut

    def _write_group(self, name: TableName, parts: Parts, before: Future[None] | None) -> None:
        """Writes rows of a table, after those before them."""
        if before is not None:
            before.result()
        if name not in self._tables:
            self._tables[name] = self._opened(name)
        table = self._tables[name]
        if sum(part.nbytes for part in parts if isinstance(part, pa.RecordBatch)) >= _RELEASED_BYTES:
            pa.default_memory_pool().release_unused()
        rows = joined_parts(parts, table.name, table.kept)
        batch, dropped = table.part.read(rows)
        table.dropped += dropped
        if self._mode == "PERMISSIVE":
            is_good = batch["_error"].is_null()
            table.corrupt += len(batch) - is_good.true_count
            if self._rejects is not None:
                self._rejects.take(table.name, rows, batch)
                if self._drops and is_good.true_count < len(batch):
                    table.dropped += len(batch) - is_good.true_count
                    batch = batch.filter(is_good)
        done = None if table.target.delta is None else table.target.delta.done
        if done is not None and done.is_ahead(self._done):
            is_new = pa.array(not_covered(batch, done))
            there = batch.filter(pc.invert(is_new))
            if table.cut is not None and len(there):
                *_, (table.before, _) = table.cut(rows, there)
            batch = batch.filter(is_new)
        if not len(batch):
            return
        if RELATION_ID_COLUMN in batch.schema.names:
            oids = batch[RELATION_ID_COLUMN].drop_null()
            table.relation_id = oids[-1].as_py() if len(oids) else table.relation_id
        table.rows += len(batch)
        if table.cut is None:
            table.target.write(table.target.stored_rows(batch), self._column_chunks // len(self._tables))
            return
        for definition, changes in table.cut(rows, batch):
            table.definitions.append(definition)
            self._spill.take(table.name, table.target.stored_rows(changes))

    def _write_current(self, table: _TableWriter) -> None:
        """Writes the rows of a table as it stands. Those of a Delta table that is there are merged later."""
        if table.name not in self._spill.tables:
            return
        delta = table.target.delta
        if delta is None or delta.table is None:
            current = self._current_rows(table)
            self._spill.release(table.name)
            table.rows = len(current)
            _write_table(table, current)

    def _publish(self, position: CapturePosition) -> None:
        about = {"wireformat.position": position.to_json()}
        for table in self._tables.values():
            table.target.close(about)
        self._lake.check_alone()  # before files get names that another write may have given, too
        if self._rejects is not None:
            self._rejects.close()
        self._in_threads(partial(self._publish_table, position), self._tables.values())
        self._lake.commit(position)

    def _publish_table(self, position: CapturePosition, table: _TableWriter) -> None:
        delta = table.target.delta
        if delta is not None and (table.rows or table.target.written or table.name in self._spill.tables):
            if table.cut is not None and delta.table is not None:
                self._merge(table, position)
            elif table.target.written:
                delta.evolve(table.target.schema)
                table.target.may_be_logged = True
                delta.append(table.target.schema, table.target.written, commit_properties(position, table.relation_id))
            delta.flush()
            delta.keep(position, table.relation_id)
        table.target.publish()

    def _merge(self, table: _TableWriter, position: CapturePosition) -> None:
        """Merges the changes of a table into its Delta table."""
        delta = table.target.delta
        if delta is None or delta.table is None:
            raise AssertionError("only current rows of a Delta table are merged")
        touched = TouchedRows(self._changes(table), delta.relation_id)
        before: list[pa.RecordBatch] = []
        stored, oid = table.target.stored.schema, delta.relation_id
        with delta.errors():
            columns = delta.row_columns
            check_key_columns(touched, delta.table, columns, table.name)
            check_columns_are_not_new(self._added(table), touched, delta.table, columns, table.name)
            if touched.needs_rows:
                before = [*touched.among(delta_rows(delta.table, stored, oid, columns))]
            current = self._current_rows(table, before)
        properties = commit_properties(position, table.relation_id)
        table.rows = len(current)
        plan = plan_merge(touched, current, before)
        if plan is not None:
            delta.evolve(current.schema)
            with delta.errors():
                merge(delta.table, plan, properties)
        else:
            is_marked = touched.only_adds and not columns.issuperset(table.target.table.columns.values())
            if is_marked:  # a row from before an added column says that its value is not known
                with delta.errors():
                    for rows in delta_rows(delta.table, stored, oid, columns):
                        table.target.write(rows.select(current.column_names))
            _write_table(table, current)
            table.target.close({})
            delta.evolve(table.target.schema)
            table.target.may_be_logged = True
            add = delta.append if touched.only_adds and not is_marked else delta.replace
            add(table.target.schema, table.target.written, properties)

    def _current_rows(self, table: _TableWriter, before: Sequence[pa.RecordBatch] = ()) -> pa.Table:
        """Returns the rows of a table after its changes; raises BadRows, which names the table.

        before   the rows before them, as inserts
        """
        stored = table.target.table.columns
        dropped = [stored[name] for name in table.part.dropped if name in stored]
        try:
            return current_rows(self._changes(table), dropped, before)
        except BadRows as error:
            error.table = error.table or written(table.name)
            raise

    def _changes(self, table: _TableWriter) -> Iterator[DefinedBatch]:
        """Yields the changes of a table that wait."""
        return zip(table.definitions, self._spill.rows(table.name), strict=True)

    def _added(self, table: _TableWriter) -> set[str]:
        """Returns the columns that a table got since the last write, as they are stored."""
        first = table.definitions[0]
        added = {name for one, other in pairwise(table.definitions) for name in other.added_after(one)}
        if table.before is not None:  # what the manifest has is older
            return added.union(first.added_after(table.before))
        known, before = self._stream.known.get(table.name), self._stream.identities.before(table.name)
        if first.columns is not None and known is not None and known.current >= 0:
            added.update({*first.columns} - {*_stored_names(known.versions[known.current].types, table.target)})
        if before is not None and before.columns is not None:  # in their order, which the lake does not know
            columns = _stored_names(before.columns, table.target)
            added.update({*first.added_after(Definition((), columns))} & {*columns})
        return added

    def _in_threads(self, work: Callable[[_TableWriter], None], tables: Iterable[_TableWriter]) -> None:
        with ThreadPoolExecutor(self._stream.threads, "wireformat-lake") as pool:
            for task in [pool.submit(work, table) for table in tables]:
                task.result()

    def _result(self, position: CapturePosition) -> pa.Table:
        rows: list[dict[str, Any]] = [
            {
                "table_schema": name[0],
                "table_name": name[1],
                "folder": self._lake.store.path(table.target.table.folder),
                "rows": table.rows,
                "files": len(table.target.written),
                "open": 0,
                "dropped": table.dropped,
                "corrupt": table.corrupt,
            }
            for name, table in sorted(self._tables.items())
        ]
        unread = 0 if self._rejects is None else self._rejects.unread
        left_open = sum(one.changes for one in position.open)
        dropped = self._stream.dropped() + (unread if self._drops else 0)
        if unread or left_open or dropped:
            rows.append({"rows": 0, "files": 0, "open": left_open, "dropped": dropped, "corrupt": unread})
        return pa.Table.from_pylist(rows, RESULT)


def check_named_tables(options: Mapping[str, Any], tables: Iterable[TableName], filtered: ReadOptions) -> None:
    """Raises OptionError if an option, by its name, is a mapping that names a table that is not there.

    filtered   keeps the tables that are written: of others, it is not known whether they are there
    """
    there = {*tables}
    for option, given in options.items():
        for name in given if isinstance(given, Mapping) else ():
            if one_table(name) not in there and filtered.keeps_table(one_table(name)):
                wanted = written(one_table(name))
                raise OptionError(
                    f"option {option}: the stream has no changes of {wanted}"
                    f"{suggestion(wanted, {*map(written, there)})}"
                )


def _write_table(table: _TableWriter, rows: pa.Table) -> None:
    for batch in rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]:
        table.target.write(batch)


def _stored_names(names: Iterable[str], target: TableFolder) -> tuple[str, ...]:
    """Returns the names of columns as they are stored, without those that are not."""
    stored = target.table.columns
    return tuple(stored[name] for name in names if name in stored)
