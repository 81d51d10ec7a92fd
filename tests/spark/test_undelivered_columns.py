"""Columns that only streamed transactions gave a table that were rolled back, or are open, wherever Spark cuts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

from ..lake.reading import read
from ..undelivered import Part, Transaction, columns_of, in_turns, messages_of
from .raw_streams import OFFSET

pytestmark = pytest.mark.spark

TABLE = "public.t"
OWN = frozenset("bcdef")
PLAIN = Transaction("plain", "commit", (Part("b"),))
HISTORY = [
    PLAIN,
    Transaction("streamed", "abort", (Part("c"), Part("d"))),
    Transaction("streamed", "commit", (Part("b"), Part("c", is_undone=True))),
    Transaction("prepared", "abort", (Part("d"),)),
    Transaction("both", "commit", (Part("e"), Part("d", is_undone=True))),
    PLAIN,
    Transaction("streamed", "open", (Part("f"),)),
]
WANTED = {"b", "d", "e"}
TURNS = [0, 0, 0, 1, 1, 0, 2, 2, 1, 0, 3, 1, 0]


@pytest.mark.parametrize("partitions", [1, 7, 40])
def test_capture(spark: SparkSession, tmp_path: Path, partitions: int) -> None:
    steps = in_turns(HISTORY, TURNS)
    messages = messages_of(steps)
    assert columns_of(steps) == WANTED
    rows = pa.table({OFFSET: range(len(messages)), "value": pa.array(messages, pa.binary())})
    df = spark.createDataFrame(rows).repartitionByRange(partitions, OFFSET)
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    one = wf.Capture(messages, "pgoutput")
    columns = ["a", *sorted(WANTED), "_change_type"]
    assert {*capture.typed(TABLE).columns} & OWN == WANTED
    found = capture.typed(TABLE).orderBy("_sequence").select(columns).toArrow().to_pylist()
    assert found == one.typed(TABLE).read_all().select(columns).to_pylist()
    assert {*capture.latest(TABLE).columns} & OWN == WANTED
    assert capture.tables().toArrow().select(["columns", "changes"]).equals(one.tables().select(["columns", "changes"]))
    capture.write(str(tmp_path / "lake"))
    assert {*read(tmp_path / "lake", ("public", "t")).schema.names} & OWN == WANTED


@pytest.mark.parametrize("cut", [3, 6, 9])
def test_a_later_capture(spark: SparkSession, cut: int) -> None:
    """It is sent again what was open at the end of the first one."""
    steps = in_turns(HISTORY, TURNS)
    messages = messages_of(steps)
    count = len(messages_of(steps[:cut]))
    rows = pa.table({OFFSET: range(len(messages)), "value": pa.array(messages, pa.binary())})
    df = spark.createDataFrame(rows).repartitionByRange(5, OFFSET)
    first = spark_udfs.capture(df.filter(f"{OFFSET} < {count}"), "value", "pgoutput", order_by=[OFFSET])
    second = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], after=first.position)
    assert "e" in second.typed(TABLE).columns
    assert {*second.typed(TABLE).columns} & OWN <= columns_of(steps)


def test_data_source(spark: SparkSession, tmp_path: Path) -> None:
    messages = messages_of(in_turns(HISTORY, TURNS))
    path = tmp_path / "stream.parquet"
    spark.createDataFrame(pa.table({"value": pa.array(messages, pa.binary())})).coalesce(1).write.parquet(str(path))
    spark_udfs.register(spark)
    options = {"format": "pgoutput", "column": "value", "table": TABLE}
    found = spark.read.format("wireformat").options(**options).load(str(path))
    assert {*found.columns} & OWN == WANTED
