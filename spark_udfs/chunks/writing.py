"""What the workers do when a capture is written to a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from .groups import Group, OtherPartitions
from .reading import Reading, part_of, same_rows

if TYPE_CHECKING:
    from wireformat.lake.chunks import LakePlan
    from wireformat.lake.result import TableFiles

    from .rejects import ChunkRejects, RejectsFile, RejectsFolder


@dataclass(frozen=True)
class Write:
    """The arguments of `Capture.write`, pickled to the workers.

    lake       the lake before the write
    listed     the list of the tables
    versions   by table and chunk, of tables with several versions: the index of the one of the first row
    tables     patterns; None for all
    after      the position after which the stream goes on
    mode       for values that do not fit
    rejects    where rejects go; None if there is no option `rejects`
    """

    lake: LakePlan
    listed: pa.Table
    versions: Mapping[tuple[str, str], Mapping[int, int]]
    tables: Sequence[str] | None
    after: CapturePosition | None
    mode: str
    rejects: RejectsFolder | None

    def rejects_of(self, group: Group) -> ChunkRejects | None:
        """Returns what takes the rejects of a group."""
        return None if self.rejects is None else self.rejects.of_chunk(group.chunk, group.messages)


class WrittenChunk(NamedTuple):
    """What the task of a chunk has written; plain data.

    open      the changes of each table that have not ended in the stream
    """

    files: list[TableFiles]
    open: dict[tuple[str, str], int]
    rejects: RejectsFile | None


def file_batches(
    reading: Reading, writes: Mapping[str, Write], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that writes the files of each chunk, and returns what they are.

    writes   by the stream
    """
    with same_rows():
        for group in reading.groups(batches):
            write = _write_of(writes, group)
            capture = replace(reading, skips_unread=False).capture(group)
            versions = {table: of_chunks.get(group.chunk, -1) for table, of_chunks in write.versions.items()}
            lake, rejects = write.lake.lake_of_chunk(group.chunk), write.rejects_of(group)
            try:
                files = capture.write_files(
                    lake, write.listed, write.tables, write.lake.options.schemas, write.mode, rejects, versions
                )
            except wf.WireformatError as error:
                raise group.messages.located(error) from None
            done = WrittenChunk(files, capture.open_changes, None if rejects is None else rejects.finish())
            yield part_of(group, done)


def current_batches(
    reading: Reading, writes: Mapping[str, Write], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that writes the tables as they stand, from all messages of a stream, in this process.

    writes    by the stream
    returns   what was written, in the columns PARTS
    """
    with same_rows():
        for group in reading.groups(batches):
            write = _write_of(writes, group)
            capture = wf.Capture(
                group.messages.source(), reading.format, after=write.after, threads=1, **reading.options
            )
            try:
                done = capture.write_listed(write.lake, write.listed, write.tables, write.mode, write.rejects_of(group))
            except wf.WireformatError as error:
                raise group.messages.located(error) from None
            yield part_of(group, done)


def _write_of(writes: Mapping[str, Write], group: Group) -> Write:
    if group.key not in writes:
        raise OtherPartitions
    return writes[group.key]
