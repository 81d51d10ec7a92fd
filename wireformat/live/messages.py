"""Messages of CopyData as they arrive: in Arrow arrays, without a Python object for each, or in a temporary file."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

_COLUMN = "payload"

_ENDED = "the messages are not read to their end"
"""The text of the error by which MessageFile ends a reading."""

_SLICE_BYTES = 1 << 20
"""Messages are read in slices of about this size, because the notes of a scan about small messages are many times as
large."""


JOINED_BYTES = 4 << 20
"""Messages are decoded in arrays of up to this size, because each array costs as much as thousands of messages. The
arrays of messages that are received as fast as the server sends them have about a tenth of it."""


def joined(arrays: Iterable[pa.Array]) -> pa.ChunkedArray:
    """Returns messages in arrays of up to JOINED_BYTES, of large_binary if one of the given arrays is."""
    given = list(arrays)
    is_large = any(pa.types.is_large_binary(one.type) for one in given)
    type = pa.large_binary() if is_large else pa.binary()
    groups: list[list[pa.Array]] = []
    size = 0
    for array in given:
        size += array.nbytes
        if not groups or size > JOINED_BYTES:
            groups.append([])
            size = array.nbytes
        groups[-1].append(array.cast(type))
    return pa.chunked_array([group[0] if len(group) == 1 else pa.concat_arrays(group) for group in groups], type)


class Gathered:
    """Messages that have arrived.

    `sizes` has the number of bytes of each, `size` is their sum. `write` takes the bytes of a message; its caller must
    also update both.
    """

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self.write = self._bytes.write
        self.sizes: list[int] = []
        self.size = 0

    def add(self, message: bytes) -> None:
        """Adds a message."""
        self.write(message)
        self.sizes.append(len(message))
        self.size += len(message)

    def array(self) -> pa.Array:
        """Returns the messages, as binary if they have less than 2 GiB, else as large_binary."""
        is_large = self.size > np.iinfo(np.int32).max
        offsets = np.zeros(len(self.sizes) + 1, np.int64 if is_large else np.int32)
        np.cumsum(self.sizes, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._bytes.getbuffer())]
        return pa.Array.from_buffers(pa.large_binary() if is_large else pa.binary(), len(self.sizes), buffers)


class MessageFile:
    """Messages in a temporary file, which can be read more than once.

    `tell` is called with the number of messages read so far, in the thread that reads. An exception that it raises ends
    the reading; see `ended_by`. `count` is the number of messages, `size` their bytes.
    """

    def __init__(self) -> None:
        self.tell: Callable[[int], None] = lambda count: None
        self._ended_by: BaseException | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="wireformat-")
        self._path = Path(self._folder.name) / "messages.arrow"
        self._schema = pa.schema([(_COLUMN, pa.large_binary())])
        self._file = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self.count = self.size = 0

    def write(self, array: pa.Array) -> None:
        """Adds messages. Raises OSError."""
        slices = 1 + array.nbytes // _SLICE_BYTES
        most = max(1, -(-len(array) // slices))
        batch = pa.record_batch([array.cast(pa.large_binary())], schema=self._schema)
        for first in range(0, len(array), most):
            self._writer.write_batch(batch.slice(first, most))
        self.count += len(array)
        self.size += array.nbytes

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns a stream of the messages, by Arrow's PyCapsule interface. Call `end` before it."""

        def batches() -> Iterator[pa.RecordBatch]:
            count = 0
            with pa.OSFile(str(self._path)) as file, pa.ipc.open_file(file) as reader:
                for index in range(reader.num_record_batches):
                    try:
                        self.tell(count)
                    except BaseException as error:
                        self._ended_by = error
                        raise InterruptedError(_ENDED) from None
                    batch = reader.get_batch(index)
                    count += batch.num_rows
                    yield batch

        return pa.RecordBatchReader.from_batches(self._schema, batches()).__arrow_c_stream__(requested_schema)

    def end(self) -> None:
        """Ends the file, after which no messages can be added. Raises OSError."""
        self._writer.close()
        self._file.close()

    def close(self) -> None:
        """Removes the file."""
        if not self._file.closed:
            self._file.close()
        self._folder.cleanup()

    def ended_by(self, error: OSError) -> BaseException | None:
        """Returns the exception of `tell` if reading failed with `error` because of it; else None."""
        return self._ended_by if _ENDED in str(error) else None
