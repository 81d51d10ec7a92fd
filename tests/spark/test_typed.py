"""typed and tables on Spark: the rows and lists of Arrow, however they are cut."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import CalendarIntervalType, StructType

import spark_udfs
import wireformat as wf

from ..arrow.typed_tables.changes_made import TABLE, TYPES, change, changes, relation

pytestmark = pytest.mark.spark

SCHEMA = {"id": "bigint", "note": "text", "price": "numeric(10,2)", "day": "date"}
ROWS = [
    change("INSERT", {"id": "1", "note": "x", "price": "1.50", "day": "2026-11-21"}),
    change("UPDATE", {"id": "1", "price": "2"}, unchanged=["note", "day"]),
    change("UPDATE", {"id": "2", "price": "2"}, {"id": "1", "note": "x"}, unchanged=["note", "day"]),
    change("INSERT", {"id": "1"}, table="shop.other"),
    change("TRUNCATE"),
    change("INSERT", {"id": "5000000000", "day": "2026-11-22"}, types={"id": "bigint", "day": "date"}),
    change("DELETE", None, {"id": "5000000000"}, types={"id": "bigint"}),
]


def frame(spark: SparkSession, table: pa.Table, partitions: int = 3) -> DataFrame:
    return spark.createDataFrame(table).repartition(partitions)


def by_sequence(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (*row["_sequence"].values(), row["_change_type"]))


COMMITTED = changes(*ROWS, sequence=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"images": "both", "complete": True},
        {"split_key_changes": True, "keys": ["id"]},
        {"schema": SCHEMA, "mode": "PERMISSIVE"},
        {"schema": pa.schema([("id", pa.int64()), ("note", pa.string())])},
    ],
)
def test_typed_rows_are_those_of_arrow(spark: SparkSession, options: dict[str, Any]) -> None:
    found = spark_udfs.typed(frame(spark, COMMITTED), TABLE, **options).toArrow()
    wanted = wf.arrow.typed(COMMITTED, TABLE, **{"schema": wf.arrow.tables(COMMITTED), **options})
    assert found.schema.names == wanted.schema.names
    assert by_sequence(found) == by_sequence(wanted)


def test_kept_columns(spark: SparkSession) -> None:
    """They come first, as they are, of types that no worker is given too; also with several rows a change."""
    rows = frame(spark, COMMITTED).selectExpr(
        "*", "cast(sequence.ordinal as int) as place", "interval 2 months as age", "map('a', xid) as facts"
    )
    options: dict[str, Any] = {"images": "both", "schema": SCHEMA, "keep": ["age", "facts", "place", "record"]}
    found = spark_udfs.typed(rows, TABLE, **options)
    assert found.columns[:5] == ["age", "facts", "place", "record", "id"]
    assert {field.name: field.dataType for field in found.schema[:4]} == {
        name: rows.schema[name].dataType for name in options["keep"]
    }
    shown = (
        found.selectExpr("*", "age = interval 2 months as same", "facts['a'] <=> _xid as fact").drop("age").toArrow()
    )
    assert shown.num_rows == 7
    for row in shown.to_pylist():
        assert (row["same"], row["fact"], row["place"]) == (True, True, row["_sequence"]["ordinal"])
    faults: list[tuple[Any, str]] = [
        ("place", "expected a list of strings"),
        (["places"], "no column 'places', did you mean 'place'"),
        (["place", "place"], "'place' is named twice"),
    ]
    for keep, words in faults:
        with pytest.raises(wf.OptionError, match=words):
            spark_udfs.typed(rows, TABLE, SCHEMA, keep=keep)
    with pytest.raises(wf.OptionError, match="the result has a column 'id' of its own"):
        spark_udfs.typed(rows.withColumn("id", F.lit(1)), TABLE, SCHEMA, keep=["id"])


def test_versions(spark: SparkSession) -> None:
    found = spark_udfs.typed(frame(spark, COMMITTED, 1), TABLE, evolution="versions")
    wanted = wf.arrow.typed(COMMITTED, TABLE, evolution="versions")
    assert found.keys() == wanted.keys() == {1, 2}
    for number, rows in wanted.items():
        assert by_sequence(found[number].toArrow()) == by_sequence(rows)


def test_a_schema_in_every_form(spark: SparkSession) -> None:
    rows = frame(spark, COMMITTED).cache()
    listed = spark_udfs.tables(rows)
    wanted = by_sequence(spark_udfs.typed(rows, TABLE).toArrow())
    assert by_sequence(spark_udfs.typed(rows, TABLE, listed).toArrow()) == wanted
    columns = StructType(spark_udfs.typed(rows, TABLE, listed).schema[:4])
    assert by_sequence(spark_udfs.typed(rows, TABLE, columns).toArrow()) == wanted


def test_times_of_day_are_text(spark: SparkSession) -> None:
    types = {**TYPES, "at": "time without time zone", "ats": "time without time zone[]"}
    rows = changes(
        change("INSERT", {"id": "1", "at": "24:00:00", "ats": "{04:05:06.7,NULL}"}, types=types), sequence=True
    )
    mapping = {"at": "time", "ats": "time[]"}
    for schema in (None, mapping):
        (row,) = spark_udfs.typed(frame(spark, rows), TABLE, schema).select("at", "ats").collect()
        assert (row["at"], row["ats"]) == ("24:00:00", ["04:05:06.7", None])


def test_bad_values(spark: SparkSession) -> None:
    rows = changes(ROWS[0], change("INSERT", {"id": "x", "day": "infinity"}), sequence=True)
    with pytest.raises(PythonException, match=r"bad cell: .*table shop.orders, column id"):
        spark_udfs.typed(frame(spark, rows), TABLE).toArrow()
    kept = spark_udfs.typed(frame(spark, rows), TABLE, mode="PERMISSIVE").where("_error is not null").toArrow()
    assert kept.select(["id", "day"]).to_pylist() == [{"id": None, "day": None}]
    assert spark_udfs.typed(frame(spark, rows), TABLE, mode="DROPMALFORMED").count() == 1


@pytest.mark.parametrize("parts", [1, 5])
def test_tables_are_those_of_arrow(spark: SparkSession, parts: int) -> None:
    """With RELATIONs, by message and record; and of transactions, by sequence."""
    described = [
        relation(TYPES, [-1, -1, 1234, -1], ["id"]),
        *ROWS[:3],
        relation({"id": "bigint", "day": "date"}),
        ROWS[5],
    ]
    raw = changes(*described)
    found = spark_udfs.tables(frame(spark, raw, parts), order_by=["message"]).toArrow()
    assert sorted(found.to_pylist(), key=place) == wf.arrow.tables(raw).to_pylist()
    found = spark_udfs.tables(frame(spark, COMMITTED, parts)).toArrow()
    assert sorted(found.to_pylist(), key=place) == wf.arrow.tables(COMMITTED).to_pylist()


def place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["table_schema"], row["table_name"], row["version"]


def test_what_cannot_be(spark: SparkSession) -> None:
    rows = frame(spark, COMMITTED)
    streaming = spark.readStream.format("rate").load().selectExpr(
        "'INSERT' kind", "'shop' table_schema", "'orders' table_name", "map('id', '1') new",
        "cast(null as map<string,string>) old", "cast(null as array<string>) unchanged", "array('integer') types",
    )  # fmt: skip
    assert spark_udfs.typed(streaming, TABLE, {"id": "bigint"}).schema["id"].dataType.simpleString() == "bigint"
    for call, words in {
        lambda: spark_udfs.typed(streaming, TABLE): "a streaming DataFrame needs one",
        lambda: spark_udfs.tables(streaming): "got a streaming DataFrame",
        lambda: spark_udfs.typed(rows, "orders"): "expected schema.table",
        lambda: spark_udfs.typed(rows, "shop.*"): "expected one table",
        lambda: spark_udfs.typed(rows.drop("new"), TABLE): "no column 'new'",
        lambda: spark_udfs.typed(
            rows, TABLE, SCHEMA, evolution="versions"
        ): '"versions" needs None or the result of tables',
        lambda: spark_udfs.tables(rows.drop("sequence")): "option order_by: expected columns that order",
    }.items():
        with pytest.raises(wf.OptionError, match=words):
            call()
    with pytest.raises(wf.BadRows, match="changes of this table, or a schema"):
        spark_udfs.typed(rows, "shop.nothing")
    with pytest.raises(wf.BadRows, match="version 2"):
        spark_udfs.typed(rows, TABLE, evolution="error")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_instants_in_a_spark_schema_and_in_kept_columns(spark: SparkSession, zone: str, set_conf: Any) -> None:
    set_conf("spark.sql.session.timeZone", zone)
    values = {"id": "1", "at": "2026-11-21 10:00:00+00", "local": "2026-11-21 10:00:00"}
    types = {"id": "integer", "at": "timestamp with time zone", "local": "timestamp without time zone"}
    rows = frame(spark, changes(change("INSERT", values, types=types), sequence=True))
    kept = rows.selectExpr(
        "*", "TIMESTAMP'2026-11-01 05:30:00Z' AS seen", "array(TIMESTAMP'2026-11-01 00:00:00Z') AS times"
    )
    schema = StructType.fromDDL("at timestamp, local timestamp_ntz, id int")
    (found,) = (
        spark_udfs.typed(kept, TABLE, schema, keep=["seen", "times", "commit_time"])
        .selectExpr(
            "unix_micros(at) at",
            "CAST(local AS string) local",
            "id",
            "unix_micros(seen) seen",
            "unix_micros(times[0]) time",
        )
        .collect()
    )
    instant = 1_795_255_200_000_000
    assert found.asDict() == {
        "at": instant,
        "local": "2026-11-21 10:00:00",
        "id": 1,
        "seen": 1_793_511_000_000_000,
        "time": 1_793_491_200_000_000,
    }


def test_a_spark_type_that_arrow_does_not_have(spark: SparkSession) -> None:
    with pytest.raises(wf.OptionError, match="option schema: expected types that Arrow has"):
        spark_udfs.typed(frame(spark, COMMITTED), TABLE, StructType().add("id", CalendarIntervalType()))
