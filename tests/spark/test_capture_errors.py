"""Errors of a capture on Spark: where they are, and which options cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from .raw_streams import (
    OFFSET,
    STREAM,
)

pytestmark = pytest.mark.spark


def test_errors_say_where(one_stream: tuple[DataFrame, list[bytes]], spark: SparkSession) -> None:
    df, messages = one_stream
    begin = next(offset for offset, message in enumerate(messages) if message[0] == ord("B"))
    rows = [offset for offset, message in enumerate(messages) if offset > begin and message[0] in b"IUD"]
    cut = df.where(f"{OFFSET} <> {begin}")
    with pytest.raises(PythonException, match=f"rows outside a transaction.*{OFFSET}={rows[0]}[^0-9]"):
        spark_udfs.capture(cut, "value", "pgoutput", order_by=[OFFSET]).committed().collect()
    with pytest.raises(wf.OrderError):
        _ = spark_udfs.capture(cut, "value", "pgoutput", order_by=[OFFSET]).position
    row = next(offset for offset, message in enumerate(messages) if message[0] == ord("I"))
    value = F.when(F.col(OFFSET) == row, F.lit(b"I\0")).otherwise(F.col("value"))
    bad = df.withColumn("value", value)
    for ask in (spark_udfs.Capture.tables, spark_udfs.Capture.changes):
        with pytest.raises(wf.DecodeError, match=rf"\[pgoutput: byte .*{OFFSET}={row}"):
            ask(spark_udfs.capture(bad, "value", "pgoutput", order_by=[OFFSET]))
    kinds = spark_udfs.capture(bad, "value", "pgoutput", order_by=[OFFSET], mode="PERMISSIVE").changes()
    assert kinds.where("kind = 'CORRUPT'").select(OFFSET).collect() == [(row,)]
    dropping = spark_udfs.capture(bad, "value", "pgoutput", order_by=[OFFSET], mode="DROPMALFORMED")
    assert dropping.dropped == 1


def test_another_format_is_an_error(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "gaussdb-binary", order_by=[OFFSET], mode="PERMISSIVE")
    with pytest.raises(wf.BadRows, match="pgoutput"):
        capture.tables()


def test_a_table_that_is_not_there(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    with pytest.raises(wf.BadRows, match="did you mean"):
        spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET]).typed("shop.orders")


POSITION = CapturePosition("pgoutput")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"order_by": []}, "order_by"),
        ({"order_by": ["nothing"]}, "order_by"),
        ({"payload": OFFSET}, "payload"),
        ({"mode": "fast"}, "mode"),
        ({"chunks": 0}, "chunks"),
        ({"after": "{}"}, "position"),
        ({"after": {("one",): POSITION}}, "option after: expected the position of one stream"),
        ({"after": POSITION, "stream_by": [STREAM]}, "option after: expected a dict"),
        (
            {"after": {"one": POSITION}, "stream_by": [STREAM]},
            f"option after: expected a tuple of the values of {STREAM}",
        ),
        ({"after": {("one", 2): POSITION}, "stream_by": [STREAM]}, "option after: expected a tuple"),
        ({"after": {(1,): POSITION}, "stream_by": [STREAM]}, r"option after: .* stream \(string\)"),
    ],
)
def test_wrong_options(spark: SparkSession, options: dict[str, Any], named: str) -> None:
    df = spark.createDataFrame([], f"{STREAM} string, {OFFSET} long, value binary")
    with pytest.raises(wf.WireformatError, match=named):
        spark_udfs.capture(df, **{"order_by": [OFFSET], "format": "pgoutput", **options})
