"""On Spark, local[2], to noop, warm: the ways to decode, beside what people do without this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from time import perf_counter

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema

import spark_udfs
import wireformat as wf
from spark_udfs.session import SOCKETS_VARIABLE
from wireformat.arrow.engine.choice import make_engine
from wireformat.formats.registry import find_format

from .bench_text import LINE
from .generate import BINARY, JSON, JSON_LINES, Capture
from .measure import Result, Say, in_fresh_process, interleaved, peak_bytes
from .struct_reader import read_message

CORES = 2
COPIES = 4
"""How many times the capture is read, by all but the slow ones: a task of a table in files often has 128 MB."""

ROWS = pa.schema([field.with_name("seq") if field.name == "message" else field for field in wf.arrow.CHANGES])
"""What decoding gives where `seq` is kept."""

HAND_ROWS = (
    "array<struct<kind: string, lsn: bigint, table_schema: string, table_name: string, "
    "new: map<string, string>, old: map<string, string>>>"
)


@dataclass(frozen=True)
class Contestant:
    """One way to get rows on Spark.

    frame       takes the source, gives the rows
    source      messages; messages in JSON style; lines; rows, decoded before; or places of decoded rows in a file
    columns     of a row
    slow        reads the capture once
    unix_sockets    whether data pass between the JVM and Python through Unix domain sockets, as local_session has it
    """

    name: str
    frame: Callable[[DataFrame], DataFrame]
    columns: int
    source: str = "messages"
    slow: bool = False
    unix_sockets: bool = True

    def copies(self, most: int) -> int:
        """How many times it reads the capture."""
        return 1 if self.slow else most


def pass_through(rows: DataFrame) -> DataFrame:
    """Ready rows, to Python and back."""
    return rows.mapInArrow(_same, rows.schema)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def hand_over(places: DataFrame) -> DataFrame:
    """Ready rows out of Python, where they lie in mapped memory."""
    return places.mapInArrow(_batches_at, from_arrow_schema(ROWS))


def _batches_at(places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in places:
        for place in batch.to_pylist():
            with pa.memory_map(place["path"]) as file:
                yield pa.ipc.open_file(file).get_batch(place["batch"])


def decode(messages: DataFrame, engine: str, format: str = BINARY) -> DataFrame:
    """spark_udfs.decode."""
    return spark_udfs.decode(messages, payload="payload", format=format, keep=["seq"], engine=engine)


def decode_bare(messages: DataFrame) -> DataFrame:
    """The engine of `decode` in a mapInArrow that only repeats `seq`: what decode may not lose."""
    return messages.select("payload", "seq").mapInArrow(_engine_rows, from_arrow_schema(ROWS))


def _engine_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    engine = make_engine(find_format(BINARY), wf.ReadOptions())
    for batch in batches:
        for rows in engine.batches(batch.column(0), wf.arrow.CHANGES, 0):
            seq = batch.column(1).take(rows.column("message"))
            yield pa.RecordBatch.from_arrays([seq, *rows.drop_columns(["message"]).columns], schema=ROWS)


def query(messages: DataFrame, text: str) -> DataFrame:
    """A query on the messages, as `raw`."""
    messages.createOrReplaceTempView("raw")
    return messages.sparkSession.sql(text)


def decode_by_hand(messages: DataFrame) -> DataFrame:
    """A plain Python UDF around the reader by hand."""
    by_hand = F.udf(lambda payload: read_message(payload), HAND_ROWS)
    return messages.select("seq", F.inline(by_hand("payload")))


def parse_json(lines: DataFrame) -> DataFrame:
    """Spark's from_json. SQL literals stay as they are, and there is no LSN in a line."""
    return lines.select(F.from_json("line", from_arrow_schema(LINE)).alias("change"))


