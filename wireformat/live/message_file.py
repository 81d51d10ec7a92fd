"""Messages in a temporary file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

_COLUMN = "payload"


class MessageFile:
    """Messages in a temporary file."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="wireformat-")
        self._path = Path(self._folder.name) / "messages.arrow"
        self._schema = pa.schema([(_COLUMN, pa.large_binary())])
        self._file = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self.count = 0

    def write(self, array: pa.Array) -> None:
        """Adds messages."""
        self._writer.write_batch(pa.record_batch([array.cast(pa.large_binary())], schema=self._schema))
        self.count += len(array)

    def dataset(self) -> ds.Dataset:
        """Returns the messages; no more are added."""
        self._end()
        return ds.dataset(self._path, format="ipc")

    def _end(self) -> None:
        if not self._file.closed:
            self._writer.close()
            self._file.close()

    def close(self) -> None:
        """Removes the file."""
        self._end()
        self._folder.cleanup()
