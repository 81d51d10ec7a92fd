"""`TableFolder`: the files of one table in a write, from stored rows to published Parquet files or a Delta table.

With partitions, the rows of each value of a column have a folder of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BadRows, LakeError, OptionError
from ..options.checks import shown
from ..options.table_names import one_table, written
from .delta.folder import DeltaFolder
from .parquet import ParquetFile, WrittenFile
from .stored.manifest import File, Manifest, StoredTable
from .stored.names import stored_names
from .stored.schema import StoredSchema, delta_type, type_onto, without_empty_structs
from .stored.store import Store

COMMIT_DATE = "commit_date"
"""In `partition_by`: the date of `_commit_time`."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value in the name of the folder whose rows have NULL."""

_MOST_FOLDER_CHARACTERS = 255
"""File systems accept no longer names."""

FILE_BYTES = 512 << 20
"""At this size a file ends, and the next rows of its table begin another one."""

_FEW_FILES = 16
"""So many files of a table stay open, whatever they take."""

_OPEN_FILE = 160
"""Memory of an open file besides its columns of row groups, in their unit: that of its writer and its buffer."""


class LakeFiles(NamedTuple):
    """Where the tables of a lake put their files in one write.

    store      the files of the lake
    manifest   gets the tables, with their files
    stream     the format of the stream
    new_path   returns the path of a new file of this write: from its folder, and how many were begun there before it
    """

    store: Store
    manifest: Manifest
    stream: str
    new_path: Callable[[str, int], str]


