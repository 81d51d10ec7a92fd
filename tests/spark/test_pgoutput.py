"""pgoutput on Spark: cut into any partitions, it gives the rows of the capture in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from spark_udfs.decoding.batches import decode_frames
from spark_udfs.decoding.relations import Timeline, _collected, needed_rows
from spark_udfs.decoding.task import DecodingPlan, Task
from spark_udfs.fields import field_of
from spark_udfs.positions import PositionColumns
from wireformat.formats.pgoutput.relations import Relations

from ..handmade_pgoutput import (
    DESCRIBED,
    NULL,
    OPENGAUSS,
    OTHERS,
    ROWS,
    STOP,
    change,
    column,
    envelope,
    image,
    relation,
    start,
    stream_abort,
    stream_commit,
    streamed,
    text,
)
from ..servers.captures import read_capture
from .ways import assert_same_rows, found_rows

pytestmark = pytest.mark.spark

FORMAT = "pgoutput"
Messages = Sequence["bytes | None"]

ALTERED = relation(column(b"id", 23, is_key=True), column(b"renamed"), column(b"added", 16))
LONGER = change(b"I", image(b"N", text(b"1"), NULL, text(b"t")))
INSERT, UPDATE = ROWS["insert"][0], ROWS["update of a key"][0]
STREAM: Messages = [
    DESCRIBED,
    INSERT,
    *(start(800), streamed(INSERT), streamed(ALTERED), streamed(LONGER), STOP),
    None,
    *(UPDATE, INSERT),
    *(start(900), streamed(INSERT), STOP),
    *(start(800, is_first=False), streamed(LONGER), STOP),
    stream_abort(900, 900),
    INSERT,
    stream_commit(800),
    LONGER,
    envelope(LONGER, 77),
    *(start(901), streamed(DESCRIBED), streamed(INSERT), STOP),
    LONGER,
    stream_abort(901, 901),
    LONGER,
]
"""A table altered in the middle, in a streamed transaction, and seen as it was by the others until that commits."""


def wanted_rows(messages: Messages, **options: Any) -> list[dict[str, Any]]:
    return found_rows(wf.arrow.changes(messages, FORMAT, **options).rename_columns({"message": "seq"}))


def frame(spark: SparkSession, messages: Messages, **more: Any) -> DataFrame:
    """Messages with their places, in one partition."""
    table = pa.table(
        {
            "seq": pa.array(range(len(messages)), pa.int64()),
            "payload": pa.array(messages, pa.binary()),
            **{name: pa.array([value] * len(messages)) for name, value in more.items()},
        }
    )
    return spark.createDataFrame(table).coalesce(1)


def decode(df: DataFrame, keep: Sequence[str] = ("seq",), **options: Any) -> DataFrame:
    return spark_udfs.decode(df, "payload", FORMAT, keep=list(keep), **{"order_by": ["seq"], **options})


def needed(df: DataFrame) -> DataFrame:
    positions = PositionColumns.check(df, ["seq"], [])
    return needed_rows(df, field_of(df, "payload", "payload"), positions)


CUTS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "one": lambda df: df,
    "ranged": lambda df: df.repartitionByRange(4, "seq"),
    "hashed": lambda df: df.repartition(3, "seq"),
    "backwards": lambda df: df.repartition(2, "seq").sortWithinPartitions(F.desc("seq")),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_capture_in_any_cut(spark: SparkSession, cut: str) -> None:
    messages = read_capture("18-pgoutput-4-two-phase-binary").messages
    df = frame(spark, messages)
    assert_same_rows(found_rows(decode(CUTS[cut](df))), wanted_rows(messages))


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
@pytest.mark.parametrize("cut", CUTS)
def test_an_altered_table_in_any_cut(spark: SparkSession, cut: str, engine: str) -> None:
    df = frame(spark, STREAM)
    found = found_rows(decode(CUTS[cut](df), engine=engine))
    assert_same_rows(found, wanted_rows(STREAM))
    assert not any(row["kind"] == "CORRUPT" for row in found)


def test_one_message_a_batch(spark: SparkSession, set_conf: Callable[[str, Any], None]) -> None:
    """What was known is carried from batch to batch."""
    set_conf("spark.sql.execution.arrow.maxRecordsPerBatch", 1)
    df = frame(spark, STREAM)
    assert_same_rows(found_rows(decode(df.repartitionByRange(2, "seq"))), wanted_rows(STREAM))
    assert_same_rows(found_rows(decode(df, order_by=[])), wanted_rows(STREAM))


def test_relations_at_any_position(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker keeps some of many states, wherever it reads next, and those that decoding adds to are others."""
    monkeypatch.setattr("spark_udfs.decoding.relations.SNAPSHOT_STEP", 2)
    monkeypatch.setattr("spark_udfs.decoding.relations.MOST_SNAPSHOTS", 5)
    messages = [relation(column(b"id"), column(b"c%d" % number)) for number in range(70)]
    known = Timeline(needed(frame(spark, messages)), wf.ReadOptions.check())
    events = known._streams[()].events
    for count in (0, 3, 3, 4, 69, 70, 13, 15, 33, 1, 70, 56, 55):
        found, wanted = known._relations((), count), Relations()
        for event in events[:count]:
            wanted.take(event)
        assert found.scopes == wanted.scopes
        found.take(events[count - 7])
    assert len(known._snapshots[()]) <= 6


