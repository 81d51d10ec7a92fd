"""The Spark session of the run, settings that last for one test, and a stream to capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf

from ..java_settings import leaving_classes
from .capture_streams import streams_of
from .raw_streams import write_in_order

SETTINGS = {
    "spark.default.parallelism": 2,
    "spark.python.daemon.module": f"{__package__}.daemon",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # else each column notes its line in Python
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # to compile a small query takes longer than to run it
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.streaming.stopTimeout": "60s",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = leaving_classes(
        lambda: spark_udfs.local_session(2, app_name="tests", settings=SETTINGS),
        lambda session: raw_messages(session).committed().toArrow(),
    )
    spark_udfs.register(session)
    yield session
    session.stop()


def raw_messages(session: SparkSession) -> spark_udfs.Capture:
    """Returns a capture of a few messages."""
    messages = wf.encode(wf.testing.stream(2, 12, seed=3, format="pgoutput"), "pgoutput")
    df = session.createDataFrame([*enumerate(map(bytes, messages))], ["offset", "value"])
    return spark_udfs.capture(df, "value", "pgoutput", order_by=["offset"])


COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
"""Queries are compiled, as Spark does it unless it is told otherwise."""


@pytest.fixture
def set_conf(spark: SparkSession) -> Iterator[Callable[[str, Any], None]]:
    """Set a setting until the test ends."""
    before: dict[str, str | None] = {}

    def change(name: str, value: Any) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture
def one_stream(spark: SparkSession, tmp_path: Path) -> tuple[DataFrame, list[bytes]]:
    """Messages of pgoutput in files that are in order, and the same messages."""
    messages = streams_of("pgoutput")["generated 0"]
    path = write_in_order({"one": messages}, tmp_path / "files", Random(1))
    return spark.read.parquet(path), messages
