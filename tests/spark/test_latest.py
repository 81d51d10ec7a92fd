"""latest: made-up histories lead to the rows that a plain replica has; what it refuses; what it says of gaps."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import wireformat as wf
from spark_udfs.latest import latest

from .typed_histories import COLUMNS, KEYS, TYPED, Replica, Row, Values, history, typed_table

pytestmark = pytest.mark.spark


def frame(spark: SparkSession, rows: list[Row], partitions: int = 3) -> DataFrame:
    """The changes in any order, in some partitions."""
    shuffled = Random(len(rows)).sample(rows, len(rows))
    return spark.createDataFrame(typed_table(shuffled)).repartition(partitions)


def found(spark: SparkSession, rows: list[Row], keys: tuple[str, ...] = KEYS) -> list[dict[str, Any]]:
    return latest(frame(spark, rows), keys).toArrow().to_pylist()


def ordered(rows: list[Values]) -> list[str]:
    return sorted(repr([row.get(name) for name in COLUMNS.names]) for row in rows)


def replicated(rows: list[Row]) -> list[Values]:
    replica = Replica()
    for row in rows:
        replica.apply(row)
    return replica.rows


@pytest.mark.parametrize(("seed", "truncate"), [(1, 0.0), (2, 0.0), (3, 0.05)])
def test_histories(spark: SparkSession, seed: int, truncate: float) -> None:
    """Hundreds of them in one table; the reference agrees with the server that made them."""
    changes, held = history(100, 80, seed, truncate)
    assert ordered(replicated(changes)) == ordered(held)
    rows = found(spark, changes)
    assert ordered(rows) == ordered(held)
    assert all(row["_unchanged"] is None for row in rows)
