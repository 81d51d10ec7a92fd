"""The passes before a question: what the workers look for in the messages of each chunk."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from .groups import Group, NotSorted, OtherPartitions
from .reading import Reading

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
