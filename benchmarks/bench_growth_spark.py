"""capture.typed on Spark over ever more raw messages, in 1, 8 and 64 partitions: do time and memory grow?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from wireformat.options.table_names import written

from .bench_spark import compute, peaks, session
from .bench_spark_capture import of_one_table
from .generate import BINARY, ONE_TABLE, Capture
from .measure import Result, Say, in_fresh_process, timed

PARTITIONS = (1, 8, 64)
SCHEMA = pa.schema([("seq", pa.int64()), ("payload", pa.binary())])
GROUP_MESSAGES = 16
"""The number of messages that are written together."""


class History(NamedTuple):
    """Messages in as many Parquet files as there are partitions at most: one stream, in order.

    changes   the number of row changes, all of one table
    size      the number of bytes of the messages
    """

    folder: Path
    changes: int
    size: int


def name_of(changes: int, partitions: int) -> str:
    """Returns the name of a result."""
    return f"{changes / 1e6:g} million, {partitions} partition{'s' if partitions > 1 else ''}"


def measure(capture: Capture, sizes: tuple[int, ...], folder: Path, say: Say) -> dict[str, Result]:
    """Returns results by name, of one run each, in a session of its own."""
    say("growth on Spark: writing the messages")
    histories = ready_histories(folder, capture, sizes)
    results = {}
    for size, history in zip(sizes, histories, strict=True):
        for partitions in PARTITIONS:
            name = name_of(size, partitions)
            say(f"growth on Spark: {name}")
            seconds, workers, jvm = in_fresh_process(run, histories[0], history, partitions)
            results[name] = Result(
                name=name,
                input_bytes=history.size,
                changes=history.changes,
                seconds=(seconds,),
                peak_bytes=workers,
                jvm_bytes=jvm,
            )
    return results


def ready_histories(folder: Path, capture: Capture, sizes: tuple[int, ...]) -> list[History]:
    """Returns a history for each number of row changes, rounded up to whole copies. They are written once."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    messages = of_one_table(capture.load(BINARY)["payload"])
    kinds = wf.arrow.changes(messages, BINARY, columns=["kind"])["kind"]
    changes = int(pc.sum(pc.is_in(kinds, pa.array(["INSERT", "UPDATE", "DELETE"]))).as_py())
    found = []
    for size in sizes:
        copies = -(-size // changes)
        path = folder / f"{size}-{capture.version}-{version}"
        if not (path / "_SUCCESS").exists():
            write(messages, path, copies)
            (path / "_SUCCESS").touch()
        found.append(History(path, copies * changes, copies * pc.sum(pc.binary_length(messages)).as_py()))
    return found


def write(messages: pa.ChunkedArray, folder: Path, copies: int) -> None:
    """Writes copies of the messages, one after the other; a few are in memory at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds = np.linspace(0, copies * len(messages), PARTITIONS[-1] + 1).astype(np.int64).tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        with pq.ParquetWriter(folder / f"{number:03}.parquet", SCHEMA) as file:
            for first in range(start, stop, GROUP_MESSAGES):
                seq = np.arange(first, min(first + GROUP_MESSAGES, stop))
                payload = messages.take(pa.array(seq % len(messages)))
                file.write_table(pa.table([seq, payload.cast(pa.binary())], schema=SCHEMA))


def run(warm_up: History, history: History, partitions: int) -> tuple[float, int | None, int | None]:
    """Returns the seconds of one run, from the first look at the messages on; peak memory of the workers; of the JVM.

    Two runs over less data come first.
    """
    spark = session()
    for _ in range(2):
        compute(typed(spark, warm_up, PARTITIONS[-1]))
    seen = Observation()
    rows = F.count(F.lit(1)).alias("rows")

    def check(_: object) -> None:
        if seen.get["rows"] != history.changes:
            raise AssertionError(f"{partitions} partitions: {seen.get['rows']} rows, there are {history.changes}")

    seconds = timed(lambda: compute(typed(spark, history, partitions).observe(seen, rows)), check)
    found = peaks()
    spark.stop()
    return seconds, *found


def typed(spark: SparkSession, history: History, partitions: int) -> DataFrame:
    """Returns the typed changes of the table. Each partition has some of the files, in order."""
    spark.conf.set("spark.sql.files.minPartitionNum", 1)  # a file is not cut
    files = [spark.read.schema("seq long, payload binary").parquet(str(file)) for file in files_of(history)]
    raw = reduce(DataFrame.unionAll, files).coalesce(partitions)
    # The copies have equal LSNs, so they look like transactions that were sent again.
    capture = spark_udfs.capture(raw, "payload", BINARY, order_by=["seq"], drop_resent=False)
    return capture.typed(written(ONE_TABLE))


def files_of(history: History) -> list[Path]:
    """Returns the files that have messages, in order."""
    return [file for file in sorted(history.folder.glob("*.parquet")) if pq.read_metadata(file).num_rows]


def growth_of_time(results: Mapping[str, Result]) -> float:
    """Time for most of the data as a multiple of what the time for the least promises, where it is longest."""
    return max(
        most.median / least.median * least.changes / most.changes
        for least, most in zip(*_least_and_most(results), strict=True)
    )


def growth_of_memory(results: Mapping[str, Result]) -> float | None:
    """Peak memory of all workers for most of the data as a multiple of that for the least, where it is highest."""
    found = [
        most.peak_bytes and least.peak_bytes and most.peak_bytes / least.peak_bytes
        for least, most in zip(*_least_and_most(results), strict=True)
    ]
    return None if None in found else max(ratio for ratio in found if ratio is not None)


def _least_and_most(results: Mapping[str, Result]) -> tuple[list[Result], list[Result]]:
    """Returns the results for the least and for most of the data, by partitions."""
    found = [*results.values()]
    return found[: len(PARTITIONS)], found[-len(PARTITIONS) :]
