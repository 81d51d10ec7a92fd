"""Kept columns: any type, any name, as often as their message has records."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf

from .messages import transaction

pytestmark = pytest.mark.spark

VALUES = {
    "yes": "true",
    "byte": "-128Y",
    "short": "32767S",
    "int": "-2147483648",
    "long": "9007199254740993",
    "float": "1.17549435E-38F",
    "not_a_number": "double('NaN')",
    "infinite": "double('-Infinity')",
    "decimal": "12345678901234567890.123456789BD",
    "text": "'Grüße'",
    "bytes": "X'00FF'",
    "date": "DATE'2026-11-01'",
    "first_instant": "TIMESTAMP'2026-11-01 01:30:00.123456-04:00'",
    "second_instant": "TIMESTAMP'2026-11-01 01:30:00.123456-05:00'",
    "far_instant": "TIMESTAMP'2500-01-01 00:00:00Z'",
    "local": "TIMESTAMP_NTZ'2026-03-08 02:30:00.000001'",
    "days": "INTERVAL '-1 02:03:04.000005' DAY TO SECOND",
    "months": "INTERVAL '2-3' YEAR TO MONTH",
    "array": "array(1, NULL, 3)",
    "map": "map('a', 1.5D, 'b', NULL)",
    "struct": "named_struct('x', 9007199254740993L, 'y', array(named_struct('z', 'deep')))",
    "empty": "CAST(array() AS array<int>)",
}
"""A column of each type, as SQL."""

NESTED = {"array", "map", "struct", "empty"}


@pytest.fixture(scope="module")
def everything(spark: SparkSession) -> DataFrame:
    """Three rows with a message of two inserts, none, and one insert; the kept columns of the last are null."""
    payloads = [("0", transaction("a", "b")), ("1", None), ("2", transaction("c"))]
    columns = [f"IF(n = '2', NULL, {sql}) AS `{name}`" for name, sql in VALUES.items()]
    messages = spark.createDataFrame([(n, payload) for n, payload in payloads], "n string, value binary")
    return messages.selectExpr("n", "value", *columns)


def as_text(rows: DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    """The rows as the JVM prints them: NaN is equal to itself, and no Python type stands between."""
    return [tuple(row) for row in rows.selectExpr(*[f"CAST(`{name}` AS STRING)" for name in names]).collect()]


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type(everything: DataFrame, set_conf: Any, engine: str, zone: str) -> None:
    set_conf("spark.sql.session.timeZone", zone)
    names = ["n", *VALUES]
    rows = spark_udfs.decode(everything, keep=names, columns=["record"], engine=engine)
    messages = as_text(everything, names)
    assert as_text(rows, names) == [messages[0]] * 4 + [messages[2]] * 3
    assert [field.dataType for field in rows.schema][:-1] == [everything.schema[name].dataType for name in names]


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
@pytest.mark.parametrize("json", ["""'{"a": [1, null], "b": "x"}'""", "CAST(NULL AS string)"])
def test_variant(spark: SparkSession, engine: str, json: str) -> None:
    messages = spark.createDataFrame([(transaction("a"),)], "value binary")
    messages = messages.selectExpr("value", f"parse_json({json}) AS v", "CAST(DATE'2026-11-01' AS variant) AS day")
    messages = messages.selectExpr("*", "array(v, day) AS list", "named_struct('v', v) AS inside", "map('k', v) AS map")
    names = ["v", "day", "list", "inside", "map"]
    rows = spark_udfs.decode(messages, keep=names, kinds=["INSERT"], engine=engine)
    found = ["schema_of_variant(v)", "schema_of_variant(day)", "variant_get(v, '$.a[0]', 'int')"]
    found += ["to_json(list)", "to_json(inside)", "to_json(map)", "schema_of_variant(list[1])"]
    assert rows.selectExpr(*found).collect() == messages.selectExpr(*found).collect()


@pytest.mark.parametrize("type", ["array<{}>", "map<int, {}>", "struct<a: array<struct<b: {}>>>"])
def test_intervals_of_months_within_others(spark: SparkSession, type: str) -> None:
    frame = spark.createDataFrame([], f"value binary, i {type.format('interval year to month')}")
    with pytest.raises(wf.OptionError, match=r"option keep: 'i' has intervals within .*; cast it to string"):
        spark_udfs.decode(frame, keep=["i"])
    days = spark.createDataFrame([], f"value binary, i {type.format('interval day to second')}")
    assert spark_udfs.decode(days, keep=["i"], columns=["kind"]).columns == ["i", "kind"]


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
def test_names_with_any_character(spark: SparkSession, engine: str) -> None:
    messages = spark.createDataFrame([(1, "x", transaction("a"))], "`a.b` int, `back``tick` string, `the value` binary")
    rows = spark_udfs.decode(
        messages, "the value", keep=["back`tick", "a.b"], columns=["kind"], kinds=["INSERT"], engine=engine
    )
    assert rows.columns == ["back`tick", "a.b", "kind"]
    assert rows.collect() == [("x", 1, "INSERT")]


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
def test_the_payload_itself(spark: SparkSession, engine: str) -> None:
    message = transaction("a")
    messages = spark.createDataFrame([(message,)], "value binary")
    rows = spark_udfs.decode(messages, keep=["value"], columns=["kind"], kinds=["INSERT"], engine=engine)
    assert rows.collect() == [(message, "INSERT")]


def test_nothing_kept_and_some_columns(spark: SparkSession) -> None:
    messages = spark.createDataFrame([(transaction("a"),)], "value binary")
    rows = spark_udfs.decode(messages, columns=["new", "kind"])
    assert rows.columns == ["kind", "new"]
    assert rows.where("kind = 'INSERT'").collect() == [("INSERT", {"id": "1", "v": "a"})]


def test_kept_columns_alone(spark: SparkSession) -> None:
    messages = spark.createDataFrame([(5, transaction("a"))], "n int, value binary")
    assert spark_udfs.decode(messages, keep=["n"], columns=[]).collect() == [(5,), (5,), (5,)]


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
def test_metadata_stays(spark: SparkSession, engine: str) -> None:
    messages = spark.createDataFrame([(5, transaction("a"))], "n int, value binary").withMetadata("n", {"unit": "m"})
    rows = spark_udfs.decode(messages, keep=["n"], engine=engine)
    assert rows.schema["n"].metadata == {"unit": "m"}


def test_large_kept_columns_come_in_small_batches(spark: SparkSession) -> None:
    messages = spark.createDataFrame([(transaction(*"v" * 300),)], "value binary")
    messages = messages.selectExpr("value", "repeat('x', 1000000) AS big")
    rows = spark_udfs.decode(messages, keep=["big"], columns=["record"])
    assert rows.selectExpr("sum(length(big))", "count(*)").collect() == [(302_000_000, 302)]
