"""transactions on Spark, in batches and in SQL: each stream gives what it gives in Arrow, however it is cut."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from spark_udfs.logs import log_unknown_prepared
from spark_udfs.transactions_function import WalTransactions

from ..histories import table
from .many_streams import (
    OFFSET,
    STREAM,
    assert_same,
    captured,
    each_stream,
    expected,
    generated,
    one_table,
    write_shuffled,
)

pytestmark = pytest.mark.spark

PLACE: dict[str, Any] = {"stream_by": [STREAM], "order_by": [OFFSET]}


def insert(name: str = "t", **facts: Any) -> wf.Insert:
    return wf.Insert(table_schema="public", table_name=name, **facts)


def made() -> dict[str, pa.Table]:
    """A transaction that spans all chunks, thousands that do not, and one that never ends."""
    huge: list[wf.Event] = [wf.Begin(xid=1, commit_lsn=9), *[insert()] * 4000, wf.Commit(commit_lsn=9)]
    tiny: list[wf.Event] = []
    for number in range(1, 1500):
        tiny += [wf.Begin(xid=number), insert(), wf.Commit(xid=number)]
    never: list[wf.Event] = [wf.StreamStart(xid=5, first_segment=True), insert(xid=5), wf.StreamStop()]
    return {"huge": table(huge), "tiny": table(tiny), "never": table(never)}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return one_table({**made(), **generated(80), **captured()})


@pytest.fixture(scope="module")
def changes(spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("transactions") / "rows"
    return spark.read.parquet(write_shuffled(rows, folder, 3))


@pytest.mark.parametrize(
    ("chunks", "options"),
    [(13, {}), (6, {"two_phase": "prepare"}), (6, {"drop_resent": False}), (1, {})],
    ids=["13 chunks", "at prepare", "with what was sent again", "in one piece"],
)
def test_each_stream_gives_what_it_gives_in_arrow(
    changes: DataFrame, rows: pa.Table, chunks: int, options: dict[str, Any]
) -> None:
    found = spark_udfs.transactions(changes, **PLACE, chunks=chunks, **options).toArrow()
    assert found.column_names == ["sequence", *rows.column_names, "username", "origin"]
    assert_same(found, expected(rows, **options))


def test_what_is_open(changes: DataFrame, rows: pa.Table) -> None:
    found = spark_udfs.open_transactions(changes, **PLACE, chunks=11).toArrow()
    wanted = pa.concat_tables(
        [wf.arrow.open_transactions(own).replace_schema_metadata() for _, own in each_stream(rows)]
    )
    assert "never" in set(wanted[STREAM].to_pylist())
    assert_same(found, wanted)


def test_in_sql(spark: SparkSession, changes: DataFrame, rows: pa.Table) -> None:
    changes.withColumn("seq", F.col(OFFSET)).createOrReplaceTempView("changes_of_all")
    source = "TABLE(changes_of_all) PARTITION BY stream ORDER BY (seq, record, table_name)"
    found = spark.sql(f"SELECT * FROM wal_transactions({source})").toArrow()
    names = [name for name in rows.column_names if name not in (STREAM, OFFSET, "kept `.` it")]
    assert found.column_names == ["seq", "sequence", *names, "username", "origin", STREAM]
    renamed = found.rename_columns([OFFSET if name == "seq" else name for name in found.column_names])
    assert_same(renamed, expected(rows).select(renamed.column_names))


def test_options_in_sql(spark: SparkSession) -> None:
    events: list[wf.Event] = [wf.Begin(xid=1, gid="g"), insert(), wf.Prepare(xid=1, gid="g")]
    frame_of(spark, events).withColumnRenamed(OFFSET, "SEQ").createOrReplaceTempView("prepared")
    table_of = "TABLE(SELECT * FROM prepared) WITH SINGLE PARTITION ORDER BY (seq, record)"
    assert spark.sql(f"SELECT * FROM wal_transactions({table_of})").count() == 0
    assert spark.sql(f"SELECT seq FROM wal_transactions({table_of}, two_phase => 'prepare')").collect() == [(1,)]
    backwards = "TABLE(SELECT * FROM prepared) WITH SINGLE PARTITION ORDER BY seq DESC"
    with pytest.raises(PythonException, match=r"bad order: .*expected wal_transactions: rows sorted by seq and record"):
        spark.sql(f"SELECT * FROM wal_transactions({backwards})").collect()


def frame_of(spark: SparkSession, events: list[wf.Event]) -> DataFrame:
    return spark.createDataFrame(table(events).rename_columns([OFFSET, *wf.arrow.CHANGES.names[1:]]))


def prepared_or_not(name: str) -> list[wf.Event]:
    """Ends of prepared transactions: of one that was, and of two that were not."""
    events: list[wf.Event] = [wf.Begin(xid=1, gid="g", lsn=5), insert(name), wf.Prepare(xid=1, gid="g", lsn=5)]
    ends: list[wf.Event] = [wf.CommitPrepared(gid=gid, commit_lsn=9 + n) for n, gid in enumerate(("g", "h", name))]
    return [
        *events,
        *ends,
        wf.Prepare(gid="lock", lsn=20),
        wf.RollbackPrepared(gid="lock"),
        wf.RollbackPrepared(gid="i"),
    ]


@pytest.mark.parametrize("two_phase", ["commit", "prepare"])
@pytest.mark.parametrize("chunks", [1, 7])
def test_ends_of_what_was_not_prepared(spark: SparkSession, chunks: int, two_phase: str, tmp_path: Path) -> None:
    rows = one_table({name: table(prepared_or_not(name)) for name in ("a", "b")} | {"c": table([wf.Begin()])})
    frame = spark.read.parquet(write_shuffled(rows, tmp_path / "rows", 3))
    options: dict[str, Any] = {**PLACE, "chunks": chunks, "two_phase": two_phase}
    found = spark_udfs.unknown_prepared(frame, **options)
    assert found.columns == [STREAM, "gid"]
    assert sorted(map(tuple, found.collect())) == sorted((one, gid) for one in "ab" for gid in ("h", one, "i"))
    assert sorted(row.table_name for row in spark_udfs.transactions(frame, **options).collect()) == ["a", "b"]
    alone = frame.where(f"{STREAM} = 'a'")
    assert [row.gid for row in spark_udfs.unknown_prepared(alone, order_by=[OFFSET]).collect()] == ["h", "a", "i"]


def test_the_log_tells_what_was_not_prepared(caplog: pytest.LogCaptureFixture) -> None:
    function = WalTransactions()
    rows = table(prepared_or_not("a")).rename_columns(["seq", *wf.arrow.CHANGES.names[1:]])
    with caplog.at_level(logging.WARNING):
        assert sum(batch.num_rows for batch in function.eval(rows.combine_chunks().to_batches()[0])) == 1
        function.terminate()
        log_unknown_prepared([str(number) for number in range(22)], "stream a")
    first, second = caplog.messages
    words = "transactions ended that were not prepared before, nothing is delivered of them"
    assert first == f"wal_transactions: {words}: 'h', 'a', 'i'"
    assert second.startswith(f"stream a: {words}: '0', '1', ")
    assert second.endswith("'19' and 2 more")


def test_an_empty_input(spark: SparkSession) -> None:
    empty = frame_of(spark, [])
    found = spark_udfs.transactions(empty, order_by=[OFFSET], chunks=3)
    assert found.collect() == []
    assert found.schema["sequence"].dataType.simpleString() == "struct<commit_lsn:bigint,ordinal:bigint>"
    assert not found.schema["sequence"].nullable
    assert spark_udfs.open_transactions(empty, order_by=[OFFSET]).collect() == []
    assert spark_udfs.unknown_prepared(empty, order_by=[OFFSET]).collect() == []


def test_default_chunks_come_from_the_setting(spark: SparkSession) -> None:
    events: list[wf.Event] = [wf.Begin(xid=1), insert(), insert(), wf.Commit(xid=1)]
    plan = spark_udfs.transactions(frame_of(spark, events), order_by=[OFFSET])
    assert [row.sequence for row in plan.orderBy(OFFSET).collect()] == [(1, 0), (1, 1)]


class TestWrongInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"order_by": []}, "order_by: expected the names of columns, got an empty list"),
            ({"order_by": "offset"}, "expected a list of strings"),
            ({"order_by": ["offst"]}, "no column 'offst', did you mean 'offset'"),
            ({"order_by": ["detail"]}, "expected integers or strings, 'detail' is map"),
            ({"order_by": [OFFSET], "stream_by": [OFFSET]}, "'offset' is named twice"),
            ({"order_by": [OFFSET], "two_phase": "never"}, "option two_phase: expected commit, prepare"),
            ({"order_by": [OFFSET], "chunks": 0}, "option chunks: expected a number from 1"),
        ],
    )
    def test_options(self, spark: SparkSession, options: dict[str, Any], message: str) -> None:
        with pytest.raises(wf.OptionError, match=message):
            spark_udfs.transactions(frame_of(spark, []), **options)

    def test_columns(self, spark: SparkSession) -> None:
        empty = frame_of(spark, [])
        with pytest.raises(wf.OptionError, match="expected one column detail of type map"):
            spark_udfs.transactions(empty.drop("detail"), order_by=[OFFSET])
        with pytest.raises(wf.OptionError, match="expected one column lsn of type bigint, got lsn:string"):
            spark_udfs.transactions(empty.withColumn("lsn", F.lit("0/1")), order_by=[OFFSET])
        with pytest.raises(wf.OptionError, match="column 'Origin': it is added"):
            spark_udfs.transactions(empty.withColumn("Origin", F.lit("o")), order_by=[OFFSET])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ("CAST(NULL AS bigint)", "bad rows: .* a row that has no offset"),
            ("CAST(7 AS bigint)", "bad rows: .* got two rows at offset=7, record=0"),
            ("-offset", "offset=-2"),
        ],
        ids=["a position that is null", "positions that are not unique", "an order that cannot be"],
    )
    def test_positions(self, spark: SparkSession, change: str, message: str) -> None:
        events: list[wf.Event] = [wf.Begin(xid=1), insert(), wf.Commit(xid=1)]
        rows = frame_of(spark, events).withColumn(OFFSET, F.expr(change))
        with pytest.raises((PythonException, SparkRuntimeException), match=message):
            spark_udfs.transactions(rows, order_by=[OFFSET], chunks=2).collect()

    def test_a_corrupt_row(self, spark: SparkSession) -> None:
        events: list[wf.Event] = [wf.Begin(xid=1), insert(), wf.Corrupt(error="bad", raw=b"?"), wf.Commit(xid=1)]
        with pytest.raises(PythonException, match="a transaction with an unreadable record is not complete"):
            spark_udfs.transactions(frame_of(spark, events), order_by=[OFFSET]).collect()


RETRIED = """
import sys
from pathlib import Path
import spark_udfs
from tests.spark.conftest import SETTINGS