FLOOR = "ready rows through mapInArrow (floor)"
HAND_OVER = "ready rows out of mapInArrow"
BARE = "mapInArrow of the engine"
DECODE = "spark_udfs.decode"
DECODE_TCP = "spark_udfs.decode, TCP"
DECODE_JSON = "spark_udfs.decode, JSON"
TABLE_FUNCTION = "wal_changes"
SCALAR = "wal_decode + inline"
PANDAS = "spark_udfs.decode, pandas"
SCALAR_PANDAS = "wal_decode_pandas + inline"
HAND_UDF = "Python UDF, struct by hand"
FROM_JSON = "from_json, JSON lines"

CONTESTANTS = (
    Contestant(FLOOR, pass_through, columns=len(ROWS), source="rows"),
    Contestant(HAND_OVER, hand_over, columns=len(ROWS), source="places"),
    Contestant(DECODE, partial(decode, engine="arrow"), columns=len(ROWS)),
    Contestant(BARE, decode_bare, columns=len(ROWS)),
    Contestant(
        TABLE_FUNCTION,
        partial(query, text=f"SELECT * FROM wal_changes(TABLE(SELECT seq, payload FROM raw), format => '{BINARY}')"),
        columns=len(ROWS),
    ),
    Contestant(
        SCALAR,
        partial(query, text=f"SELECT raw.seq, c.* FROM raw LATERAL VIEW inline(wal_decode(payload, '{BINARY}')) c"),
        columns=len(ROWS),
    ),
    Contestant(PANDAS, partial(decode, engine="pandas"), columns=len(ROWS)),
    Contestant(
        SCALAR_PANDAS,
        partial(query, text=f"SELECT seq, inline(wal_decode_pandas(payload, '{BINARY}')) FROM raw"),
        columns=len(ROWS),
    ),
    Contestant(HAND_UDF, decode_by_hand, columns=7, slow=True),
    Contestant(DECODE_JSON, partial(decode, engine="arrow", format=JSON), columns=len(ROWS), source="json"),
    Contestant(FROM_JSON, parse_json, columns=len(LINE), source="lines"),
    Contestant(DECODE_TCP, partial(decode, engine="arrow"), columns=len(ROWS), unix_sockets=False),
)


def measure(capture: Capture, rounds: int, folder: Path, copies: int, say: Say) -> dict[str, Result]:
    """Results by name: all are timed in turn in one session, then weighed, each in its own."""
    say("Spark: writing the sources")
    sizes = write_sources(capture, folder)
    totals = {name: pc.sum(capture.load(BINARY)[name]).as_py() for name in ("records", "changes")}
    seconds = race([one for one in CONTESTANTS if one.unix_sockets], folder, totals, rounds, copies, say)
    say(f"{DECODE_TCP}: a session of its own")
    seconds |= in_fresh_process(race_through_tcp, folder, totals, rounds, copies)
    results = {}
    for one in CONTESTANTS:
        say(f"{one.name}: memory")
        result = Result(
            name=one.name,
            input_bytes=one.copies(copies) * sizes[one.source],
            changes=one.copies(copies) * totals["changes"],
            columns=one.columns,
            seconds=seconds[one.name],
        )
        workers, jvm = in_fresh_process(weigh, CONTESTANTS.index(one), folder, copies)
        results[one.name] = replace(result, peak_bytes=workers, jvm_bytes=jvm)
    return results


