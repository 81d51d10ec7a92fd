"""Wrong arguments of spark_udfs: refused on the driver, in words, before a query runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_udfs

from ..engines import FORMAT
from ..handmade import BEGIN, COMMIT, message
from ..lake.histories import messages_of
from ..lake.test_later_writes import INSERTED, transaction
from ..test_arguments import complaint, wrong_calls
from ..typed_histories import KEYS, Row
from .test_latest import frame

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # one test, half a minute

WRONG: tuple[Any, ...] = (None, 5, True, "x", b"x", [5], [[]], ["x", "x"], {"x": []}, object())


def options_of(function: Callable[..., Any], leave_out: int) -> list[str]:
    return list(inspect.signature(function).parameters)[leave_out:]


def test_wrong_arguments_are_refused_in_words(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a folder "x" is a good one
    messages = spark.createDataFrame([(1, message(BEGIN, COMMIT))], "seq bigint, value binary")
    row = {"part": 1, "id": 1, "step_0": "x", "Long a.b": None, "raw": None}
    typed = frame(spark, [Row("insert", row, sequence=(1, 0))], 1)
    placed: dict[str, Any] = {"order_by": ["seq"]}
    one = spark_udfs.capture(messages, "value", FORMAT, **placed)

    inserted = [(1, one) for one in messages_of([transaction(1, INSERTED)])]
    whole = spark_udfs.capture(
        spark.createDataFrame(inserted, "seq bigint, value binary"), "value", FORMAT, mode="PERMISSIVE", **placed
    )

    def capture(*given: Any, **options: Any) -> Any:
        return spark_udfs.capture(*given, **{**placed, **options})

    def typed_changes(*given: Any, **options: Any) -> Any:
        return one.typed(*given, **{"schema": {"id": "integer"}, **options})

    calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
        "decode": (spark_udfs.decode, (messages, "value", FORMAT), options_of(spark_udfs.decode, 3)),
        "capture": (capture, (messages, "value", FORMAT), options_of(spark_udfs.capture, 3)),
        "changes": (one.changes, (), options_of(one.changes, 0)),
        "committed": (one.committed, (), options_of(one.committed, 0)),
        "messages": (one.messages, (), options_of(one.messages, 0)),
        "write": (whole.write, (str(tmp_path / "lake"),), options_of(whole.write, 1)),
        "typed": (typed_changes, ("s.t",), options_of(one.typed, 1)),
        "latest": (spark_udfs.latest, (typed, KEYS), options_of(spark_udfs.latest, 2)),
        "register": (spark_udfs.register, (spark,), []),
    }
    found = {
        (name, what): words
        for name, (call, good, options) in calls.items()
        for what, one in wrong_calls(call, good, options, WRONG)
        if (words := complaint(one)) is not None
    }
    assert not found


@pytest.mark.parametrize("options", [{"cores": 0}, {"cores": "x"}, {"cores": [2]}, {"settings": "x"}])
def test_a_session_that_cannot_be(options: dict[str, Any]) -> None:
    assert complaint(lambda: spark_udfs.local_session(**options)) is None
    with pytest.raises(ValueError, match="expected"):
        spark_udfs.local_session(**options)
