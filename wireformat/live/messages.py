"""Messages of CopyData as they arrive, and as Arrow arrays without an object each."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa


class Gathered:
    """Messages that have arrived.

    sizes   the size of each
    size    of all, in bytes
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