def write_sources(capture: Capture, folder: Path) -> dict[str, int]:
    """Put the sources into Parquet files, one for each core; gives the bytes of each source."""
    table = capture.load(BINARY)
    messages, json_messages = table["payload"], capture.load(JSON)["payload"]
    lines = capture.load(JSON_LINES)["payload"].cast(pa.string())
    rows = wf.arrow.changes(messages, BINARY).rename_columns(ROWS.names)
    numbers, json_numbers = (pa.array(range(len(column)), pa.int64()) for column in (messages, json_messages))
    batches = folder / "rows.arrow"
    sources = {
        "messages": pa.table({"seq": numbers, "payload": messages}),
        "json": pa.table({"seq": json_numbers, "payload": json_messages}),
        "lines": pa.table({"line": lines}),
        "rows": rows,
        "places": pa.table({"path": [str(batches)] * len(messages), "batch": numbers}),
    }
    for name, source in sources.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        size = -(-source.num_rows // CORES)
        for part in range(CORES):
            pq.write_table(source.slice(part * size, size), folder / name / f"{part}.parquet")
    write_batches(rows, table["records"].to_pylist(), batches)
    return {
        "messages": pc.sum(pc.binary_length(messages)).as_py(),
        "json": pc.sum(pc.binary_length(json_messages)).as_py(),
        "lines": pc.sum(pc.binary_length(lines)).as_py(),
        "rows": rows.nbytes,
        "places": rows.nbytes,
    }


def write_batches(rows: pa.Table, sizes: Sequence[int], path: Path) -> None:
    """Write the rows of each message as a record batch of its own."""
    with pa.ipc.new_file(path, ROWS) as file:
        start = 0
        for size in sizes:
            (batch,) = rows.slice(start, size).combine_chunks().to_batches()
            file.write_batch(batch)
            start += size


def session() -> SparkSession:
    """The session of all contestants."""
    spark = spark_udfs.local_session(CORES, app_name="benchmarks", settings={"spark.driver.memory": "4g"})
    spark_udfs.register(spark)
    return spark


def read(spark: SparkSession, folder: Path, name: str, copies: int, *, cached: bool) -> DataFrame:
    """A source, so many times over, in a task for each core."""
    once = spark.read.parquet(str(folder / name))
    if cached:
        once = once.cache()  # asked for again, it is the same
    return reduce(DataFrame.union, [once] * copies).coalesce(CORES)


def race(
    contestants: Sequence[Contestant], folder: Path, totals: dict[str, int], rounds: int, copies: int, say: Say
) -> dict[str, tuple[float, ...]]:
    """Seconds of each run, by name; the sources are in Spark's memory."""
    say("Spark: starting")
    spark = session()
    frames = {
        one.name: one.frame(read(spark, folder, one.source, one.copies(copies), cached=True)) for one in contestants
    }
    for one in contestants:
        say(f"{one.name}: checking the rows")
        expected = one.copies(copies) * totals["changes" if one.source == "lines" else "records"]
        check_rows(one.name, frames[one.name], expected)
    seconds = interleaved({name: partial(compute, frame) for name, frame in frames.items()}, rounds, say)
    spark.stop()
    return seconds


def race_through_tcp(folder: Path, totals: dict[str, int], rounds: int, copies: int) -> dict[str, tuple[float, ...]]:
    """The same for those without Unix domain sockets, in a process of their own."""
    os.environ[SOCKETS_VARIABLE] = "false"
    return race([one for one in CONTESTANTS if not one.unix_sockets], folder, totals, rounds, copies, lambda _: None)


def compute(frame: DataFrame) -> float:
    """Seconds that it takes to compute all rows and columns, and to forget them."""
    start = perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return perf_counter() - start


def check_rows(name: str, frame: DataFrame, expected: int) -> None:
    """Compute it once, and look how many rows there are."""
    seen = Observation()
    compute(frame.observe(seen, F.count(F.lit(1)).alias("rows")))
    if seen.get["rows"] != expected:
        raise AssertionError(f"{name}: {seen.get['rows']} rows, there are {expected}")


def weigh(number: int, folder: Path, copies: int) -> tuple[int | None, int | None]:
    """Peak memory of all Python workers, and of the JVM, for one run out of files."""
    one = CONTESTANTS[number]
    if not one.unix_sockets:
        os.environ[SOCKETS_VARIABLE] = "false"
    spark = session()
    compute(one.frame(read(spark, folder, one.source, one.copies(copies), cached=False)))
    found = peaks()
    spark.stop()
    return found


def peaks() -> tuple[int | None, int | None]:
    """Peak memory of all Python workers together, and of the JVM, of the session of this process."""
    (jvm,) = (process for process in psutil.Process().children(recursive=True) if process.name() == "java")
    jvm_peak = peak_bytes(jvm.pid)
    workers = [peak_bytes(process.pid) or 0 for process in jvm.children(recursive=True)]  # one that has ended has none
    return (None if jvm_peak is None else sum(workers)), jvm_peak