def test_errors_count_messages_as_they_come(spark: SparkSession) -> None:
    """And not as they are sorted."""
    known = Timeline(needed(frame(spark, [DESCRIBED])), wf.ReadOptions.check())
    messages, positions = [INSERT, INSERT, b"I\0", None, INSERT], [[9, 8, 1, 2, 7]]

    def task(mode: str) -> Task:
        task = Task(DecodingPlan.check(FORMAT, ["error"], mode=mode), known)
        assert sum(len(rows) for _, rows in task.rows([INSERT], positions=[[5]])) == 1
        return task

    found = [
        (of, text)
        for numbers, rows in task("PERMISSIVE").rows(messages, positions=positions)
        for of, text in zip(numbers.to_pylist(), rows["error"].to_pylist(), strict=True)
        if text
    ]
    assert [of for of, _ in found] == [2]
    assert "pgoutput: message 3," in found[0][1]
    with pytest.raises(wf.DecodeError) as caught:
        [*task("FAILFAST").rows(messages, positions=positions)]
    assert caught.value.message == 3


def test_two_streams_in_one_table(spark: SparkSession) -> None:
    """The same numbers of tables and transactions mean other things in another stream."""
    others = [ALTERED, LONGER, start(800), streamed(LONGER), STOP, LONGER]
    df = frame(spark, STREAM, stream="a").unionAll(frame(spark, others, stream="b"))
    rows = decode(df.repartition(3, "seq"), ["stream", "seq"], stream_by=["stream"]).cache()
    for stream, messages in (("a", STREAM), ("b", others)):
        found = found_rows(rows.where(F.col("stream") == stream).drop("stream"))
        assert_same_rows(found, wanted_rows(messages))


BEGIN, COMMIT = OTHERS["begin"][0], OTHERS["commit"][0]
ASIDE = b"M\0" + (0x1_0153_D120).to_bytes(8, "big") + b"prefix\0" + bytes(4)
PLAIN = [BEGIN, DESCRIBED, INSERT, COMMIT]
BROKEN: Messages = [
    *PLAIN * 3,
    *(start(800), streamed(ALTERED), streamed(LONGER)),
    *PLAIN * 3,
    *(start(800), streamed(ALTERED), streamed(LONGER)),
    *(ASIDE, *PLAIN * 2, start(800), streamed(ALTERED), STOP, BEGIN, COMMIT),
    *(start(800, is_first=False), streamed(LONGER)),
    *(start(800), streamed(ALTERED), streamed(LONGER), STOP, stream_commit(800), LONGER, BEGIN, LONGER, COMMIT),
    *(start(801), streamed(LONGER)),
    *(envelope(BEGIN, 5), LONGER, COMMIT, ASIDE),
    *(start(802), streamed(LONGER), BEGIN + b"?", LONGER),
]
"""Connections that broke inside blocks: what comes next has no transaction ids."""


