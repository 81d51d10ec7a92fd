"""spark_udfs.transactions over ever more row changes, cut into 1, 8 and 64 chunks: does time grow in proportion?"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf

from .bench_spark import session
from .generate import Capture
from .measure import Result, Say
from .transaction_rows import POSITION, History, ready_history

CHUNKS = (1, 8, 64)


def name_of(changes: int, chunks: int) -> str:
    """What the result of this cell is called."""
    return f"{changes / 1e6:g} million, {in_chunks(chunks)}"


def in_chunks(chunks: int) -> str:
    """The end of that name."""
    return f"{chunks} partition{'s' if chunks > 1 else ''}"


def measure(capture: Capture, sizes: tuple[int, ...], folder: Path, say: Say) -> dict[str, Result]:
    """Results by name, a cell and one run each: out of Parquet files to noop, the look at positions is in it."""
    histories = []
    for size in sizes:
        say(f"transactions: writing {size:,} row changes")
        histories.append(ready_history(folder, capture, size))
    spark = session()
    results = {}
    say("transactions: warming up")
    run(spark.read.parquet(str(histories[0].folder)), histories[0], CHUNKS[1])
    for size, history in zip(sizes, histories, strict=True):
        rows = spark.read.parquet(str(history.folder))
        for chunks in CHUNKS:
            name = name_of(size, chunks)
            say(f"transactions: {name}")
            seconds = run(rows, history, chunks)
            results[name] = Result(
                name=name,
                input_bytes=history.size,
                changes=history.changes,
                columns=len(wf.arrow.CHANGES) + 3,
                seconds=(seconds,),
            )
    spark.stop()
    return results


def run(rows: DataFrame, history: History, chunks: int) -> float:
    """Seconds of one run; how many rows there are is counted on the way."""
    seen = Observation()
    start = perf_counter()
    found = spark_udfs.transactions(rows, order_by=[POSITION], chunks=chunks)
    found.observe(seen, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    seconds = perf_counter() - start
    if seen.get["rows"] != history.delivered:
        raise AssertionError(f"{chunks} chunks: {seen.get['rows']} rows, there are {history.delivered}")
    return seconds
