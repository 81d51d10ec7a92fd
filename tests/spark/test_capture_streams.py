"""spark_udfs.capture of a streaming DataFrame: what it says in a batch, once each, however the stream is stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs.capture import StreamCapture
from spark_udfs.session import STATE_STORE
from spark_udfs.streams import StreamAnswers, _record_batches
from spark_udfs.streams.processor import Processor
from spark_udfs.streams.question import Question

from . import killed_capture
from .capture_streams import streams_of
from .raw_streams import OFFSET, PLACE, STREAM, Streams, assert_same, capture_of, expected, rows_of, spark_types, write
from .saved_query import KEPT, messages_of, restore

pytestmark = pytest.mark.spark

BEGUN = 1_700_000_000


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(rows: DataFrame, folder: Path) -> None:
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "found"))
    query.awaitTermination()


def found_rows(spark: SparkSession, folder: Path) -> pa.Table:
    """What lies in the sink; Spark leaves out what was written by a micro-batch that did not end."""
    return spark.read.parquet(str(folder / "found")).toArrow()


def write_in_files(streams: Streams, folder: Path, files: int, chance: Random) -> None:
    """Writes files of which each has the next messages of each stream, in any order."""
    tables: list[list[pa.Table]] = [[] for _ in range(files)]
    for name, messages in streams.items():
        bounds = [0, *sorted(chance.randint(0, len(messages)) for _ in range(files - 1)), len(messages)]
        for number, found in enumerate(tables):
            found.append(rows_of(name, messages, range(bounds[number], bounds[number + 1])))
    shuffled = []
    for found in tables:
        table = pa.concat_tables(found)
        rows = [*range(len(table))]
        chance.shuffle(rows)
        shuffled.append(table.take(rows))
    write(shuffled, folder)
    for number in range(files):
        os.utime(folder / f"{number:04}.parquet", (BEGUN + number, BEGUN + number))  # Spark reads the oldest first


def of_one_machine(streams: Streams, format: str, ask: Any) -> pa.Table:
    return expected(streams, lambda _, messages: ask(capture_of(messages, format)))


@pytest.mark.parametrize("format", ["pgoutput", pytest.param("gaussdb-binary", marks=pytest.mark.slow)])
def test_a_stream_that_stops_and_goes_on(spark: SparkSession, format: str, tmp_path: Path) -> None:
    streams = dict([*streams_of(format).items()][4:8])
    write_in_files(streams, tmp_path / "all", 3, Random(format))
    (tmp_path / "rows").mkdir()
    for files in ([0], [1, 2]):
        for number in files:
            shutil.copy2(tmp_path / "all" / f"{number:04}.parquet", tmp_path / "rows")
        capture = spark_udfs.capture(read_stream(spark, tmp_path / "rows"), "value", format, **PLACE)
        run(capture.committed(), tmp_path)
    assert_same(found_rows(spark, tmp_path), of_one_machine(streams, format, lambda one: one.committed().read_all()))


VERSIONS = sorted(path.name for path in KEPT.glob("version-*"))
WRITTEN_BY = {"version-1": (4, 3)}
"""The version of Spark that wrote the checkpoint; older ones do not read it."""

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_checkpoint_goes_on(spark: SparkSession, version: str, tmp_path: Path) -> None:
    """Rows of messages in the state come out with those that follow; nothing comes again."""
    if WRITTEN_BY[version] > SPARK:
        pytest.skip("the checkpoint is of a newer Spark")
    restore(KEPT / version, tmp_path)
    before, after = messages_of(KEPT / version)
    run(spark_udfs.capture(read_stream(spark, tmp_path / "rows"), "value", "pgoutput", **PLACE).committed(), tmp_path)
    found = [pq.read_table(path) for path in (tmp_path / "found").glob("*.parquet")]  # the sink's log has lost the rest
    first, whole = (
        of_one_machine({"one": messages}, "pgoutput", lambda one: one.committed().read_all())
        for messages in (before, [*before, *after])
    )
    assert sum(map(len, found)) > 5
    assert_same(
        pa.concat_tables([first.cast(spark_types(first)), *[rows.cast(spark_types(first)) for rows in found]]), whole
    )


def test_records_of_a_format_without_state(spark: SparkSession, tmp_path: Path) -> None:
    streams = streams_of("gaussdb-binary")
    write_in_files(streams, tmp_path / "rows", 1, Random(1))
    capture = spark_udfs.capture(read_stream(spark, tmp_path / "rows"), "value", "gaussdb-binary", **PLACE)
    run(capture.changes(columns=["kind", "new"]), tmp_path)
    assert not (tmp_path / "checkpoint" / "state").exists()

    def changes(one: wf.Capture) -> pa.Table:
        rows = one.changes(columns=["message", "kind", "new"]).read_all()
        return rows.rename_columns([OFFSET, "kind", "new"])

    assert_same(found_rows(spark, tmp_path), of_one_machine(streams, "gaussdb-binary", changes))


class Value:
    """A ValueState."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class Pieces(dict[tuple[int], tuple[bytes]]):
    """A MapState."""

    getValue = dict.get  # noqa: N815 - Spark's names
    updateValue = dict.__setitem__  # noqa: N815
    removeKey = dict.__delitem__  # noqa: N815


