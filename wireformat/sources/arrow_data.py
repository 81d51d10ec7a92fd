"""Messages in memory: Arrow data of every kind, lists and other iterables of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ..arrow.scan.message_batches import as_bytes, size_of
from ..errors import OptionError
from ..limits import MESSAGE_BATCH_BYTES, STEPPED_TIMES
from .columns import find_column, is_binary
from .source import SourceMessages
from .together import chunked

LIST_MESSAGES = 1 << 14
"""The most messages of an iterable that are joined before they are decoded."""


class ArraySource:
    """Binary Arrow arrays.

    arrays      returns the arrays, in order
    most_bytes  see `chunked`
    """

    def __init__(
        self,
        name: str,
        size: int | None,
        arrays: Callable[[], Iterable[pa.Array]],
        *,
        is_repeatable: bool = True,
        most_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.size = size
        self.is_repeatable = is_repeatable
        self._arrays = arrays
        self._most_bytes = most_bytes

    def read(self) -> Iterator[SourceMessages]:
        """See Source.read."""
        for messages in chunked(self._arrays(), self._most_bytes):
            yield SourceMessages(self.name, messages, size_of(messages))


class IterableSource:
    """An iterable of bytes-like objects, some of which may be None."""

    name = "messages"
    size = None

    def __init__(self, messages: Iterable[Any]) -> None:
        self.is_repeatable = isinstance(messages, Sized) or iter(messages) is not messages
        self._messages = messages

    def read(self) -> Iterator[SourceMessages]:
        """See Source.read."""
        if isinstance(self._messages, Sized):
            yield SourceMessages(self.name, self._messages, 0)
            return
        some: list[Any] = []
        size = 0
        try:
            for message in self._messages:
                is_kept = message is None or isinstance(message, pa.Scalar)
                some.append(message if is_kept else as_bytes(message))  # a generator may use its buffer again
                size += len(message) if hasattr(message, "__len__") else 0
                if len(some) == LIST_MESSAGES or size >= MESSAGE_BATCH_BYTES:
                    given, some, size = some, [], 0
                    yield SourceMessages(self.name, given, 0)
        except Exception:
            yield SourceMessages(self.name, some, 0)  # what came before the error is not lost
            raise
        yield SourceMessages(self.name, some, 0)


def arrow_source(data: Any, column: str | None) -> ArraySource | None:
    """Returns the source of Arrow data; None for anything else.

    data     a pyarrow array, chunked array, record batch, table, dataset or reader, or an object with the Arrow C
             interface, such as a Polars DataFrame or Series
    column   the binary column of data with columns; None finds it, see `find_column`

    Raises OptionError for data without such a column.
    """
    if isinstance(data, ds.Dataset):
        return _dataset(data, column)
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _array(data, column)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        name = find_column("the table", data.schema, column)
        return _array(pa.Table.from_batches([data])[name] if isinstance(data, pa.RecordBatch) else data[name], None)
    if hasattr(data, "__arrow_c_stream__"):
        return _stream(data, column)
    if hasattr(data, "__arrow_c_array__"):
        return arrow_source(_of_c_array(data), column)
    return None


def _array(data: pa.Array | pa.ChunkedArray, column: str | None) -> ArraySource:
    if not (is_binary(data.type) or pa.types.is_null(data.type)):
        if pa.types.is_struct(data.type) and isinstance(data, pa.Array):
            name = find_column("the array", pa.schema(list(data.type)), column)
            return _array(data.flatten()[data.type.get_field_index(name)], None)  # null where the struct itself is null
        raise OptionError(f"messages: expected a binary array, got {data.type}")
    if column is not None:
        raise OptionError(f"option column: an array has no columns, got {column!r}")
    chunks = data.chunks if isinstance(data, pa.ChunkedArray) else [data]
    return ArraySource("the array", size_of(data), chunks.__iter__, most_bytes=STEPPED_TIMES * MESSAGE_BATCH_BYTES)


def _dataset(data: ds.Dataset, column: str | None) -> ArraySource:
    name = find_column("the dataset", data.schema, column)
    return ArraySource("the dataset", None, lambda: (batch[name] for batch in data.to_batches(columns=[name])))


def _stream(data: Any, column: str | None) -> ArraySource:
    if not isinstance(data, pa.RecordBatchReader):
        schema = _schema_of(data)
        if schema is None:  # a stream of arrays, such as a Series
            return _array(pa.chunked_array(data), column)
        name = find_column("the data", schema, column)

        def batches() -> Iterator[pa.Array]:
            for batch in pa.RecordBatchReader.from_stream(data):
                yield _alone(batch, name)

        return ArraySource("the data", None, batches)
    name = find_column("the reader", data.schema, column)
    return ArraySource("the reader", None, lambda: (_alone(batch, name) for batch in data), is_repeatable=False)


def _alone(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Returns a column, copied if there are others: all may lie in one buffer, which would be kept."""
    column = batch[name]
    if batch.num_columns == 1:
        return column
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    return pa.concat_arrays([column])


def _schema_of(data: Any) -> pa.Schema | None:
    """Returns the schema of an Arrow C stream; None if it is a stream of arrays that are not struct arrays."""
    try:
        return pa.RecordBatchReader.from_stream(data).schema
    except (pa.ArrowException, TypeError):
        return None


def _of_c_array(data: Any) -> pa.Array | pa.RecordBatch:
    try:
        return pa.record_batch(data)
    except (pa.ArrowException, TypeError):
        return pa.array(data)
