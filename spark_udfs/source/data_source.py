"""The data source `wireformat`: captures in files as tables, in SQL alone; a live slot as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.errors import counted
from wireformat.formats.registry import find_format_name
from wireformat.identifiers import split_items
from wireformat.options import MODES, TABLE_STATES
from wireformat.options.checks import one_of
from wireformat.options.table import nearest
from wireformat.options.table_names import one_table, written

from ..decoding.task import named_errors
from ..given_messages import local_paths
from ..schemas import arrow_schema, arrow_types, as_declared, change_fields, change_names
from ..tables.typed_rows import spark_columns, typed_part
from .options import SlotOptions, names_slot, split_option

if TYPE_CHECKING:
    from wireformat.arrow.typed_tables.table import TypedPart
    from wireformat.chunks.files import FileChunk, Survey


@dataclass(frozen=True)
class SourceOptions:
    """The options of the data source, as texts; see docs/spark_capture.md."""

    path: str
    format: str
    table: str | None = None
    state: str = "changes"
    keys: str | None = None
    column: str | None = None
    mode: str = "FAILFAST"
    encoding: str = "utf-8"
    encoding_errors: str = "strict"
    dialect: str = "postgresql"
    known_tables: str | None = None

    @classmethod
    def check(cls, given: Mapping[str, str]) -> SourceOptions:
        """Returns the options, whose names Spark writes in lower case; raises OptionError."""
        names = [field.name for field in fields(cls)]
        if not given or "provider" in given:  # an option that Spark adds there
            raise wf.OptionError(
                "option path: the data source needs it, as in OPTIONS (path '…'). Spark does not give it the options "
                "of CREATE TABLE: use CREATE TEMPORARY VIEW"
            )
        if "paths" in given:
            raise wf.OptionError("option path: expected one path, which may be a folder or a pattern, got several")
        for name in given:
            if name not in names:
                raise wf.OptionError(f"option {name}: unknown{nearest(name, names)}; there are {', '.join(names)}")
        for name in ("path", "format"):
            if name not in given:
                raise wf.OptionError(f"option {name}: the data source needs it, as in OPTIONS ({name} '…')")
        with _naming("format"):
            find_format_name(given["format"])
        texts = {**given, "path": local_paths("path", given["path"])}
        for name, change, words in (("state", str.lower, TABLE_STATES), ("mode", str.upper, MODES)):
            if name in given:
                texts[name] = one_of(name, change(given[name]), words)
        found = cls(**texts)
        if found.table is None and (found.state == "latest" or found.keys is not None):
            raise wf.OptionError("option table: state 'latest' and keys need it, as in OPTIONS (table 'public.orders')")
        if found.keys is not None and found.keys.strip() == "[]":  # as in Python
            found = replace(found, keys="")
        if found.keys is not None and found.keys.strip() and not split_option("keys", found.keys):
            raise wf.OptionError("option keys: expected names of columns between commas, or '' for the whole row")
        if found.keys is not None and found.state != "latest":
            raise wf.OptionError("option keys: expected state 'latest', which needs them; changes have no key")
        return found

    @property
    def reading(self) -> dict[str, Any]:
        """The options of a capture of messages."""
        known = None if self.known_tables is None else split_option("known_tables", self.known_tables, split_items)
        names = ("mode", "encoding", "encoding_errors", "dialect")
        return {**{name: getattr(self, name) for name in names}, "known_tables": known}

    def survey(self, known: Surveyed | None = None) -> Surveyed:
        """Looks through the files, unless they are as they were when this was known."""
        from wireformat.arrow.typed_tables.listed import rows_of
        from wireformat.chunks.files import survey  # loads numba
        from wireformat.sources.find import paths_of

        with _naming("path"):
            states = [(str(path), path.stat()) for path in paths_of(self.path)]
        files = [(path, state.st_size, state.st_mtime_ns) for path, state in states]
        if known is not None and known.files == files:
            return known
        look = partial(survey, self.path, self.format, column=self.column, **self.reading)
        if self.table is None:
            return Surveyed(files, look(is_typed=False))
        found = look(tables=[written(one_table(self.table))])  # rows of other tables may be bad
        if not rows_of(found.listed, self.table):
            with suppress(wf.WireformatError):  # of other tables, whose names an error shows
                found = look()
        return Surveyed(files, found)


@dataclass(frozen=True)
class Surveyed:
    """What a look through files has found.

    files   path, size and time of the last change of each
    """

    files: Sequence[tuple[str, int, int]]
    survey: Survey


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Names the option in the errors about its value."""
    try:
        yield
    except wf.OptionError as error:
        raise wf.OptionError(f"option {option}: {error}") from None
    except FileNotFoundError as error:
        raise wf.OptionError(
            f"option {option}: expected a file, a folder or a pattern such as captures/*.parquet, got "
            f"{error.filename!r}, which does not exist"
        ) from None