folder = Path(sys.argv[1])
few_rows = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
settings = {**SETTINGS, **few_rows, "spark.master": "local[2, 4]"}
spark = spark_udfs.local_session(2, settings=settings)
assert spark.sparkContext.master == "local[2, 4]"

def fail_once(batches):
    import os
    from pyspark import TaskContext
    context = TaskContext.get()
    mark = folder / f"{context.stageId()}-{context.partitionId()}"
    for batch in batches:
        yield batch
    if not mark.exists():
        mark.touch()
        raise RuntimeError("this task fails once")

def failing(rows):
    numbered = rows.toDF(*[f"c{place}" for place in range(len(rows.columns))])
    return numbered.mapInArrow(fail_once, numbered.schema).toDF(*rows.columns)

changes = failing(spark.read.parquet(str(folder / "rows")))
found = spark_udfs.transactions(changes, stream_by=["stream"], order_by=["offset"], chunks=5)
failing(found).write.parquet(str(folder / "found"))
spark.stop()
"""


@pytest.mark.slow
def test_tasks_that_are_tried_again(rows: pa.Table, tmp_path: Path) -> None:
    """Every task fails at the end of its first attempt: of the rows, and behind the join of labels and fates."""
    write_shuffled(rows, tmp_path / "rows", 3)
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", RETRIED, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": root}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len([mark for mark in tmp_path.iterdir() if mark.is_file()]) > 6
    assert_same(pq.read_table(tmp_path / "found"), expected(rows))
