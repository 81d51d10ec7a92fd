"""Rows of transactions that have not ended: in memory, and beyond a limit in Arrow files."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ...options.checks import number

Handle = int | str
"""What a store gives for a batch; it goes into a saved state as it is."""


class Store(Protocol):
    """Keeps record batches, all of one schema."""

    def put(self, batch: pa.RecordBatch) -> Handle:
        """Keep a batch, and return a handle to it that no other batch has."""

    def get(self, handle: Any) -> pa.RecordBatch:
        """The batch of a handle; it stays kept. Raises KeyError if there is none."""

    def drop(self, handle: Any) -> None:
        """Forget the batch of a handle. Raises KeyError if there is none."""


class RowSpill:
    """A Store in memory; once it holds more than `memory_limit` bytes, all that it holds goes to a file.

    The files lie in a temporary folder of their own. A file is removed when nothing of it is kept any longer, the
    folder with `close`, and at the latest when this object or the process ends. In a file each batch is an Arrow IPC
    stream of its own, one behind the other: so batches may have other dictionaries, and each is found without the rest.
    """

    def __init__(self, memory_limit: int) -> None:
        self._limit = number("memory_limit", memory_limit, 0)
        self._bytes = 0
        self._next = 0
        self._files = 0
        self._held: dict[int, pa.RecordBatch] = {}
        self._spilled: dict[int, tuple[Path, int]] = {}
        self._alive: Counter[Path] = Counter()
        self._folder = TemporaryFolder()

    def put(self, batch: pa.RecordBatch) -> int:
        """See Store.put."""
        handle = self._count()
        self._held[handle] = batch
        self._bytes += batch.nbytes
        if self._bytes > self._limit:
            held, self._held, self._bytes = self._held, {}, 0
            self._write(held.items())
        return handle

    def put_in_file(self, batches: Iterable[pa.RecordBatch]) -> list[int]:
        """Keep batches in one file, whatever the limit, and return their handles."""
        first = self._next
        self._write((self._count(), batch) for batch in batches)
        return list(range(first, self._next))

    def get(self, handle: int) -> pa.RecordBatch:
        """See Store.get."""
        if handle in self._held:
            return self._held[handle]
        path, start = self._spilled[handle]
        with pa.OSFile(str(path)) as file:
            file.seek(start)
            return pa.ipc.open_stream(file).read_next_batch()

    def drop(self, handle: int) -> None:
        """See Store.drop."""
        if handle in self._held:
            self._bytes -= self._held.pop(handle).nbytes
            return
        path, _ = self._spilled.pop(handle)
        self._alive[path] -= 1
        if not self._alive[path]:
            del self._alive[path]
            path.unlink()

    def close(self) -> None:
        """Forget everything."""
        self._held.clear()
        self._spilled.clear()
        self._alive.clear()
        self._bytes = 0
        self._folder.close()

    def _count(self) -> int:
        self._next += 1
        return self._next - 1

    def _write(self, batches: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        path = self._folder.path / f"{self._files}.arrows"
        self._files += 1
        with pa.OSFile(str(path), "wb") as file:
            for handle, batch in batches:
                self._spilled[handle] = path, file.tell()
                self._alive[path] += 1
                with pa.ipc.new_stream(file, batch.schema) as writer:
                    writer.write_batch(batch)


class TemporaryFolder:
    """Made when it is first asked for; nobody has to close it."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._remove: weakref.finalize[[str], TemporaryFolder] | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="wireformat-"))
            self._remove = weakref.finalize(self, shutil.rmtree, str(self._path), ignore_errors=True)
        return self._path

    def close(self) -> None:
        """Remove it with all that lies in it."""
        if self._remove is not None:
            self._remove()
        self._path = self._remove = None


_EVENTS = pa.schema([pa.field("event", pa.large_binary(), nullable=False)])


class EventSpill:
    """An `EventStore` in files of the store of rows."""

    def __init__(self) -> None:
        self._rows = RowSpill(memory_limit=0)

    def put(self, pieces: Iterable[list[Any]]) -> list[int]:
        """See EventStore.put."""
        return self._rows.put_in_file(
            pa.record_batch([[pickle.dumps(one, pickle.HIGHEST_PROTOCOL) for one in piece]], schema=_EVENTS)
            for piece in pieces
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
