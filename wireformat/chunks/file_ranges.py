"""Ranges of files that can be read independently: row groups of Parquet files, whole files, and small ones together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..arrow.scan.message_batches import COUNTED_BYTES
from ..formats.registry import find_format
from ..limits import MESSAGE_BATCH_BYTES
from ..sources.files import file_source
from ..sources.find import paths_of
from ..sources.parquet_files import ParquetSource, RowGroup
from ..sources.source import Source

RANGE_BYTES = 128 << 20
"""About how many bytes of messages a range of a Parquet file has."""

PACKED_BYTES = MESSAGE_BATCH_BYTES
"""About how many bytes of messages small files may have that are one chunk: as many as are decoded together."""

LEAST_CHUNKS = 8
"""Small files that share a chunk have at most one eighth of all bytes, since chunks are read in parallel. If the files
are about equally large, there are at least eight chunks."""

MOST_RANGES = 20_000
"""About the largest number of ranges of Parquet files: the memory for the plan of a stream grows with them."""


@dataclass(frozen=True)
class FileRange:
    """A file of messages, or some row groups of a Parquet file.

    column     of a Parquet file, with the messages
    groups     the first row group, and the one after the last; None for a file of messages
    messages   how many there are, if the file says so
    bytes      of the messages, of a Parquet file before compression
    first      index of the first one in the file; None if there are no other files
    """

    path: Path
    column: str | None = None
    groups: tuple[int, int] | None = None
    messages: int | None = None
    bytes: int = 0
    first: int | None = None

    def source(self, format: str) -> Source:
        """Returns the source of its messages. Raises OSError and OptionError."""
        found = file_source(self.path, str(self.path), find_format(format), self.column)
        if self.groups is not None and isinstance(found, ParquetSource):
            found.groups = range(*self.groups)
        return found

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields some columns of the rows of a Parquet file. Raises OSError and OptionError."""
        assert self.groups is not None, "only Parquet files have rows"
        found = ParquetSource(str(self.path), self.path, 0, self.column)
        found.groups = range(*self.groups)
        return found.rows(columns)

    def arrays(self, format: str) -> Iterator[pa.Array]:
        """Yields the messages as binary arrays, whose type Arrow's functions take."""
        for given in self.source(format).read():
            found = given.messages
            for one in found.chunks if isinstance(found, pa.ChunkedArray) else [pa.array(found, pa.binary())]:
                is_usual = pa.types.is_binary(one.type) or pa.types.is_large_binary(one.type)
                yield one if is_usual else one.cast(pa.large_binary())


def file_ranges(
    paths: Any, format: str, column: str | None = None, range_bytes: int | None = RANGE_BYTES
) -> list[FileRange]:
    """Returns the ranges of files, in order.

    paths         see `paths_of`
    range_bytes   about the size of a range, which grows if there are more than MOST_RANGES; None for one of each file

    Raises OSError and OptionError.
    """
    files: list[tuple[FileRange, list[RowGroup] | None]] = []
    for path in paths_of(paths):
        absolute = path.absolute()  # tasks may run in other folders
        source = file_source(absolute, str(path), find_format(format), column)
        if isinstance(source, ParquetSource):
            files.append((FileRange(absolute, source.column), source.row_groups()))
        else:
            files.append((FileRange(absolute, bytes=path.stat().st_size), None))
    all_bytes = sum(group.bytes for _, groups in files for group in groups or ())
    most = None if range_bytes is None else max(range_bytes, all_bytes // MOST_RANGES)
    found: list[FileRange] = []
    for file, groups in files:
        if groups is None:
            found.append(replace(file, first=0))
            continue
        first = 0
        for start, stop in _bounds([group.bytes for group in groups], most):
            messages, size = (sum(column) for column in zip(*groups[start:stop], strict=True))
            found.append(replace(file, groups=(start, stop), messages=messages, bytes=size, first=first))
            first += messages
    return found if len(files) > 1 else [replace(file, first=None) for file in found]


def packed(ranges: Iterable[FileRange]) -> list[tuple[FileRange, ...]]:
    """Returns chunks: ranges of files, in order, of which those that are small files are together.

    A chunk costs as much as thousands of messages.
    """
    by_file = [[*of_file] for _, of_file in groupby(ranges, attrgetter("path"))]
    sizes = [sum(max(part.bytes, COUNTED_BYTES * (part.messages or 0)) for part in parts) for parts in by_file]
    most = min(PACKED_BYTES, sum(sizes) // LEAST_CHUNKS)
    found: list[tuple[FileRange, ...]] = []
    size = 0
    for parts, file_bytes in zip(by_file, sizes, strict=True):
        if found and len(parts) == 1 and size + file_bytes <= most:
            found[-1] += (parts[0],)
            size += file_bytes
        else:
            found += [(part,) for part in parts]
            size = file_bytes if len(parts) == 1 else most + 1
    return found


def _bounds(sizes: Sequence[int], most: int | None) -> Iterator[tuple[int, int]]:
    """Yields start and stop of ranges of items; a range has less than `most` bytes, or one item."""
    start = total = 0
    for index, size in enumerate(sizes):
        if most is not None and index > start and total + size > most:
            yield start, index
            start, total = index, 0
        total += size
    if sizes:
        yield start, len(sizes)


def messages_of(files: Iterable[FileRange]) -> int | None:
    """Returns how many messages files have; None if it is not known of all."""
    counts = [file.messages for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def first_messages(counts: Iterable[int | None]) -> list[int] | None:
    """Returns the index of the first message of each chunk; None if the number of messages is not known of all.

    counts   the number of messages of each chunk
    """
    firsts = [0]
    for count in counts:
        if count is None:
            return None
        firsts.append(firsts[-1] + count)
    return firsts[:-1]
