"""What `older` has measured: works that a version of wireformat does in a process of its own, as that version can.

    python older_works.py MESSAGES FORMAT TABLE
    python older_works.py MESSAGES FORMAT --spark

Each line of the input is the name of a work; the answer is its seconds and the number of rows that it found. The file
imports nothing of this repository but the packages that Python finds.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import wireformat as wf

EVENTS, CHANGES, CHANGES_ONE, TYPED_ONE, TYPED_SMALL, TYPED_ALL, LISTED, WRITTEN = (
    "events of wf.decode",
    "row-change table, all columns",
    "the same, one table of 20",
    "typed and committed, one table of 20",
    "the same, from arrays of 1,000 messages",
    "typed and committed, all tables",
    "the list of tables",
    "all tables to Parquet files, two threads",
)
WORKS = (EVENTS, CHANGES, CHANGES_ONE, TYPED_ONE, TYPED_SMALL, TYPED_ALL, LISTED, WRITTEN)
DECODED_BY_SPARK = "spark_udfs.decode, local[2], to noop"
SPARK_WORKS = (DECODED_BY_SPARK,)
"""Works on Spark, of which each version has a session of its own."""
SPARK = "--spark"

COPIES, FILES = 4, 4
"""How many times Spark reads the messages, and in how many files they lie."""

SMALL_ARRAY = 1_000
"""The number of messages of a small array."""

EVENTS_OF = 4
"""Events are made of this part of the messages: they take many times as long as tables."""


def works(messages: pa.ChunkedArray, format: str, table: str) -> Mapping[str, Callable[[], int]]:
    """Returns the works; each returns how many rows it found."""

    def changes(given: pa.ChunkedArray = messages, **options: Any) -> pa.Table:
        return wf.arrow.changes(given, format, threads=1, **options)

    def typed_tables(tables: list[str] | None, given: pa.ChunkedArray = messages) -> Iterator[Any]:
        if hasattr(wf, "Capture"):
            capture = wf.Capture(given, format, threads=1)
            yield from (rows for _, rows in capture.typed_all()) if tables is None else capture.typed(table)
            return
        committed = wf.arrow.transactions(changes(given, tables=tables))
        listed = wf.arrow.tables(committed)
        names = sorted({*zip(listed["table_schema"].to_pylist(), listed["table_name"].to_pylist(), strict=True)})
        yield from (wf.arrow.typed(committed, ".".join(name)) for name in names)

    def typed(tables: list[str] | None, given: pa.ChunkedArray = messages) -> int:
        return sum(rows.num_rows for rows in typed_tables(tables, given))

    def listed() -> int:
        has_capture = hasattr(wf, "Capture")
        found = wf.Capture(messages, format, threads=1).tables() if has_capture else wf.arrow.tables(changes())
        return found.num_rows

    def written() -> int:
        with TemporaryDirectory() as folder:
            if hasattr(wf, "Capture"):
                return sum(wf.Capture(messages, format, threads=2).write(folder)["rows"].to_pylist())
            count = 0
            for number, rows in enumerate(typed_tables(None)):
                pq.write_table(rows, f"{folder}/{number}.parquet", compression="zstd")
                count += rows.num_rows
            return count

    parts = (messages.slice(begin, SMALL_ARRAY) for begin in range(0, len(messages), SMALL_ARRAY))
    small = pa.chunked_array([part.combine_chunks() for part in parts])
    some = messages.slice(0, max(len(messages) // EVENTS_OF, 1)).to_pylist()
    return {
        EVENTS: lambda: sum(1 for _ in wf.decode(some, format)),
        CHANGES: lambda: changes().num_rows,
        CHANGES_ONE: lambda: changes(tables=[table]).num_rows,
        TYPED_ONE: partial(typed, [table]),
        TYPED_SMALL: partial(typed, [table], small),
        TYPED_ALL: partial(typed, None),
        LISTED: listed,
        WRITTEN: written,
    }


def spark_works(messages: pa.ChunkedArray, format: str, folder: Path) -> Mapping[str, Callable[[], int]]:
    """Returns the works on Spark.

    folder   for the messages
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

    import spark_udfs

    parts = pa.table([messages.cast(pa.binary())], names=["payload"])
    for number in range(FILES):
        first, end = (len(parts) * index // FILES for index in (number, number + 1))
        pq.write_table(parts.slice(first, end - first), folder / f"{number}.parquet")
    spark = spark_udfs.local_session(2, settings={"spark.ui.enabled": "false"})

    def decoded() -> int:
        raw = spark.read.parquet(*[str(folder)] * COPIES)
        seen = Observation()
        rows = spark_udfs.decode(raw, "payload", format).observe(seen, F.count(F.lit(1)).alias("rows"))
        rows.write.format("noop").mode("overwrite").save()
        return int(seen.get["rows"])

    return {DECODED_BY_SPARK: decoded}


def main() -> None:
    """Does the works that the input names."""
    path, format, table = sys.argv[1:]
    messages = feather.read_table(path)["payload"]
    with TemporaryDirectory() as folder:
        serve(spark_works(messages, format, Path(folder)) if table == SPARK else works(messages, format, table))


def serve(found: Mapping[str, Callable[[], int]]) -> None:
    """Does the works that the input names."""
    for line in sys.stdin:
        gc.collect()
        start = perf_counter()
        rows = found[line.strip()]()
        print(perf_counter() - start, rows, flush=True)


if __name__ == "__main__":
    main()