class WireformatSource(DataSource):
    """Captures in files: the row-change table, the typed changes of one table, or the table as it stands.

    `register` registers it: CREATE TEMPORARY VIEW orders USING wireformat OPTIONS (path 'captures/', format 'pgoutput',
    table 'public.orders', state 'latest'). The options are path, format, table, state (changes or latest), keys and
    known_tables (names between commas, in double quotes if they have one), column, mode, encoding, encoding_errors and
    dialect. keys '' is the whole row.
    Spark gives a table of CREATE TABLE no options, so that is an error.

    With `spark.readStream` it reads a live slot: the committed changes of all tables, or the typed changes of one.
    docs/spark_live.md describes its options.
    """

    _surveyed: Surveyed | None = None

    @classmethod
    def name(cls) -> str:
        """The name after USING."""
        return "wireformat"

    def schema(self) -> StructType:
        """Returns the columns. Those of a table are found by a look through the files, or in the server's catalogue."""
        if names_slot(self.options):
            from .reader import schema_of  # loads numba

            return schema_of(SlotOptions.check(self.options))
        options = SourceOptions.check(self.options)
        if options.table is None:
            return StructType(change_fields(change_names(), options.format))
        self._surveyed = options.survey()  # Spark pickles it with this object, for the reader
        return from_arrow_schema(_SparkTable(options, self._surveyed.survey.listed).schema.remove_metadata())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns what reads the rows."""
        if names_slot(self.options):
            raise wf.OptionError(
                "option slot: a slot is a stream; read it with spark.readStream, as batches of your size"
            )
        surveyed, self._surveyed = self._surveyed, None  # the tasks get this object too, and need no survey
        return WireformatReader(SourceOptions.check(self.options), schema, surveyed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Returns what reads a slot."""
        if "path" in self.options:
            raise wf.OptionError(
                "option path: files are read with spark.read; a stream needs url, slot and publication"
            )
        from .reader import SlotStreamReader  # loads numba

        return SlotStreamReader(SlotOptions.check(self.options), schema)


class _SparkTable:
    """A table of the files, as Spark reads it."""

    def __init__(self, options: SourceOptions, listed: pa.Table) -> None:
        from wireformat.arrow.typed_tables.latest import latest
        from wireformat.arrow.typed_tables.listed import check_listed, replica_identity, states_identity

        assert options.table is not None, "one table is read"
        check_listed(listed, options.table, options.format)
        self._columns = spark_columns(listed, options.table, options.format)
        self._options, self._listed, self._table = options, listed, options.table
        self.schema = self.part(-1).schema
        self.keys: Sequence[str] | None = None
        """The keys of the current rows: [] for the identity that the stream states, else see `latest`."""
        if options.state == "latest":
            if options.keys is not None:
                self.keys = split_option("keys", options.keys)
            else:
                is_stated = states_identity(listed, options.table)
                self.keys = [] if is_stated else replica_identity(listed, options.table)
            self.schema = latest(pa.Table.from_batches([], self.schema), self.keys).schema

    def part(self, version: int) -> TypedPart:
        """Returns what reads the rows of a chunk, which begin with this version; -1 if it is not known."""
        options = self._options
        return typed_part(self._columns, self._table, options.mode, options.format, self._listed, version)


