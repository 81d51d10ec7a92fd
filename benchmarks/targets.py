"""What this package promises of its speed and memory, a row each, and whether the results keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from . import (
    bench_arrow,
    bench_capture,
    bench_corners,
    bench_encode,
    bench_formats,
    bench_growth,
    bench_growth_spark,
    bench_inspect,
    bench_lake,
    bench_live,
    bench_live_load,
    bench_pgoutput,
    bench_spark,
    bench_spark_capture,
    bench_start,
    bench_text,
    bench_typed,
)
from .corner_records import HALF
from .generate import BINARY, PGOUTPUT
from .measure import Result

Results = Mapping[str, Mapping[str, Result]]
"""Group and name of the contestant to its result."""


class Target(NamedTuple):
    """A value and its limits.

    group   whose results it is made of
    value   takes them; None where the system does not tell
    """

    sentence: str
    group: str
    value: Callable[[Mapping[str, Result]], float | None]
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def wanted(self) -> str:
        """The limits, in words."""
        limits = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{word} {limit:g}{self.unit}" for word, limit in limits if limit is not None)

    def verdict(self, results: Results) -> tuple[str, str]:
        """The value, and pass, miss or what is missing."""
        if self.group not in results:
            return "", "not measured"
        value = self.value(results[self.group])
        if value is None:
            return "", "not known here"
        held = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        return f"{value:.3g}{self.unit}", "pass" if held else "miss"


def times_as_fast(name: str, other: str) -> Callable[[Mapping[str, Result]], float]:
    """How many times as many row changes a second, of one contestant, against another."""
    return lambda results: results[name].changes_per_second / results[other].changes_per_second


def memory_share(results: Mapping[str, Result]) -> float | None:
    """Peak memory of the Arrow decode as a multiple of what goes in and comes out."""
    one = results[bench_arrow.ALL_COLUMNS]
    return one.peak_bytes and one.peak_bytes / (one.input_bytes + (one.output_bytes or 0))


ONCE, MOST = (bench_growth.name_of(factor) for factor in (1, bench_growth.FACTORS[-1]))


def growth_of_time(results: Mapping[str, Result]) -> float:
    """Time for most of the data as a multiple of what the time for the least promises."""
    return results[MOST].median / results[ONCE].median / bench_growth.FACTORS[-1]


def growth_of_memory(results: Mapping[str, Result]) -> float | None:
    """Peak memory for most of the data as a multiple of that for the least."""
    most, once = results[MOST].peak_bytes, results[ONCE].peak_bytes
    return most and once and most / once


TARGETS = (
    Target(
        "Arrow, all columns: speed, against struct by hand",
        "python",
        times_as_fast(bench_arrow.ALL_COLUMNS, bench_formats.STRUCT),
        " x",
        least=45,
    ),
    Target(
        "Arrow, all columns: speed, against the construct declaration",
        "python",
        times_as_fast(bench_arrow.ALL_COLUMNS, bench_formats.DECLARATION),
        " x",
        least=500,
    ),
    Target(
        "Arrow, one table of 20: speed, against struct by hand",
        "python",
        times_as_fast(bench_arrow.ONE_OF_MANY, bench_formats.STRUCT),
        " x",
        least=150,
    ),
    Target("Arrow, all columns: peak memory, against input plus output", "python", memory_share, " x", most=3),
    Target(
        "spark_udfs.decode: speed, against from_json",
        "spark",
        times_as_fast(bench_spark.DECODE, bench_spark.FROM_JSON),
        " x",
        least=2.2,
    ),
    Target(
        "spark_udfs.decode: speed, against a Python UDF by hand",
        "spark",
        times_as_fast(bench_spark.DECODE, bench_spark.HAND_UDF),
        " x",
        least=5,
    ),
    Target(
        "spark_udfs.decode: speed, against the floor",
        "spark",
        times_as_fast(bench_spark.DECODE, bench_spark.FLOOR),
        " x",
        least=0.7,
    ),
    Target(
        "spark_udfs.decode: speed, against a bare mapInArrow of the same engine",
        "spark",
        times_as_fast(bench_spark.DECODE, bench_spark.BARE),
        " x",
        least=0.9,
    ),
    Target(
        "spark_udfs.decode: speed, against the same through TCP",
        "spark",
        times_as_fast(bench_spark.DECODE, bench_spark.DECODE_TCP),
        " x",
        least=1,
    ),
    Target(
        'spark_udfs.decode, engine="pandas": speed, against engine="arrow"',
        "spark",
        times_as_fast(bench_spark.PANDAS, bench_spark.DECODE),
        " x",
        least=0.77,
    ),
    Target(
        "wal_decode_pandas: speed, against wal_decode",
        "spark",
        times_as_fast(bench_spark.SCALAR_PANDAS, bench_spark.SCALAR),
        " x",
        least=0.77,
    ),
    Target(
        "spark_udfs.decode, JSON: speed, against from_json",
        "spark",
        times_as_fast(bench_spark.DECODE_JSON, bench_spark.FROM_JSON),
        " x",
        least=1,
    ),
    Target(
        "JSON to Arrow: speed, against pyarrow.json in one thread",
        "text",
        times_as_fast(bench_text.JSON_CHANGES, bench_text.PYARROW_JSON),
        " x",
        least=5,
    ),
    Target(
        "JSON to Arrow: speed, against orjson and Python",
        "text",
        times_as_fast(bench_text.JSON_CHANGES, bench_text.ORJSON),
        " x",
        least=8,
    ),
    Target(
        "TEXT to Arrow: speed, against a lexer by hand",
        "text",
        times_as_fast(bench_text.TEXT_CHANGES, bench_text.LEXER),
        " x",
        least=35,
    ),
    Target(
        "pgoutput to Arrow: speed, against struct by hand",
        "pgoutput",
        times_as_fast(bench_pgoutput.CHANGES, bench_pgoutput.STRUCT),
        " x",
        least=30,
    ),
    Target(
        "wf.encode, the slowest format: row changes a second",
        "encode",
        bench_encode.slowest_events,
        " thousand",
        least=50,
    ),
    Target(
        "wf.arrow.encode, binary and pgoutput: row changes a second",
        "encode",
        bench_encode.slowest_rows,
        " thousand",
        least=500,
    ),
    *(
        Target(
            f"{bench_encode.by_rows(format)}: speed, against wf.encode",
            "encode",
            times_as_fast(bench_encode.by_rows(format), bench_encode.by_events(format)),
            " x",
            least=10,
        )
        for format in bench_encode.COMPILED
    ),
    Target(
        "Typed tables: values a second, on one core",
        "typed",
        bench_typed.values_per_second,
        " million",
        least=1,
    ),
    *(
        Target(
            f"{bench_capture.of_format(name, format)}: speed, against {by_hand}",
            "capture",
            times_as_fast(bench_capture.of_format(name, format), by_hand),
            " x",
            least=least,
        )
        for name, format, by_hand, least in (
            (bench_capture.TYPED, BINARY, bench_formats.STRUCT, 150),
            (bench_capture.TYPED_ALL, BINARY, bench_formats.STRUCT, 50),
            (bench_capture.TYPED, PGOUTPUT, bench_pgoutput.STRUCT, 45),
            (bench_capture.TYPED_ALL, PGOUTPUT, bench_pgoutput.STRUCT, 45),
        )
    ),
    Target(
        f"{bench_capture.of_format(bench_capture.TYPED_ARRAYS, PGOUTPUT)}: speed, against larger arrays",
        "capture",
        times_as_fast(
            *(bench_capture.of_format(one, PGOUTPUT) for one in (bench_capture.TYPED_ARRAYS, bench_capture.TYPED))
        ),
        " x",
        least=0.5,
    ),
    Target(
        "All tables to Parquet: speed, against pyarrow writing the typed tables",
        "lake",
        times_as_fast(bench_lake.WRITE_PARQUET, bench_lake.PYARROW),
        " x",
        least=0.5,
    ),
    Target(
        "All tables to Delta: speed, against deltalake writing the typed tables",
        "lake",
        times_as_fast(bench_lake.WRITE_DELTA, bench_lake.DELTALAKE),
        " x",
        least=0.5,
    ),
    Target(
        "All tables as they stand: speed, against DuckDB over the typed changes",
        "lake",
        times_as_fast(bench_lake.WRITE_LATEST, bench_lake.DUCKDB),
        " x",
        least=1,
    ),
    Target(
        "A live slot to Parquet: speed, against a loop that receives and drops",
        "live",
        times_as_fast(bench_live.FOLLOW_PARQUET, bench_live.BARE),
        " x",
        least=0.8,
    ),
    Target(
        "A live slot to Parquet: speed, against PostgreSQL's subscription",
        "live",
        times_as_fast(bench_live.FOLLOW_PARQUET, bench_live.SUBSCRIPTION),
        " x",
        least=1,
    ),
    Target(
        "A live slot to Parquet: speed, against test_decoding by hand to JSON lines",
        "live",
        times_as_fast(bench_live.FOLLOW_PARQUET, bench_live.BY_HAND),
        " x",
        least=5,
    ),
    Target(
        "A live slot at half of the highest rate: lag, median",
        "live-load",
        lambda results: results[bench_live_load.LAG].median,
        " s",
        most=2,
    ),
    Target(
        "A live slot at half of the highest rate: lag, maximum",
        "live-load",
        lambda results: max(results[bench_live_load.LAG].seconds),
        " s",
        most=2,
    ),
    Target(
        "A live slot at half of the highest rate: memory in the last quarter of the time, against the second",
        "live-load",
        bench_live_load.growth_of_memory,
        " x",
        most=1.1,
    ),
    Target(
        "100,000 chunks, a million open transactions: time of the driver",
        "driver",
        lambda results: [*results.values()][-1].median,
        " s",
        most=60,
    ),
    Target(
        "100,000 chunks, a million open transactions: memory of the driver, GB",
        "driver",
        lambda results: ([*results.values()][-1].peak_bytes or 0) / 1e9,
        " GB",
        most=2,
    ),
    Target("10 times the data: time, against 10 times the time", "growth", growth_of_time, " x", least=0.8, most=1.2),
    Target("10 times the data: peak memory, against that of once", "growth", growth_of_memory, " x", most=1.2),
    Target(
        "capture.typed of the only table: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.TYPED_ONE, bench_spark_capture.DECODE_ONE),
        " x",
        least=1,
    ),
    Target(
        "capture.typed of one table of 20: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.TYPED, bench_spark_capture.DECODE),
        " x",
        least=2.5,
    ),
    Target(
        "capture.committed: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.COMMITTED, bench_spark_capture.DECODE),
        " x",
        least=0.8,
    ),
    Target(
        "capture.latest of the only table: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.LATEST_ONE, bench_spark_capture.DECODE_ONE),
        " x",
        least=0.4,
    ),
    Target(
        "capture.write to Parquet, 20 tables: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.PARQUET, bench_spark_capture.DECODE),
        " x",
        least=1.2,
    ),
    Target(
        "capture.write to Delta, 20 tables: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.DELTA, bench_spark_capture.DECODE),
        " x",
        least=1,
    ),
    Target(
        "capture.tables: speed, against decode",
        "spark-capture",
        times_as_fast(bench_spark_capture.TABLES, bench_spark_capture.DECODE),
        " x",
        least=3,
    ),
    Target(
        "capture.typed, 16 times the data: time, against 16 times the time",
        "growth-spark",
        bench_growth_spark.growth_of_time,
        " x",
        most=1.1,
    ),
    Target(
        "capture.typed, 16 times the data: peak memory of all workers, against that of once",
        "growth-spark",
        bench_growth_spark.growth_of_memory,
        " x",
        most=1.2,
    ),
    Target("Corners: time for a byte, against the easy case", "corners", bench_corners.slowest, " x", most=3),
    Target(
        "Corners: the same, with half of the records corrupt, or all",
        "corners",
        lambda results: bench_corners.slowest(results, HALF),
        " x",
        most=HALF,
    ),
    Target(
        "First start, with an empty compile cache",
        "start",
        lambda results: results[bench_start.COLD].median,
        " s",
        most=6,
    ),
    Target("wireformat --help", "inspect", lambda results: results[bench_inspect.HELP].median, " s", most=0.2),
    Target(
        "wireformat inspect: the last message of 1 GB",
        "inspect",
        lambda results: max(results[bench_inspect.of_format(format)].median for format in bench_inspect.FORMATS),
        " s",
        most=1,
    ),
    Target("Every other start", "start", lambda results: results[bench_start.WARM].median, " s", most=1),
)
