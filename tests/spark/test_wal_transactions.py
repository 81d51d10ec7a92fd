"""wal_transactions: in SQL, the decoded rows of each stream give what they give in Arrow."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import wireformat as wf
from spark_udfs.sql.functions import WalTransactions
from spark_udfs.workers import log_unknown_prepared

from ..histories import table
from .many_streams import (
    OFFSET,
    STREAM,
    assert_same,
    captured,
    expected,
    generated,
    one_table,
    write_shuffled,
)

pytestmark = pytest.mark.spark

LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"

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


@pytest.mark.slow
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


def test_large_types_of_arrow(spark: SparkSession) -> None:
    """Spark casts what a function returns with them, and what it casts may be null."""
    events: list[wf.Event] = [wf.Begin(xid=1, commit_lsn=9), insert(), wf.Commit(xid=1, commit_lsn=9)]
    frame_of(spark, events).withColumnRenamed(OFFSET, "seq").createOrReplaceTempView("of_large_types")
    table_of = "TABLE(of_large_types) WITH SINGLE PARTITION ORDER BY (seq, record)"
    spark.conf.set(LARGE_TYPES, "true")
    try:
        found = spark.sql(f"SELECT sequence.*, table_name FROM wal_transactions({table_of})").collect()
    finally:
        spark.conf.unset(LARGE_TYPES)
    assert found == [(9, 0, "t")]


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


def batch_of(events: list[wf.Event], first: int = 0, stream: str | None = None) -> pa.RecordBatch:
    rows = table(events).rename_columns(["seq", *wf.arrow.CHANGES.names[1:]])
    rows = rows.set_column(0, "seq", pc.add(rows["seq"], first))
    return one_batch(rows.append_column("stream", pa.array([stream] * len(rows), pa.string())))


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    (batch,) = rows.combine_chunks().to_batches()
    return batch


def delivered(*batches: pa.RecordBatch) -> int:
    function = WalTransactions()
    return sum(len(rows) for batch in batches for rows in function.eval(batch))


def test_one_call_reads_one_stream() -> None:
    """The transaction of the other one, at a lower LSN, would count as sent again."""
    of_a, of_b, of_none = (
        batch_of([wf.Begin(xid=1, commit_lsn=lsn), insert(), wf.Commit(xid=1, commit_lsn=lsn)], lsn, stream)
        for lsn, stream in ((1000, "a"), (2000, "b"), (3000, None))
    )
    assert delivered(of_a) == 1
    for other in (of_b, of_none):
        for batches in ([of_a, other], [one_batch(pa.Table.from_batches([of_a, other]))]):
            with pytest.raises(wf.OptionError, match=r"one call reads one stream, .* PARTITION BY stream"):
                delivered(*batches)


def test_columns_that_the_table_must_have_once() -> None:
    """As in SQL, the case of a name does not matter."""
    rows = batch_of([wf.Begin(xid=1), insert(), wf.Commit(xid=1)])
    for name in ("TABLE_NAME", "Stream"):
        twice = rows.append_column(name, pa.array(["other"] * len(rows)))
        with pytest.raises(wf.OptionError, match=f"must have one column {name.lower()}, it has several"):
            delivered(twice)


@pytest.mark.parametrize("stream", [{"topic": "cdc", "partition": 0}, b"\xff\x00"])
def test_a_stream_that_is_no_text(stream: Any) -> None:
    rows = batch_of([wf.Begin(xid=1), insert(), wf.Commit(xid=1)])
    other = rows.set_column(rows.schema.get_field_index("stream"), "stream", pa.array([stream] * len(rows)))
    with pytest.raises(wf.OptionError, match=r"stream must be a text or a number, it is (struct|binary).*concat_ws"):
        delivered(other)


TRUNCATE: list[wf.Event] = [
    wf.Begin(xid=1),
    wf.Truncate(tables=(("public", "t"), ("public", "u"), ("other", "t"))),
    wf.Commit(xid=1),
]


def test_doubled_rows_are_an_error() -> None:
    """As where files overlap: sorted by seq and record, the rows of a message come twice."""
    for events in ([wf.Begin(xid=1), insert(), wf.Commit(xid=1)], TRUNCATE):
        rows = batch_of(events)
        first, middle, last = rows.slice(0, 1), rows.slice(1, len(rows) - 2), rows.slice(len(rows) - 1)
        doubled = [first, middle, middle, last]
        for batches in (doubled, [one_batch(pa.Table.from_batches(doubled))]):
            with pytest.raises(wf.BadRows, match=r"positions that are unique within a stream.* at seq=1, record=0"):
                delivered(*batches)


def test_a_truncate_of_several_tables_in_batches() -> None:
    rows = batch_of(TRUNCATE)
    assert delivered(rows) == delivered(*[rows.slice(index, 1) for index in range(len(rows))]) == 3


def test_an_end_without_a_beginning_names_what_the_call_needs() -> None:
    rows = table([wf.Commit(xid=1)]).rename_columns(["seq", *wf.arrow.CHANGES.names[1:]])
    with pytest.raises(wf.OrderError, match="without PARTITION BY and ORDER BY"):
        [*WalTransactions().eval(rows.combine_chunks().to_batches()[0])]
