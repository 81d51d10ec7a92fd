"""Tables that options of `write` name: those of the messages, and those that a lake has."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

from .raw_streams import OFFSET

pytestmark = pytest.mark.spark


def day(lsn: int, *tables: str) -> list[bytes]:
    events: list[wf.Event] = [wf.Begin(lsn=lsn, csn=lsn, first_lsn=lsn, commit_time="2026-11-23 10:00:00+00")]
    for at, table in enumerate(tables):
        new = wf.TupleData(("id", "name"), (str(lsn), "x"), ("integer", "text"))
        events.append(wf.Insert(lsn=lsn + 1 + at, table_schema="public", table_name=table, new=new))
    return [*map(bytes, wf.encode([*events, wf.Commit(lsn=lsn + 9, xid=lsn)], "gaussdb-binary"))]


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_a_table_of_the_lake_without_new_changes(spark: SparkSession, tmp_path: Path, format: str) -> None:
    """In other chunks, and in no message of the second write."""
    names = ("public.a", "public.b")
    given: dict[str, Any] = {"format": format, "state": "changes"}
    if format == "delta":
        given |= {"state": "latest", "keys": {name: ["id"] for name in names}}
    given |= {"partition_by": dict.fromkeys(names, "name"), "schemas": {names[1]: {"id": "integer", "name": "text"}}}
    for messages, tables in ((day(100, "a") + day(200, "b"), 2), (day(300, "a"), 1)):
        df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
        capture = spark_udfs.capture(df, "value", "gaussdb-binary", order_by=[OFFSET], chunks=2)
        assert capture.write(str(tmp_path / "spark"), **given).count() == tables
        assert len(wf.Capture(messages, "gaussdb-binary").write(tmp_path / "one", **given)) == tables
    with pytest.raises(wf.OptionError, match=r"no changes of public\.c"):
        capture.write(str(tmp_path / "spark"), **{**given, "schemas": {"public.c": {"id": "integer"}}})


WRONG = r"option tables: no table of the stream matches public\.ordres, did you mean public\.orders"


@pytest.mark.parametrize("state", ["changes", "latest"])
@pytest.mark.parametrize("damage", [b"x", b"\xff"])
def test_patterns_that_match_no_table(spark: SparkSession, tmp_path: Path, state: str, damage: bytes) -> None:
    """A new lake is not made, also where what is damaged in other tables is stepped over; one that is there goes on."""
    keys = {"keys": ["id"]} if state == "latest" else {}
    options: dict[str, Any] = {"format": "delta", "state": state, **keys}
    damaged = [one.replace(b"\0\0\0\x01x", b"\0\0\0\x01" + damage) for one in day(100, "orders")]
    messages = [*damaged, *day(200, "orders"), *day(300, "b")]
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "gaussdb-binary", order_by=[OFFSET], chunks=2)
    folder = tmp_path / "lake"
    with nullcontext() if damage == b"x" else pytest.raises(wf.DecodeError):
        capture.tables()
    with pytest.raises(wf.OptionError, match=WRONG):
        capture.write(str(folder), tables=["public.ordres"], **options)
    assert not folder.exists()
    wf.Capture(day(50, "ordres"), "gaussdb-binary").write(folder, tables=["public.ordres"], **options)
    assert capture.write(str(folder), tables=["public.ordres"], **options).count() == 0


def test_patterns_that_match_a_table_of_another_stream(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(name, *row) for name, table in (("a", "orders"), ("b", "lines")) for row in enumerate(day(100, table))]
    df = spark.createDataFrame(rows, f"stream string, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "gaussdb-binary", order_by=[OFFSET], stream_by=["stream"])
    with pytest.raises(wf.OptionError, match=WRONG):
        capture.write(str(tmp_path / "lakes"), tables=["public.ordres"])
    assert capture.write(str(tmp_path / "lakes"), tables=["public.orders"]).count() == 1
    empty = spark_udfs.capture(df.limit(0), "value", "gaussdb-binary", order_by=[OFFSET])
    assert empty.write(str(tmp_path / "empty"), tables=["public.orders"]).count() == 0
