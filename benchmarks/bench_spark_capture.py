"""spark_udfs.capture on Spark, local[2], warm: from raw messages in files to answers, beside spark_udfs.decode."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import spark_udfs
import wireformat as wf
from wireformat.options.table_names import written

from .bench_spark import CORES, compute, session
from .generate import BINARY, ONE_TABLE, Capture
from .measure import Result, Say, interleaved

DECODE = "spark_udfs.decode, 20 tables"
DECODE_ONE = "spark_udfs.decode, one table"
FLOOR = "mapInArrow that counts the messages (floor)"
COMMITTED = "capture.committed, 20 tables"
COMMITTED_SPARK = "capture.committed, 20 tables, read by Spark"
TYPED = "capture.typed, one table of 20"
TYPED_SPARK = "capture.typed, one table of 20, read by Spark"
TYPED_ONE = "capture.typed, the only table"
LATEST_ONE = "capture.latest, the only table"
TABLES = "capture.tables, 20 tables"
TABLES_SPARK = "capture.tables, 20 tables, read by Spark"
PARQUET_SPARK = "capture.write, 20 tables to Parquet, read by Spark"
PARQUET = "capture.write, 20 tables to Parquet"
DELTA = "capture.write, 20 tables to Delta"
NAMES = (
    DECODE,
    FLOOR,
    COMMITTED,
    COMMITTED_SPARK,
    TYPED,
    TYPED_SPARK,
    TABLES,
    TABLES_SPARK,
    PARQUET,
    PARQUET_SPARK,
    DELTA,
    DECODE_ONE,
    TYPED_ONE,
    LATEST_ONE,
)
FILES = 4
NAME = written(ONE_TABLE)


def measure(capture: Capture, rounds: int, folder: Path, copies: int, say: Say) -> dict[str, Result]:
    """Results by name. The messages lie `copies` times in files, as one stream whose transactions are sent again."""
    say("Spark: writing the messages")
    shutil.rmtree(folder, ignore_errors=True)
    messages = capture.load(BINARY)["payload"]
    sources = {"twenty": messages, "one": of_one_table(messages)}
    changes = {name: write(source, folder / name, copies) for name, source in sources.items()}
    spark = session()

    def raw(name: str) -> DataFrame:
        return spark.read.parquet(str(folder / name))

    def made(df: DataFrame) -> spark_udfs.Capture:
        return spark_udfs.capture(df, "payload", BINARY, order_by=["seq"], drop_resent=False)

    def read_by_spark() -> DataFrame:
        return raw("twenty").where("seq >= 0")

    twenty, one, of_spark = made(raw("twenty")), made(raw("one")), made(read_by_spark())
    frames: dict[str, tuple[str, Callable[[], Any]]] = {
        DECODE: ("twenty", lambda: compute(spark_udfs.decode(raw("twenty"), "payload", BINARY, keep=["seq"]))),
        FLOOR: ("twenty", lambda: raw("twenty").mapInArrow(_counted, "messages bigint").collect()),
        COMMITTED: ("twenty", lambda: compute(twenty.committed())),
        COMMITTED_SPARK: ("twenty", lambda: compute(of_spark.committed())),
        TYPED: ("twenty", lambda: compute(twenty.typed(NAME))),
        TYPED_SPARK: ("twenty", lambda: compute(of_spark.typed(NAME))),
        TABLES: ("twenty", lambda: made(raw("twenty")).tables().collect()),
        TABLES_SPARK: ("twenty", lambda: made(read_by_spark()).tables().collect()),
        PARQUET: ("twenty", lambda: made(raw("twenty")).write(str(folder / "parquet"))),
        PARQUET_SPARK: ("twenty", lambda: made(read_by_spark()).write(str(folder / "parquet"))),
        DELTA: ("twenty", lambda: made(raw("twenty")).write(str(folder / "delta"), format="delta")),
        DECODE_ONE: ("one", lambda: compute(spark_udfs.decode(raw("one"), "payload", BINARY, keep=["seq"]))),
        TYPED_ONE: ("one", lambda: compute(one.typed(NAME))),
        LATEST_ONE: ("one", lambda: compute(one.latest(NAME, keys=["id"]))),
    }

    def timed(run: Callable[[], Any]) -> float:
        for lake in ("parquet", "delta"):
            shutil.rmtree(folder / lake, ignore_errors=True)
        start = perf_counter()
        run()
        return perf_counter() - start

    runs = {name: partial(timed, run) for name, (_, run) in frames.items()}
    seconds = interleaved(runs, rounds, say, warmups=2)
    sizes = {name: copies * pc.sum(pc.binary_length(source)).as_py() for name, source in sources.items()}
    spark.stop()
    return {
        name: Result(name=name, input_bytes=sizes[source], changes=changes[source], seconds=seconds[name])
        for name, (source, _) in frames.items()
    }


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"messages": pa.array([sum(map(len, batches))], pa.int64())})


def of_one_table(messages: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns messages with the rows of tables of one kind, all of them as rows of one table."""
    rows = wf.arrow.changes(messages, BINARY, engine="scan")
    kind = ONE_TABLE[1].rpartition("_")[0]
    is_control = pc.is_null(rows["table_name"])
    chosen = rows.filter(pc.or_(is_control, pc.fill_null(pc.starts_with(rows["table_name"], f"{kind}_"), False)))
    name = pc.if_else(pc.is_null(chosen["table_name"]), pa.scalar(None, pa.string()), ONE_TABLE[1])
    renamed = chosen.set_column(chosen.column_names.index("table_name"), chosen.schema.field("table_name"), name)
    found: pa.ChunkedArray = wf.arrow.encode(renamed, BINARY, options={"sending-batch": 1})
    return found


def write(messages: pa.ChunkedArray, folder: Path, copies: int) -> int:
    """Writes the messages to files, and returns the number of row changes in them."""
    folder.mkdir(parents=True)
    count = len(messages)
    values = pa.chunked_array([chunk.cast(pa.binary()) for _ in range(copies) for chunk in messages.chunks])
    table = pa.table({"seq": pa.array(range(copies * count), pa.int64()), "payload": values})
    size = -(-len(table) // max(FILES, CORES))
    for part in range(-(-len(table) // size)):
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    kinds = wf.arrow.changes(messages, BINARY, columns=["kind"])["kind"]
    return copies * int(pc.sum(pc.is_in(kinds, pa.array(["INSERT", "UPDATE", "DELETE"]))).as_py())
