"""transactions of a streaming DataFrame: the same as in a batch, and once each, also if the query is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf
from spark_udfs import streaming
from spark_udfs.session import STATE_STORE

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
BEGUN = 1_700_000_000


def write_in_files(rows: pa.Table, folder: Path, files: int) -> None:
    """Each stream is cut between any of its messages; each file holds a piece of each stream, in any order."""
    chance = Random(files)
    pieces: list[list[pa.Table]] = [[] for _ in range(files)]
    for _, own in each_stream(rows):
        offsets = own[OFFSET].to_pylist()
        bounds = [i for i in range(1, len(offsets)) if offsets[i] != offsets[i - 1]]
        cuts = sorted(chance.choices([0, len(offsets), *bounds], k=files - 1))
        for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(offsets)], strict=True)):
            pieces[number].append(own.slice(start, stop - start))
    for number, parts in enumerate(pieces):
        path = Path(write_shuffled(pa.concat_tables(parts), folder / f"piece {number}", 1)) / "0.parquet"
        path.rename(folder / f"{number}.parquet")
        path.parent.rmdir()
        os.utime(folder / f"{number}.parquet", (BEGUN + number, BEGUN + number))  # Spark reads the oldest first


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


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    captures = {
        name: found for name, found in captured().items() if name.endswith(("live", "two-phase", "3-streaming"))
    }
    return one_table({**generated(60), **captures})


@pytest.mark.parametrize("options", [{}, {"two_phase": "prepare", "drop_resent": False}], ids=["default", "others"])
def test_each_stream_gives_what_it_gives_in_arrow(
    spark: SparkSession, rows: pa.Table, tmp_path: Path, options: dict[str, Any]
) -> None:
    write_in_files(rows, tmp_path / "rows", 3)
    run(spark_udfs.transactions(read_stream(spark, tmp_path / "rows"), **PLACE, **options), tmp_path)
    assert_same(found_rows(spark, tmp_path), expected(rows, **options))


def test_rows_that_come_late_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    events: list[wf.Event] = [wf.Begin(xid=1), wf.Insert(table_schema="s", table_name="t"), wf.Commit(xid=1)]
    found = one_table({"one": table(events)})
    for number, piece in enumerate((found.slice(1), found.slice(0, 1))):
        write_shuffled(piece.slice(0, 1) if number else found.slice(0, 2), tmp_path / f"piece {number}", 1)
        (tmp_path / "rows").mkdir(exist_ok=True)
        path = (tmp_path / f"piece {number}" / "0.parquet").rename(tmp_path / "rows" / f"{number}.parquet")
        os.utime(path, (BEGUN + number, BEGUN + number))
    with pytest.raises(
        StreamingQueryException, match=r"bad order: .*stream \[\"one\"\].* a row at offset=0, record=0 after one at"
    ):
        run(spark_udfs.transactions(read_stream(spark, tmp_path / "rows"), **PLACE), tmp_path)


def test_the_state_store_must_be_rocksdb(
    spark: SparkSession, set_conf: Callable[[str, Any], None], rows: pa.Table, tmp_path: Path
) -> None:
    write_in_files(rows, tmp_path / "rows", 1)
    changes = read_stream(spark, tmp_path / "rows")
    with pytest.raises(wf.OptionError, match="open_transactions: expected a batch"):
        spark_udfs.open_transactions(changes, **PLACE)
    with pytest.raises(wf.OptionError, match="unknown_prepared: expected a batch"):
        spark_udfs.unknown_prepared(changes, **PLACE)
    set_conf(STATE_STORE, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(wf.OptionError, match=f"set {STATE_STORE} to"):
        spark_udfs.transactions(changes, **PLACE)


class Pieces:
    """A MapState that counts what is done with it."""

    def __init__(self) -> None:
        self.values: dict[tuple[int], tuple[bytes]] = {}
        self.written = self.read = 0

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:  # noqa: N802 - Spark's name
        assert key not in self.values, "a piece is rewritten"
        self.values[key] = value
        self.written += 1

    def getValue(self, key: tuple[int]) -> tuple[bytes]:  # noqa: N802
        self.read += 1
        return self.values[key]

    def removeKey(self, key: tuple[int]) -> None:  # noqa: N802
        del self.values[key]


def test_pieces_go_to_the_state_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends in its micro-batch never gets there, unless it is large."""
    rows = pa.record_batch({"value": ["one", "two"]})
    pieces = Pieces()
    held = streaming.Held(pieces, 5)
    first, second = held.put(rows), held.put(rows.slice(1))
    held.drop(first)
    held.save()
    held.save()
    assert (first, second, held.number, pieces.written, list(pieces.values)) == (5, 6, 7, 1, [(6,)])
    other = streaming.Held(pieces, held.number)
    assert other.get(second).equals(rows.slice(1))
    other.drop(second)
    assert not pieces.values
    monkeypatch.setattr(streaming, "FRESH_BYTES", 0)
    assert other.get(other.put(rows)).equals(rows)
    assert (pieces.written, pieces.read) == (2, 2)


KILLS = 2
KILLED = ("16-pgoutput-4-two-phase", "18-pgoutput-3-streaming")


@contextmanager
def query(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, with all that it starts in a group of its own."""
    command = [sys.executable, "-m", "tests.spark.killed_query", str(folder)]
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
    """The process and its JVM are killed at random moments behind the start of a micro-batch, and started again."""
    rows = one_table({**generated(8), **{name: captured()[name] for name in KILLED}})
    write_in_files(rows, tmp_path / "rows", 6)
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
    with query(tmp_path) as process:
        assert process.wait() == 0, (tmp_path / "errors").read_text()
    assert_same(found_rows(spark, tmp_path), expected(rows))
