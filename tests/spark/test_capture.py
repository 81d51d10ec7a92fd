"""spark_udfs.capture: however messages are cut into files, partitions and chunks, it says what wf.Capture says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf
from spark_udfs.positions import MOST_CHUNKS, PositionColumns, chunk_of
from wireformat.options.table_names import written
from wireformat.stream.capture_position import CapturePosition

from ..golden_cases import CASES
from ..lake.histories import messages_of
from ..lake.reading import read, tables_of, values
from ..lake.test_later_writes import INSERTED, transaction, update
from ..servers.captures import capture_names, read_capture
from .raw_streams import (
    OFFSET,
    PLACE,
    STREAM,
    assert_same,
    capture_of,
    expected,
    rows_of,
    write_in_order,
    write_shuffled,
)

pytestmark = pytest.mark.spark

FORMATS = ("pgoutput", "test-decoding", "gaussdb-binary", "gaussdb-json", "mppdb-json")
LAYOUTS = {"in order": (write_in_order, None), "shuffled": (write_shuffled, None), "many chunks": (write_shuffled, 7)}


@cache
def streams_of(format: str) -> dict[str, list[bytes]]:
    """Returns generated streams and captures of servers of a format, by name."""
    found = {}
    for seed in range(6):
        made = wf.testing.stream(3, 40, seed=seed, format=format)
        found[f"generated {seed}"] = [*wf.encode(made, format)]
    if format in ("pgoutput", "test-decoding"):
        names = [name for name in capture_names(format) if not name.endswith(("-all", "decoding-streaming"))]
        for name in names[:4]:
            found[name] = [*map(bytes, read_capture(name).messages)]
    else:
        found |= {
            case.name: [*map(bytes, case.messages)] for case in CASES if case.format == format and not case.reading
        }
    return {name: messages for name, messages in found.items() if readable(messages, format)}


def readable(messages: Sequence[bytes], format: str) -> bool:
    """Whether a stream has committed rows and no error."""
    try:
        return len(capture_of(messages, format).committed().read_all()) > 0
    except wf.WireformatError:
        return False


@pytest.fixture(scope="module", params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def streams(format: str) -> dict[str, list[bytes]]:
    return streams_of(format)


@pytest.fixture(scope="module", params=LAYOUTS)
def capture(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    format: str,
    streams: dict[str, list[bytes]],
    tmp_path_factory: pytest.TempPathFactory,
) -> spark_udfs.Capture:
    write, chunks = LAYOUTS[request.param]
    path = write(streams, tmp_path_factory.mktemp("raw") / "files", Random(request.param))
    return spark_udfs.capture(spark.read.parquet(path), "value", format, chunks=chunks, **PLACE)


def of_one_machine(streams: dict[str, list[bytes]], format: str, ask: Any) -> pa.Table:
    return expected(streams, lambda name, messages: ask(capture_of(messages, format)))


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


@pytest.fixture
def one_stream(spark: SparkSession, tmp_path: Path) -> tuple[DataFrame, list[bytes]]:
    messages = streams_of("pgoutput")["generated 0"]
    path = write_in_order({"one": messages}, tmp_path / "files", Random(1))
    return spark.read.parquet(path), messages


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


@pytest.mark.slow
def test_going_on_after_a_position(spark: SparkSession, tmp_path: Path) -> None:
    """Each part is the rest of the stream from the oldest message on that was open at the position before."""
    streams = streams_of("pgoutput")
    position, found = None, []
    for share in (0.3, 0.6, 1.0):
        some = {name: messages[: int(len(messages) * share)] for name, messages in streams.items()}
        path = write_in_order(some, tmp_path / str(share), Random(3))
        capture = spark_udfs.capture(spark.read.parquet(path), "value", "pgoutput", after=position, **PLACE)
        found.append(capture.committed().toArrow())
        position = capture.position
    wanted = of_one_machine(streams, "pgoutput", lambda one: one.committed().read_all())
    assert_same(pa.concat_tables(found), wanted)


def test_a_stream_without_new_messages_keeps_its_position(spark: SparkSession, tmp_path: Path) -> None:
    streams = {name: streams_of("pgoutput")[name] for name in ("generated 0", "generated 1")}
    positions = []
    for number, of_part in enumerate((streams, {"generated 1": streams["generated 1"]})):
        df = spark.read.parquet(write_in_order(of_part, tmp_path / str(number), Random(3)))
        after = positions[-1] if positions else None
        positions.append(spark_udfs.capture(df, "value", "pgoutput", after=after, **PLACE).position)
    assert {*positions[0]} == {(name,) for name in streams}
    assert positions[1]["generated 0",] == positions[0]["generated 0",]
    assert positions[1]["generated 1",].delivered.lsn == positions[0]["generated 1",].delivered.lsn


def test_errors_say_where(one_stream: tuple[DataFrame, list[bytes]], spark: SparkSession) -> None:
    df, messages = one_stream
    begin = next(offset for offset, message in enumerate(messages) if message[0] == ord("B"))
    rows = [offset for offset, message in enumerate(messages) if offset > begin and message[0] in b"IUD"]
    cut = df.where(f"{OFFSET} <> {begin}")
    with pytest.raises(PythonException, match=f"rows outside a transaction.*{OFFSET}={rows[0]}[^0-9]"):
        spark_udfs.capture(cut, "value", "pgoutput", order_by=[OFFSET]).committed().collect()
    with pytest.raises(wf.OrderError):
        _ = spark_udfs.capture(cut, "value", "pgoutput", order_by=[OFFSET]).position
    row = next(offset for offset, message in enumerate(messages) if message[0] == ord("I"))
    value = F.when(F.col(OFFSET) == row, F.lit(b"I\0")).otherwise(F.col("value"))
    bad = df.withColumn("value", value)
    for ask in (spark_udfs.Capture.tables, spark_udfs.Capture.changes):
        with pytest.raises(wf.DecodeError, match=f"{OFFSET}={row}"):
            ask(spark_udfs.capture(bad, "value", "pgoutput", order_by=[OFFSET]))
    kinds = spark_udfs.capture(bad, "value", "pgoutput", order_by=[OFFSET], mode="PERMISSIVE").changes()
    assert kinds.where("kind = 'CORRUPT'").select(OFFSET).collect() == [(row,)]
    dropping = spark_udfs.capture(bad, "value", "pgoutput", order_by=[OFFSET], mode="DROPMALFORMED")
    assert dropping.dropped == 1


def test_messages_of_equal_positions_are_an_error(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    twice = df.unionAll(df.where(f"{OFFSET} = 5"))
    with pytest.raises(PythonException, match=f"two messages at {OFFSET}=5"):
        spark_udfs.capture(twice, "value", "pgoutput", order_by=[OFFSET]).tables()


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


def test_local_relations(spark: SparkSession) -> None:
    """Spark numbers the partitions of rows that lie in the plan before it makes them."""
    messages = streams_of("pgoutput")["generated 0"]
    df = spark.createDataFrame(rows_of("one", messages, range(len(messages))))
    assert df.select(F.spark_partition_id()).distinct().count() == 1 < df.rdd.getNumPartitions()
    rows_there(df, messages)


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
    with pytest.raises(PythonException, match="gives other rows"):
        capture.committed().collect()
    with pytest.raises(PythonException, match="gives other rows"):
        capture.write(tmp_path / "lake")


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
    with pytest.raises(wf.BadRows, match="gives other rows"):
        capture.write(tmp_path / "lake")
    assert [*(tmp_path / "lake").rglob("*.parquet")] == []


def test_another_format_is_an_error(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "gaussdb-binary", order_by=[OFFSET], mode="PERMISSIVE")
    with pytest.raises(wf.BadRows, match="pgoutput"):
        capture.tables()


def test_a_table_that_is_not_there(one_stream: tuple[DataFrame, list[bytes]]) -> None:
    df, _ = one_stream
    with pytest.raises(wf.BadRows, match="did you mean"):
        spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET]).typed("shop.orders")


POSITION = CapturePosition("pgoutput")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"order_by": []}, "order_by"),
        ({"order_by": ["nothing"]}, "order_by"),
        ({"payload": OFFSET}, "payload"),
        ({"mode": "fast"}, "mode"),
        ({"chunks": 0}, "chunks"),
        ({"after": "{}"}, "position"),
        ({"after": {("one",): POSITION}}, "option after: expected the position of one stream"),
        ({"after": POSITION, "stream_by": [STREAM]}, "option after: expected a dict"),
        (
            {"after": {"one": POSITION}, "stream_by": [STREAM]},
            f"option after: expected a tuple of the values of {STREAM}",
        ),
        ({"after": {("one", 2): POSITION}, "stream_by": [STREAM]}, "option after: expected a tuple"),
        ({"after": {(1,): POSITION}, "stream_by": [STREAM]}, r"option after: .* stream \(string\)"),
    ],
)
def test_wrong_options(spark: SparkSession, options: dict[str, Any], named: str) -> None:
    df = spark.createDataFrame([], f"{STREAM} string, {OFFSET} long, value binary")
    with pytest.raises(wf.WireformatError, match=named):
        spark_udfs.capture(df, **{"order_by": [OFFSET], "format": "pgoutput", **options})


def test_no_messages(spark: SparkSession) -> None:
    df = spark.createDataFrame([], f"{STREAM} string, {OFFSET} long, value binary")
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    assert capture.committed().count() == capture.tables().count() == capture.open().count() == 0
    assert capture.position.delivered.transactions == 0


@pytest.mark.parametrize(("kind", "layout"), [("parquet", "in order"), ("delta", "many chunks")])
def test_write(spark: SparkSession, tmp_path: Path, kind: str, layout: str) -> None:
    """In two parts; a write that is repeated adds nothing."""
    messages = [*map(bytes, read_capture("18-pgoutput-4").messages)]
    write, chunks = LAYOUTS[layout]
    for share in (0.5, 1.0, 1.0):
        some = messages[: int(len(messages) * share)]
        path = write({"one": some}, tmp_path / f"raw {share}{len(list(tmp_path.iterdir()))}", Random(3))
        df = spark.read.parquet(path)
        options = {"order_by": [OFFSET], "chunks": chunks, "mode": "PERMISSIVE"}
        capture = spark_udfs.capture(df, "value", "pgoutput", **options)
        done = capture.write(str(tmp_path / "lake"), format=kind).collect()
    assert sum(row["rows"] for row in done) == 0
    wf.Capture(messages, "pgoutput", mode="PERMISSIVE").write(tmp_path / "one machine", format=kind)
    assert {*tables_of(tmp_path / "lake")} == {*tables_of(tmp_path / "one machine")} != set()
    for table in tables_of(tmp_path / "lake"):
        found, wanted = (sorted(map(repr, values(read(tmp_path / name, table)))) for name in ("lake", "one machine"))
        assert found == wanted, table
    position = wf.lake.position(tmp_path / "lake")
    assert position is not None
    assert position.delivered.lsn == wf.lake.position(tmp_path / "one machine").delivered.lsn


@pytest.mark.parametrize("write", [write_in_order, write_shuffled])
def test_write_the_tables_as_they_stand(spark: SparkSession, tmp_path: Path, write: Callable[..., str]) -> None:
    messages = streams_of("pgoutput")["generated 2"]
    for share in (0.5, 1.0):
        some = messages[: int(len(messages) * share)]
        path = write({"one": some}, tmp_path / f"raw {share}", Random(3))
        capture = spark_udfs.capture(spark.read.parquet(path), "value", "pgoutput", order_by=[OFFSET])
        capture.write(str(tmp_path / "lake"), format="delta", state="latest")
    one = wf.Capture(messages, "pgoutput")
    assert len(tables_of(tmp_path / "lake")) == 3
    for table in tables_of(tmp_path / "lake"):
        assert sorted(map(repr, values(read(tmp_path / "lake", table)))) == sorted(
            map(repr, values(one.latest(written(table))))
        )


@pytest.mark.parametrize(("kind", "state"), [("parquet", "changes"), ("delta", "latest")])
def test_a_later_write_knows_the_columns_of_the_lake(
    spark: SparkSession, tmp_path: Path, kind: str, state: str
) -> None:
    """GaussDB omits a value that was not sent, and no change of the second write has the column."""
    parts = [[INSERTED], [update("1", id="2", name="b")]]
    keys = {"keys": ["id"]} if state == "latest" else {}
    after = None
    for number, changes in enumerate(parts, 1):
        path = write_in_order({"one": messages_of([transaction(number, *changes)])}, tmp_path / str(number), Random(3))
        capture = spark_udfs.capture(
            spark.read.parquet(path), "value", "gaussdb-binary", order_by=[OFFSET], after=after
        )
        capture.write(str(tmp_path / "lake"), format=kind, state=state, **keys)
        after = wf.lake.position(tmp_path / "lake")
    last = read(tmp_path / "lake", ("public", "t")).to_pylist()[-1]
    wanted = ("TEXT", None) if state == "latest" else (None, ["body"])
    assert (last["id"], last["body"], last["_unchanged"]) == (2, *wanted)


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    messages = [*streams_of("pgoutput")["generated 1"]]
    commit = max(offset for offset, message in enumerate(messages) if message[0] == ord("I"))
    messages[commit] = messages[commit][:-1]
    path = write_in_order({"one": messages}, tmp_path / "raw", Random(3))
    capture = spark_udfs.capture(
        spark.read.parquet(path), "value", "pgoutput", order_by=[OFFSET], mode="PERMISSIVE", chunks=3
    )
    with pytest.raises((PythonException, wf.WireformatError)):
        capture.write(str(tmp_path / "lake"))
    with pytest.raises(wf.OptionError, match="expected a lake"):
        wf.lake.position(tmp_path / "lake")
    assert not [file for file in (tmp_path / "lake").rglob("*.parquet") if not file.name.startswith(".")]


@pytest.mark.parametrize(
    ("state", "layout"), [("changes", "in order"), ("changes", "many chunks"), ("latest", "shuffled")]
)
def test_write_several_streams(
    spark: SparkSession, tmp_path: Path, state: str, layout: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each has a lake of its own, which goes on by itself; the second stream begins later."""
    streams = {name: streams_of("pgoutput")[f"generated {number}"] for number, name in enumerate(("a", "B/../ü"))}
    kind = "delta" if state == "latest" else "parquet"
    folders = {"a": "a", "B/../ü": "~42~2F~2E~2E~2F~C3~BC"}
    write, chunks = LAYOUTS[layout]
    caplog.set_level("INFO", "spark_udfs")
    for number, share in enumerate((0.5, 1.0, 1.0)):
        some = {name: given[: int(len(given) * share)] for name, given in streams.items() if number or name == "a"}
        df = spark.read.parquet(write(some, tmp_path / f"raw {number}", Random(3)))
        capture = spark_udfs.capture(df, "value", "pgoutput", chunks=chunks, **PLACE)
        done = capture.write(tmp_path / "lakes", format=kind, state=state)
        assert done.columns[:3] == [STREAM, "table_schema", "table_name"]
        assert {row[STREAM] for row in done.collect()} <= {*some}
        read_messages = [f'stream ["{name}"]: read {len(given)} messages' for name, given in some.items()]
        assert all(words in caplog.text for words in read_messages)
    assert state == "latest" or done.where("rows > 0").count() == 0
    for name, messages in streams.items():
        one = wf.Capture(messages, "pgoutput")
        one.write(tmp_path / "one" / folders[name], format=kind, state=state)
        lake, wanted = tmp_path / "lakes" / folders[name], tmp_path / "one" / folders[name]
        assert wf.lake.position(lake).delivered.lsn == wf.lake.position(wanted).delivered.lsn
        assert {*tables_of(lake)} == {*tables_of(wanted)} != set()
        for table in tables_of(wanted):
            assert sorted(map(repr, values(read(lake, table)))) == sorted(map(repr, values(read(wanted, table))))


