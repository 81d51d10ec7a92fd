"""Relations that are meant only in a streamed transaction are in the positions of captures on Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

from ..capture.test_position_scopes import parts
from ..streamed_histories import FORMAT, columns_of_rows
from .raw_streams import OFFSET

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("end", ["commit", "later blocks"])
def test_rows_after_the_end_of_a_transaction_that_had_begun_before_the_oldest_needed_message(
    spark: SparkSession, end: str
) -> None:
    messages, needed, cut = parts(end)

    def capture(begin: int, end: int, after: Any = None) -> spark_udfs.Capture:
        df = spark.createDataFrame([*enumerate(messages[begin:end])], f"{OFFSET} int, value binary")
        return spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET], chunks=3, after=after)

    whole = wf.Capture(messages[:cut], FORMAT)
    whole.committed().read_all()
    first = capture(0, cut).position
    assert first == whole.position
    again = capture(needed, cut, first).position
    assert (again.relations, again.delivered.lsn) == (first.relations, first.delivered.lsn)
    rest = capture(needed, len(messages), again.to_json())
    wanted = wf.Capture(messages[needed:], FORMAT, after=first)
    assert sorted(columns_of_rows(rest.committed().toArrow())) == sorted(columns_of_rows(wanted.committed().read_all()))
    assert rest.position.relations == wanted.position.relations
