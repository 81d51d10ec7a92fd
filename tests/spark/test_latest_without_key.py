"""The current rows of tables without a key: found by their values, also where some were not sent or columns changed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs.tables.latest import latest

from ..full_tables import FULL, FullTable, table_after
from ..typed_histories import Row, typed_table
from .raw_streams import OFFSET, PLACE, assert_same, write_shuffled

pytestmark = pytest.mark.spark

TABLE = "public.t"
ACTIONS = ("insert", "insert", "delete", "update", "update", "add", "drop")


def made(seed: int) -> FullTable:
    chance = Random(seed)
    return table_after([(chance.choice(ACTIONS), chance.randrange(6), chance.choice("xy")) for _ in range(14)])


def spark_capture(spark: SparkSession, messages: list[bytes], format: str = "pgoutput") -> Any:
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    return spark_udfs.capture(df, "value", format, order_by=[OFFSET])


def test_rows_are_found_while_columns_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    tables = {f"stream {seed}": made(seed) for seed in range(12)}
    streams = {name: table.messages for name, table in tables.items()}
    df = spark.read.parquet(write_shuffled(streams, tmp_path / "raw", Random(1)))
    found = spark_udfs.capture(df, "value", "pgoutput", chunks=3, **PLACE).latest(TABLE).toArrow()
    for name, table in tables.items():
        rows = found.filter(pc.equal(found["stream"], name))
        assert table.shown(rows.drop_columns(["stream"])) == table.wanted()


@pytest.mark.parametrize("keys", [None, []])
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_are_those_of_the_package(spark: SparkSession, tmp_path: Path, seed: int, keys: Any) -> None:
    messages = made(seed).messages
    wanted = wf.Capture(messages, "pgoutput").latest(TABLE, keys=keys)
    assert_same(spark_capture(spark, messages).latest(TABLE, keys=keys).toArrow(), wanted)
    pq.write_table(pa.table({"payload": pa.array(messages[:9], pa.binary())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"payload": pa.array(messages[9:], pa.binary())}), tmp_path / "2.parquet")
    files = spark_udfs.capture(paths=str(tmp_path), format="pgoutput")
    assert_same(files.latest(TABLE, keys=keys).toArrow(), wanted)
    if keys is None:
        given = {"path": str(tmp_path), "format": "pgoutput", "table": TABLE, "state": "latest"}
        assert_same(spark.read.format("wireformat").options(**given).load().toArrow(), wanted)


def test_a_column_is_dropped_and_nothing_else_changes(spark: SparkSession) -> None:
    """The last row of a value that the changes do not send any more."""
    table = FullTable()
    table.insert("x", "1")
    table.insert("x", "2")
    table.drop_column("b")
    table.delete(0)
    found = spark_capture(spark, table.messages).latest(TABLE).toArrow()
    assert_same(found, wf.Capture(table.messages, "pgoutput").latest(TABLE))
    assert table.shown(found) == table.wanted() == ["['x']"]


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_column_is_dropped_and_added_again(spark: SparkSession, identity: str, name: str) -> None:
    """Where it was not the last one, only the order of columns shows it."""
    table = FullTable()
    table.identity, table.columns = identity, ["id", "a", "b", "c"]
    table.insert("1", "x", "x", "x")
    table.insert("2", "x", "x", "x")
    table.add_again(name, "y")
    wanted = wf.Capture(table.messages, "pgoutput").latest(TABLE)
    assert table.shown(wanted) == table.wanted()
    for keys in (None, ["id"]) if identity == "default" else (None,):
        assert_same(spark_capture(spark, table.messages).latest(TABLE, keys=keys).toArrow(), wanted)


def test_a_real_becomes_a_double_precision(spark: SparkSession) -> None:
    """The server has the nearest real in it, which has other digits there."""
    table = FullTable()
    table.types = {"a": (700, -1)}
    table.insert("1.1", "x")
    table.insert("2.2", "x")
    table.types = {"a": (701, -1)}
    table.rows[0]["a"] = "1.100000023841858"
    table.delete(0)
    wanted = wf.Capture(table.messages, "pgoutput").latest(TABLE)
    assert wanted["a"].to_pylist() == [2.200000047683716]
    assert_same(spark_capture(spark, table.messages).latest(TABLE).toArrow(), wanted)
    typed = wf.Capture(table.messages, "pgoutput").typed(TABLE).read_all()
    assert_same(spark_capture(spark, table.messages).typed(TABLE).toArrow(), typed)


@pytest.mark.parametrize("identity", ["full", "default"])
@pytest.mark.parametrize("keys", [None, ["a"]])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_column_gets_a_type_with_other_values(spark: SparkSession, identity: str, keys: Any, name: str) -> None:
    """If it identifies rows, those that existing rows have in it are not known."""
    table = FullTable()
    table.identity, table.types = identity, {name: (1042, 5 + 4)}
    table.insert("1    " if name == "a" else "1", "x")
    table.insert("2    " if name == "a" else "2", "x")
    table.types.clear()
    table.rows[0]["a"] = "1"
    if identity == "full":
        table.update(0, "changed")
    else:
        table.transaction(wf.Update(**FULL, new=table.image({"a": "1", "b": "changed"})))
    capture = wf.Capture(table.messages, "pgoutput")
    if name == "a" and (identity == "default" or keys):
        for call in (
            lambda: capture.latest(TABLE, keys=keys),
            spark_capture(spark, table.messages).latest(TABLE, keys=keys).toArrow,
        ):
            with pytest.raises(Exception, match="given another type have none"):
                call()
        return
    wanted = capture.latest(TABLE, keys=keys)
    assert wanted.num_rows == 2
    assert_same(spark_capture(spark, table.messages).latest(TABLE, keys=keys).toArrow(), wanted)


@pytest.mark.parametrize("keys", [None, []])
def test_the_identity_that_the_stream_states(spark: SparkSession, keys: Any) -> None:
    """A DELETE by a key has the key alone: the whole row would not find it. The identity may also change."""
    table = FullTable()
    table.identity = "default"
    table.insert("1", "x")
    table.insert("2", "y")
    row = wf.TupleData(("a",), ("1",), ("text",))
    table.transaction(wf.Delete(**FULL, old=row, old_kind="key"))
    wanted = wf.Capture(table.messages, "pgoutput").latest(TABLE, keys=keys)
    assert wanted["a"].to_pylist() == ["2"]
    assert_same(spark_capture(spark, table.messages).latest(TABLE, keys=keys).toArrow(), wanted)
    table.identity = "full"
    table.insert("2", "y")
    table.rows.pop(0)
    table.delete(1)
    wanted = wf.Capture(table.messages, "pgoutput").latest(TABLE, keys=keys)
    assert wanted["a"].to_pylist() == ["2"]
    assert_same(spark_capture(spark, table.messages).latest(TABLE, keys=keys).toArrow(), wanted)


def test_saved_changes_that_lack_values(spark: SparkSession) -> None:
    """Each stream by itself; the changes come in any order."""
    one = {"part": 1, "id": 1, "step_0": "a", "Long a.b": "A", "raw": None}
    two = {**one, "id": 2}
    rows = [
        Row("insert", one, None, (), (1, 0)),
        Row("insert", {**two, "Long a.b": None}, None, ("Long a.b",), (2, 0)),
        Row("insert", {**two, "Long a.b": None}, None, ("Long a.b",), (2, 1)),
        Row("update", {**two, "step_0": "b"}, two, (), (3, 0)),
        Row("delete", {}, one, (), (4, 0)),
    ]
    kept = pa.array(["s", "s", "s", "s", "s", "t", "t", "t", "t", "t"])
    typed = typed_table([*rows, *rows])
    typed = typed.append_column("stream", kept).take([3, 1, 0, 2, 4, 9, 8, 7, 5, 6])
    wanted = wf.arrow.latest(typed, [], stream_by=["stream"])
    assert wanted["step_0"].to_pylist() == ["a", "b", "a", "b"]
    assert wanted["_unchanged"].to_pylist() == [["Long a.b"], None] * 2
    df = spark.createDataFrame(typed).repartition(3)
    assert_same(latest(df, [], stream_by=["stream"]).toArrow(), wanted)
    of_one = typed.filter(pc.equal(typed["stream"], "s")).drop_columns(["stream"])
    assert_same(latest(spark.createDataFrame(of_one), []).toArrow(), wf.arrow.latest(of_one, []))


def test_a_row_that_cannot_be_told_from_others(spark: SparkSession) -> None:
    """GaussDB omits an unchanged value from the new row of an UPDATE; an old row without it has it nowhere."""

    def image(*values: str) -> wf.TupleData:
        return wf.TupleData(("id", "small", "large")[: len(values)], values, ("integer", "text", "text")[: len(values)])

    of_table: dict[str, Any] = {"lsn": 17, "table_schema": "public", "table_name": "t"}
    inserts = [wf.Insert(**of_table, new=image("1", "a", large)) for large in ("A", "B")]
    changed = wf.Update(**of_table, old=image("1", "a"), new=image("1", "b"))
    format = "gaussdb-binary"

    events = [wf.Begin(lsn=16, csn=1, first_lsn=16), *inserts, changed, wf.Commit(lsn=24, xid=1)]
    messages = [*map(bytes, wf.encode(events, format))]
    with pytest.raises(wf.BadRows) as error:
        wf.Capture(messages, format).latest(TABLE, keys=[])
    found = spark_capture(spark, messages, format).latest(TABLE, keys=[])
    with pytest.raises(PySparkException, match="pass keys") as of_spark:
        found.collect()
    assert str(error.value) in str(of_spark.value)


def test_a_negative_zero_stays(spark: SparkSession) -> None:
    """Spark makes 0 of it where it groups rows."""
    columns, types = ("id", "f", "fs"), ("integer", "double precision", "real[]")
    events: list[wf.Event] = [wf.Begin(lsn=16, csn=1, first_lsn=16)]
    for id, value in (("1", "-0"), ("2", "0"), ("3", "NaN"), ("1", "-0")):
        row = wf.TupleData(columns, (id, value, f"{{{value}}}"), types)
        events.append(wf.Insert(lsn=17, table_schema="public", table_name="t", new=row))
    messages = [*map(bytes, wf.encode([*events, wf.Commit(lsn=99, xid=7)], "gaussdb-binary"))]
    found = spark_capture(spark, messages, "gaussdb-binary").latest(TABLE, keys=[]).collect()
    assert sorted(str((row.id, row.f, row.fs)) for row in found) == [
        "(1, -0.0, [-0.0])",
        "(1, -0.0, [-0.0])",
        "(2, 0.0, [0.0])",
        "(3, nan, [nan])",
    ]
