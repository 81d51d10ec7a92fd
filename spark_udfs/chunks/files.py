"""The messages of a capture in files, which the workers read: a task for each range of a file, or some small files."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField

import wireformat as wf
from wireformat.errors import counted
from wireformat.sources.source import errors_of
from wireformat.stream.chunk_plan import ChunkPlan
from wireformat.stream.records_before import index_of_message

from ..positions import PositionColumns
from .groups import Group, stream_key

if TYPE_CHECKING:
    from wireformat.chunks.file_ranges import FileRange
    from wireformat.chunks.records import SeenRecords
    from wireformat.chunks.summary import ChunkSummary
    from wireformat.sources.find import Sources

MESSAGE = "message"
"""The index of a message in all files: its position."""


MOST_GIVEN, MOST_GIVEN_BYTES = 256, 1 << 20
"""Up to this many tasks, of up to this many bytes together, travel in the function that every task gets: a shuffle is
another job, which takes longer."""


Read = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task does with the messages of its chunks, as mapInArrow takes it."""


@dataclass(frozen=True)
class FileTask:
    """What a task reads.

    files    of one or more chunks, in order
    first    index of the first message; 0 if it is not known yet
    plan     of the chunk, if the question needs one
    sizes    of the files as they were before, wherever a worker reads them; None for those that may grow
    """

    files: Sequence[FileRange]
    first: int
    plan: ChunkPlan | None
    sizes: Sequence[int | None]


class FileMessages:
    """The messages of a capture in files, with what `Messages` has.

    chunks   of one stream, in order: each a range of a file, or some small files
    """

    are_chunks = False
    ranges = None
    positions = PositionColumns((), (StructField(MESSAGE, LongType()),))

    def __init__(self, session: SparkSession, chunks: Sequence[Sequence[FileRange]]) -> None:
        from wireformat.chunks.file_ranges import first_messages, messages_of

        self.session = session
        self.chunks = chunks
        self._firsts = first_messages(map(messages_of, chunks))
        self._sizes = {file.path: state_of(file)[0] for file in self._files if file.groups is not None}

    def count(self, messages: Iterable[int]) -> None:
        """Takes the number of messages of each chunk."""
        from wireformat.chunks.file_ranges import first_messages

        if self._firsts is None:
            self._firsts = first_messages(messages)

    def check(self, format: str, summaries: Mapping[str, Mapping[int, ChunkSummary]]) -> None:
        """Counts the messages of all files in their summaries, and raises the first error."""
        from wireformat.chunks.files import check_summaries, count_through

        found = [*summaries.get(stream_key(()), {}).values()]
        self._firsts = count_through(self.chunks, found)
        check_summaries(format, self.chunks, found)

    def sort(self) -> None:
        """Does nothing: files are in order."""

    def shuffle(self) -> None:
        """Does nothing: each task knows its files."""

    @property
    def streams(self) -> list[tuple[Any, ...]]:
        """The values of stream_by of each stream: one without values."""
        return [()]

    def map_streams(self, plans: Mapping[str, ChunkPlan], read: Read, schema: Any) -> DataFrame:
        """Returns what a function makes of all files, which are there or raise."""
        task = FileTask(self._files, 0, None, [self._sizes[file.path] for file in self._files])
        return map_tasks(self.session, [{0: pickle.dumps(task)}], read, schema)

    @property
    def _files(self) -> list[FileRange]:
        return [file for files in self.chunks for file in files]

    def map_chunks(
        self,
        read: Read,
        schema: Any,
        plans: Mapping[int, Any] | None = None,
        *,
        only_planned: bool = False,
        **others: bool,
    ) -> DataFrame:
        """Returns what a function makes of each chunk; see `Messages.map_chunks`."""
        for file in self._files:
            if file.path not in self._sizes:  # it may grow until the first question is answered
                self._sizes[file.path] = state_of(file)[0]
        found = []
        for number, files in enumerate(self.chunks):
            if not only_planned or number in (plans or ()):
                first = 0 if self._firsts is None else self._firsts[number]
                plan = None if plans is None else plans[number][stream_key(())]
                sizes = [None if file.groups is None else self._sizes[file.path] for file in files]
                found.append({number: pickle.dumps(FileTask(files, first, plan, sizes))})
        return map_tasks(self.session, found, read, schema)


