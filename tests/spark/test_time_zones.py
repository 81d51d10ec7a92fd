"""A commit_time is the same instant in every session time zone, also in the hour that comes twice in autumn."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import wireformat as wf

from ..engines import FORMAT
from .messages import EARLY, LATE, transaction
from .ways import WAYS, Way

MESSAGES = [transaction("a", commit_time=EARLY), transaction("b", commit_time=LATE)]


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Shanghai", "UTC"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_commit_time(spark: SparkSession, set_conf: Any, way: Way, zone: str) -> None:
    set_conf("spark.sql.session.timeZone", zone)
    messages = spark.createDataFrame(list(enumerate(MESSAGES)), "seq int, payload binary")
    rows = way.run(messages, kinds=["COMMIT"]).orderBy("seq")
    found = [row[0] for row in rows.selectExpr("unix_micros(commit_time)").collect()]
    wanted = wf.arrow.changes(MESSAGES, FORMAT, kinds=["COMMIT"])["commit_time"].cast(pa.int64()).to_pylist()
    assert wanted[1] - wanted[0] == 3600 * 10**6
    assert found == wanted
