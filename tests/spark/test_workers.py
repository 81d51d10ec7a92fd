"""Workers are settled: after a task, the garbage collector does not look through what has been loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_udfs.workers import settle

from .messages import transaction

pytestmark = pytest.mark.spark


def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Says how many objects the garbage collector of the worker looks through, after a decoding has ended."""
    from spark_udfs import workers
    from spark_udfs.decoding.batches import decode_batches
    from spark_udfs.decoding.task import DecodingPlan

    yield from ()
    gc.unfreeze()
    workers._loaded = 0
    plan: Any = DecodingPlan.check("gaussdb-binary")
    for _ in decode_batches(plan, None, (batch.select(["value"]) for batch in batches)):
        pass
    yield pa.RecordBatch.from_arrays([pa.array([gc.get_freeze_count()])], names=["objects"])


def test_after_a_task_nothing_is_looked_through(spark: SparkSession) -> None:
    df = spark.createDataFrame([(transaction("a"),)], "value binary").coalesce(1)
    assert df.mapInArrow(frozen, "objects long").collect()[0][0] > 10_000


def test_outside_of_a_worker_nothing_is_changed() -> None:
    before = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() == before