def test_a_write_with_options_of_other_tables_is_an_error(
    one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path
) -> None:
    df, _ = one_stream
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    with pytest.raises(wf.OptionError, match=r"option schemas: .* no changes of shop\.order, did"):
        capture.write(tmp_path / "lake", schemas={"shop.order": {"id": "int"}})


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_lake_keeps_its_tables(one_stream: tuple[DataFrame, list[bytes]], tmp_path: Path, state: str) -> None:
    """Also one that another machine goes on with."""
    df, messages = one_stream
    options: dict[str, Any] = {"format": "delta", "state": state}
    capture = spark_udfs.capture(df, "value", "pgoutput", order_by=[OFFSET])
    capture.write(tmp_path, tables=["shop.orders_0"], **options)
    lsn = wf.lake.position(tmp_path).delivered.lsn
    for go_on in (capture, wf.Capture(messages, "pgoutput")):
        with pytest.raises(wf.OptionError, match=r"option tables: .*\['shop\.orders_0'\], got None"):
            go_on.write(tmp_path, **options)
    wf.Capture(messages, "pgoutput").write(tmp_path, tables=["shop.orders_0"], **options)
    assert wf.lake.position(tmp_path).delivered.lsn == lsn


def test_the_tables_of_each_stream(capture: spark_udfs.Capture, streams: dict[str, list[bytes]], format: str) -> None:
    names = ["table_schema", "table_name", "columns", "types", "key_columns"]
    wanted = of_one_machine(streams, format, lambda one: one.tables().select(names))
    assert_same(capture.tables().toArrow().select([STREAM, *names]), wanted)


