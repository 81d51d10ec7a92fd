"""Messages as the scan takes them: one buffer and where each message begins and ends, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from io import IOBase
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import LimitExceeded
from ...limits import MESSAGE_BATCH_BYTES, MESSAGE_BYTES, STEPPED_TIMES
from ..arrays import Array, read_only


class MessageBatch(NamedTuple):
    """Some messages, in order; null messages are left out but counted in the indexes."""

    buffer: Array
    """uint8[n], read-only"""
    starts: Array
    """int64[m]"""
    stops: Array
    """int64[m]"""
    indexes: Array
    """int64[m]: index of the message in the whole input"""

    def message(self, batch_index: int) -> bytes:
        """One message, by its index in the batch, copied."""
        return self.buffer[self.starts[batch_index] : self.stops[batch_index]].tobytes()

    def positions(self, messages: Array) -> Array:
        """int64[n]: these messages of the input, as indexes in the batch."""
        indexes = self.indexes
        if indexes[-1] - indexes[0] == len(indexes) - 1:
            return messages - indexes[0]
        found: Array = np.searchsorted(indexes, messages)
        return found

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """Each message with its index, copied."""
        return ((index, self.message(batch_index)) for batch_index, index in enumerate(self.indexes.tolist()))


class BatchSizes:
    """How large message batches are.

    parts       into how many parts MESSAGE_BATCH_BYTES are cut
    threads     how many threads read them
    are_large   whether most rows are stepped over: then a batch of an array costs more than its rows. Who reads the
                batches may change it at any time, from any thread: it decides about the next batch
    """

    def __init__(self, parts: int = 1, threads: int = 1, are_large: bool = False) -> None:
        self._parts = parts
        self._threads = threads
        self.are_large = are_large

    @property
    def usual(self) -> int:
        """The size in bytes of a batch that is not large."""
        return MESSAGE_BATCH_BYTES // self._parts

    def of(self, left: int) -> int:
        """Returns the size of the next batch of an array of which so many bytes are left. The threads share them."""
        if not self.are_large:
            return self.usual
        return max(self.usual, min(left, STEPPED_TIMES * MESSAGE_BATCH_BYTES) // self._threads)


def message_batches(messages: Any, first: int = 0, sizes: BatchSizes | None = None) -> Iterator[MessageBatch]:
    """Cuts messages into batches of about these sizes, each with at least one message.

    messages    an iterable of bytes-like objects or None, or a pyarrow binary array or chunked array, which is read
                without copying but for small chunks
    first       index of the first message

    Raises LimitExceeded for a message longer than MESSAGE_BYTES, TypeError for what holds no bytes.
    """
    check_messages(messages)
    sizes = sizes or BatchSizes()
    arrays = _joined_arrays(messages.chunks, sizes) if isinstance(messages, pa.ChunkedArray) else [messages]
    for array in arrays:
        if isinstance(array, pa.Array):
            yield from _array_batches(array, first, sizes)
            first += len(array)
        else:
            yield from _iterable_batches(array, first, sizes.usual)


VIEW = np.dtype([("length", np.int32), ("rest", np.uint8, 12)])
"""A value of an array of views; see the Arrow columnar format, "Variable-size Binary View Layout"."""

COUNTED_BYTES = 1 << 7
"""What a message counts at least where arrays are joined: what a scan notes of a small one is many times as large."""


def _joined_arrays(arrays: list[pa.Array], sizes: BatchSizes) -> Iterator[pa.Array]:
    """Yields the arrays, small ones that follow each other as one: each costs as much as thousands of messages."""
    all_bytes = [*map(counted_bytes, arrays)]
    left = sum(all_bytes)
    small: list[pa.Array] = []
    size = 0
    for array, array_bytes in zip(arrays, all_bytes, strict=True):
        if small and (size + array_bytes > sizes.of(left) or array.type != small[0].type):
            yield concatenated(small)
            left -= size
            small, size = [], 0
        small.append(array)
        size += array_bytes
    if small:
        yield concatenated(small)


def counted_bytes(array: pa.Array) -> int:
    """Returns the size of messages as it counts where arrays are put together."""
    return max(size_of(array), COUNTED_BYTES * len(array))


def size_of(data: pa.Array | pa.ChunkedArray | pa.Table) -> int:
    """Returns the size in bytes; of views without what others need of the buffers that they share."""
    if isinstance(data, pa.Table):
        return sum(map(size_of, data.columns))
    if not (pa.types.is_binary_view(data.type) or pa.types.is_string_view(data.type)):
        return int(data.nbytes)
    if isinstance(data, pa.ChunkedArray):
        return sum(map(size_of, data.chunks))
    if not len(data):  # may have no buffers
        return 0
    views = np.frombuffer(data.buffers()[1], VIEW)[data.offset : data.offset + len(data)]
    return views.nbytes + int(views["length"].sum(dtype=np.int64))


def concatenated(arrays: list[pa.Array]) -> pa.Array:
    """Returns arrays of a type as one; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def is_live(messages: Any) -> bool:
    """Whether the next message may not exist yet: what has no length may be a generator over a slot."""
    check_messages(messages)
    return not isinstance(messages, Sized)


def one_by_one(messages: Iterable[Any], first: int = 0) -> Iterator[tuple[int, bytes]]:
    """Each message with its index, before the next one is asked for; raises as `message_batches`."""
    for index, message in enumerate(messages, first):
        if message is None or (isinstance(message, pa.Scalar) and not message.is_valid):
            continue
        data = as_bytes(message)
        if len(data) > MESSAGE_BYTES:
            raise LimitExceeded(f"limits.MESSAGE_BYTES is {MESSAGE_BYTES}, message {index} has {len(data)} bytes")
        yield index, data


