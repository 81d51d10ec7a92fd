"""The Parquet file that a command writes: under another name until it is complete, in row groups of even size."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from .exits import BAD_USAGE, Failed
from .inputs import STDIN

ROW_GROUP_BYTES = 64 << 20
"""How much of the table, in memory, makes a row group: enough for readers in parallel, and all that is held back."""


class RowGroups:
    """Collects record batches and writes them as row groups of about ROW_GROUP_BYTES."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is still held back."""
        table = pa.Table.from_batches(self._batches, schema=self._schema)
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._batches, self._bytes = [], 0


def check_output(path: Path, inputs: Sequence[str]) -> None:
    """Raises Failed if the file to write is one of those to read."""
    if any(name != STDIN and path.exists() and Path(name).exists() and path.samefile(name) for name in inputs):
        raise Failed(f"{path}: is an input, and would be overwritten", BAD_USAGE)


@contextmanager
def changes_file(path: Path, schema: pa.Schema) -> Iterator[RowGroups]:
    """Write a file beside `path` and give it that name at the end; after an error nothing is left.

    Raises Failed if there can be no such file.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise Failed(f"{path}: is there and is not a regular file", BAD_USAGE)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with _created(unfinished, path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            groups = RowGroups(writer, schema)
            yield groups
            groups.flush()
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):  # it may not be there yet
            unfinished.unlink()
        raise


def _created(unfinished: Path, path: Path) -> BinaryIO:
    try:
        return unfinished.open("xb")
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", BAD_USAGE) from None