@pytest.mark.parametrize("cut", CUTS)
def test_connections_that_broke_inside_blocks(spark: SparkSession, cut: str) -> None:
    others = [*PLAIN, *PLAIN, start(7), streamed(INSERT), STOP, INSERT]
    df = frame(spark, BROKEN, stream="a").unionAll(frame(spark, others, stream="b"))
    rows = decode(CUTS[cut](df), ["stream", "seq"], stream_by=["stream"], mode="PERMISSIVE").cache()
    for stream, messages in (("a", BROKEN), ("b", others)):
        found = found_rows(rows.where(F.col("stream") == stream).drop("stream"))
        assert_same_rows(found, wanted_rows(messages, mode="PERMISSIVE"))
    assert rows.where("kind = 'CORRUPT'").count() == 1


def test_only_openings_behind_broken_blocks_are_collected(spark: SparkSession) -> None:
    """Of each block without a stop, the first; also where the parts of a capture were looked at one by one."""
    df = frame(spark, BROKEN)
    parts = [df.where(f"seq {part} 15") for part in ("<", ">=")]  # the second begins with the BEGIN behind a block
    first, second = map(needed, parts)
    found = [(*row.position, bytes(row.payload)[:1]) for row in _collected(first.unionAll(second))]
    assert sorted((seq, kind) for seq, kind in found if kind in b"Bbw") == [
        (15, b"B"),
        (31, b"B"),
        (57, b"w"),
        (63, b"B"),
    ]
    known = Timeline(first.unionAll(second), wf.ReadOptions.check(mode="PERMISSIVE"))
    assert known.columns == ["seq"]


def test_positions_of_several_columns(spark: SparkSession) -> None:
    """A string, then an integer; the kept columns may be others."""
    df = frame(spark, STREAM).select(
        "payload",
        F.format_string("%02d", F.expr("seq div 4")).alias("file"),
        (F.col("seq") % 4).cast("short").alias("line"),
        F.col("seq"),
    )
    found = decode(df.repartition(3, "line"), order_by=["file", "line"])
    assert_same_rows(found_rows(found), wanted_rows(STREAM))


def test_what_is_collected_is_little(spark: SparkSession) -> None:
    """Only what says something about relations or blocks, in an envelope or not."""
    df = frame(spark, [*STREAM, envelope(DESCRIBED, 5), envelope(INSERT, 5)])
    kinds = {bytes(row.payload)[:1] for row in needed(df).collect()}
    assert kinds == {b"R", b"S", b"E", b"c", b"A", b"w"}


def test_bad_messages_in_any_cut(spark: SparkSession) -> None:
    """A Relation that cannot be read, a row of no table, and one that is torn: as in one piece."""
    messages = [
        *STREAM[:2],
        ALTERED[:-1],
        INSERT,
        DESCRIBED,
        INSERT,
        INSERT[:-1],
        start(7),
        streamed(ALTERED)[:9],
        LONGER,
    ]
    df = frame(spark, messages)
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        wanted = wanted_rows(messages, mode=mode)
        for cut in ("one", "ranged", "hashed"):
            assert_same_rows(found_rows(decode(CUTS[cut](df), mode=mode)), wanted)


def test_an_error_names_the_message(spark: SparkSession) -> None:
    """By its kept columns, also where the task has put messages in order."""
    df = frame(spark, [DESCRIBED, INSERT, change(b"I", image(b"N", NULL), oid=9)])
    with pytest.raises(Exception, match=r"got oid 9 \[pgoutput: byte 1, .*row seq=2\]; the server describes"):
        decode(CUTS["backwards"](df)).collect()


def test_filters(spark: SparkSession) -> None:
    df = frame(spark, STREAM)
    for options in ({"kinds": ["INSERT"]}, {"tables": ["other.*"]}):
        assert_same_rows(found_rows(decode(CUTS["hashed"](df), **options)), wanted_rows(STREAM, **options))


