"""How the workers read the messages of a DataFrame or of files: in groups, each with its capture.

Passes before a question find what the workers must know of each chunk.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

import wireformat as wf
from wireformat.chunks.relations import RelationChanges, known_before, relations_before
from wireformat.stream.positions import Position
from wireformat.stream.records_before import NOTHING_BEFORE, RecordsBefore

from ..workers import settle
from .files import file_groups
from .groups import Group, NotSorted, OtherPartitions, Plans, Ranges, groups

if TYPE_CHECKING:
    from wireformat.chunks.capture import ChunkCapture


@dataclass(frozen=True)
class Reading:
    """How the workers read the messages, pickled to them. The tasks of a worker share it, and must not change it.

    format      name of the format
    options     of wf.Capture
    streams     the names of stream_by
    order       the names of order_by
    relation_changes   of pgoutput, by the stream; see wireformat.chunks.relations
    before      what chunks must know of the records of the others, by stream and chunk, if an option needs it
    delivered   how far the streams were delivered at the positions after which they go on
    is_planned  whether each chunk has a plan
    plans       of the chunks, by their numbers, if they are not among the messages
    has_empty   whether some partitions have no messages. If Spark has then joined the partitions of an answer, or those
                of several, a task without messages cannot know whether it has lost them
    ranges      of the chunks, if they are partitions; otherwise the rank of a chunk is its number
    stream_messages   by stream, how many messages it has; None if tasks do not read whole streams
    from_files  whether the tasks read files
    skips_unread   whether records that could not be read are left out: rejects take them
    """

    format: str
    options: Mapping[str, Any]
    streams: tuple[str, ...]
    order: tuple[str, ...]
    relation_changes: Mapping[str, Sequence[RelationChanges]] = field(default_factory=dict)
    before: Mapping[str, Mapping[int, RecordsBefore]] = field(default_factory=dict)
    delivered: Mapping[str, Position] = field(default_factory=dict)
    is_planned: bool = False
    plans: Plans | None = None
    has_empty: bool = False
    ranges: Ranges | None = None
    stream_messages: Mapping[str, int] | None = None
    from_files: bool = False
    skips_unread: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles it as bytes: it grows with the number of chunks, and a worker reads the same bytes for each task."""
        return _unpickled, (pickle.dumps(tuple(getattr(self, one.name) for one in fields(self))),)

    def groups(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Group]:
        """Yields the groups of a task."""
        if self.from_files:
            yield from file_groups(batches, self.format)
        else:
            task = None if self.plans is None or self.has_empty else TaskContext.get()
            yield from groups(
                batches,
                self.streams,
                self.order,
                self.plans,
                self.ranges,
                self.stream_messages,
                is_planned=self.is_planned,
                partition=None if task is None else task.partitionId(),
            )
        settle()

    def rank(self, stream: str, chunk: int) -> int:
        """Returns the index of a chunk among those of a stream."""
        if self.ranges is None:
            return chunk
        found = self.ranges.get(stream, {}).get(chunk)
        if found is None:
            raise OtherPartitions
        return found.rank

    def capture(self, group: Group) -> ChunkCapture:
        """Returns the capture of a group, with its part of the plan if there is one."""
        from wireformat.chunks.capture import ChunkCapture  # loads numba, which the driver does not need

        rank, changes = self.rank(group.key, group.chunk), self.relation_changes.get(group.key, ())
        return ChunkCapture(
            group.messages.source(),
            self.format,
            plan=group.plan,
            relations=relations_before(rank, changes),
            known=partial(known_before, rank, changes),
            before=self.before.get(group.key, {}).get(group.chunk, NOTHING_BEFORE)._replace(name=group.messages.name),
            skips_unread=self.skips_unread,
            threads=1,
            **self.options,
        )


@lru_cache(maxsize=1)
def _unpickled(values: bytes) -> Reading:
    """Returns the reading with these values, the same one for each task of a question."""
    return Reading(*pickle.loads(values))


def other_rows(expected: str, got: str) -> wf.BadRows:
    """Returns the error for a DataFrame that is another one each time it is read."""
    hint = "the DataFrame gives other rows, or another order of them, each time it is read: save it in files first"
    return wf.BadRows(expected, got, hint=f"{hint}; for a Kafka topic, fixed endingOffsets are enough")


@contextmanager
def same_rows() -> Iterator[None]:
    """Raises BadRows in place of PARTITION_ERRORS, which did not occur in the passes before the question."""
    try:
        yield
    except (NotSorted, OtherPartitions):
        raise other_rows("the same messages in each partition, in the same order, as before", "others") from None


PARTS = StructType().add("chunk", IntegerType()).add("stream", StringType()).add("found", BinaryType())
"""The schema of what the passes before a question find: the chunk, the stream as a text, and what was found there."""


def needed_batches(reading: Reading, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that returns the messages of pgoutput that later ones need, without repetitions."""
    with _found_in_partition() as parts:
        for group in reading.groups(batches):
            parts.append(part_of(group, group.messages.needed))
    yield from parts


def record_batches(
    reading: Reading, tables: Sequence[str] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that returns the SeenRecords of each group, without row changes of other tables."""
    from wireformat.chunks.records import seen_records

    with _found_in_partition() as parts:
        for group in reading.groups(batches):
            found = seen_records(reading.capture(group), tables)
            group.messages.name_records(found)
            parts.append(part_of(group, found))
    yield from parts


def summary_batches(
    reading: Reading, tables: Sequence[str] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that returns the ChunkSummary of each group, which steps over other tables."""
    from wireformat.chunks.summary import summarized

    with _found_in_partition() as parts:
        for group in reading.groups(batches):
            summary = summarized(reading.capture(group), reading.delivered.get(group.key), tables)
            group.messages.place(summary)
            parts.append(part_of(group, summary))
        if not parts:
            parts.append(_found_row(NO_MESSAGES))
    yield from parts


def error_batches(
    reading: Reading, tables: Sequence[str] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that returns the OrderError, with its message, of each group that has one.

    It steps over other tables.
    """
    with same_rows():
        for group in reading.groups(batches):
            try:
                for _ in reading.capture(group).committed(tables=tables):
                    pass
            except wf.OrderError as error:
                yield part_of(group, group.messages.located(error))


PARTITION_ERRORS: dict[str, type[Exception]] = {"not sorted": NotSorted, "other partitions": OtherPartitions}
"""What the column `stream` of PARTS says of a partition that raised one of these errors, in place of a stream."""


@contextmanager
def _found_in_partition() -> Iterator[list[pa.RecordBatch]]:
    """Collects rows of PARTS of a partition. If it raises one of PARTITION_ERRORS, there is one row, which says so."""
    parts: list[pa.RecordBatch] = []
    try:
        yield parts
    except (NotSorted, OtherPartitions) as error:
        (name,) = (name for name, kind in PARTITION_ERRORS.items() if isinstance(error, kind))
        parts[:] = [_found_row(name)]


NO_MESSAGES = "no messages"
"""What the column `stream` of PARTS says of a partition without messages."""


def _found_row(name: str) -> pa.RecordBatch:
    columns = [pa.array([0], pa.int32()), pa.array([name]), pa.array([b""])]
    return pa.RecordBatch.from_arrays(columns, names=["chunk", "stream", "found"])


def part_of(group: Group, found: Any) -> pa.RecordBatch:
    """Returns what was found in a group as a row of PARTS."""
    columns = [pa.array([group.chunk], pa.int32()), pa.array([group.key]), pa.array([pickle.dumps(found)])]
    return pa.RecordBatch.from_arrays(columns, names=["chunk", "stream", "found"])
