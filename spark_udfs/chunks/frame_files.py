"""The Parquet files of a DataFrame that does nothing but read them: the workers read them without the JVM."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import wireformat as wf

from ..fields import is_set
from ..positions import PositionColumns, check_positions
from ..schemas import arrow_types
from .extents import Extent, joined
from .files import Read, map_tasks, state_of
from .groups import OtherPartitions, signs

_SQL = "org.apache.spark.sql"
_PROJECT = f"{_SQL}.catalyst.plans.logical.Project"
_ATTRIBUTE = f"{_SQL}.catalyst.expressions.AttributeReference"
_READ = f"{_SQL}.execution.datasources.LogicalRelation"
_LOCAL = f"{_SQL}.catalyst.plans.logical.LocalRelation"
_OF_FILES = f"{_SQL}.execution.datasources.HadoopFsRelation"
_PARQUET = f"{_SQL}.execution.datasources.parquet.ParquetFileFormat"
_LISTED = f"{_SQL}.execution.datasources.InMemoryFileIndex"

_IGNORING = ("ignoreCorruptFiles", "ignoreMissingFiles")
"""Options, and settings below spark.sql.files, with which Spark leaves out what it cannot read."""

_BY_IDS = "spark.sql.parquet.fieldId.read.enabled"
"""With this setting, Spark may find columns by other things than their names."""


def parquet_files(df: DataFrame, names: Collection[str]) -> list[Path] | None:
    """Returns the Parquet files of which a DataFrame is all rows, with these columns as they are in the files.

    None if the DataFrame is anything else, has a filter for example, or is cached, or if it cannot be seen: Spark
    Connect does not show its plan.
    """
    if not hasattr(df, "_jdf"):  # as in Spark Connect
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        read = _plain_read(df, names)
        files = [] if read is None else [urlsplit(str(file)) for file in read.location().inputFiles()]
    except Py4JError:  # what is looked at is no public interface of Spark
        return None
    if not files or any(file.scheme != "file" or file.netloc for file in files) or len({*files}) < len(files):
        return None  # a file may be read twice
    return [Path(unquote(file.path)) for file in files]


def _plain_read(df: DataFrame, names: Collection[str]) -> Any:
    """Returns the relation that a DataFrame does nothing but read, or None."""
    plan = df._jdf.queryExecution().optimizedPlan()
    while _class(plan) == _PROJECT:
        if any(_class(column) != _ATTRIBUTE for column in _items(plan.projectList())):
            return None
        plan = plan.child()
    if _class(plan) != _READ or _class(read := plan.relation()) != _OF_FILES:
        return None
    folders = {name.lower() for name in read.partitionSchema().fieldNames()}
    ignores = any(read.options().contains(name) or is_set(df, f"spark.sql.files.{name}") for name in _IGNORING)
    is_plain = (
        (_class(read.fileFormat()), _class(read.location())) == (_PARQUET, _LISTED)
        and read.bucketSpec().isEmpty()
        and folders.isdisjoint(name.lower() for name in names)
        and not ignores
        and not is_set(df, _BY_IDS)
    )
    return read if is_plain else None


def is_local(df: DataFrame) -> bool:
    """Whether the rows of a DataFrame are in its plan, as far as that can be seen."""
    return not hasattr(df, "_jdf") or _class(df._jdf.queryExecution().optimizedPlan()) == _LOCAL


def _class(thing: Any) -> str:
    return str(thing.getClass().getName())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


if TYPE_CHECKING:
    from pathlib import Path

    from wireformat.chunks.file_ranges import FileRange

MOST_FILES = 1000
"""The largest number of files of which the driver looks at the row groups, one after the other."""

SMALL_BYTES = 4 << 20
"""A range is not worth a task of its own if it has less than about this: Spark reads many small files in one task."""


class SeenRange(NamedTuple):
    """A range of a file, and the file as it was when the capture was made.

    changed   when it was changed last, in nanoseconds
    """

    file: FileRange
    size: int
    changed: int

    @classmethod
    def of(cls, file: FileRange) -> SeenRange:
        """Returns the range of the file that is there. Raises OSError."""
        return cls(file, *state_of(file))

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields these columns of the rows. Raises OSError, and OtherPartitions if it is another file now."""
        if SeenRange.of(self.file) != self:
            raise OtherPartitions
        return self.file.rows(names)


