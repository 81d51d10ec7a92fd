"""wf.Capture from bytes, in one thread: changes of committed transactions, and typed tables: one of many, and all; and
one from messages in small arrays and files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

import wireformat as wf

from .bench_formats import CONTESTANTS as BY_HAND
from .bench_formats import STRUCT
from .bench_pgoutput import CONTESTANTS as BY_HAND_OF_PGOUTPUT
from .bench_pgoutput import STRUCT as STRUCT_OF_PGOUTPUT
from .bench_scan import scan_alone
from .contestants import Contestant
from .generate import BINARY, ONE_TABLE, PGOUTPUT, TABLES

SCHEMA = next({column.name: column.type for column in columns} for *name, columns in TABLES if (*name,) == ONE_TABLE)
"""The columns of the table and their SQL types."""

COMMITTED, TYPED, TYPED_ALL = "Capture.committed", "Capture.typed, 1 table of 20", "Capture.typed_all"


SMALL_ARRAY, SMALL_FILE = 1_000, 5_000
"""The number of messages of small arrays and small files."""

TYPED_ARRAYS = f"{TYPED}, arrays of {SMALL_ARRAY:,} messages"
TYPED_FILES = f"{TYPED}, Parquet files of {SMALL_FILE:,} messages"


class SmallFiles:
    """The path of a folder with Parquet files of a few messages each, which are there as long as this object."""

    def __init__(self, messages: pa.ChunkedArray) -> None:
        self._folder = TemporaryDirectory()
        for number, part in enumerate(parts(messages, SMALL_FILE)):
            pq.write_table(pa.table({"payload": part}), Path(self._folder.name) / f"{number}.parquet")

    def __fspath__(self) -> str:
        return self._folder.name


def small_arrays(messages: pa.ChunkedArray) -> pa.ChunkedArray:
    """The messages in arrays of a few."""
    return pa.chunked_array([*parts(messages, SMALL_ARRAY)])


def parts(messages: pa.ChunkedArray, size: int) -> Iterator[pa.Array]:
    """The messages in parts of so many."""
    for begin in range(0, len(messages), size):
        yield messages.slice(begin, size).combine_chunks()


def count(rows: pa.RecordBatchReader) -> int:
    """Reads all rows."""
    return sum(batch.num_rows for batch in rows)


def committed(messages: pa.ChunkedArray, format: str) -> int:
    """Goes through the row changes of committed transactions."""
    return count(wf.Capture(messages, format, threads=1).committed())


def typed(messages: pa.ChunkedArray, format: str) -> int:
    """Goes through the table, whose types are given: they could be taken from its rows, which are then read twice."""
    return count(wf.Capture(messages, format, threads=1).typed(".".join(ONE_TABLE), schema=SCHEMA))


def typed_all(messages: pa.ChunkedArray, format: str) -> int:
    """Goes through all tables, which are listed in a first pass."""
    return sum(rows.num_rows for _, rows in wf.Capture(messages, format, threads=1).typed_all())


def of_format(name: str, format: str) -> str:
    """The name of a contestant."""
    return f"{name}, {format}"


CONTESTANTS = (
    *(
        contestant
        for format in (BINARY, PGOUTPUT)
        for contestant in (
            Contestant(
                of_format(COMMITTED, format),
                partial(committed, format=format),
                len(wf.arrow.CHANGES),
                format,
                delivers="changes",
            ),
            Contestant(of_format(TYPED, format), partial(typed, format=format), 8, format, delivers="table_changes"),
            Contestant(of_format(TYPED_ALL, format), partial(typed_all, format=format), 8, format, delivers="changes"),
        )
    ),
    *(
        Contestant(
            of_format(name, PGOUTPUT),
            partial(typed, format=PGOUTPUT),
            8,
            PGOUTPUT,
            takes=takes,
            delivers="table_changes",
        )
        for name, takes in ((TYPED_ARRAYS, small_arrays), (TYPED_FILES, SmallFiles))
    ),
    *map(scan_alone, (BINARY, PGOUTPUT)),
    *(one for one in (*BY_HAND, *BY_HAND_OF_PGOUTPUT) if one.name in (STRUCT, STRUCT_OF_PGOUTPUT)),
)
