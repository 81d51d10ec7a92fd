"""Typed rows that wait until a stream has been read: in memory, and in temporary files if there are too many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from ..arrow.arrays import batch_size
from ..options.table_names import TableName
from ..temporary import TemporaryFolder, naming_the_folder


class Spill:
    """The typed rows of tables, each table's in their order. As a context manager, it deletes the files at its end.

    memory_bytes   the most bytes that stay in memory; when there are more, the rows of the largest table go to a file
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._folder = TemporaryFolder()
        self._files: dict[TableName, list[Path]] = {}
        self._held: dict[TableName, list[pa.RecordBatch]] = {}
        self._sizes: dict[TableName, int] = {}
        self._size = 0
        self._lock = threading.Lock()
        self._count = 0

    def take(self, table: TableName, batch: pa.RecordBatch) -> None:
        """Takes the next rows of a table. Raises OSError."""
        with self._lock:
            size = batch_size(batch)
            self._held.setdefault(table, []).append(batch)
            self._sizes[table] = self._sizes.get(table, 0) + size
            self._size += size
            while self._size > self._memory_bytes:
                self._write(max(self._sizes, key=self._sizes.__getitem__))

    @property
    def tables(self) -> list[TableName]:
        """The tables that have rows."""
        return list(dict.fromkeys([*self._files, *self._held]))

    def rows(self, table: TableName) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a table; they can be read again."""
        for path in self._files.get(table, ()):
            with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader
        yield from self._held.get(table, ())

    def release(self, table: TableName) -> None:
        """Drops the rows of a table."""
        with self._lock:
            self._held.pop(table, None)
            self._size -= self._sizes.pop(table, 0)
            for path in self._files.pop(table, ()):
                path.unlink(missing_ok=True)

    def _write(self, table: TableName) -> None:
        """Moves the rows of a table from memory to a file."""
        path = self._folder.path / f"{self._count}.arrow"
        self._count += 1
        batches = self._held.pop(table)
        self._size -= self._sizes.pop(table)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            naming_the_folder(),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, batches[0].schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        self._files.setdefault(table, []).append(path)

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held, self._sizes, self._size = {}, {}, 0
        self._folder.close()