class TableFolder:
    """The files of a table in a write.

    name    schema and name
    typed   the schema of its typed rows
    types   the SQL types of its columns

    `table` is what the manifest will say about the table, `stored` how its rows are stored, `delta` the Delta table,
    None in a Parquet lake. `written` are the files that have ended. `may_be_logged` is whether the log of the Delta
    table may name them: they then stay if the write fails.

    Raises OptionError for a column that cannot be stored, BadRows for a type that the Delta table cannot take, and
    LakeError if the Delta table that earlier writes have made is gone, lacks their rows, or was changed otherwise.
    """

    def __init__(self, lake: LakeFiles, name: tuple[str, str], typed: pa.Schema, types: Mapping[str, str]) -> None:
        manifest, store = lake.manifest, lake.store
        is_delta = manifest.format == "delta"
        is_merged = is_delta and manifest.state == "latest"
        self._lake = lake
        self.name = name
        self.table = manifest.copy_of(name)
        columns = [field.name for field in typed.field("_old").type]
        about = [field.name for field in typed if field.name not in columns]
        partition = partition_column(manifest.partition_by, name)
        if partition is not None:
            columns_type = typed.field("_old").type
            check_partition_column(name, partition, columns_type, is_merged=is_merged, state=manifest.state)
        others = [*about, *([] if "_error" in columns else ["_error"])]  # a later write may be PERMISSIVE
        others += [COMMIT_DATE] if partition == COMMIT_DATE else []
        self.table.columns = stored_names(columns, self.table.columns, others)
        self.table.types |= types
        stored = None if partition is None else self.table.columns.get(partition, partition)
        self._partitions = Partitions(
            name, partition, stored, is_delta=is_delta, is_merged=is_merged, is_local=store.is_local
        )
        self.delta = DeltaFolder(store, self.table.folder, name, self._partitions.names) if is_delta else None
        if self.delta is not None and self.delta.table is None and self.table.is_made:
            raise LakeError(
                f"expected the Delta table of {written(name)} in {store.location(self.table.folder)}, as earlier "
                "writes have left it, got none: put it back, or write the whole stream to a new lake"
            )
        if self.delta is not None:
            self.delta.check_whole(self.table.reached)
            if not is_merged:
                self.delta.check_unconstrained()
        other_types = {} if self.delta is None else self._types_of_delta(self.delta, typed, columns)
        self.stored = StoredSchema(typed, self.table, other_types)
        self.written: list[WrittenFile] = []
        self.may_be_logged = False
        self._may_be_published = False
        self._schema: pa.Schema | None = None
        self._files: dict[str | None, ParquetFile] = {}
        """The file of each partition that has not ended."""
        self._column_chunks = 0
        """How many columns of row groups they have."""
        self._begun: dict[str, int] = {}
        """How many files have been begun in each folder."""

    def _types_of_delta(self, delta: DeltaFolder, typed: pa.Schema, columns: Collection[str]) -> dict[str, pa.DataType]:
        """Returns the type of each column in the Delta table."""
        there = delta.schema
        found = {}
        for name in columns:
            type = delta_type(typed.field(name).type)
            stored = self.table.columns[name]
            if there is not None and stored in there.names:
                type = type_onto(self.name, name, there.field(stored).type, type)
            found[name] = type
        return found

    def stored_rows(self, typed: pa.RecordBatch) -> pa.RecordBatch:
        """Returns typed rows as they are stored. Raises BadRows for a value that no partition can have."""
        rows = self.stored.stored(typed)
        self._partitions.check(rows)
        return rows

    def write(self, batch: pa.RecordBatch, most_column_chunks: int = 1 << 16) -> None:
        """Writes stored rows. Raises BadRows and OSError.

        most_column_chunks   a file ends when it has this many columns of row groups, which take memory until it ends.
                             When more than _FEW_FILES files take as much memory together, the largest ones end
        """
        batch = self._partitions.with_column(batch.select(without_empty_structs(batch.schema).names))
        self._schema = batch.schema
        for value, rows in self._partitions.divided(batch):
            file = self._file(value, rows.schema)
            self._column_chunks -= file.column_chunks
            file.write(rows)
            self._column_chunks += file.column_chunks
            if file.column_chunks >= most_column_chunks or file.size >= FILE_BYTES:
                self._end(value, {})
            files = self._files
            while len(files) > _FEW_FILES and self._column_chunks + _OPEN_FILE * len(files) >= most_column_chunks:
                self._end(max(files, key=lambda one: files[one].column_chunks), {})

    def _file(self, value: str | None, schema: pa.Schema) -> ParquetFile:
        """Returns the file of a partition to which rows are added."""
        if value not in self._files:
            folder = self.table.folder + self._partitions.folder(value)
            same_folder = folder.casefold().rstrip(".")  # to some file systems
            index = self._begun.get(same_folder, 0)
            self._begun[same_folder] = index + 1
            self._files[value] = ParquetFile(
                self._lake.store,
                self._lake.new_path(folder, index),
                schema,
                self._partitions.values(value),
                is_logged=self.delta is not None,
            )
        return self._files[value]

    def close(self, metadata: Mapping[str, str]) -> None:
        """Ends the files, with metadata. Raises OSError."""
        for value in [*self._files]:
            self._end(value, metadata)

    def _end(self, value: str | None, metadata: Mapping[str, str]) -> None:
        """Ends the file of a partition."""
        about = {"table": written(self.name), "state": self._lake.manifest.state, "format": self._lake.stream}
        whole = {f"wireformat.{name}": text for name, text in about.items()} | {**metadata}
        self.written.append(self._files[value].close(whole))
        self._column_chunks -= self._files.pop(value).column_chunks

    @property
    def schema(self) -> pa.Schema:
        """The columns of the written rows, with that of the partitions; rows must have been written."""
        assert self._schema is not None, "rows have been written"
        return pa.schema([pa.field(field.name, field.type) for field in self._schema])

    @property
    def has_schema(self) -> bool:
        """Whether rows have been written, maybe none."""
        return self._schema is not None

    def publish(self) -> None:
        """Gives the files of a Parquet lake their names, and adds the table and its files to the manifest."""
        self._lake.manifest.tables[self.name] = self.table
        self.table.is_made |= self.delta is not None and (self.delta.table is not None or self.has_schema)
        if self.delta is None:
            self._may_be_published = True
            publish_files(self._lake.store, self.table, self.written)

    def discard(self) -> None:
        """Removes the files of a write that was not committed."""
        for file in self._files.values():
            file.discard()
        if self.delta is None or not self.may_be_logged:
            for one in self.written:
                self._lake.store.delete(one.unfinished)
                if self._may_be_published:  # else another attempt of the task may have published a file of this name
                    self._lake.store.delete(one.path)


def publish_files(store: Store, table: StoredTable, files: Sequence[WrittenFile]) -> None:
    """Gives files of a Parquet lake their names, and adds them to the table for the manifest. Raises OSError."""
    for file in files:
        if file.unfinished != file.path:
            store.move(file.unfinished, file.path)
        table.files.append(File(file.path, file.rows, file.size))
    for path in {file.path.rpartition("/")[0]: file.path for file in files}.values():
        store.flush_names(path)


def partition_column(given: str | Mapping[str, str] | None, table: tuple[str, str]) -> str | None:
    """Returns the column that `partition_by` names for a table; None if the table has no partitions."""
    if given is None or isinstance(given, str):
        return given
    return next((column for name, column in given.items() if one_table(name) == table), None)