def state_of(file: FileRange) -> tuple[int, int]:
    """Returns size and time of the last change, in nanoseconds. Raises OSError."""
    with errors_of(str(file.path)):
        found = file.path.stat()
    return found.st_size, found.st_mtime_ns


def map_tasks(session: SparkSession, partitions: Sequence[Mapping[int, bytes]], read: Read, schema: Any) -> DataFrame:
    """Returns what a function makes of tasks, which it takes as chunk and task.

    partitions   the tasks of each, by the number of the chunk
    """
    count = len(partitions)
    if count <= MOST_GIVEN and sum(len(task) for tasks in partitions for task in tasks.values()) <= MOST_GIVEN_BYTES:
        own = partial(_read_given, partitions, read)
        return session.range(0, count, 1, max(count, 1)).mapInArrow(own, schema)
    given = [(number, *task) for number, partition in enumerate(partitions) for task in partition.items()]
    found = session.createDataFrame(given, "partition int, chunk int, task binary")
    return found.repartitionById(count, "partition").select("chunk", "task").mapInArrow(read, schema)


def _read_given(
    partitions: Sequence[Mapping[int, bytes]], read: Read, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that does with the tasks of partitions what `read` does.

    numbers   of partitions
    """
    return read(_given(partitions, numbers))


def _given(partitions: Sequence[Mapping[int, bytes]], numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields chunk and task."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            tasks = partitions[number]
            yield pa.RecordBatch.from_arrays(
                [pa.array([*tasks], pa.int32()), pa.array([*tasks.values()], pa.binary())], names=["chunk", "task"]
            )


def file_groups(batches: Iterable[pa.RecordBatch], format: str) -> Iterator[Group]:
    """Yields the groups of a task that reads files.

    batches   chunk and FileTask, as `FileMessages` returns them
    """
    for batch in batches:
        for number, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            task: FileTask = pickle.loads(data)
            yield Group(number, task.plan, (), FileGroupMessages(task, format))


class FileGroupMessages:
    """The messages of files, with what `GroupMessages` has."""

    names = (MESSAGE,)
    has_lasting_positions = False

    def __init__(self, task: FileTask, format: str) -> None:
        self._task = task
        self._format = format

    def source(self) -> Sources:
        """Returns the messages. Raises BadRows if files have changed that may not grow."""
        from wireformat.sources.find import Sources

        for file, size in zip(self._task.files, self._task.sizes, strict=True):
            if size not in (None, found := state_of(file)[0]):
                raise wf.BadRows(
                    f"{file.path} as it was when the capture was made, of {counted(size, 'byte')}",
                    counted(found, "byte"),
                    hint="make the capture again",
                )
        return Sources(file.source(self._format) for file in self._task.files)

    @cached_property
    def needed(self) -> list[bytes]:
        """The messages of pgoutput that later ones need, without repetitions."""
        from wireformat.chunks.files import needed_of_files

        return needed_of_files(self._task.files, self._format)

    def columns(self, messages: pa.Array) -> list[pa.Array]:
        """Returns the positions of messages, by their indices in the group."""
        return [pc.add(messages, self._task.first)]

    def name(self, message: int) -> str:
        """Returns what names a message in errors, by its index in the group."""
        return index_of_message(self._task.first + message)

    def located(self, error: wf.WireformatError) -> wf.WireformatError:
        """Returns an error with the index of its message in all files."""
        from wireformat.chunks.summary import counted_from

        return counted_from(error, self._task.first, self._task.files)

    def name_records(self, seen: SeenRecords) -> None:
        """Does nothing: the driver counts the messages of all files."""

    def place(self, summary: ChunkSummary) -> None:
        """Does nothing: the driver counts the messages of all files."""
