"""spark_udfs.capture: however messages are cut into files, partitions and chunks, it says what wf.Capture says."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf
from wireformat.options.table_names import written

from .capture_streams import FORMATS, LAYOUTS, READ_BY_WORKERS, are_read_by_workers, as_in, of_one_machine, streams_of
from .raw_streams import (
    OFFSET,
    PLACE,
    STREAM,
    assert_same,
    capture_of,
)

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def streams(format: str) -> dict[str, list[bytes]]:
    return streams_of(format)


@pytest.fixture(scope="module", params=[*LAYOUTS, READ_BY_WORKERS])
def capture(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    format: str,
    streams: dict[str, list[bytes]],
    tmp_path_factory: pytest.TempPathFactory,
) -> spark_udfs.Capture:
    write, chunks = LAYOUTS.get(request.param, LAYOUTS["in order"])
    path = write(streams, tmp_path_factory.mktemp("raw") / "files", Random(request.param))
    with as_in(request.param):
        capture = spark_udfs.capture(spark.read.parquet(path), "value", format, chunks=chunks, **PLACE)
    assert are_read_by_workers(capture) is (request.param == READ_BY_WORKERS)
    return capture


def test_committed(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    wanted = of_one_machine(streams, format, lambda one: one.committed().read_all())
    assert_same(capture.committed().toArrow(), wanted)


def test_committed_of_some_tables(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    tables = ["shop.orders_1", "public.*"]
    wanted = of_one_machine(streams, format, lambda one: one.committed(tables=tables).read_all())
    assert len(wanted) > 10
    assert_same(capture.committed(tables=tables).toArrow(), wanted)


def test_open_rows_and_messages(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    assert_same(capture.open().toArrow(), of_one_machine(streams, format, lambda one: one.open()))
    messages = of_one_machine(streams, format, lambda one: one.messages().read_all())
    assert_same(capture.messages().toArrow(), messages)


def test_changes(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    def changes(one: wf.Capture) -> pa.Table:
        rows = one.changes().read_all()
        return rows.add_column(0, OFFSET, rows["message"])

    assert_same(capture.changes().toArrow(), of_one_machine(streams, format, changes))
    columns = ["kind", "table_name"]
    found = capture.changes(columns=columns, kinds=["INSERT"], tables=["shop.orders_0"]).toArrow()
    assert set(found["kind"].to_pylist()) == {"INSERT"}
    assert set(found["table_name"].to_pylist()) == {"orders_0"}


def test_typed(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    """One machine gets the list of tables of all streams, in their order, as Spark does."""
    listed = capture._listed.drop_columns(["first", "last"])
    names = [row for row in capture._listed.to_pylist() if row["table_name"] == "orders_1"]
    assert names
    nowhere = pa.array([None] * len(listed), pa.struct({"message": pa.int64(), "record": pa.int32()}))
    for name in ("first", "last"):
        listed = listed.append_column(name, nowhere)
    wanted = of_one_machine(streams, format, lambda one: one.typed("shop.orders_1", schema=listed).read_all())
    found = capture.typed("shop.orders_1").toArrow()
    assert len(found) > 5
    assert_same(found, wanted.cast(pa.schema([found.schema.field(name) for name in wanted.column_names])))


def test_position_and_unknown_prepared(
    capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str
) -> None:
    found = capture.position
    assert {*found} == {(name,) for name in streams}
    unknown = []
    for name, messages in streams.items():
        one = capture_of(messages, format)
        one.committed().read_all()
        unknown += one.unknown_prepared
        assert found[name,].delivered == one.position.delivered
        assert {*found[name,].open} == {*one.position.open}
        assert {*found[name,].relations} == {*one.position.relations}
    assert sorted(capture.unknown_prepared) == sorted(unknown)


def test_tables_and_latest(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, messages = one_stream
    capture, one = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET]), wf.Capture(messages, "pgoutput")
    wanted = one.tables()
    found = capture.tables().toArrow()
    for name in ("first", "last"):
        places = [{"message": row["offset"], "record": row["record"]} for row in found[name].to_pylist()]
        column = pa.array(places, wanted.schema.field(name).type)
        found = found.set_column(found.column_names.index(name), name, column)
    assert_same(found, wanted)
    for row in wanted.to_pylist():
        if row["version"] == 1 and row["key_columns"]:
            table = written((row["table_schema"], row["table_name"]))
            assert_same(capture.latest(table).toArrow(), one.latest(table))


def test_no_messages(spark: SparkSession) -> None:
    df = spark.createDataFrame([], f"{STREAM} string, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    assert capture.committed().count() == capture.tables().count() == capture.open().count() == 0
    assert capture.position.delivered.transactions == 0


def test_the_tables_of_each_stream(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    names = ["table_schema", "table_name", "columns", "types", "key_columns"]
    wanted = of_one_machine(streams, format, lambda one: one.tables().select(names))
    assert_same(capture.tables().toArrow().select([STREAM, *names]), wanted)
