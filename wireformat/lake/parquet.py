"""Rows as a Parquet file, one row group after the other."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .stored.store import Store

MOST_STATISTICS_CHARACTERS = 32
"""Longer texts are no bounds of a column in Delta's log, which is read as a whole."""


_SAMPLE_ROWS = 256
_MOST_DIFFERENT = 0.75
"""The values of a column repeat if at most this share of the first ones differs."""

_FEW_DIFFERENT = 0.125
"""Numbers that ascend repeat only if at most this share of the first ones differs: they do not come again later."""

COLUMN_CHUNK_BYTES = 1024
"""Memory that a column of a row group takes until the footer is written; more for long names and values."""

_BUFFER_BYTES = 1 << 16
"""Number of bytes written to a file at once: a call of Python for each page would wait for other threads."""


class WrittenFile(NamedTuple):
    """A file that has been written.

    path         in the lake
    unfinished   where it is until it is published
    partition    the value of the partition's column, as text; {} if there are no partitions
    statistics   for the log of a Delta table; empty for a file of a Parquet lake
    """

    path: str
    unfinished: str
    rows: int
    size: int
    partition: dict[str, str | None]
    statistics: str


class ParquetFile:
    """Writes a Parquet file.

    path        its name
    schema      of the rows, with metadata of the columns
    partition   see WrittenFile
    is_logged   whether the log of a Delta table shows it to readers. It then has its name from the beginning, and
                statistics; else it has another name until it is published
    writer      see Store.hidden

    Between row groups, a file of this machine is closed: there may be more tables than a process may open files.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        schema: pa.Schema,
        partition: Mapping[str, str | None],
        *,
        is_logged: bool = False,
        writer: str | None = None,
    ) -> None:
        self._store = store
        self._path = path
        self._unfinished = path if is_logged or not store.moves else store.hidden(path, writer)
        store.make_folder_of(path)
        self._sink = _Sink(store, self._unfinished)
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._sink, "w"), _BUFFER_BYTES)
        self._schema = schema
        self._found: list[Any] = []
        self._writer: pq.ParquetWriter | None = None
        self._partition = dict(partition)
        self._is_logged = is_logged
        self._rows = 0
        self._columns = sum(map(_leaves, schema))
        self.column_chunks = 0
        """How many columns of row groups have been written."""

    @property
    def size(self) -> int:
        """The size so far, in bytes."""
        return self._sink.tell()

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes rows, as one row group. Raises OSError."""
        self._writer_for(batch).write_batch(batch, row_group_size=max(len(batch), 1))
        self._rows += len(batch)
        self.column_chunks += self._columns
        self._buffered.flush()
        self._sink.drain()

    def close(self, metadata: Mapping[str, str]) -> WrittenFile:
        """Ends the file, with metadata. Its bytes are on the disk then. Raises OSError."""
        writer = self._writer or self._writer_for(self._schema.empty_table())
        writer.add_key_value_metadata(dict(metadata))
        writer.close()
        self._buffered.flush()
        size = self._sink.end()
        self._store.flush(self._unfinished)
        statistics = _statistics(self._found[0], self._rows) if self._is_logged else ""
        return WrittenFile(self._path, self._unfinished, self._rows, size, self._partition, statistics)

    def _writer_for(self, first: pa.RecordBatch | pa.Table) -> pq.ParquetWriter:
        """Returns the writer. Columns whose values repeat in the first rows get a dictionary.

        For other columns it would be made and dropped: that takes longer, and the file becomes larger.
        """
        if self._writer is None:
            columns = zip(first.schema.names, first.columns, strict=True) if isinstance(first, pa.RecordBatch) else ()
            self._writer = pq.ParquetWriter(
                self._buffered,
                self._schema,
                compression="zstd",
                use_dictionary=[path for name, column in columns for path in _repeating(name, column)],
                metadata_collector=self._found,
            )
        return self._writer

    def discard(self) -> None:
        """Removes what has been written."""
        self._sink.discard()
        self._store.delete(self._unfinished)


class _Sink(io.RawIOBase):
    """What a Parquet writer writes to: bytes wait in memory until a row group is complete."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._waiting: list[bytes] = []
        self._size = 0
        self._stream: pa.NativeFile | None = None
        self._is_discarded = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def drain(self) -> None:
        """Writes what is waiting."""
        data, self._waiting = b"".join(self._waiting), []
        if self._is_discarded:
            return
        if self._store.is_local:
            self._store.append(self._path, data, self._size - len(data))
            return
        if self._stream is None:
            self._stream = self._store.open(self._path)
        self._stream.write(data)

    def end(self) -> int:
        """Ends the file and returns its size. Raises OSError."""
        self.drain()
        if self._stream is not None:
            self._stream.close()
        self.close()
        return self._size

    def close(self) -> None:
        """Drops what is waiting. Arrow and Python call this when a file goes that was not ended.

        A Parquet writer writes a footer then, and another write may have removed or replaced the file.
        """
        self._waiting = []
        self._is_discarded = True
        super().close()

    def discard(self) -> None:
        """Drops what is waiting, and what comes."""
        self._waiting = []
        self._is_discarded = True
        if self._stream is not None:
            self._stream.close()


def _leaves(field: pa.Field) -> int:
    """Returns the number of columns that a field has in a file."""
    type = field.type
    return sum(_leaves(type.field(index)) for index in range(type.num_fields)) or 1


def _repeating(path: str, column: pa.Array) -> Iterator[str]:
    """Yields the paths of the columns of a file that have the values of a column, if these repeat."""
    type = column.type
    sample = column.slice(0, _SAMPLE_ROWS)
    if pa.types.is_struct(type):
        for field, child in zip(type, sample.flatten(), strict=True):
            yield from _repeating(f"{path}.{field.name}", child)
    elif pa.types.is_map(type):
        yield from _repeating(f"{path}.key_value.key", sample.keys)
        yield from _repeating(f"{path}.key_value.value", sample.items)
    elif pa.types.is_list(type):
        yield from _repeating(f"{path}.list.element", sample.flatten())
    else:
        values = len(sample) - sample.null_count
        most = _FEW_DIFFERENT if _ascends(sample) else _MOST_DIFFERENT
        if not values or len(sample.unique()) <= 1 + most * values:  # one may be null
            yield path


def _ascends(values: pa.Array) -> bool:
    """Whether values are numbers or times of 64 bits in ascending order, such as positions and times of commits."""
    if not (pa.types.is_int64(values.type) or pa.types.is_timestamp(values.type)):
        return False
    numbers = np.asarray(values.drop_null().view(pa.int64()))
    return bool((numbers[1:] >= numbers[:-1]).all())


def _statistics(metadata: Any, rows: int) -> str:
    """Returns the statistics of a file as Delta's log has them: of top-level integers, dates and short texts."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(metadata.num_columns if metadata.num_row_groups else 0):
        column = metadata.schema.column(index)
        if "." in column.path or column.max_repetition_level:
            continue
        found = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if any(one is None or not one.has_null_count for one in found):
            continue
        nulls[column.name] = sum(one.null_count for one in found)
        bounds = [(one.min, one.max) for one in found if one.has_min_max]
        values = [value for pair in bounds for value in pair]
        if values and all(map(_is_bound, values)) and all(one.has_min_max or not one.num_values for one in found):
            lowest[column.name], highest[column.name] = map(_json, (min(values), max(values)))
    fields = {"numRecords": rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}
    return json.dumps(fields, ensure_ascii=False)


def _is_bound(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and len(value) <= MOST_STATISTICS_CHARACTERS
    return type(value) in (int, date)


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
