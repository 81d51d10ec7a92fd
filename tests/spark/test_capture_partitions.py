"""However Spark orders, joins and changes the partitions, the rows are the same, or an error says that they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_bytes
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf

from .capture_streams import streams_of
from .raw_streams import (
    OFFSET,
    PLACE,
    assert_same,
    rows_of,
    write,
)

pytestmark = pytest.mark.spark


def rows_there(df: DataFrame, messages: Sequence[bytes], **options: Any) -> spark_udfs.Capture:
    """Returns a capture of a DataFrame, whose answers are those of one machine."""
    capture, one = (
        spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], **options),
        wf.Capture(messages, "pgoutput"),
    )
    changes = one.changes().read_all()
    wanted = changes.drop_columns(["message"]).add_column(0, OFFSET, changes["message"])
    assert_same(capture.changes().toArrow(), wanted)
    assert_same(capture.committed().toArrow(), one.committed().read_all().drop_columns(["message"]))
    return capture


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_partitions_in_any_order(
    one_stream: tuple[DataFrame, list[bytes]], set_conf: Callable[[str, Any], None], adaptive: str
) -> None:
    df, messages = one_stream
    set_conf("spark.sql.adaptive.enabled", adaptive)
    unsorted = df.orderBy(F.rand(1)).coalesce(1)
    assert rows_there(unsorted, messages)._messages.are_chunks
    assert not rows_there(df.repartition(3), messages)._messages.are_chunks
    rows_there(df.orderBy(OFFSET), messages)


def test_answers_whose_partitions_spark_joins(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    """Then a task has the partitions of others, under its own number."""
    df, messages = one_stream
    one, parts = (
        spark_udfs.capture(rows, "value", "pgoutput", order_by=[OFFSET])
        for rows in (df.orderBy(OFFSET).coalesce(1), df)
    )
    assert parts._messages.are_chunks
    assert len((parts._messages.ranges or {})["[]"]) > 1
    wanted = wf.Capture(messages, "pgoutput").committed().read_all().drop_columns(["message"])
    assert_same(parts.committed().coalesce(1).toArrow(), wanted)
    assert_same(one.committed().unionAll(parts.committed()).toArrow(), pa.concat_tables([wanted, wanted]))


def test_changes_of_partitions_that_differ_from_query_to_query(spark: SparkSession) -> None:
    """Spark samples the bounds of ranges anew in each query, if there are more rows than its sample has."""
    lines = [b"BEGIN 1", *[b"table public.t: INSERT: id[integer]:1"] * 20_000, b"COMMIT 1"]
    df = spark.createDataFrame(pa.table({OFFSET: range(len(lines)), "value": lines}))
    shuffled = df.repartition(2).repartitionByRange(8, OFFSET)
    capture = spark_udfs.capture(shuffled, "value", "test-decoding", order_by=[OFFSET])
    assert capture.changes().count() == len(lines)


def test_files_in_another_order(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    """The look at the positions finds it; else all tasks would read their messages, to find that one must sort them."""
    df, messages = one_stream
    half = len(messages) // 2
    parts = (df.where(F.col(OFFSET) >= half), df.where(F.col(OFFSET) < half))
    capture = spark_udfs.capture(parts[0].unionAll(parts[1]).coalesce(1), "value", "pgoutput", order_by=[OFFSET])
    assert capture._messages.are_chunks
    assert capture._messages._is_sorted
    assert_same(
        capture.committed().toArrow(), wf.Capture(messages, "pgoutput").committed().read_all().drop_columns(["message"])
    )


def files_of(messages: Sequence[bytes], sizes: Sequence[int], folder: Path) -> str:
    """Writes files with so many messages each, and what makes a file with few messages large."""
    tables, first = [], 0
    for size in sizes:
        rows = rows_of("one", messages, range(first, first + size))
        tables.append(rows.append_column("filling", pa.array([token_bytes(4_000_000 // size)] * size)))
        first += size
    assert first == len(messages)
    return write(tables, folder)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_files_that_spark_puts_into_partitions_by_their_sizes(
    spark: SparkSession, tmp_path: Path, set_conf: Callable[[str, Any], None], adaptive: str
) -> None:
    """Partitions then have no ranges of their own, but what they have of each file does: nothing is shuffled."""
    set_conf("spark.sql.adaptive.enabled", adaptive)
    set_conf("spark.sql.files.maxPartitionBytes", "12MB")
    messages = streams_of("pgoutput")["generated 0"]
    part = len(messages) // 6
    folder = files_of(messages, [part, 3 * part, 2 * part - 7, len(messages) - 6 * part + 7], tmp_path / "files")
    df = spark.read.parquet(folder).drop("filling")
    capture = rows_there(df, messages)
    ranges = capture._messages.ranges
    assert ranges is not None
    assert capture._messages._starts is not None
    assert len(ranges["[]"]) == 4
    assert len({one.partition for one in ranges["[]"].values()}) < 4
    plan = capture.committed()._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "Exchange" not in plan
    capture._messages.df = df.where(F.col(OFFSET) >= part)  # all of the first file
    for ask in (capture.committed, capture.changes):
        with pytest.raises(PythonException, match="gives other rows"):
            ask().collect()


def test_many_small_files_are_no_chunks(
    spark: SparkSession, tmp_path: Path, set_conf: Callable[[str, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_udfs.chunks.frames.FILES_PER_PARTITION", 1)
    set_conf("spark.sql.shuffle.partitions", "3")
    set_conf("spark.sql.files.maxPartitionBytes", "12MB")
    messages = streams_of("pgoutput")["generated 0"]
    part = len(messages) // 6
    folder = files_of(messages, [part, 3 * part, 2 * part - 7, len(messages) - 6 * part + 7], tmp_path / "files")
    assert not rows_there(spark.read.parquet(folder).drop("filling"), messages)._messages.are_chunks


def test_local_relations(spark: SparkSession) -> None:
    """Spark numbers the partitions of rows that lie in the plan before it makes them."""
    messages = streams_of("pgoutput")["generated 0"]
    df = spark.createDataFrame(rows_of("one", messages, range(len(messages))))
    assert df.select(F.spark_partition_id()).distinct().count() == 1 < df.rdd.getNumPartitions()
    rows_there(df, messages)


def test_a_filter_that_only_the_first_partition_passes(
    spark: SparkSession, tmp_path: Path, set_conf: Callable[[str, Any], None]
) -> None:
    """The others are still looked through by tasks of their own."""
    set_conf("spark.sql.files.openCostInBytes", 1 << 30)  # a partition for each file, the largest first
    messages = streams_of("pgoutput")["generated 0"]
    count = len(messages) - 20
    df = spark.read.parquet(
        write(
            [rows_of("one", messages, part) for part in (range(count), range(count, len(messages)))], tmp_path / "raw"
        )
    )
    capture = rows_there(df.where(f"{OFFSET} < {count}"), messages[:count])
    assert capture._messages.are_chunks
    assert capture.committed().rdd.getNumPartitions() == df.rdd.getNumPartitions() > 1


def test_partitions_that_differ_from_query_to_query(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    """Adaptive execution may join the partitions of a shuffle in other ways in each query."""
    df, messages = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    ranges = capture._messages.ranges
    assert ranges is not None
    (found,) = ranges.values()
    assert len(found) > 1
    ranges["[]"] = dict(zip(found, reversed(found.values()), strict=True))
    assert_same(
        capture.committed().toArrow(), wf.Capture(messages, "pgoutput").committed().read_all().drop_columns(["message"])
    )
    assert not capture._messages.are_chunks


def test_rows_that_differ_from_query_to_query(one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path) -> None:
    df, messages = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], chunks=2)
    capture.tables()
    more = df.where(f"{OFFSET} < 5").withColumn(OFFSET, F.col(OFFSET) + len(messages))
    capture._messages.df = df.unionAll(more)
    with pytest.raises(PythonException, match="gives other rows"):
        capture.committed().collect()


def without(partition: int, df: DataFrame) -> DataFrame:
    """The same partitions, one of them without rows, as where a topic has forgotten them."""
    return df.where(F.spark_partition_id() != partition)


@pytest.mark.parametrize("partition", [0, 1])
def test_a_partition_that_loses_its_rows(
    one_stream: tuple[DataFrame, list[bytes]], partition: int, tmp_path: Path
) -> None:
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    capture.tables()
    assert capture._messages.are_chunks
    capture._messages.df = without(partition, df)
    for ask in (capture.committed, capture.changes):
        with pytest.raises(PythonException, match="gives other rows"):
            ask().collect()
    for state in ("changes", "latest"):
        with pytest.raises(PythonException, match="gives other rows"):
            capture.write(tmp_path / state, state=state)


@pytest.mark.parametrize("lost", [f"{OFFSET} = 7", f"{OFFSET} > 9", "true"])
def test_the_current_rows_know_how_many_messages_there_were(spark: SparkSession, lost: str) -> None:
    """Where one task reads all messages of a stream: the replica identity has changed."""
    messages = with_another_identity()
    df = spark.createDataFrame([*enumerate(messages)], f"{OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    assert_same(capture.latest("shop.t").toArrow(), wf.Capture(messages, "pgoutput").latest("shop.t"))
    capture._messages.df = df.where(f"NOT ({lost})")
    with pytest.raises(PythonException, match="gives other rows"):
        capture.latest("shop.t").collect()


@pytest.mark.parametrize("lost", ["'a'", "'b'"])
def test_the_current_rows_know_which_streams_there_were(spark: SparkSession, lost: str) -> None:
    rows = [(stream, *row) for stream in "ab" for row in enumerate(with_another_identity())]
    df = spark.createDataFrame(rows, f"stream string, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", **PLACE)
    assert capture.latest("shop.t").count() == 6
    capture._messages.df = df.where(f"stream <> {lost}")
    with pytest.raises(PythonException, match="gives other rows"):
        capture.latest("shop.t").collect()


def with_another_identity() -> list[bytes]:
    """A stream of a table whose replica identity changes, which must be read in its order."""
    table = {"relation_id": 5, "table_schema": "shop", "table_name": "t"}
    names, types = ("id", "note"), {"type_oids": (23, 25), "typmods": (-1, -1)}
    events: list[wf.Event] = []
    for number, identity in enumerate(("default", "full"), 1):
        keys = names if identity == "full" else names[:1]
        begin = wf.Begin(commit_lsn=16 * number, xid=number, commit_time="2026-11-23 10:00:00+00")
        commit = wf.Commit(commit_lsn=16 * number, end_lsn=16 * number + 1, commit_time=begin.commit_time)
        relation = wf.Relation(**table, replica_identity=identity, columns=names, key_columns=keys, **types)
        rows = [wf.TupleData(names, (str(id), "x"), ("integer", "text")) for id in (number, 10 * number)]
        delete = wf.Delete(**table, old=rows[1], old_kind="full") if identity == "full" else None
        events += [
            begin,
            relation,
            *[wf.Insert(**table, new=row) for row in rows],
            *([delete] if delete else []),
            commit,
        ]
    return [*map(bytes, wf.encode(events, "pgoutput"))]


@pytest.mark.parametrize("lost", [f"{OFFSET} > 4", "true"])
def test_a_position_knows_where_the_oldest_open_transaction_began(
    one_stream: tuple[DataFrame, list[bytes]], lost: str
) -> None:
    """It needs the relations there, so it reads that chunk once more."""
    df, messages = one_stream
    end = next(at for at in range(len(messages) - 1, 0, -1) if messages[at][:1] == b"C")
    cut = df.where(f"{OFFSET} < {end}")
    capture = spark_udfs.capture(cut, "value", "pgoutput", order_by=[OFFSET])
    one = wf.Capture(messages[:end], "pgoutput")
    one.committed().read_all()
    assert capture.position.open == one.position.open != ()
    capture._messages.df = cut.where(f"NOT ({lost})")
    with pytest.raises((PythonException, wf.BadRows), match="gives other rows"):
        _ = capture.position


def test_changes_know_how_many_messages_there_were(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], chunks=2)
    capture.tables()
    capture._messages.df = df.where(f"{OFFSET} <> 7")
    with pytest.raises(PythonException, match="gives other rows"):
        capture.changes().collect()


@pytest.mark.parametrize("partition", [0, 1])
def test_a_partition_that_loses_its_rows_before_the_light_pass(
    one_stream: tuple[DataFrame, list[bytes]], partition: int
) -> None:
    """Then the rest is the stream: positions are looked at again."""
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET], mode="PERMISSIVE")
    assert capture._messages.are_chunks
    capture._messages.df = without(partition, df)
    capture.tables()
    assert not capture._messages.are_chunks


def test_a_partition_that_is_gone(
    one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path, set_conf: Callable[[str, Any], None]
) -> None:
    """No task knows of it, but a write knows what its tasks have written; nothing is left of it."""
    df, _ = one_stream
    set_conf("spark.sql.files.openCostInBytes", 1 << 30)  # a partition for each file
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    capture.tables()
    files = {row[0]: row[1] for row in df.select(F.spark_partition_id(), F.input_file_name()).distinct().collect()}
    assert len(files) > 1
    capture._messages.df = df.sparkSession.read.parquet(*(files[number] for number in sorted(files)[:-1]))
    with pytest.raises(wf.BadRows, match=r"gives other rows, .*: save it in files first; .* endingOffsets"):
        capture.write(tmp_path / "lake")
    assert [*(tmp_path / "lake").rglob("*.parquet*")] == []


@pytest.mark.slow
def test_local_relations_beside_files(one_stream: tuple[DataFrame, list[bytes]], spark: SparkSession) -> None:
    """In a union, rows that lie in the plan have the number of another partition."""
    df, messages = one_stream
    half = len(messages) // 2
    local = spark.createDataFrame(rows_of("one", messages, range(half)))
    both = local.unionAll(df.where(f"{OFFSET} >= {half}").select(*local.columns))
    rows_there(both, messages)
