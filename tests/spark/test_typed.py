"""spark_udfs.capture(…).typed: the rows of one machine, with every option and in every form of a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import CalendarIntervalType, StructType

import spark_udfs
import wireformat as wf

pytestmark = pytest.mark.spark

TABLE = "shop.orders"
SCHEMA = {"id": "bigint", "note": "text", "price": "numeric(10,2)", "day": "date"}


def line(text: str, table: str = TABLE) -> bytes:
    return f"table {table}: {text}".encode()


LINES = [
    b"BEGIN 1",
    line("INSERT: id[integer]:1 note[text]:'x' price[numeric]:1.50 day[date]:'2026-11-21'"),
    line("UPDATE: id[integer]:1 note[text]:unchanged-toast-datum price[numeric]:2 day[date]:'2026-11-21'"),
    line(
        "UPDATE: old-key: id[integer]:1 note[text]:'x' new-tuple: id[integer]:2 note[text]:unchanged-toast-datum "
        "price[numeric]:2 day[date]:'2026-11-21'"
    ),
    line("INSERT: id[integer]:1", "shop.other"),
    line("TRUNCATE: (no-flags)"),
    b"COMMIT 1",
    b"BEGIN 2",
    line("INSERT: id[bigint]:5000000000 day[date]:'2026-11-22'"),
    line("DELETE: id[bigint]:5000000000"),
    b"COMMIT 2",
]


def capture_of(spark: SparkSession, lines: list[bytes], **options: Any) -> spark_udfs.Capture:
    rows = [(number, one) for number, one in enumerate(lines)]
    df = spark.createDataFrame(rows, "seq bigint, value binary").repartition(3)
    return spark_udfs.capture(df, "value", "test-decoding", order_by=["seq"], **options)


def by_sequence(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (*row["_sequence"].values(), row["_change_type"]))


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, "FAILFAST"),
        ({"images": "both", "complete": True}, "FAILFAST"),
        ({"split_key_changes": True, "keys": ["id"]}, "FAILFAST"),
        ({"schema": SCHEMA}, "PERMISSIVE"),
        ({"schema": pa.schema([("id", pa.int64()), ("note", pa.string())])}, "FAILFAST"),
    ],
)
def test_the_rows_are_those_of_one_machine(spark: SparkSession, options: dict[str, Any], mode: str) -> None:
    found = capture_of(spark, LINES, mode=mode).typed(TABLE, **options).toArrow()
    wanted = wf.Capture(LINES, "test-decoding", mode=mode).typed(TABLE, **options).read_all()
    assert found.schema.names == wanted.schema.names
    assert by_sequence(found) == by_sequence(wanted)
    assert len(found) > 5


def test_a_schema_in_every_form(spark: SparkSession) -> None:
    capture = capture_of(spark, LINES)
    wanted = by_sequence(capture.typed(TABLE).toArrow())
    listed = wf.Capture(LINES, "test-decoding").tables()
    assert by_sequence(capture.typed(TABLE, schema=listed).toArrow()) == wanted
    columns = StructType(capture.typed(TABLE).schema[:4])
    assert by_sequence(capture.typed(TABLE, schema=columns).toArrow()) == wanted


def test_times_of_day_are_text(spark: SparkSession) -> None:
    text = "INSERT: at[time without time zone]:'24:00:00' ats[time without time zone[]]:'{04:05:06.7,NULL}'"
    capture = capture_of(spark, [b"BEGIN 1", line(text), b"COMMIT 1"])
    for schema in (None, {"at": "time", "ats": "time[]"}):
        (row,) = capture.typed(TABLE, schema=schema).select("at", "ats").collect()
        assert (row["at"], row["ats"]) == ("24:00:00", ["04:05:06.7", None])


def test_bad_values(spark: SparkSession) -> None:
    lines = [LINES[0], LINES[1], line("INSERT: id[integer]:'x' day[date]:'infinity'"), b"COMMIT 1"]
    with pytest.raises(PythonException, match=r"bad cell: .*table shop.orders, column id"):
        capture_of(spark, lines).typed(TABLE).toArrow()
    kept = capture_of(spark, lines, mode="PERMISSIVE").typed(TABLE).where("_error is not null").toArrow()
    assert kept.select(["id", "day"]).to_pylist() == [{"id": None, "day": None}]
    assert capture_of(spark, lines, mode="DROPMALFORMED").typed(TABLE).count() == 1


def test_what_cannot_be(spark: SparkSession) -> None:
    capture = capture_of(spark, LINES)
    for call, words in {
        lambda: capture.typed("orders"): "expected schema.table",
        lambda: capture.typed("shop.*"): "expected one table",
        lambda: capture.typed(TABLE, evolution="versions"): "option evolution: expected union, error",
        lambda: capture.typed(
            TABLE, schema=StructType().add("id", CalendarIntervalType())
        ): "option schema: expected types that Arrow has",
    }.items():
        with pytest.raises(wf.OptionError, match=words):
            call()
    with pytest.raises(wf.BadRows, match=r"version 2 .*seq=8"):
        capture.typed(TABLE, evolution="error")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_instants_in_a_spark_schema(spark: SparkSession, zone: str, set_conf: Any) -> None:
    set_conf("spark.sql.session.timeZone", zone)
    text = (
        "INSERT: id[integer]:1 at[timestamp with time zone]:'2026-11-21 10:00:00+00' "
        "local[timestamp without time zone]:'2026-11-21 10:00:00'"
    )
    schema = StructType.fromDDL("at timestamp, local timestamp_ntz, id int")
    rows = capture_of(spark, [b"BEGIN 1", line(text), b"COMMIT 1"]).typed(TABLE, schema=schema)
    (found,) = rows.selectExpr("unix_micros(at) at", "CAST(local AS string) local", "id").collect()
    assert found.asDict() == {"at": 1_795_255_200_000_000, "local": "2026-11-21 10:00:00", "id": 1}