def check_partition_column(
    table: tuple[str, str], column: str, columns: pa.StructType, *, is_merged: bool, state: str
) -> None:
    """Raises OptionError if a table cannot have partitions by a column.

    columns     the columns of the table
    is_merged   see Partitions
    """
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
    elif is_merged and not column.isprintable():
        raise OptionError(
            f"{where}: deltalake cannot merge into partitions by a column whose name has characters that are not "
            "printed; name another one, or write state='changes'"
        )
    elif pa.types.is_nested(columns.field(names.index(column)).type):
        raise OptionError(f"{where}: column {column!r} has arrays, which no partition can have; name another one")


class Partitions:
    """The partitions of a table; one without a column has a single partition, whose value is "".

    table      schema and name
    column     the column, or COMMIT_DATE; None if the table has no partitions
    name       the name under which the column is stored
    is_delta   whether the table is a Delta table, whose log also has the values
    is_merged  whether deltalake merges into the table, and then makes folders of its own
    is_local   whether the names of folders are limited, as on this machine; object stores have no folders
    """

    def __init__(
        self,
        table: tuple[str, str],
        column: str | None,
        name: str | None,
        *,
        is_delta: bool,
        is_merged: bool,
        is_local: bool,
    ) -> None:
        self._table = table
        self._column = column
        self._name = name
        self._is_delta = is_delta
        self._is_merged = is_merged
        self._is_local = is_local

    @property
    def names(self) -> list[str]:
        """The stored names of the columns: one or none."""
        return [] if self._name is None else [self._name]

    def check(self, rows: pa.RecordBatch) -> None:
        """Raises BadRows if a stored row has a value that no partition can have."""
        if self._name not in rows.schema.names:
            return
        values = rows[self._name]
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            self._check_texts(values)
        if self._is_merged:
            for value in pc.cast(values, pa.string()).unique().drop_null().to_pylist():
                # deltalake writes numbers without an exponent
                self.folder(f"{Decimal(value):f}" if pa.types.is_floating(values.type) else value)

    def _check_texts(self, values: pa.Array) -> None:
        try:
            texts = pc.cast(values, pa.string())
        except pa.ArrowInvalid:
            raise self._bad("text in UTF-8", "other bytes", "pass another column as partition_by") from None
        if self._is_delta and pc.min(pc.binary_length(texts)).as_py() == 0:
            raise self._bad(
                "no empty text",
                "one",
                "Delta reads an empty text in a partition as NULL: pass another column as partition_by, or write "
                "format='parquet'",
            )
        if not self._is_delta and pc.any(pc.equal(texts, _NULL)).as_py():
            raise self._bad(
                f"no text {_NULL}",
                "one",
                "readers take it for NULL in the name of a folder: pass another column as partition_by, or write "
                "format='delta'",
            )

    def with_column(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns stored rows with the column of the partitions: the commit date is made from `_commit_time`."""
        if self._column != COMMIT_DATE:
            return batch
        dates = batch["_commit_time"].cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        return batch.append_column(pa.field(self._name, pa.date32()), dates)

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """Yields the value of each partition, and its rows without the column."""
        if self._name is None:
            yield "", batch
            return
        texts = pc.cast(batch[self._name], pa.string())
        rest = batch.drop_columns([self._name])
        for value in texts.unique().to_pylist():
            is_of = texts.is_null() if value is None else pc.fill_null(pc.equal(texts, value), False)
            yield value, rest.filter(is_of)

    def values(self, value: str | None) -> dict[str, str | None]:
        """Returns the column and the value of a partition, as the log of a Delta table has them."""
        return {} if self._name is None else {self._name: value}

    def folder(self, value: str | None) -> str:
        """Returns the folder of a partition below that of its table, with a slash before it; "" if it has none.

        Raises BadRows if its name is too long. A Delta table into which nothing is merged then needs no folder, since
        its log has the value; otherwise it gets one for Polars, which looks only at the name of the folder.
        """
        if self._name is None:
            return ""
        folder = f"{quote(self._name, safe='')}={_NULL if value is None else quote(value, safe='')}"
        if len(folder) <= _MOST_FOLDER_CHARACTERS or not self._is_local:
            return f"/{folder}"
        if self._is_delta and not self._is_merged:
            return ""
        instead = "state='changes'" if self._is_merged else "format='delta'"
        raise self._bad(
            f"values of at most {_MOST_FOLDER_CHARACTERS} characters, percent-encoded and with the column's name,",
            "a longer one",
            f"they are names of folders: pass another column as partition_by, or write {instead}",
        )

    def _bad(self, expected: str, got: str, hint: str) -> BadRows:
        where = f"in column {self._column}, by which the table is partitioned"
        return BadRows(f"{expected} {where}", got, table=written(self._table), hint=hint)