class States:
    """The state of one stream, which outlives the processors."""

    def __init__(self, stream: str, question: Question) -> None:
        self.stream, self.question = stream, question
        self.value, self.pieces = Value(), Pieces()

    def getValueState(self, name: str, schema: str) -> Value:  # noqa: N802
        return self.value

    def getMapState(self, name: str, key: str, schema: str) -> Pieces:  # noqa: N802
        return self.pieces

    def take(self, messages: Sequence[bytes], offsets: Sequence[int]) -> pa.Table:
        """Returns what a micro-batch gives."""
        processor = Processor(self.question)
        processor.init(self)  # type: ignore[arg-type]
        frame = pd.DataFrame({"o0": offsets, "message": [messages[offset] for offset in offsets]})
        halves = [frame.iloc[::2], frame.iloc[1::2]]
        frames = processor.handleInputRows((self.stream,), iter(halves), None)
        schema = self.question.result
        found = [
            pa.Table.from_arrays([frame[at].array.__arrow_array__() for at in frame], schema=schema) for frame in frames
        ]
        return pa.concat_tables([schema.empty_table(), *found])


@pytest.fixture
def ask(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Returns a function that makes a capture whose answers are what the workers get, and its rows."""
    write([rows_of("none", [b""], range(1))], tmp_path / "rows")
    rows = read_stream(spark, tmp_path / "rows")
    monkeypatch.setattr(StreamCapture, "_answer", StreamAnswers._question)
    return lambda format, **options: spark_udfs.capture(rows, "value", format, **{**PLACE, **options})


def in_micro_batches(streams: Streams, question: Question, chance: Random, count: int = 3) -> pa.Table:
    """Returns what all streams give, in micro-batches whose messages come in any order."""
    found = []
    for name, messages in streams.items():
        states = States(name, question)
        bounds = [0, *sorted(chance.randint(0, len(messages)) for _ in range(count - 1)), len(messages)]
        for start, stop in pairwise(bounds):
            offsets = [*range(start, stop)]
            chance.shuffle(offsets)
            if offsets:
                found.append(states.take(messages, offsets))
    return pa.concat_tables(found)


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "changes": lambda one: one.changes(columns=["kind", "table_name", "new"], kinds=["INSERT", "UPDATE"]),
    "messages": lambda one: one.messages(),
    "committed": lambda one: one.committed(tables=["shop.orders_1"]),
    "typed": lambda one: one.typed(
        "shop.orders_1", schema={"id": "bigint", "status": "text", "total": "numeric(20,4)"}
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_reads_nothing_before_its_query_starts(spark: SparkSession, tmp_path: Path, name: str) -> None:
    write([rows_of("none", [b""], range(1))], tmp_path / "rows")
    rows = read_stream(spark, tmp_path / "rows")
    asked = spark_udfs.capture(rows, "value", "pgoutput", **PLACE)
    assert QUESTIONS[name](asked).isStreaming


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("wireformat.chunks.micro_batches.PIECE_BYTES", 1 << 12)
    format = "test-decoding" if name == "messages" else "pgoutput"
    streams = dict([*streams_of(format).items()][-7:])
    question = QUESTIONS[name]

    def wanted(one: wf.Capture) -> pa.Table:
        if name != "changes":
            return question(one).read_all()
        rows = one.changes(columns=["message", "kind", "table_name", "new"], kinds=["INSERT", "UPDATE"]).read_all()
        return rows.rename_columns([OFFSET, "kind", "table_name", "new"])

    found = in_micro_batches(streams, question(ask(format)), Random(name))
    assert len(found) > 20
    assert_same(found, of_one_machine(streams, format, wanted))


OPEN = [*wf.encode([wf.Begin(xid=5), wf.Insert(table_schema="s", table_name="t"), wf.Commit(xid=5)], "test-decoding")]


def test_messages_that_come_late_or_twice(ask: Callable[..., Any]) -> None:
    states = States("one", ask("test-decoding").committed())
    assert len(states.take(OPEN, [0, 1])) == 0
    assert len(states.pieces) == 1
    with pytest.raises(
        wf.OrderError, match=r"stream \[\"one\"\] that follow .* a message at offset=1 after one at offset=1"
    ):
        states.take(OPEN, [1, 2])
    with pytest.raises(wf.BadRows, match=r"two messages at stream='?one'?, offset=2"):
        states.take(OPEN, [2, 2])
    other = ask("test-decoding", two_phase="prepare").committed()
    with pytest.raises(
        wf.OptionError, match="option two_phase: expected the one with which the query was begun, 'commit'"
    ):
        _with(states, other).take(OPEN, [2])
    with pytest.raises(wf.OptionError, match=r"option format: .* 'test-decoding', got 'pgoutput'"):
        _with(states, ask("pgoutput").changes()).take(OPEN, [2])
    assert states.take(OPEN, [2])["xid"].to_pylist() == [5]
    assert not states.pieces


def _with(states: States, question: Question) -> States:
    other = States(states.stream, question)
    other.value, other.pieces = states.value, states.pieces
    return other


def test_the_question_may_change_where_a_stream_goes_on(ask: Callable[..., Any]) -> None:
    """The state has raw messages, whatever was asked."""
    states = States("one", ask("test-decoding").committed(tables=["a.b"]))
    assert len(states.take(OPEN, [0, 1])) == 0
    states.question = ask("test-decoding").committed()
    assert len(states.take(OPEN, [2])) == 1


def test_one_stream(ask: Callable[..., Any]) -> None:
    states = States("", ask("test-decoding", stream_by=[]).committed())
    assert states.take(OPEN, [1, 2, 0])["xid"].to_pylist() == [5]


def test_any_names_of_positions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also `message`, which positions have with paths, and names that the workers use."""
    write([rows_of("none", [b""], range(1))], tmp_path / "rows")
    rows = read_stream(spark, tmp_path / "rows")
    monkeypatch.setattr(StreamCapture, "_answer", StreamAnswers._question)
    messages = [*map(bytes, wf.encode(wf.testing.stream(2, 2, seed=3, format="gaussdb-binary"), "gaussdb-binary"))]
    offsets = range(len(messages))
    batch = pa.record_batch([pa.repeat("one", len(messages)), pa.array(offsets), pa.array(messages)], ["s0", "o0", "m"])
    for name in ("message", "kind", "payload", "s0", "s"):
        options = {"stream_by": [STREAM], "order_by": [name]}
        capture = spark_udfs.capture(rows.withColumnRenamed(OFFSET, name), "value", "gaussdb-binary", **options)
        asked: Any = capture.changes(columns=["xid"])
        found = pa.Table.from_batches(_record_batches(asked, [batch]))
        assert found.column_names == [STREAM, name, "xid"]
        assert {*found[name].to_pylist()} == {*offsets}
        assert len(States("one", capture.committed()).take(messages, offsets)) > 0  # type: ignore[arg-type]


def test_what_the_workers_log(ask: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    (ended,) = wf.encode([wf.CommitPrepared(gid="g", xid=5)], "test-decoding")
    states = States("one", ask("test-decoding", mode="DROPMALFORMED").committed())
    assert len(states.take([ended, b"table public.t: NOTHING"], [0, 1])) == 0
    assert 'stream ["one"]: transactions ended that were not prepared before, nothing is delivered' in caplog.text
    assert 'stream ["one"]: DROPMALFORMED left out 1 record' in caplog.text


def test_errors_name_the_position(ask: Callable[..., Any]) -> None:
    states = States("one", ask("test-decoding").committed())
    with pytest.raises(wf.DecodeError, match="stream=one, offset=2"):
        states.take([*OPEN[:2], b"table public.t: NOTHING"], [0, 1, 2])


def test_what_a_stream_cannot_answer(spark: SparkSession, set_conf: Callable[[str, Any], None], tmp_path: Path) -> None:
    write([rows_of("none", [b""], range(1))], tmp_path / "rows")
    rows = read_stream(spark, tmp_path / "rows")
    capture = spark_udfs.capture(rows, "value", "pgoutput", **PLACE)
    for name in ("tables", "open"):
        with pytest.raises(wf.OptionError, match=f"{name}: expected a batch, got a streaming DataFrame: "):
            getattr(capture, name)()
    with pytest.raises(wf.OptionError, match=r"latest: .* with foreachBatch"):
        capture.latest("a.b", keys=["id"])
    with pytest.raises(wf.OptionError, match=r"write: .* with foreachBatch"):
        capture.write(tmp_path / "lake")
    for name in ("position", "unknown_prepared", "dropped"):
        with pytest.raises(wf.OptionError, match=f"{name}: expected a batch"):
            getattr(capture, name)
    with pytest.raises(wf.OptionError, match=r"option schema: .* before its first message; pass schema: a mapping"):
        capture.typed("a.b")
    for option, value in (("after", "{}"), ("chunks", 3)):
        with pytest.raises(wf.OptionError, match=f"option {option}: expected None for a streaming DataFrame"):
            spark_udfs.capture(rows, "value", "pgoutput", **PLACE, **{option: value})
    set_conf(STATE_STORE, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(wf.OptionError, match=f"set {STATE_STORE} to"):
        capture.committed()


KILLS = 2


@contextmanager
def query(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, with all that it starts in a group of its own."""
    command = [sys.executable, "-m", "tests.spark.killed_capture", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(command, cwd=folder, env=env, stderr=errors, text=True, start_new_session=True)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def micro_batches(folder: Path) -> int:
    """How many the query has begun."""
    planned = folder / "checkpoint" / "offsets"
    return len([path for path in planned.iterdir() if path.name.isdigit()]) if planned.exists() else 0


@pytest.mark.slow
def test_killed_at_any_moment_it_delivers_once(spark: SparkSession, tmp_path: Path) -> None:
    """The process and its JVM are killed at random moments after the start of a micro-batch, and started again."""
    streams = streams_of("pgoutput")
    write_in_files(streams, tmp_path / "rows", 6, Random(6))
    chance = Random()
    killed = 0
    for _ in range(KILLS):
        begun = micro_batches(tmp_path)
        with query(tmp_path) as process:
            while micro_batches(tmp_path) == begun and process.poll() is None:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 1.5))
            killed += process.poll() is None
    assert killed, "the query ended before it could be killed"
    killed_capture.main(tmp_path)
    wanted = of_one_machine(streams, "pgoutput", lambda one: one.committed().read_all())
    assert_same(found_rows(spark, tmp_path), wanted)