def check_messages(messages: Any) -> None:
    """Raises TypeError for what cannot be messages."""
    if isinstance(messages, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"messages: expected an iterable of messages, got one {type(messages).__name__}")
    if isinstance(messages, IOBase):
        raise TypeError(
            "messages: expected an iterable of messages, got an open file, which Python would cut at line feeds; "
            "feed its bytes to a Decoder"
        )
    if isinstance(messages, (pa.Table, pa.RecordBatch)):
        raise TypeError(
            f"messages: expected one column of messages, got a {type(messages).__name__}; "
            "take its column, as table['payload']"
        )
    if isinstance(messages, (set, frozenset)):
        raise TypeError(f"messages: expected them in the order in which they came, got a {type(messages).__name__}")
    if isinstance(messages, np.ndarray) and messages.dtype.kind == "S":
        raise TypeError(
            f"messages: expected bytes as they came, got a numpy array of {messages.dtype}, which drops zero bytes at "
            "their ends; make it with dtype=object, or give a list"
        )
    if not isinstance(messages, (pa.Array, pa.ChunkedArray, Iterable)):
        raise TypeError(f"messages: expected an iterable of bytes-like objects, got {type(messages).__name__}")


def _array_batches(array: pa.Array, first: int, sizes: BatchSizes) -> Iterator[MessageBatch]:
    if pa.types.is_null(array.type):
        return
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        if not (pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary_view(array.type)):
            raise TypeError(f"messages: expected a binary array, got {array.type}")
        array = array.cast(pa.large_binary())
    if not len(array):  # an empty array need not have offsets
        return
    _, offset_buffer, data = array.buffers()
    width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    offsets = np.frombuffer(offset_buffer, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    buffer = read_only(np.frombuffer(data if data is not None else b"", np.uint8))
    starts, stops, indexes = offsets[:-1], offsets[1:], np.arange(first, first + len(array))
    if array.null_count:
        valid = np.asarray(array.is_valid())
        starts, stops, indexes = starts[valid], stops[valid], indexes[valid]
    longest = int((stops - starts).max()) if len(starts) else 0
    if longest > MESSAGE_BYTES:
        raise LimitExceeded(f"limits.MESSAGE_BYTES is {MESSAGE_BYTES}, a message has {longest} bytes")
    begin = 0
    while begin < len(starts):
        base = int(starts[begin])
        batch_bytes = sizes.of(int(stops[-1]) - base)
        end = max(int(np.searchsorted(stops, base + batch_bytes, side="right")), begin + 1)
        span = slice(begin, end)
        yield MessageBatch(buffer[base : int(stops[end - 1])], starts[span] - base, stops[span] - base, indexes[span])
        begin = end


def _iterable_batches(messages: Iterable[Any], first: int, batch_bytes: int) -> Iterator[MessageBatch]:
    if type(messages) is list and (types := {*map(type, messages)}) <= {bytes, NoneType}:
        indexes = np.arange(first, first + len(messages))
        if NoneType in types:
            indexes = indexes[[message is not None for message in messages]]
            parts = [message for message in messages if message is not None]
        else:
            parts = messages
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        if not (lengths > MESSAGE_BYTES).any():
            yield from _list_batches(parts, np.cumsum(lengths), indexes, batch_bytes)
            return
    numbers: list[int] = []
    parts, size = [], 0
    try:
        for index, data in one_by_one(messages, first):
            if parts and size + len(data) > batch_bytes:
                given, given_numbers, parts, numbers, size = parts, numbers, [], [], 0
                yield _joined(given, given_numbers)
            parts.append(data)
            numbers.append(index)
            size += len(data)
    except Exception:
        if parts:
            yield _joined(parts, numbers)  # what came before the error is not lost
        raise
    if parts:
        yield _joined(parts, numbers)


def _list_batches(messages: list[bytes], stops: Array, indexes: Array, batch_bytes: int) -> Iterator[MessageBatch]:
    """The batches of a list, without a step of Python for each message.

    stops, indexes   int64[m]: where each message would end if all were joined, and its index in the input
    """
    begin = base = 0
    while begin < len(messages):
        end = max(int(np.searchsorted(stops, base + batch_bytes, side="right")), begin + 1)
        yield _batch(messages[begin:end], stops[begin:end] - base, indexes[begin:end])
        begin, base = end, int(stops[end - 1])


def _joined(parts: list[bytes], indexes: list[int]) -> MessageBatch:
    return _batch(parts, np.cumsum([len(part) for part in parts], dtype=np.int64), np.array(indexes, np.int64))


def _batch(parts: list[bytes], stops: Array, indexes: Array) -> MessageBatch:
    starts = np.concatenate([[0], stops[:-1]]).astype(np.int64)
    return MessageBatch(read_only(np.frombuffer(b"".join(parts), np.uint8)), starts, stops, indexes)


def as_bytes(message: Any) -> bytes:
    """Returns a message as bytes; raises TypeError for what is no bytes-like object, such as a list of numbers."""
    if isinstance(message, bytes):
        return message
    try:
        return memoryview(message).tobytes()
    except TypeError:
        raise TypeError(f"messages: expected bytes-like objects, got {type(message).__name__} among them") from None
