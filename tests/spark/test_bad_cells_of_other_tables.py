"""Rows of tables that a filter leaves out may have cells that cannot be read, as in wf.Capture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs.source.data_source import WireformatSource

from ..lake.reading import read, values
from .raw_streams import OFFSET, assert_same, write, write_in_order

pytestmark = pytest.mark.spark

TABLE, OTHER = "shop.orders_1", "shop.orders_0"


def with_a_bad_cell(format: str) -> list[bytes]:
    """Returns a stream in which the first row of OTHER has text that is not UTF-8."""
    messages = [*map(bytes, wf.encode(wf.testing.stream(2, 12, seed=3, format=format), format))]
    rows = wf.arrow.changes(messages, format, columns=["message", "kind", "table_name"]).to_pylist()
    bad = next(row["message"] for row in rows if (row["kind"], row["table_name"]) == ("INSERT", "orders_0"))
    assert b"2026-" in messages[bad]
    messages[bad] = messages[bad].replace(b"2026-", b"\xff026-", 1)
    return messages


def make(kind: str, spark: SparkSession, messages: list[bytes], format: str, folder: Path) -> spark_udfs.Capture:
    if kind == "files":
        parts = [pa.table({"payload": pa.array(messages[at : at + 30], pa.binary())}) for at in range(0, 90, 30)]
        parts.append(pa.table({"payload": pa.array(messages[90:], pa.binary())}))
        return spark_udfs.capture(paths=write(parts, folder), format=format)
    df = spark.read.parquet(write_in_order({"one": messages}, folder, Random(4)))
    return spark_udfs.capture(df, "value", format, order_by=[OFFSET])


@pytest.mark.parametrize("format", ["pgoutput", "test-decoding"])
@pytest.mark.parametrize("kind", ["files", "rows"])
def test_answers(spark: SparkSession, tmp_path: Path, format: str, kind: str) -> None:
    messages = with_a_bad_cell(format)
    capture, one = make(kind, spark, messages, format, tmp_path / "raw"), wf.Capture(messages, format)
    wanted = one.changes(tables=[TABLE], columns=["message", "kind", "table_name", "new"]).read_all()
    found = capture.changes(tables=[TABLE], columns=["kind", "table_name", "new"]).toArrow()
    assert_same(found.rename_columns(wanted.column_names), wanted)
    committed = one.committed(tables=[TABLE]).read_all().drop_columns(["message"])
    assert len(committed) > 3
    assert_same(capture.committed(tables=[TABLE]).toArrow(), committed)
    assert_same(capture.typed(TABLE).toArrow(), one.typed(TABLE).read_all())
    assert_same(capture.latest(TABLE, keys=["id"]).toArrow(), one.latest(TABLE, keys=["id"]))
    assert capture.messages().count() == 0
    asks: list[Callable[[Any], Any]] = [
        lambda any_capture: any_capture.changes(tables=["shop.*"]),
        lambda any_capture: any_capture.committed(),
        lambda any_capture: any_capture.typed(OTHER),
        lambda any_capture: any_capture.tables(),
    ]
    for ask in asks:
        with pytest.raises(wf.BadText) as error:
            ask(capture)
        assert error.value.names == ("shop", "orders_0")


MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")


def small_files(messages: list[bytes], folder: Path) -> str:
    """Writes a file for every five messages: transactions go on in the next ones."""
    return write([pa.table({"payload": messages[at : at + 5]}) for at in range(0, len(messages), 5)], folder)


@pytest.mark.parametrize("mode", MODES)
def test_chunks_that_have_rows_of_the_same_transaction(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """The row that cannot be read counts in each of them, or in none."""
    messages = with_a_bad_cell("pgoutput")
    capture = spark_udfs.capture(paths=small_files(messages, tmp_path / "raw"), format="pgoutput", mode=mode)
    one = wf.Capture(messages, "pgoutput", mode=mode)
    wanted = one.typed(TABLE).read_all()
    assert len(wanted) > 50
    assert_same(capture.typed(TABLE).toArrow(), wanted)
    committed = one.committed(tables=[TABLE]).read_all().drop_columns(["message"])
    assert_same(capture.committed(tables=[TABLE]).toArrow(), committed)
    assert_same(capture.latest(TABLE, keys=["id"]).toArrow(), one.latest(TABLE, keys=["id"]))
    if mode != "FAILFAST":
        capture.write(str(tmp_path / "lake"), tables=[TABLE], rejects=str(tmp_path / "rejects"))
        assert values(read(tmp_path / "lake", ("shop", "orders_1"))) == values(wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("format", ["pgoutput", "test-decoding"])
def test_the_data_source(tmp_path: Path, format: str, mode: str) -> None:
    messages = with_a_bad_cell(format)
    folder = small_files(messages, tmp_path / "raw")

    def rows(**options: str) -> list[str]:
        source = WireformatSource({"path": folder, "format": format, "mode": mode, **options})
        reader = source.reader(source.schema())
        found = (batch.to_pylist() for part in reader.partitions() for batch in reader.read(part))
        return sorted(map(repr, chain.from_iterable(found)))

    one = wf.Capture(messages, format, mode=mode)
    assert rows(table=TABLE) == sorted(map(repr, one.typed(TABLE).read_all().to_pylist()))
    current = one.latest(TABLE, keys=["id"]).to_pylist()
    assert rows(table=TABLE, state="latest", keys="id") == sorted(map(repr, current))
    for options in ({}, {"table": OTHER}) if mode == "FAILFAST" else ():
        with pytest.raises(wf.BadText):
            rows(**options)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "state"), [("files", "changes"), ("rows", "latest")])
def test_a_lake_of_some_tables(spark: SparkSession, tmp_path: Path, kind: str, state: str) -> None:
    messages = with_a_bad_cell("pgoutput")
    capture = make(kind, spark, messages, "pgoutput", tmp_path / "raw")
    keys: dict[str, Any] = {"keys": {TABLE: ["id"], OTHER: ["id"]}} if state == "latest" else {}
    capture.write(str(tmp_path / "lake"), tables=[TABLE], state=state, **keys)
    one = wf.Capture(messages, "pgoutput")
    wanted = one.latest(TABLE, keys=["id"]) if state == "latest" else one.typed(TABLE).read_all()
    assert values(read(tmp_path / "lake", ("shop", "orders_1"))) == values(wanted)
    with pytest.raises(wf.BadText):
        capture.write(str(tmp_path / "all"))