def test_wal_changes(spark: SparkSession) -> None:
    """One partition is a whole stream, in its order."""
    frame(spark, STREAM).createOrReplaceTempView("pg_messages")
    table = "TABLE(SELECT seq, payload FROM pg_messages)"
    found = spark.sql(f"SELECT * FROM wal_changes({table}, format => 'pgoutput')")
    assert_same_rows(found_rows(found), wanted_rows(STREAM))


def test_wal_changes_in_the_dialect(spark: SparkSession) -> None:
    messages = [DESCRIBED, INSERT, *(message for message, _ in OPENGAUSS.values())]
    frame(spark, messages).createOrReplaceTempView("og_messages")
    table = "TABLE(SELECT seq, payload FROM og_messages)"
    found = spark.sql(f"SELECT * FROM wal_changes({table}, format => 'pgoutput', dialect => 'opengauss')")
    assert_same_rows(found_rows(found), wanted_rows(messages, dialect="opengauss"))


@pytest.mark.parametrize("function", ["wal_decode", "wal_decode_pandas"])
def test_functions_refuse_it(spark: SparkSession, function: str) -> None:
    frame(spark, STREAM).createOrReplaceTempView("pg_messages")
    with pytest.raises(Exception, match=f"{function}: a row of pgoutput depends on earlier messages.*wal_changes"):
        spark.sql(f"SELECT {function}(payload, 'pgoutput') FROM pg_messages").collect()


class TestOptions:
    """What is wrong is said at the call, but for what only the rows tell."""

    @pytest.fixture
    def df(self, spark: SparkSession) -> DataFrame:
        return frame(spark, STREAM, stream="a", price=1.5)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"stream_by": ["stream"]}, "order_by: expected the names of columns, got an empty list"),
            ({"order_by": "seq"}, "expected a list of strings"),
            ({"order_by": ["seq"], "stream_by": "stream"}, "expected a list of strings"),
            ({"order_by": ["sequence"]}, "option order_by: no column 'sequence'"),
            ({"order_by": ["seq"], "stream_by": ["topic"]}, "option stream_by: no column 'topic'"),
            ({"order_by": ["price"]}, "option order_by: expected integers or strings, 'price' is double"),
            ({"order_by": ["seq"], "payload": "value"}, "option payload: no column 'value'"),
        ],
        ids=str,
    )
    def test_positions(self, df: DataFrame, options: dict[str, Any], words: str) -> None:
        with pytest.raises(wf.OptionError, match=words):
            spark_udfs.decode(df, **{"payload": "payload", "format": FORMAT, **options})

    def test_two_messages_of_one_position(self, df: DataFrame) -> None:
        with pytest.raises(wf.BadRows, match="two messages at the same position"):
            decode(df.unionAll(df))

    def test_a_position_that_is_null(self, df: DataFrame) -> None:
        with pytest.raises(wf.BadRows, match="a row that has no seq"):
            decode(df.withColumn("seq", F.expr("nullif(seq, 0)")))
        nulls = df.withColumn("seq", F.expr("nullif(seq, 1)"))  # that of a row change
        for engine in ("arrow", "pandas"):
            with pytest.raises(Exception, match=r"bad rows: .* a row that has no seq"):
                decode(nulls, keep=(), engine=engine).collect()

    @pytest.mark.parametrize("kind", ["Int64", "float64"])
    def test_a_position_that_is_null_in_pandas(self, df: DataFrame, kind: str) -> None:
        """Spark gives either of these types."""
        known = Timeline(needed(df), wf.ReadOptions.check())
        given = pd.DataFrame({"0": [INSERT, INSERT], "1": pd.Series([7, None], dtype=kind)})
        with pytest.raises(wf.BadRows, match="a row that has no seq"):
            [*decode_frames(DecodingPlan.check(FORMAT), known, [], iter([given]))]

    def test_other_formats_need_no_order(self, spark: SparkSession) -> None:
        df = frame(spark, [], stream="a")
        assert spark_udfs.decode(df, "payload", "gaussdb-binary", order_by=["seq"]).count() == 0

    def test_the_dialect(self, df: DataFrame) -> None:
        with pytest.raises(wf.OptionError, match="option dialect: expected postgresql, opengauss"):
            decode(df, dialect="oracle")