@dataclass
class FilePartition(InputPartition):
    """What a task reads: chunks of the stream, and the list of tables if one is needed."""

    chunks: Sequence[FileChunk]
    listed: pa.Table | None
    sizes: Mapping[Path, int]
    """The bytes of each file when it was looked through."""

    def __post_init__(self) -> None:
        self.sizes = {file.path: self.sizes[file.path] for chunk in self.chunks for file in chunk.files}

    def check_files(self) -> None:
        """Raises BadRows if a file is gone, or has another size."""
        for path, size in self.sizes.items():
            found = path.stat().st_size if path.exists() else None
            if found != size:
                raise wf.BadRows(
                    f"{path} with {counted(size, 'byte')}, as when the view was made",
                    "no such file" if found is None else f"one with {counted(found, 'byte')}",
                    hint="make the view again: it reads the files of that moment",
                )


class WireformatReader(DataSourceReader):
    """Reads the rows: each chunk of files in a task of its own, or all in one for the rows of a table as it stands."""

    def __init__(self, options: SourceOptions, schema: StructType, surveyed: Surveyed | None = None) -> None:
        self._options = options
        self._schema = schema
        self._surveyed = surveyed

    def __getstate__(self) -> dict[str, Any]:
        """Returns what the tasks get."""
        return {**vars(self), "_surveyed": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Returns what the tasks read. Raises OptionError for a column of the caller's schema that does not exist."""
        try:
            surveyed = self._options.survey(self._surveyed)
        except NotImplementedError as error:  # one of Arrow, which Spark would take for a reader without partitions
            raise RuntimeError(str(error)) from error
        survey, sizes = surveyed.survey, {Path(path).absolute(): size for path, size, _ in surveyed.files}
        is_typed = self._options.table is not None
        found = _SparkTable(self._options, survey.listed).schema if is_typed else arrow_schema(change_names())
        as_declared(pa.RecordBatch.from_pylist([], found), arrow_types(self._schema))
        tasks = [[chunk] for chunk in survey.chunks] or [[]]  # for no partitions, Spark calls `read` with None
        if self._options.state == "latest":
            tasks = [survey.chunks]
        return [FilePartition(chunks, survey.listed if is_typed else None, sizes) for chunks in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        assert isinstance(partition, FilePartition), "made by `partitions`"
        partition.check_files()
        schema = arrow_types(self._schema)
        for rows in self._rows(partition):
            yield as_declared(rows, schema)

    def _rows(self, partition: FilePartition) -> Iterator[pa.RecordBatch]:
        from wireformat.chunks.summary import counted_from  # loads numba

        table = None if partition.listed is None else _SparkTable(self._options, partition.listed)
        if table is not None and table.keys is not None:
            yield from self._current_rows(partition.chunks, table, table.keys)
            return
        for chunk in partition.chunks:
            try:
                yield from self._rows_of(chunk, table)
            except wf.WireformatError as error:
                raise counted_from(error, chunk.first, chunk.files) from None

    def _current_rows(
        self, chunks: Sequence[FileChunk], table: _SparkTable, keys: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a table as it stands."""
        from wireformat.sources.find import Sources

        options = self._options
        assert options.table is not None, "its list of tables is there"
        files = Sources(file.source(options.format) for chunk in chunks for file in chunk.files)
        capture = wf.Capture(files, options.format, threads=1, **options.reading)
        yield from capture.latest_by(table.part(0), options.table, keys).to_batches()

    def _rows_of(self, chunk: FileChunk, table: _SparkTable | None) -> Iterator[pa.RecordBatch]:
        options = self._options
        capture = chunk.capture(options.format, **options.reading)
        if table is None:
            return (_counted(rows, chunk.first) for rows in capture.changes())
        assert options.table is not None, "its list of tables is there"
        version = chunk.versions.get(one_table(options.table), -1)
        return capture.typed_by(table.part(version), options.table)


def _counted(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Returns rows whose errors count messages from `first`."""
    errors = named_errors(rows["error"], rows["message"], lambda message: f"message {first + message}")
    return rows.set_column(rows.schema.get_field_index("error"), rows.schema.field("error"), errors)
