"""strict, exclude_users and skip_empty_xacts: the rows and errors of wf.Capture, however the messages are divided."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from wireformat.sources.find import natural_order

from ..chunks.test_records import events_of_users
from .raw_streams import OFFSET, PLACE, STREAM, assert_same, expected, write, write_in_order, write_shuffled

pytestmark = pytest.mark.spark

FORMAT = "gaussdb-binary"
STREAMS = {f"stream {seed}": events_of_users(seed) for seed in range(3)}
ALL: dict[str, Any] = {"strict": True, "skip_empty_xacts": True, "exclude_users": ["a"]}
LAYOUTS: dict[str, Any] = {"in order": (write_in_order, None), "many chunks": (write_shuffled, 7)}


def changes_of(messages: Any, **filters: Any) -> pa.Table:
    rows = wf.Capture(messages, FORMAT, **ALL).changes(**filters).read_all()
    return rows.add_column(0, OFFSET, rows["message"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    make, chunks = LAYOUTS[layout]
    df = spark.read.parquet(make(STREAMS, tmp_path / "raw", Random(layout)))
    capture = spark_udfs.capture(df, "value", FORMAT, chunks=chunks, **PLACE, **ALL)
    assert_same(capture.changes().toArrow(), expected(STREAMS, lambda _, messages: changes_of(messages)))
    of_table = capture.changes(tables=["s.t"], kinds=["BEGIN", "INSERT"]).toArrow()
    wanted = expected(STREAMS, lambda _, messages: changes_of(messages, tables=["s.t"], kinds=["BEGIN", "INSERT"]))
    assert len(wanted) > 0
    assert_same(of_table, wanted)
    committed = expected(STREAMS, lambda _, messages: wf.Capture(messages, FORMAT, **ALL).committed().read_all())
    assert 0 < len(committed) < len(expected(STREAMS, lambda _, one: wf.Capture(one, FORMAT).committed().read_all()))
    assert_same(capture.committed().toArrow(), committed)


def assert_same_place(error: wf.OrderError, wanted: wf.OrderError, folder: Path) -> None:
    """Compares the errors of files of one message each with that of the messages in a list."""
    assert (error.message, error.open, error.expected) == (wanted.message, wanted.open, wanted.expected)
    assert error.source is not None
    assert Path(error.source) == sorted(folder.iterdir(), key=natural_order)[error.message or 0]
    assert error.source_message == 0


def test_errors(spark: SparkSession, tmp_path: Path) -> None:
    """A COMMIT that is lost: the BEGIN after it is out of order, in another chunk."""
    messages = events_of_users(3)
    kinds = wf.arrow.changes(messages, FORMAT, columns=["message", "kind"]).to_pylist()
    commits = [row["message"] for row in kinds if row["kind"] == "COMMIT"]
    del messages[commits[4]]
    with pytest.raises(wf.OrderError) as one:
        wf.Capture(messages, FORMAT, strict=True).tables()
    assert one.value.open is not None
    parts = [pa.table({"payload": pa.array(messages[at : at + 1], pa.binary())}) for at in range(len(messages))]
    of_files = spark_udfs.capture(paths=write(parts, tmp_path / "files"), format=FORMAT, strict=True)
    for ask in (spark_udfs.Capture.tables, spark_udfs.Capture.changes):
        with pytest.raises(wf.OrderError) as other:
            ask(of_files)
        assert_same_place(other.value, one.value, tmp_path / "files")
    (tmp_path / "bin").mkdir()
    for at, message in enumerate(messages):
        (tmp_path / "bin" / f"{at}.bin").write_bytes(message)
    for ask in (spark_udfs.Capture.tables, spark_udfs.Capture.changes):
        with pytest.raises(wf.OrderError) as in_file:
            ask(spark_udfs.capture(paths=tmp_path / "bin", format=FORMAT, strict=True))
        assert_same_place(in_file.value, one.value, tmp_path / "bin")
    df = spark.read.parquet(write_in_order({"one": messages}, tmp_path / "raw", Random(1)))
    with pytest.raises(wf.OrderError) as named:
        spark_udfs.capture(df, "value", FORMAT, chunks=len(messages), **PLACE, strict=True).tables()
    assert named.value.note == f"{STREAM}=one, {OFFSET}={one.value.message}"
    begun = int(str(one.value.open).rpartition(" ")[2])
    assert str(named.value.open) == str(one.value.open).replace(f"message {begun}", f"{STREAM}=one, {OFFSET}={begun}")
