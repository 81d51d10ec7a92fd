"""Settings of the session that change how Spark groups and reads SQL: the answers are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

pytestmark = pytest.mark.spark

TABLE: dict[str, Any] = {"table_schema": "shop", "table_name": "t"}
TIME = "2026-11-23 10:00:00+00"
NAMES, TYPES = ("id", "note"), ("integer", "text")
SETTINGS = {
    "spark.sql.retainGroupColumns": "false",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
}


def messages_of(note: str) -> list[bytes]:
    """Returns a stream in which a table is truncated, and a row moves to another key without all its values."""

    def image(id: str, *note: Any) -> wf.TupleData:
        return wf.TupleData(NAMES[: 1 + len(note)], (id, *note), TYPES[: 1 + len(note)])

    transactions: list[list[wf.Event]] = [
        [wf.Insert(**TABLE, new=image("1", "gone"))],
        [wf.Truncate(tables=(("shop", "t"),))],
        [wf.Insert(**TABLE, new=image("1", note)), wf.Insert(**TABLE, new=image("3", "x"))],
        [wf.Update(**TABLE, old=image("1"), old_kind="key", new=image("2", wf.UNCHANGED))],
    ]
    events: list[wf.Event] = []
    for number, changes in enumerate(transactions, 1):
        events.append(wf.Begin(xid=number, commit_lsn=16 * number, commit_time=TIME))
        events += changes
        events.append(wf.Commit(commit_lsn=16 * number, end_lsn=16 * number + 1, commit_time=TIME))
    return [*map(bytes, wf.encode(events, "pgoutput"))]


def answers(spark: SparkSession) -> dict[str, list[str]]:
    rows = [(name, number, message) for name in "ab" for number, message in enumerate(messages_of(name))]
    df = spark.createDataFrame(rows, "name string, seq long, value binary").coalesce(1)
    captures = {
        "one": spark_udfs.capture(df.where("name = 'a'"), "value", "pgoutput", order_by=["seq"]),
        "two": spark_udfs.capture(df, "value", "pgoutput", order_by=["seq"], stream_by=["name"]),
    }
    asked = {f"{name} latest": capture.latest("shop.t", keys=["id"]) for name, capture in captures.items()}
    asked |= {f"{name} typed": capture.typed("shop.t") for name, capture in captures.items()}
    for name in captures:
        typed = asked[f"{name} typed"].where("_change_type <> 'update'")
        streams = {"stream_by": ["name"]} if name == "two" else {}
        asked[f"{name} whole rows"] = spark_udfs.latest(typed, [], **streams)
    spark_udfs.register(spark)
    asked["function"] = spark.sql("SELECT lsn_value('1/0A')")
    return {question: sorted(map(str, found.collect())) for question, found in asked.items()}


@pytest.mark.parametrize("setting", SETTINGS)
def test_answers_are_the_same(spark: SparkSession, set_conf: Callable[[str, Any], None], setting: str) -> None:
    wanted = answers(spark)
    assert wanted["one latest"][0].startswith("Row(id=2, note='a'")
    set_conf(setting, SETTINGS[setting])
    assert answers(spark) == wanted
