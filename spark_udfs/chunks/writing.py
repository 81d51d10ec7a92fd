"""What the workers do when a capture is written to a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from .groups import Group, OtherPartitions
from .work import Reading, part_of, same_rows

if TYPE_CHECKING:
    from wireformat.lake.chunks import LakePlan


@dataclass(frozen=True)
class Write:
    """The arguments of `Capture.write`, pickled to the workers.

    lake     the lake before the write
    listed   the list of the tables
    tables   patterns; None for all
    after    the position after which the stream goes on
    """

    lake: LakePlan
    listed: pa.Table
    tables: Sequence[str] | None
    after: CapturePosition | None


def file_batches(
    reading: Reading, writes: Mapping[str, Write], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that writes the files of each chunk, and returns what they are.

    writes   by the stream
    """
    with same_rows():
        for group in reading.groups(batches):
            write = _write_of(writes, group)
            capture = reading.capture(group)
            lake = write.lake.lake_of_chunk(group.chunk)
            try:
                files = capture.write_files(lake, write.listed, write.tables, write.lake.options.schemas)
            except wf.WireformatError as error:
                raise group.messages.located(error) from None
            yield part_of(group, files)


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
                yield part_of(group, capture.write_listed(write.lake, write.listed, write.tables))
            except wf.WireformatError as error:
                raise group.messages.located(error) from None


def _write_of(writes: Mapping[str, Write], group: Group) -> Write:
    if group.key not in writes:
        raise OtherPartitions
    return writes[group.key]
