"""Parquet files with a binary column of messages."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import counted
from ..limits import MESSAGE_BATCH_BYTES
from .columns import find_column
from .source import SourceMessages, errors_of
from .together import chunked

READ_BYTES = 1 << 20
"""The number of bytes that are read from a file at once."""

MOST_ROWS = 1 << 17
"""The most messages that are read at once."""

BATCH_ROWS = 4096
"""The number of rows that are read at a time to find a message."""


class ParquetSource:
    """Messages in a binary column of a Parquet file.

    file     its path, or the open file
    column   name of the column; None finds it, see `find_column`
    groups   the row groups to read; None for all
    """

    is_repeatable = True
    groups: range | None = None

    def __init__(self, name: str, file: Path | BinaryIO, size: int, column: str | None) -> None:
        self.name = name
        self.size = size
        self.file = file
        with errors_of(name, pa.ArrowException), pq.ParquetFile(file) as parquet:
            self.column = find_column(name, parquet.schema_arrow, column)
            self.has_rows = parquet.metadata.num_rows > 0

    def read(self) -> Iterator[SourceMessages]:
        """See Source.read."""
        with self._opened() as parquet:
            if not parquet.metadata.num_rows:
                yield SourceMessages(self.name, [], self.size)
            bytes_per_row = self.size / max(parquet.metadata.num_rows, 1)
            for messages in chunked(batch.column(0) for batch in self._batches(parquet, [self.column])):
                yield SourceMessages(self.name, messages, round(len(messages) * bytes_per_row))

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields some columns of the rows, about MESSAGE_BATCH_BYTES of messages at a time. Raises OSError."""
        with self._opened() as parquet:
            for batch in self._batches(parquet, columns):
                yield batch.select(columns)

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with (
            errors_of(self.name, pa.ArrowException),
            pq.ParquetFile(self.file, buffer_size=READ_BYTES, pre_buffer=False) as parquet,
        ):
            find_column(self.name, parquet.schema_arrow, self.column)  # the file may have been replaced
            if self.groups is not None and self.groups.stop > parquet.num_row_groups:
                expected, found = (counted(count, "row group") for count in (self.groups.stop, parquet.num_row_groups))
                text = f"expected at least {expected}, as when it was looked at first, got {found}"
                raise OSError(errno.ESTALE, text)
            yield parquet

    def _batches(self, parquet: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        groups = range(parquet.num_row_groups) if self.groups is None else self.groups
        sizes = {group: RowGroup.of(parquet.metadata.row_group(group), self.column) for group in groups}
        for together in _together(sizes):
            yield from parquet.iter_batches(_rows_at_once(together.values()), [*together], columns=[*columns])

    def row_groups(self) -> list[RowGroup]:
        """Returns the row groups of the file."""
        with errors_of(self.name, pa.ArrowException), pq.ParquetFile(self.file) as parquet:
            groups = map(parquet.metadata.row_group, range(parquet.num_row_groups))
            return [RowGroup.of(group, self.column) for group in groups]


class RowGroup(NamedTuple):
    """A row group of a Parquet file.

    bytes   of its messages
    """

    rows: int
    bytes: int

    @classmethod
    def of(cls, group: pq.RowGroupMetaData, column: str) -> RowGroup:
        """Returns what the metadata of a file say, of messages in this column."""
        chunks = (group.column(index) for index in range(group.num_columns))
        size = next(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == column)
        return cls(group.num_rows, size)


class RowInGroup(NamedTuple):
    """The message of a row, and those before it in its row group, oldest first."""

    message: Any
    before: list[Any]


def row_of(source: ParquetSource, index: int) -> RowInGroup | int:
    """Returns a row, of which only the row group is read; the number of rows if there are fewer."""
    with errors_of(source.name, pa.ArrowException), pq.ParquetFile(source.file, pre_buffer=False) as parquet:
        column = find_column(source.name, parquet.schema_arrow, source.column)
        first = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if index >= first + rows:
                first += rows
                continue
            before: list[Any] = []
            for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=[column]):
                messages = batch.column(0)
                if index < first + len(messages):
                    before += messages[: index - first]
                    return RowInGroup(messages[index - first], before)
                before += messages
                first += len(messages)
        return first


def _together(sizes: Mapping[int, RowGroup]) -> Iterator[dict[int, RowGroup]]:
    """Yields row groups that are read together, by number: small ones, since each costs as much as many rows."""
    found: dict[int, RowGroup] = {}
    rows = size = 0
    for number, group in sizes.items():
        if found and (rows + group.rows > MOST_ROWS or size + group.bytes > MESSAGE_BATCH_BYTES):
            yield found
            found, rows, size = {}, 0, 0
        found[number] = group
        rows, size = rows + group.rows, size + group.bytes
    if found:
        yield found


def _rows_at_once(groups: Collection[RowGroup]) -> int:
    """Returns the number of rows that hold about MESSAGE_BATCH_BYTES of messages."""
    rows, size = (sum(column) for column in zip(*groups, strict=True))
    return int(max(1, min(MOST_ROWS, MESSAGE_BATCH_BYTES * rows // max(size, 1))))
