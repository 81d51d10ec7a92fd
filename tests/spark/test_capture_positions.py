"""A capture on Spark goes on after a position, and its chunks follow the positions of messages."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

import spark_udfs
from spark_udfs.positions import MOST_CHUNKS, PositionColumns, chunk_of

from .capture_streams import of_one_machine, streams_of
from .raw_streams import (
    OFFSET,
    PLACE,
    assert_same,
    write_in_order,
)

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_going_on_after_a_position(spark: SparkSession, tmp_path: Path) -> None:
    """Each part is the rest of the stream from the oldest message on that was open at the position before."""
    streams = streams_of("pgoutput")
    position, found = None, []
    for share in (0.3, 0.6, 1.0):
        some = {name: messages[: int(len(messages) * share)] for name, messages in streams.items()}
        path = write_in_order(some, tmp_path / str(share), Random(3))
        capture = spark_udfs.capture(spark.read.parquet(path), "value", "pgoutput", after=position, **PLACE)
        found.append(capture.committed().toArrow())
        position = capture.position
    wanted = of_one_machine(streams, "pgoutput", lambda one: one.committed().read_all())
    assert_same(pa.concat_tables(found), wanted)


def test_a_stream_without_new_messages_keeps_its_position(spark: SparkSession, tmp_path: Path) -> None:
    streams = {name: streams_of("pgoutput")[name] for name in ("generated 0", "generated 1")}
    positions = []
    for number, of_part in enumerate((streams, {"generated 1": streams["generated 1"]})):
        df = spark.read.parquet(write_in_order(of_part, tmp_path / str(number), Random(3)))
        after = positions[-1] if positions else None
        positions.append(spark_udfs.capture(df, "value", "pgoutput", after=after, **PLACE).position)
    assert {*positions[0]} == {(name,) for name in streams}
    assert positions[1]["generated 0",] == positions[0]["generated 0",]
    assert positions[1]["generated 1",].delivered.lsn == positions[0]["generated 1",].delivered.lsn


def test_tables_that_only_the_position_knows_have_no_offsets(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, messages = one_stream
    schema = StructType([StructField(OFFSET, LongType(), False), StructField("value", BinaryType())])
    never_null = df.sparkSession.createDataFrame(df.select(OFFSET, "value").collect(), schema)
    position = spark_udfs.capture(never_null, "value", "pgoutput", order_by=[OFFSET]).position
    later = never_null.where(f"{OFFSET} >= {len(messages)}")
    rows = spark_udfs.capture(later, "value", "pgoutput", order_by=[OFFSET], after=position).tables().collect()
    assert rows
    assert {row["first"][OFFSET] for row in rows} == {row["last"][OFFSET] for row in rows} == {None}


def test_messages_of_equal_positions_are_an_error(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    twice = df.unionAll(df.where(f"{OFFSET} = 5"))
    with pytest.raises(PythonException, match=f"two messages at {OFFSET}=5"):
        spark_udfs.capture(twice, "value", "pgoutput", order_by=[OFFSET]).tables()


@pytest.mark.parametrize("chunks", [1, 2, 7, 300, MOST_CHUNKS])
def test_the_chunks_of_messages(spark: SparkSession, chunks: int) -> None:
    """Each has the messages from one start to the next, in the order of all columns."""
    places = [(f"é{number % 5}", number * 7919 % 10_007, -number) for number in range(10_007)]
    df = spark.createDataFrame(places, "stream string, offset int, part long")
    positions = PositionColumns.check(df, ["offset", "part"], ["stream"])
    rows = df.select("stream", "offset", "part", chunk_of(df, positions, chunks).alias("chunk")).collect()
    found = [chunk for *_, chunk in sorted(tuple(row) for row in rows)]
    assert found == sorted(found)
    sizes = [found.count(chunk) for chunk in range(chunks)]
    assert sum(sizes) == len(places)
    assert min(sizes) > 0
    assert max(sizes) < 3 * len(places) / chunks + 3
