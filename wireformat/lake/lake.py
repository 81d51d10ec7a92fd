"""A lake that is written to: what is there already, the files of a write, and its commit."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.typed_tables.versions import TableVersions
from ..errors import BadRows, LakeConflict, OptionError, counted
from ..options.checks import shown
from ..options.table_names import ALL_TABLES, one_table, written
from ..stream.capture_position import CapturePosition
from .delta import DeltaFolder, undo_damaged_commits
from .manifest import File, Manifest, StoredTable, read_manifest, write_manifest
from .names import folder_of, stored_names
from .parquet import ParquetFile, WrittenFile
from .store import HIDDEN, Store
from .stored import StoredSchema, delta_type, known_versions, type_onto, without_empty_structs

COMMIT_DATE = "commit_date"
"""In `partition_by`: the date of `_commit_time`."""

_FILE = re.compile(r"wireformat-(\d{6,})(?:-[0-9a-f]+){0,2}(?:_\d{4,})?\.parquet")
"""Names of files, with the number of their write. Of a Parquet lake, a repeated write replaces its own files; in an
object store it has other names."""

_BEGUN = f"{HIDDEN}begun"
"""A file that is there while a lake is written, of a Delta lake only if the write is durable."""

FILE_BYTES = 512 << 20
"""At this size a file ends, and the next rows of its table begin another one."""

_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_MOST_FOLDER_CHARACTERS = 255
"""File systems take no longer names."""


class Lake:
    """A lake that is written to, by one write at a time.

    format     parquet or delta
    state      changes or latest
    patterns   of the tables that are written
    stream     format of the stream

    Raises OptionError if the lake is of another kind.
    """

    def __init__(
        self,
        store: Store,
        format: str,
        state: str,
        partition_by: str | Mapping[str, str] | None,
        patterns: list[str],
        stream: str,
    ) -> None:
        self.store = store
        self.format = format
        self.state = state
        self.stream = stream
        self.manifest, self.is_new = checked_manifest(store, format, state, partition_by, patterns, stream)
        self._write = self.manifest.writes + 1
        self._attempt = attempt_of(store)
        self._has_begun = self.store.has(_BEGUN)
        self._leftovers = self._cleaned()
        self._targets: dict[tuple[str, str], TableFolder] = {}

    def _cleaned(self) -> dict[str, None]:
        """Removes what an earlier write left unfinished. Returns its finished files, which no manifest names."""
        leftovers: dict[str, None] = {}
        if not self._has_begun:  # looking at all files takes the longer the more there are
            return leftovers
        if self.format == "delta":  # a commit names the files that belong to a table, and readers see no others
            undo_damaged_commits(self.store)
            return leftovers
        for path in self.store.files():
            name = path.rpartition("/")[2]
            found = _FILE.fullmatch(name)
            if name.startswith(HIDDEN) and path != _BEGUN:
                self.store.delete(path)
            elif found and int(found[1]) > self.manifest.writes:
                leftovers[path] = None
        return leftovers

    def begin(self) -> None:
        """Notes that a write has begun, so that the next one looks for what this one left.

        A write to Delta tables leaves nothing behind, unless the power is cut.
        """
        if (self.format == "parquet" or self.store.is_durable) and not self._has_begun:
            self.store.write(_BEGUN, b"")
            self._has_begun = True

    @property
    def position(self) -> CapturePosition | None:
        """How far the lake goes; None before the first write."""
        return self.manifest.position

    def known_versions(self) -> dict[tuple[str, str], TableVersions]:
        """Returns the versions of the columns of all tables, after the last write.

        A later write needs them: an UPDATE may omit columns whose values did not change.
        """
        return {name: known_versions(table) for name, table in self.manifest.tables.items() if table.columns}

    def target(self, table: tuple[str, str], typed: pa.Schema, types: Mapping[str, str]) -> TableFolder:
        """Returns what the rows of a table are written to.

        typed   the schema of its typed rows
        types   the SQL types of its columns

        Raises OptionError for a column that cannot be stored.
        """
        self.begin()
        if table not in self._targets:
            self._targets[table] = TableFolder(self, table, typed, types)
        return self._targets[table]

    def partition_of(self, table: tuple[str, str]) -> str | None:
        """Returns the column by which a table is partitioned."""
        given = self.manifest.partition_by
        if given is None or isinstance(given, str):
            return given
        return next((column for name, column in given.items() if one_table(name) == table), None)

    def new_path(self, folder: str, index: int = 0) -> str:
        """Returns the path of a file of this write."""
        number = f"_{index:04d}" if index else ""
        return f"{folder}/wireformat-{self._write:06d}{self._attempt}{number}.parquet"

    def files_of_this_write(self, folder: str) -> Iterator[str]:
        """Yields the files in a folder that this write, or another attempt to make it, has given their names."""
        for path in self.store.files(folder):
            found = _FILE.fullmatch(path.rpartition("/")[2])
            if found and int(found[1]) == self._write:
                yield path

    def check_alone(self) -> None:
        """Raises LakeConflict if another process, or another attempt to make this write, has written since."""
        there = read_manifest(self.store)
        writes = 0 if there is None else there.writes
        if writes != self.manifest.writes:
            if self._attempt:  # the files of the other one have other names
                self._discard_files()
            had = counted(self.manifest.writes, "write")
            raise LakeConflict(
                f"expected the lake {self.store.path('')} to have {had}, as when this one began, got {writes}: another "
                "process wrote to it at the same time; let one process write at a time, and write again"
            )

    def commit(self, position: CapturePosition) -> None:
        """Names everything that was written in the manifest."""
        self.check_alone()
        kept = {file.path for table in self.manifest.tables.values() for file in table.files}
        for path in self._leftovers:
            if path not in kept:
                self.store.delete(path)
        self.manifest.writes = self._write
        self.manifest.position = position
        write_manifest(self.store, self.manifest)
        self._end()

    def _end(self) -> None:
        if self._has_begun:
            self.store.delete(_BEGUN)

    def was_committed(self) -> bool:
        """Whether the manifest names what this write has written: it may have failed directly after its commit."""
        there = read_manifest(self.store)
        return there is not None and there.writes >= self._write

    def discard(self) -> None:
        """Removes the files of a write that was not committed."""
        if self.was_committed():
            return
        self._discard_files()
        if not self._leftovers and self.format == "parquet":
            self._end()

    def _discard_files(self) -> None:
        for target in self._targets.values():
            target.discard()


def checked_manifest(
    store: Store,
    format: str,
    state: str,
    partition_by: str | Mapping[str, str] | None,
    patterns: list[str],
    stream: str,
) -> tuple[Manifest, bool]:
    """Returns the manifest of a lake, and whether there is none yet. Raises OptionError if the lake is of another kind.

    The arguments are those of `Lake`. Nothing is changed.
    """
    partitions = partition_by if partition_by is None or isinstance(partition_by, str) else {**partition_by}
    found = read_manifest(store)
    manifest = Manifest(format, state, partitions, patterns) if found is None else found
    where = f"option folder: {store.path('')}".rstrip("/")
    for name, given in (("format", format), ("state", state), ("partition_by", partitions)):
        there = getattr(manifest, name)
        if there != given:
            raise OptionError(f"{where} is a lake with {name}={there!r}, got {given!r}; write to another folder")
    position = manifest.position
    if position is not None and position.format != stream:
        raise OptionError(f"{where} is a lake of {position.format}, got a stream of {stream}; write to another one")
    if format == "delta" and store.is_decoded:
        raise OptionError(
            f"{where} has a percent sign and two hex digits in its path, which deltalake takes for a character; "
            "choose another folder, or write Parquet files"
        )
    if found is not None and (format, state) == ("parquet", "latest"):
        raise OptionError(
            f"{where} has the rows of an earlier write with state='latest'. Parquet files cannot be merged: use "
            "format='delta', or write to a new folder"
        )
    if manifest.patterns is None:
        manifest.patterns = patterns
    if manifest.patterns != patterns:  # the position covers the changes of other tables, so they would be skipped
        before, asked = (None if one == [ALL_TABLES] else one for one in (manifest.patterns, patterns))
        raise OptionError(
            f"option tables: the lake {store.path('').rstrip('/')} has been written with tables={before!r}, got "
            f"{asked!r}. It skips the transactions that it has, also for tables that it does not have: write to "
            "another folder, or pass the same tables"
        )
    return manifest, found is None


def attempt_of(store: Store) -> str:
    """Returns what the names of the files of this attempt to write have; "" if they have it until they are published.

    An object store renames nothing: without it, an attempt that fails would remove the files of one that succeeded.
    """
    return "" if store.moves else f"-{secrets.token_hex(4)}"


class TableFolder:
    """The files of a table in a write.

    stored          how its rows are stored
    delta           the Delta table; None in a Parquet lake
    may_be_logged   whether the log of the Delta table may name its files, which then stay
    """

    def __init__(self, lake: Lake, name: tuple[str, str], typed: pa.Schema, types: Mapping[str, str]) -> None:
        self._lake = lake
        self.name = name
        there = lake.manifest.tables.get(name)
        self.table = StoredTable(folder_of(name)) if there is None else there
        columns = [field.name for field in typed.field("_old").type]
        about = [field.name for field in typed if field.name not in columns]
        self._partition = lake.partition_of(name)
        if self._partition is not None:
            _check_partition(name, self._partition, typed.field("_old").type, lake.state)
        others = [*about, COMMIT_DATE] if self._partition == COMMIT_DATE else about
        self.table.columns = stored_names(columns, self.table.columns, others)
        self.table.types |= types
        partitions = [] if self._partition is None else [self.table.columns.get(self._partition, self._partition)]
        self._partition_name = next(iter(partitions), None)
        self.delta: DeltaFolder | None = None
        other_types: dict[str, pa.DataType] = {}
        if lake.format == "delta":
            self.delta = DeltaFolder(lake.store, self.table.folder, name, partitions)
            other_types = self._types_of_delta(typed, columns)
        self.stored = StoredSchema(typed, self.table, other_types)
        self._files: dict[str | None, ParquetFile] = {}
        self._begun: dict[str, int] = {}
        """How many files have been begun in each folder."""
        self._written: list[WrittenFile] = []
        self.may_be_logged = False
        self._may_be_published = False
        self._schema: pa.Schema | None = None

    def _types_of_delta(self, typed: pa.Schema, columns: Collection[str]) -> dict[str, pa.DataType]:
        assert self.delta is not None, "of a Delta lake"
        there = self.delta.schema
        found = {}
        for name in columns:
            type = delta_type(typed.field(name).type)
            stored = self.table.columns[name]
            if there is not None and stored in there.names:
                type = type_onto(self.name, name, there.field(stored).type, type)
            found[name] = type
        return found

    def stored_rows(self, typed: pa.RecordBatch) -> pa.RecordBatch:
        """Returns typed rows as they are stored; raises BadRows for a value that no partition can have."""
        rows = self.stored.stored(typed)
        if self._partition_name in rows.schema.names:
            values = rows[self._partition_name]
            if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
                self._check_partition_texts(values)
        return rows

    def _check_partition_texts(self, values: pa.Array) -> None:
        expected, got, hint = "", "one", ""
        try:
            texts = pc.cast(values, pa.string())
        except pa.ArrowInvalid:
            expected, got, hint = "text in UTF-8", "other bytes", "pass another column as partition_by"
        else:
            if self.delta is not None and pc.min(pc.binary_length(texts)).as_py() == 0:
                expected = "no empty text"
                hint = (
                    "Delta reads an empty text in a partition as NULL: pass another column as partition_by, or write "
                    "format='parquet'"
                )
            elif self.delta is None and pc.any(pc.equal(texts, _NO_PARTITION)).as_py():
                expected = f"no text {_NO_PARTITION}"
                hint = (
                    "readers take it for NULL in the name of a folder: pass another column as partition_by, or write "
                    "format='delta'"
                )
        if expected:
            raise BadRows(
                f"{expected} in column {self._partition}, by which the table is partitioned",
                got,
                table=written(self.name),
                hint=hint,
            )

    def write(self, batch: pa.RecordBatch, most_column_chunks: int | None = None) -> None:
        """Writes stored rows. Raises OSError.

        most_column_chunks   a file that has so many columns of row groups ends: until then they take memory
        """
        batch = batch.select(without_empty_structs(batch.schema).names)
        for value, rows in self._partitioned(batch):
            file = self._file(value, rows.schema)
            file.write(rows)
            has_many = most_column_chunks is not None and file.column_chunks >= most_column_chunks
            if has_many or file.size >= FILE_BYTES:
                self._end(value, {})

    def _partitioned(self, batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """Yields the rows of each partition, with its value; the table's schema is that of all columns."""
        name = self._partition_name
        if name is None:
            self._schema = batch.schema
            yield "", batch
            return
        if self._partition == COMMIT_DATE:
            dates = batch["_commit_time"].cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
            batch = batch.append_column(pa.field(name, pa.date32()), dates)
        self._schema = batch.schema
        texts = pc.cast(batch[name], pa.string())
        rest = batch.drop_columns([name])
        for value in texts.unique().to_pylist():
            is_of = texts.is_null() if value is None else pc.fill_null(pc.equal(texts, value), False)
            yield value, rest.filter(is_of)

    def _file(self, value: str | None, schema: pa.Schema) -> ParquetFile:
        if value not in self._files:
            lake, folder, name = self._lake, self.table.folder, self._partition_name
            partition = {} if name is None else {name: value}
            if name is not None:
                folder += self._partition_folder(name, value)
            same_folder = folder.casefold().rstrip(".")  # to some file systems
            index = self._begun.get(same_folder, 0)
            self._begun[same_folder] = index + 1
            path = lake.new_path(folder, index)
            if self.delta is not None:  # a write that was killed may have left a file of this name
                path = path.replace("wireformat-", f"wireformat-{secrets.token_hex(8)}-")
            self._files[value] = ParquetFile(lake.store, path, schema, partition, is_logged=self.delta is not None)
        return self._files[value]

    def _partition_folder(self, name: str, value: str | None) -> str:
        """Returns the folder of a partition, with a slash before it; raises BadRows if its name is too long.

        The log of a Delta table has the value, too, but Polars looks only at the name of the folder.
        """
        folder = f"{quote(name, safe='')}={_NO_PARTITION if value is None else quote(value, safe='')}"
        if len(folder) <= _MOST_FOLDER_CHARACTERS or not self._lake.store.is_local:  # object stores have no folders
            return f"/{folder}"
        if self.delta is not None:
            return ""
        raise BadRows(
            f"values of at most {_MOST_FOLDER_CHARACTERS} characters, percent-encoded and with the column's name, in "
            f"column {self._partition}, by which the table is partitioned",
            "a longer one",
            table=written(self.name),
            hint="they are names of folders: pass another column as partition_by, or write format='delta'",
        )

    def close(self, metadata: Mapping[str, str]) -> None:
        """Ends the files."""
        for value in [*self._files]:
            self._end(value, metadata)

    def _end(self, value: str | None, metadata: Mapping[str, str]) -> None:
        """Ends the file of a partition."""
        about = {"table": written(self.name), "state": self._lake.state, "format": self._lake.stream}
        whole = {f"wireformat.{name}": text for name, text in about.items()} | {**metadata}
        self._written.append(self._files[value].close(whole))
        del self._files[value]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, with those of its partitions."""
        assert self._schema is not None, "rows have been written"
        return pa.schema([pa.field(field.name, field.type) for field in self._schema])

    @property
    def written(self) -> list[WrittenFile]:
        """The files of this write."""
        return self._written

    def publish(self) -> None:
        """Gives the files of a Parquet lake their names, and notes the table and its files for the manifest."""
        self._lake.manifest.tables[self.name] = self.table
        if self.delta is not None:
            return
        self._may_be_published = True
        publish_files(self._lake.store, self.table, self._written)

    def discard(self) -> None:
        """Removes the files of a write that was not committed."""
        for file in self._files.values():
            file.discard()
        if self.delta is None or not self.may_be_logged:
            for one in self._written:
                self._lake.store.delete(one.unfinished)
                if self._may_be_published:  # else another attempt of the task may have published a file of this name
                    self._lake.store.delete(one.path)


def publish_files(store: Store, table: StoredTable, files: Sequence[WrittenFile]) -> None:
    """Gives files of a Parquet lake their names, and notes them for the manifest."""
    for file in files:
        if file.unfinished != file.path:
            store.move(file.unfinished, file.path)
        table.files.append(File(file.path, file.rows, file.size))
    for path in {file.path.rpartition("/")[0]: file.path for file in files}.values():
        store.flush_names(path)


def _check_partition(table: tuple[str, str], column: str, columns: pa.StructType, state: str) -> None:
    where = f"option partition_by: table {written(table)}"
    names = [field.name for field in columns]
    if column == COMMIT_DATE:
        if state == "latest":
            raise OptionError("option partition_by: rows of state='latest' have no commit_date; name a column")
        if column in names:
            raise OptionError(f"{where} has a column {column!r} of its own; partition it by another one")
    elif column not in names:
        raise OptionError(
            f"{where} has no column {shown(column)}; give a mapping of table to column, or {COMMIT_DATE!r}"
        )
    elif pa.types.is_nested(columns.field(names.index(column)).type):
        raise OptionError(f"{where}: column {column!r} has arrays, which no partition can have; name another one")
