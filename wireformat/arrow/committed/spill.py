"""Stores rows of open transactions in memory, and beyond a limit in Arrow files."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ...options.checks import number
from ...temporary import TemporaryFolder, naming_the_folder
from ..arrays import batch_size

Handle = int | str
"""The handle of a stored batch. It is saved in the state as it is."""


class RowStore(Protocol):
    """Stores record batches of one schema."""

    def put(self, batch: pa.RecordBatch) -> Handle:
        """Stores a batch, and returns a handle that no other batch has."""

    def get(self, handle: Any) -> pa.RecordBatch:
        """Returns the batch of a handle, which stays stored. Raises KeyError if there is none."""

    def drop(self, handle: Any) -> None:
        """Removes the batch of a handle. Raises KeyError if there is none."""


def checked_store(store: Any) -> RowStore:
    """The store that a caller passed; raises TypeError if a method is missing."""
    methods = ("put", "get", "drop")
    if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in methods):
        given = f"the class {store.__name__}" if isinstance(store, type) else type(store).__name__
        raise TypeError(f"store: expected an object with the methods put, get and drop, got {given}")
    found: RowStore = store
    return found


class RowSpill:
    """A RowStore in memory. Whenever it has more than `memory_limit` bytes in memory, it moves them all to a new file.

    The files are in a temporary folder. A file is removed with the last of its batches, and the folder by `close`, or
    when this object or the process ends. In a file each batch is an Arrow IPC stream of its own, so that batches can
    have different dictionaries and be read separately.
    """

    def __init__(self, memory_limit: int) -> None:
        self._limit = number("memory_limit", memory_limit, 0)
        self._bytes = 0
        self._next_handle = 0
        self._file_count = 0
        self._in_memory: dict[int, pa.RecordBatch] = {}
        self._spilled: dict[int, tuple[Path, int]] = {}
        self._batches_of_file: Counter[Path] = Counter()
        self._folder = TemporaryFolder()

    def put(self, batch: pa.RecordBatch) -> int:
        """See RowStore.put."""
        handle = self._new_handle()
        self._in_memory[handle] = batch
        self._bytes += batch_size(batch)
        if self._bytes > self._limit:
            batches, self._in_memory, self._bytes = self._in_memory, {}, 0
            self._write(batches.items())
        return handle

    def put_in_file(self, batches: Iterable[pa.RecordBatch]) -> list[int]:
        """Stores batches in one file, whatever the limit, and returns their handles."""
        first = self._next_handle
        self._write((self._new_handle(), batch) for batch in batches)
        return list(range(first, self._next_handle))

    def get(self, handle: int) -> pa.RecordBatch:
        """See RowStore.get."""
        if handle in self._in_memory:
            return self._in_memory[handle]
        path, start = self._spilled[handle]
        with pa.OSFile(str(path)) as file:
            file.seek(start)
            return pa.ipc.open_stream(file).read_next_batch()

    def drop(self, handle: int) -> None:
        """See RowStore.drop."""
        if handle in self._in_memory:
            self._bytes -= batch_size(self._in_memory.pop(handle))
            return
        path, _ = self._spilled.pop(handle)
        self._batches_of_file[path] -= 1
        if not self._batches_of_file[path]:
            del self._batches_of_file[path]
            path.unlink()

    def close(self) -> None:
        """Removes everything."""
        self._in_memory.clear()
        self._spilled.clear()
        self._batches_of_file.clear()
        self._bytes = 0
        self._folder.close()

    def _new_handle(self) -> int:
        self._next_handle += 1
        return self._next_handle - 1

    def _write(self, batches: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        path = self._folder.path / f"{self._file_count}.arrows"
        self._file_count += 1
        with naming_the_folder(), pa.OSFile(str(path), "wb") as file:
            for handle, batch in batches:
                self._spilled[handle] = path, file.tell()
                self._batches_of_file[path] += 1
                with pa.ipc.new_stream(file, batch.schema) as writer:
                    writer.write_batch(batch)


_EVENTS = pa.schema([pa.field("event", pa.large_binary(), nullable=False)])


class EventSpill:
    """An `EventStore` that keeps pickled events in the files of a RowSpill."""

    def __init__(self) -> None:
        self._rows = RowSpill(memory_limit=0)

    def put(self, lists: Iterable[list[Any]]) -> list[int]:
        """See EventStore.put."""
        return self._rows.put_in_file(
            pa.record_batch([[pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]], schema=_EVENTS)
            for items in lists
        )

    def get(self, handle: int) -> Iterator[Any]:
        """See EventStore.get."""
        return (pickle.loads(cell.as_buffer()) for cell in self._rows.get(handle)["event"])

    def drop(self, handle: int) -> None:
        """See EventStore.drop."""
        self._rows.drop(handle)

    def close(self) -> None:
        """See EventStore.close."""
        self._rows.close()
