"""What the driver sees when bytes are bad: format, position, reason, and the kept columns of the message."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import spark_udfs
import wireformat as wf
from spark_udfs.decoding.task import SHOWN_CHARACTERS, DecodingPlan, Kept, Task

from ..engines import FORMAT
from .messages import TORN, transaction
from .ways import WAYS, Way


def text_of(rows: DataFrame) -> str:
    """The text of the exception that ends the query."""
    with pytest.raises(PythonException) as caught:
        rows.collect()
    return str(caught.value)


def place(message: bytes) -> str:
    """The text of the error in the message, from what is expected on; where it lies is in it, and the way varies."""
    with pytest.raises(wf.DecodeError) as caught:
        list(wf.decode([message], FORMAT))
    return str(caught.value.add(message=None)).removesuffix("]")


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    """Two partitions of a Kafka topic; the message at partition 3, offset 18 is torn."""
    rows = [(2, 17, "cdc", transaction("a")), (3, 17, "cdc", transaction("b")), (3, 18, "cdc", TORN)]
    return spark.createDataFrame(rows, "partition int, offset bigint, topic string, value binary").withColumn(
        "time", F.current_timestamp()
    )


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["arrow", "pandas"])
def test_the_text_names_the_kept_columns(messages: DataFrame, engine: str) -> None:
    keep = ["topic", "partition", "offset", "time"]
    text = text_of(spark_udfs.decode(messages, keep=keep, engine=engine))
    assert f"{place(TORN)}, row topic=cdc, partition=3, offset=18]" in text
    assert f"[{FORMAT}: byte " in text


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["arrow", "pandas"])
def test_without_kept_columns_it_counts_the_messages_of_the_task(messages: DataFrame, engine: str) -> None:
    one_task = messages.coalesce(1).select("value")
    assert f"[{FORMAT}: message 2, byte " in text_of(spark_udfs.decode(one_task, engine=engine))


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_says_what_is_wrong(messages: DataFrame, way: Way) -> None:
    text = text_of(way.run(messages.selectExpr("offset AS seq", "value AS payload")))
    words, _, where = place(TORN).partition("[")
    assert words in text
    assert where.split(": ", 1)[1] in text


@pytest.mark.spark
def test_the_table_function_names_seq(messages: DataFrame) -> None:
    text = text_of(WAYS["wal_changes"].run(messages.selectExpr("offset AS seq", "value AS payload")))
    assert ", row seq=18]" in text


@pytest.mark.spark
def test_streams_end_with_the_same_text(spark: SparkSession, messages: DataFrame, tmp_path: Any) -> None:
    messages.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(messages.schema).parquet(str(tmp_path / "in"))
    rows = spark_udfs.decode(stream, keep=["partition", "offset"])
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = query.trigger(availableNow=True).start()
    with pytest.raises(Exception, match="row partition=3, offset=18]"):
        running.awaitTermination()


def test_long_kept_strings_are_cut() -> None:
    plan = DecodingPlan.check(FORMAT, keep=[Kept("partition"), Kept("topic", is_shown=True)])
    assert plan.note(lambda position: "x" * 1000) == "topic=" + "x" * SHOWN_CHARACTERS + "..."


def test_nothing_to_tell_is_no_note() -> None:
    assert DecodingPlan.check(FORMAT, keep=[Kept("time")]).note(lambda position: "x") is None


def test_dropped_records_are_logged_once_a_task(caplog: pytest.LogCaptureFixture) -> None:
    task = Task(DecodingPlan.check(FORMAT, mode="DROPMALFORMED"))
    counts = [sum(rows.num_rows for _, rows in task.rows(batch)) for batch in ([transaction("a"), TORN], [None, TORN])]
    assert counts == [5, 2]
    with caplog.at_level(logging.WARNING):
        task.close()
    assert caplog.messages == [f"DROPMALFORMED left out 2 records of {FORMAT} in this task"]


@pytest.mark.spark
def test_the_log_of_the_workers_can_be_queried(spark: SparkSession, messages: DataFrame, set_conf: Any) -> None:
    set_conf("spark.sql.pyspark.worker.logging.enabled", "true")
    for way in WAYS.values():
        way.run(messages.selectExpr("offset AS seq", "value AS payload").coalesce(1), mode="DROPMALFORMED").collect()
    logged = spark.sql("SELECT msg FROM python_worker_logs() WHERE logger = 'spark_udfs'").collect()
    assert [row.msg for row in logged] == [f"DROPMALFORMED left out 1 record of {FORMAT} in this task"] * len(WAYS)
