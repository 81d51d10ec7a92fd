"""Raw messages of many streams in files, and what `wf.Capture` says of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

import wireformat as wf

from .ways import different_texts

STREAM, OFFSET = "stream", "offset"
PLACE: dict[str, Any] = {"stream_by": [STREAM], "order_by": [OFFSET]}

Streams = Mapping[str, Sequence[bytes]]


def write_in_order(streams: Streams, folder: Path, chance: Random, groups: int = 4) -> str:
    """Writes files of which each has ranges of its own of the streams, sorted: Spark can take them as they are."""
    tables = []
    for name, messages in streams.items():
        bounds = sorted({0, len(messages), *(chance.randint(0, len(messages)) for _ in range(groups - 1))})
        tables += [rows_of(name, messages, range(*pair)) for pair in pairwise(bounds)]
    return write(tables, folder)


def write_shuffled(streams: Streams, folder: Path, chance: Random, files: int = 3) -> str:
    """Writes messages in any order to files."""
    table = pa.concat_tables(rows_of(name, messages, range(len(messages))) for name, messages in streams.items())
    rows = [*range(len(table))]
    chance.shuffle(rows)
    return write([table.take(rows[number::files]) for number in range(files)], folder)


def write(tables: Sequence[pa.Table], folder: Path) -> str:
    """Writes a file for each table."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number:04}.parquet", row_group_size=50)
    return str(folder)


def rows_of(name: str, messages: Sequence[bytes], offsets: range) -> pa.Table:
    """Returns some messages of a stream with their positions."""
    columns = {
        STREAM: pa.array([name] * len(offsets), pa.string()),
        OFFSET: pa.array(offsets, pa.int64()),
        "value": pa.array([messages[offset] for offset in offsets], pa.binary()),
    }
    return pa.table(columns)


def expected(streams: Streams, ask: Callable[[str, Sequence[bytes]], pa.Table]) -> pa.Table:
    """Returns what each stream gives, with its name in front."""
    found = []
    for name, messages in streams.items():
        rows = ask(name, messages)
        if "message" in rows.column_names:
            rows = rows.drop_columns(["message"])
        found.append(rows.add_column(0, STREAM, pa.array([name] * len(rows), pa.string())))
    return pa.concat_tables(found)


def assert_same(found: pa.Table, wanted: pa.Table) -> None:
    """Compares rows in any order."""
    assert found.column_names == wanted.column_names
    for own, other in zip(found.schema, spark_types(wanted), strict=True):
        assert str(own.type).replace(" not null", "") == str(other.type).replace(" not null", ""), own.name
    left, right = (sorted(map(repr, rows.to_pylist())) for rows in (found, wanted))
    for number, pair in enumerate(zip(left, right, strict=False)):
        assert pair[0] == pair[1], f"row {number}: {different_texts(*pair)}"
    assert len(left) == len(right)


def spark_types(rows: pa.Table) -> pa.Schema:
    """Returns the schema that rows have after Spark."""
    return to_arrow_schema(from_arrow_schema(rows.schema), timezone="UTC")


def capture_of(messages: Sequence[bytes], format: str, **options: Any) -> wf.Capture:
    """Returns the capture of a stream on one machine."""
    return wf.Capture(messages, format, threads=1, **options)
