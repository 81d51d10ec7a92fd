"""Messages in a temporary file."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

_COLUMN = "payload"

_SLICE_BYTES = 1 << 20
"""Messages are read in slices of about this size: what a scan notes of small ones is many times as large."""


class MessageFile:
    """Messages in a temporary file, which can be read more than once.

    stop          reading fails when it is set
    was_stopped   whether reading has failed for it
    """

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._stop = stop or threading.Event()
        self.was_stopped = False
        self._folder = tempfile.TemporaryDirectory(prefix="wireformat-")
        self._path = Path(self._folder.name) / "messages.arrow"
        self._schema = pa.schema([(_COLUMN, pa.large_binary())])
        self._file = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self.count = self.size = 0

    def write(self, array: pa.Array) -> None:
        """Adds messages."""
        slices = 1 + array.nbytes // _SLICE_BYTES
        most = max(1, -(-len(array) // slices))
        batch = pa.record_batch([array.cast(pa.large_binary())], schema=self._schema)
        for first in range(0, len(array), most):
            self._writer.write_batch(batch.slice(first, most))
        self.count += len(array)
        self.size += array.nbytes

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Reads the messages, one record batch after the other; no more are added."""
        self._end()

        def batches() -> Iterator[pa.RecordBatch]:
            with pa.OSFile(str(self._path)) as file, pa.ipc.open_file(file) as reader:
                for index in range(reader.num_record_batches):
                    if self._stop.is_set():
                        self.was_stopped = True
                        raise InterruptedError("stopped")
                    yield reader.get_batch(index)

        return pa.RecordBatchReader.from_batches(self._schema, batches()).__arrow_c_stream__(requested_schema)

    def _end(self) -> None:
        if not self._file.closed:
            self._writer.close()
            self._file.close()

    def close(self) -> None:
        """Removes the file."""
        self._end()
        self._folder.cleanup()