@pytest.mark.slow
def test_local_relations_beside_files(one_stream: tuple[DataFrame, list[bytes]], spark: SparkSession) -> None:
    """In a union, rows that lie in the plan have the number of another partition."""
    df, messages = one_stream
    half = len(messages) // 2
    local = spark.createDataFrame(rows_of("one", messages, range(half)))
    both = local.unionAll(df.where(f"{OFFSET} >= {half}").select(*local.columns))
    rows_there(both, messages)


@pytest.mark.parametrize("chunks", [1, 2, 7, 300, MOST_CHUNKS])
def test_the_chunks_of_messages(spark: SparkSession, chunks: int) -> None:
    """Each has the messages from one start to the next, in the order of all columns."""
    places = [(f"é{number % 5}", number * 7919 % 10_007, -number) for number in range(10_007)]
    df = spark.createDataFrame(places, "stream string, offset int, part long")
    positions = PositionColumns.check(df, ["offset", "part"], ["stream"])
    rows = df.select("stream", "offset", "part", chunk_of(df, positions, chunks).alias("chunk")).collect()
    found = [chunk for *_, chunk in sorted(tuple(row) for row in rows)]
    assert found == sorted(found)
    sizes = [found.count(chunk) for chunk in range(chunks)]
    assert sum(sizes) == len(places)
    assert min(sizes) > 0
    assert max(sizes) < 3 * len(places) / chunks + 3
