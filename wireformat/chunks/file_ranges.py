"""Ranges of files that can be read independently: row groups of Parquet files, and whole files of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..formats.registry import find_format
from ..sources.files import file_source
from ..sources.find import paths_of
from ..sources.parquet_files import ParquetSource, RowGroup
from ..sources.source import Source

RANGE_BYTES = 128 << 20
"""About how many bytes of messages a range of a Parquet file has."""


MOST_RANGES = 20_000
"""About the largest number of ranges of Parquet files: the memory for the plan of a stream grows with them."""


@dataclass(frozen=True)
class FileRange:
    """A file of messages, or some row groups of a Parquet file.

    column     of a Parquet file, with the messages
    groups     the first row group, and the one after the last; None for a file of messages
    messages   how many there are, if the file says so
    bytes      of the messages of a Parquet file, before compression
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
        """Yields the messages as binary arrays."""
        for given in self.source(format).read():
            found = given.messages
            yield from found.chunks if isinstance(found, pa.ChunkedArray) else [pa.array(found, pa.binary())]


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
            files.append((FileRange(absolute), None))
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


def first_messages(counts: Iterable[int | None]) -> list[int] | None:
    """Returns the index of the first message of each range; None if the number of messages is not known of all.

    counts   the number of messages of each range
    """
    firsts = [0]
    for count in counts:
        if count is None:
            return None
        firsts.append(firsts[-1] + count)
    return firsts[:-1]
