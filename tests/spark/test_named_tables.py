"""Tables that options of `write` name: those of the messages, and those that a lake has."""

from __future__ import annotations

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
