"""DataFrames some of whose partitions have no messages, and answers whose partitions Spark joins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from spark_udfs.chunks.reading import Reading

from .raw_streams import OFFSET, assert_same, rows_of, write

pytestmark = pytest.mark.spark

FORMAT = "pgoutput"
FILES = 6


@pytest.fixture
def given(
    spark: SparkSession, tmp_path: Path, set_conf: Callable[[str, Any], None]
) -> tuple[DataFrame, Sequence[bytes]]:
    """The messages of a stream in a partition for each file, of which some have none."""
    set_conf("spark.sql.files.openCostInBytes", 1 << 30)
    set_conf("spark.sql.files.maxPartitionBytes", 1 << 30)
    messages = [*map(bytes, wf.encode(wf.testing.stream(2, 12, seed=3, format=FORMAT), FORMAT))]
    size = -(-len(messages) // 3)
    parts = [
        rows_of("one", messages[at : at + size], range(len(messages[at : at + size]))) for at in (0, size, 2 * size)
    ]
    others = rows_of("other", messages, range(3))
    path = write([others, parts[0], others, parts[1], parts[2], others], tmp_path / "raw")
    name = F.regexp_extract(F.input_file_name(), r"(\d+)\.parquet", 1).cast("int")
    df = spark.read.parquet(path).withColumn(OFFSET, F.col(OFFSET) + 1000 * name).where("stream = 'one'")
    assert df.select(F.spark_partition_id()).distinct().count() == 3 < FILES
    return df, messages


def test_joined_answers(given: tuple[DataFrame, Sequence[bytes]]) -> None:
    df, messages = given
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET])
    wanted = wf.Capture(messages, FORMAT).committed().read_all().drop_columns(["message"])
    answer = capture.committed()
    assert capture._messages.are_chunks
    for found in (answer, answer.coalesce(1), answer.coalesce(2), answer.repartition(3)):
        assert_same(found.toArrow(), wanted)
    assert_same(answer.unionAll(answer).coalesce(3).toArrow(), pa.concat_tables([wanted, wanted]))
    typed = capture.typed("shop.orders_0").coalesce(2)
    assert_same(typed.toArrow(), wf.Capture(messages, FORMAT).typed("shop.orders_0").read_all())


def test_joined_messages(given: tuple[DataFrame, Sequence[bytes]]) -> None:
    df, messages = given
    wanted = wf.Capture(messages, FORMAT).committed().read_all().drop_columns(["message"])
    early, late = df.where(f"{OFFSET} < 3500"), df.where(f"{OFFSET} >= 3500")
    for some in (df.coalesce(2), late.unionAll(early), early.unionAll(late).coalesce(3)):
        assert_same(spark_udfs.capture(some, "value", FORMAT, order_by=[OFFSET]).committed().toArrow(), wanted)


def test_a_partition_that_loses_its_rows(given: tuple[DataFrame, Sequence[bytes]], tmp_path: Path) -> None:
    """A write knows all chunks; an answer cannot tell its partition from one that had no messages."""
    df, _ = given
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET])
    capture.tables()
    capture._messages.df = df.where(f"{OFFSET} >= 3000")
    with pytest.raises((PythonException, wf.BadRows), match="gives other rows"):
        capture.write(tmp_path / "lake")


_readings: dict[int, Reading] = {}
"""In a worker: the readings of its tasks."""


def task_of(reading: Reading, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the messages of a partition; returns how many, the worker, and how many readings its tasks have had."""
    messages = sum(len(group.messages.needed) for group in reading.groups(batches))
    _readings[id(reading)] = reading
    yield pa.RecordBatch.from_pylist([{"messages": messages, "worker": os.getpid(), "readings": len(_readings)}])


def test_many_partitions_with_few_messages(
    one_stream: tuple[DataFrame, list[bytes]], set_conf: Callable[[str, Any], None]
) -> None:
    """Workers go on after empty partitions, and unpickle what they must know of all chunks once, not for each task."""
    df, _ = one_stream
    set_conf("spark.sql.shuffle.partitions", 20)
    capture = spark_udfs.capture(df.where(f"{OFFSET} < 10").repartition(5), "value", FORMAT, order_by=[OFFSET])
    schema = "messages long, worker long, readings long"
    found = capture._messages.map_chunks(partial(task_of, capture._light.reading), schema).collect()
    assert not capture._messages.are_chunks
    assert len(found) == 20
    assert sum(not row["messages"] for row in found) >= 10
    assert len({row["worker"] for row in found}) < 10
    assert {row["readings"] for row in found} == {1}
