"""Messages that all come before the position of a capture or a lake do not move it back, as in wf.Capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from ..lake.reading import manifest_of, read_all
from ..lake.test_repeated_parts import parts_of_an_altered_table
from ..servers.captures import read_capture
from .raw_streams import OFFSET, assert_same

pytestmark = pytest.mark.spark

FORMAT = "pgoutput"


def capture_of(df: DataFrame, end: int, after: Any) -> spark_udfs.Capture:
    return spark_udfs.capture(df.where(f"{OFFSET} < {end}"), "value", FORMAT, order_by=[OFFSET], chunks=3, after=after)


@pytest.mark.parametrize("end", [40, 90])
def test_an_older_part_after_a_newer_one(spark: SparkSession, tmp_path: Path, end: int) -> None:
    """The stream has streamed transactions, some of which are open at the position."""
    messages = [*map(bytes, read_capture("18-pgoutput-4").messages)][:400]
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} int, value binary")
    older = capture_of(df, end, None).position
    first = capture_of(df, 300, older)
    newer = first.position
    assert newer.delivered != older.delivered
    again = capture_of(df, end, newer)
    assert again.committed().count() == 0
    assert again.position == newer
    assert CapturePosition.from_json(again.position.to_json()) == newer
    rest = capture_of(df, len(messages), again.position).committed().toArrow()
    found = [capture_of(df, end, None).committed().toArrow(), first.committed().toArrow(), rest]
    wanted = wf.Capture(messages, FORMAT).committed().read_all().drop_columns(["message"])
    assert_same(pa.concat_tables(found), wanted)


def test_a_lake_that_gets_an_older_part_again(spark: SparkSession, tmp_path: Path) -> None:
    messages = [*map(bytes, wf.encode(wf.testing.stream(2, 12, seed=3, format=FORMAT), FORMAT))]
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} int, value binary")
    lake = tmp_path / "lake"
    for end in (len(messages) // 3, len(messages)):
        capture_of(df, end, None).write(lake)
    position, rows = wf.lake.position(lake), read_all(lake)
    capture_of(df, len(messages) // 3, None).write(lake)
    assert wf.lake.position(lake) == position
    assert read_all(lake) == rows
    assert manifest_of(lake)["position"] is not None


@pytest.mark.parametrize(("format", "state"), [("parquet", "changes"), ("delta", "latest")])
def test_a_part_in_which_a_table_is_altered(spark: SparkSession, tmp_path: Path, format: str, state: str) -> None:
    """Written again with its old position, it adds nothing twice, and leaves the lake where it is."""
    first, second, third = parts_of_an_altered_table()
    lake = tmp_path / "lake"

    def write(messages: list[bytes], after: Any) -> int:
        df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} int, value binary")
        capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET], chunks=2, after=after)
        return sum(row["rows"] for row in capture.write(lake, format=format, state=state).collect())

    write(first, None)
    before = wf.lake.position(lake)
    write(second, before)
    reached, rows = wf.lake.position(lake), read_all(lake)
    assert write(second, before) == 0
    assert read_all(lake) == rows
    now = wf.lake.position(lake)
    assert (now.relations, now.delivered.lsn) == (reached.relations, reached.delivered.lsn)
    write(second[:3], before)
    assert wf.lake.position(lake) == now
    write(third, before)  # where the messages begin counts, not the position
    write([*second, *third], before)
    found = read_all(lake)["public", "t"]
    assert found["id"].to_pylist() == ["1", "2", "3", "4"]
    assert found["v"].to_pylist() == [None, None, "x", "y"]
