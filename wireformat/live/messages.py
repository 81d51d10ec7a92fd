"""Messages of CopyData as they arrive: in Arrow arrays, without a Python object for each, or in a temporary file.

Besides the changes, a server and a reader exchange keepalives and status updates. PostgreSQL sends single fields,
big-endian. Source: PostgreSQL manual, "Streaming Replication Protocol".

GaussDB and openGauss send structs of C as they are in memory: little-endian, padded as by a 64-bit compiler. Only the
header of a data message is as PostgreSQL's. Source: openGauss-server 7e1fc94a,
src/include/replication/walprotocol.h, PrimaryKeepaliveMessage and StandbyReplyMessage; they are copied into messages by
WalSndKeepalive and ProcessStandbyReplyMessage of walsender.cpp and by sendFeedback of pg_recvlogical.cpp, and field by
field by V3PGReplicationStream.java of openGauss-connector-jdbc 6f4819bf.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import BadLength
from ..temporary import TemporaryFolder, naming_the_folder


class Feedback(NamedTuple):
    """How a kind of server lays out both messages.

    server          the kind of server, for errors
    keepalive       the fields of its keepalive that are read: the second is the LSN, the last asks for an answer
    may_be_longer   whether a keepalive may have more fields
    status          packs a status update: LSN received, LSN safe, microseconds since 2000, whether an answer is wanted
    """

    server: str
    keepalive: struct.Struct
    may_be_longer: bool
    status: Callable[[int, int, int, bool], bytes]

    def read_keepalive(self, message: bytes) -> tuple[int, bool]:
        """Returns the LSN of a keepalive, and whether it asks for an answer; `message` begins with its letter.

        `Cutter` explains the meaning of the LSN.
        Raises BadLength: in another layout, the bytes of the LSN could be any number.
        """
        size, least = len(message), self.keepalive.size
        if size < least or (size > least and not self.may_be_longer):
            expected = f"{self.server}'s keepalive of {'at least ' if self.may_be_longer else ''}{least} bytes"
            raise BadLength(expected, f"{size} bytes", message_offset=0, path="keepalive", spot=message[:16])
        fields = self.keepalive.unpack_from(message)
        return fields[1], fields[-1]


_POSTGRES_STATUS = struct.Struct(">cQQQq?")
"""'r'; written, flushed and applied up to; time; whether an answer is wanted."""

_GAUSSDB_STATUS = struct.Struct("<cQQQQQiiq?3xI")
"""'r'; received, written, flushed, applied and read for applying up to; role and state; time; whether an answer is
wanted; flags, which are padding in earlier versions."""


def _postgres_status(received: int, safe: int, now_us: int, wants_answer: bool) -> bytes:
    return _POSTGRES_STATUS.pack(b"r", received, safe, safe, now_us, wants_answer)


def _gaussdb_status(received: int, safe: int, now_us: int, wants_answer: bool) -> bytes:
    # With shared storage, the server forgets its log up to what has been applied, not up to what has been flushed.
    return _GAUSSDB_STATUS.pack(b"r", received, received, safe, safe, safe, 0, 0, now_us, wants_answer, 0)


POSTGRES = Feedback("PostgreSQL", struct.Struct(">cQq?"), False, _postgres_status)
"""Keepalive: 'k', end of the log, time, whether an answer is wanted."""

GAUSSDB = Feedback("GaussDB", struct.Struct("<cQiiq?"), True, _gaussdb_status)
"""Keepalive: 'k', end of the log, role, state, time, whether an answer is wanted. Flags and padding follow: a version
has one flag, the next one three, 33 bytes in all."""

_FIRST_POSTGRES = 90400
"""The first PostgreSQL that decodes its log; GaussDB and openGauss report 9.2.4."""


def feedback_of(server_version: int) -> Feedback:
    """Returns the layout of a server that reports this version, such as 90204 for 9.2.4."""
    return GAUSSDB if server_version < _FIRST_POSTGRES else POSTGRES


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
        self._folder = TemporaryFolder()
        self._path = self._folder.path / "messages.arrow"
        self._schema = pa.schema([(_COLUMN, pa.large_binary())])
        self._file = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self.count = self.size = 0

    def write(self, array: pa.Array) -> None:
        """Adds messages. Raises OSError."""
        slices = 1 + array.nbytes // _SLICE_BYTES
        most = max(1, -(-len(array) // slices))
        batch = pa.record_batch([array.cast(pa.large_binary())], schema=self._schema)
        with naming_the_folder():
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
        with naming_the_folder():
            self._writer.close()
            self._file.close()

    def close(self) -> None:
        """Removes the file."""
        if not self._file.closed:
            self._file.close()
        self._folder.close()

    def ended_by(self, error: OSError) -> BaseException | None:
        """Returns the exception of `tell` if reading failed with `error` because of it; else None."""
        return self._ended_by if _ENDED in str(error) else None
