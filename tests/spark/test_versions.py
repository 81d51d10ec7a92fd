"""Tables that change: the rows of a chunk begin with the version that the table had there, as in wf.Capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

from ..chunks.test_versions import stream_of
from ..lake.reading import read, values
from .raw_streams import OFFSET, assert_same, rows_of, write

pytestmark = pytest.mark.spark

FORMAT = "mppdb-json"


@pytest.fixture
def messages() -> list[bytes]:
    return stream_of(FORMAT, [1, 1, 2, 2, 1, 1, 3, 3, 2, 2])


@pytest.mark.parametrize("source", ["rows", "files"])
def test_many_chunks(spark: SparkSession, tmp_path: Path, messages: list[bytes], source: str) -> None:
    path = write([rows_of("one", messages[at : at + 1], range(1)) for at in range(len(messages))], tmp_path / "raw")
    given: dict[str, Any] = {"paths": path, "payload": "value"}
    if source == "rows":
        df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} int, value binary")
        given = {"df": df, "payload": "value", "order_by": [OFFSET], "chunks": 12}
    capture, one = spark_udfs.capture(format=FORMAT, **given), wf.Capture(messages, FORMAT)
    wanted = one.typed("s.t").read_all()
    assert {"b", "c"} <= {name for names in wanted["_unchanged"].to_pylist() for name in names or ()}
    assert_same(capture.typed("s.t").toArrow(), wanted)
    capture.write(tmp_path / "lake")
    one.write(tmp_path / "one")
    there, other = (sorted(map(repr, values(read(tmp_path / name, ("s", "t"))))) for name in ("lake", "one"))
    assert there == other


def test_in_sql(spark: SparkSession, tmp_path: Path, messages: list[bytes]) -> None:
    path = write(
        [rows_of("one", messages[at : at + 3], range(3)) for at in range(0, len(messages), 3)], tmp_path / "raw"
    )
    options = {"path": path, "format": FORMAT, "table": "s.t", "column": "value"}
    found = spark.read.format("wireformat").options(**options).load()
    assert_same(found.toArrow(), wf.Capture(messages, FORMAT).typed("s.t").read_all())