class FrameFiles:
    """Ranges of the files of a DataFrame. Each is a chunk, as a partition of the DataFrame can be.

    names     of the columns to read: stream_by, order_by, and the messages
    streams   how many of them are stream_by
    ranges    of files that have these columns
    tasks     the least number of tasks that they are divided among, if there are as many ranges
    """

    def __init__(
        self, session: SparkSession, names: Sequence[str], streams: int, ranges: Sequence[SeenRange], tasks: int
    ) -> None:
        from wireformat.chunks.file_ranges import RANGE_BYTES

        self._session = session
        self._names = names
        self._streams = streams
        self._ranges = ranges
        sizes = np.array([one.file.bytes for one in ranges])
        middles, size = np.cumsum(sizes) - sizes / 2, max(int(sizes.sum()), 1)
        self._partitions = (middles / size * max(tasks, size // RANGE_BYTES)).astype(int).tolist()
        """The partition of each range: consecutive ones are together, so that tasks have about the same size."""

    @classmethod
    def of(cls, df: DataFrame, payload: str, positions: PositionColumns, format: str) -> FrameFiles | None:
        """Returns the files of a DataFrame, or None if Spark has to read them, or does it better."""
        from wireformat.chunks.file_ranges import RANGE_BYTES, file_ranges
        from wireformat.sources.find import natural_order

        fields = [*arrow_types(StructType([*positions.fields])), pa.field(payload, pa.binary())]
        names = [field.name for field in fields]
        paths = parquet_files(df, names)
        if not paths or len(paths) > MOST_FILES:
            return None
        tasks = df.sparkSession.sparkContext.defaultParallelism
        try:
            if not all(_has(path, fields) for path in paths):
                return None
            paths.sort(key=natural_order)
            ranges = file_ranges(paths, format, payload)
            size = sum(one.bytes for one in ranges)
            if len(ranges) < tasks:
                ranges = file_ranges(paths, format, payload, min(RANGE_BYTES, max(SMALL_BYTES, size // tasks)))
            seen = [*map(SeenRange.of, ranges)]
        except (OSError, pa.ArrowException, wf.OptionError):
            return None  # Spark says what is wrong
        is_small = len(ranges) > tasks and size < SMALL_BYTES * len(ranges)
        if not ranges or is_small or any(one.groups is None for one in ranges):
            return None
        return cls(df.sparkSession, names, len(positions.stream_by), seen, tasks)

    def extents(self) -> list[tuple[Extent, int]] | None:
        """Returns the extents of all ranges and the numbers of these, in the order of stream and position.

        None if the messages of a range are in another order, or a file is another one now. Where the statistics of the
        files have the positions, their order is known only when the messages are read.
        """
        try:
            of_ranges = self._stated_extents()
        except (OSError, pa.ArrowException, OtherPartitions):
            return None
        others = {*range(len(self._ranges))} - of_ranges.keys()
        if others:
            find = partial(extent_batches, self._names[:-1], self._streams)
            rows = self._map_tasks(others, find, "number int, found binary").collect()
            of_ranges |= {row["number"]: pickle.loads(row["found"]) for row in rows}
        found: list[tuple[Extent, int]] = []
        for number, extents in of_ranges.items():
            if extents is None:
                return None
            found += [(one._replace(partition=self._partitions[number]), number) for one in extents]
        return sorted(found)

    def _stated_extents(self) -> dict[int, list[Extent] | None]:
        """Returns the extents of those ranges for which the statistics of their files state them, by number."""
        found: dict[int, list[Extent] | None] = {}
        for path, ranges in groupby(enumerate(self._ranges), lambda item: item[1].file.path):
            metadata = pq.read_metadata(path)
            for number, one in ranges:
                if SeenRange.of(one.file) != one:
                    raise OtherPartitions
                extents = stated_extents(metadata, one.file, self._names[:-1], self._streams)
                if extents is not None:
                    found[number] = extents
        return found

    def map(
        self, read: Read, schema: Any, *, relations_only: bool = False, only: Collection[int] | None = None
    ) -> DataFrame:
        """Returns what a function makes of the messages of each range, whose number is that of the chunk.

        relations_only   reads only messages that describe relations of pgoutput, and that begin or end their validity
        only             numbers of the ranges to read; None for all
        """
        return self._map_tasks(only, partial(batches_of_files, read, self._names, relations_only), schema)

    def _map_tasks(self, only: Collection[int] | None, read: Read, schema: Any) -> DataFrame:
        tasks: list[dict[int, bytes]] = [{} for _ in range(self._partitions[-1] + 1)]
        for number, one in enumerate(self._ranges):
            if only is None or number in only:
                tasks[self._partitions[number]][number] = pickle.dumps(one)
        return map_tasks(self._session, tasks, read, schema)


def _has(path: Path, fields: Sequence[pa.Field]) -> bool:
    """Whether a file has these columns, and Spark takes their values as they are."""
    schema = pq.read_schema(path)
    names = [name.lower() for name in schema.names]
    return all(
        names.count(one.name.lower()) == 1 and one.name in schema.names and schema.field(one.name).type == one.type
        for one in fields
    )


def batches_of_files(
    read: Read, names: Sequence[str], relations_only: bool, tasks: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that does with the messages of files what `read` does with those of a DataFrame.

    names   of stream_by, order_by, and the column with the messages
    tasks   number and SeenRange
    """
    return read(_messages(names, relations_only, tasks))


def _messages(names: Sequence[str], relations_only: bool, tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields chunk, stream_by, order_by and message."""
    from wireformat.chunks.relations import are_of_needed_kinds

    for number, one in _ranges_of(tasks):
        for rows in one.rows(names):
            *positions, messages = rows.columns
            check_positions(positions, names[:-1])
            columns = [pa.array(np.full(len(rows), number, np.int32)), *positions, messages]
            found = pa.RecordBatch.from_arrays(columns, names=["chunk", *names])
            yield found.filter(are_of_needed_kinds(messages)) if relations_only else found


def _ranges_of(tasks: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, SeenRange]]:
    for batch in tasks:
        for number, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield number, pickle.loads(data)


def stated_extents(
    metadata: pq.FileMetaData, file: FileRange, names: Sequence[str], streams: int
) -> list[Extent] | None:
    """Returns the extents of a range, as the statistics of its file state them; None if they do not.

    names     of stream_by and order_by
    streams   how many of them are stream_by
    """
    assert file.groups is not None, "these are ranges of Parquet files"
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    found = []
    for group in map(metadata.row_group, range(*file.groups)):
        own = [group.column(paths.index(name)).statistics for name in names]
        # those of strings may be cut
        if not all(one is not None and one.has_min_max and isinstance(one.min, int) for one in own):
            return None
        if any(one.min != one.max for one in own[:-1]):
            return None
        first, last = (tuple(getattr(one, which) for one in own) for which in ("min", "max"))
        found.append([Extent(first[:streams], first[streams:], last[streams:], 0)])
    return joined(found)


def extent_batches(names: Sequence[str], streams: int, tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that finds the extents of ranges; see `FrameFiles.extents`.

    names     of stream_by and order_by
    streams   how many of them are stream_by
    tasks     number and SeenRange
    """
    for number, one in _ranges_of(tasks):
        try:
            found = joined([_extents(rows.columns, names, streams) for rows in one.rows(names) if len(rows)])
        except OtherPartitions:
            found = None
        columns = [pa.array([number], pa.int32()), pa.array([pickle.dumps(found)])]
        yield pa.RecordBatch.from_arrays(columns, names=["number", "found"])


def _extents(positions: Sequence[pa.Array], names: Sequence[str], streams: int) -> list[Extent] | None:
    """Returns the extents of rows; None if they are not in the order of stream and position."""
    check_positions(positions, names)
    steps = [signs(column, None)[1:] for column in positions]
    if not (reduce(lambda first, second: np.where(first == 0, second, first), steps) > 0).all():
        return None
    is_new = np.logical_or.reduce(steps[:streams]) if streams else np.zeros(0, bool)
    found = []
    for start, stop in pairwise([0, *(np.flatnonzero(is_new) + 1).tolist(), len(positions[0])]):
        first, last = (tuple(column[at].as_py() for column in positions) for at in (start, stop - 1))
        found.append(Extent(first[:streams], first[streams:], last[streams:], 0))
    return found
