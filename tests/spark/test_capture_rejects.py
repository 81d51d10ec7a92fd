"""write(rejects=…) keeps what cannot be read or does not fit; lake and counts are those of wf.Capture."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf

from ..lake.reading import read, tables_of, values
from .raw_streams import OFFSET, write_in_order, write_shuffled

pytestmark = pytest.mark.spark

FORMAT = "pgoutput"
SCHEMAS = {"shop.orders_0": {"id": "bigint", "status": "date"}}
LAYOUTS: dict[str, Any] = {"in order": (write_in_order, None), "many chunks": (write_shuffled, 7)}


def messages() -> list[bytes]:
    """A stream with an open transaction at its end, among whose messages are some that cannot be read."""
    found = [*map(bytes, wf.encode(wf.testing.stream(2, 60, seed=7, format=FORMAT), FORMAT))]
    chance = Random(5)
    for _ in range(4):
        found.insert(chance.randrange(len(found)), b"I\0")
    commit = max(at for at, message in enumerate(found) if message[:1] == b"C")
    return found[:commit]


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def named_by_offset(rejects: pa.Table) -> pa.Table:
    """Returns the rejects of one machine as those of a DataFrame, whose messages have offsets."""
    rows = rejects.to_pylist()
    errors = [row["error"].replace(f": message {row['message']},", f": {OFFSET}={row['message']},") for row in rows]
    named = rejects.set_column(rejects.column_names.index("error"), "error", pa.array(errors))
    return named.rename_columns({"message": OFFSET})


@pytest.mark.parametrize(
    ("layout", "mode", "state"),
    [
        ("in order", "PERMISSIVE", "changes"),
        ("many chunks", "DROPMALFORMED", "changes"),
        ("many chunks", "PERMISSIVE", "latest"),
    ],
)
def test_rejects(spark: SparkSession, tmp_path: Path, layout: str, mode: str, state: str) -> None:
    make, chunks = LAYOUTS[layout]
    sent = messages()
    options: dict[str, Any] = {"schemas": SCHEMAS, "state": state}
    wanted = wf.Capture(sent, FORMAT, mode=mode).write(tmp_path / "one", rejects=tmp_path / "one.parquet", **options)
    df = spark.read.parquet(make({"one": sent}, tmp_path / "raw", Random(2)))
    capture = spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET], chunks=chunks, mode=mode)
    found = capture.write(tmp_path / "lake", rejects=tmp_path / "rejects", **options).toArrow()
    counts = [name for name in wanted.column_names if name not in ("folder", "files")]
    assert found.select(counts).to_pylist() == wanted.select(counts).to_pylist()
    assert sum(found["open"].to_pylist()) > 0
    assert sum(found["corrupt"].to_pylist()) > 4
    for table in tables_of(tmp_path / "one"):
        one, other = (sorted(map(repr, values(read(tmp_path / name, table)))) for name in ("one", "lake"))
        assert other == one
    rejects = named_by_offset(pq.read_table(tmp_path / "one.parquet"))
    assert len({*rejects["kind"].to_pylist()}) > 1
    assert rows_of(pq.read_table(tmp_path / "rejects")) == rows_of(rejects)
    shutil.rmtree(tmp_path / "lake")
    again = capture.write(tmp_path / "lake", rejects=tmp_path / "rejects", **options)
    assert again.count() == found.num_rows
    assert rows_of(pq.read_table(tmp_path / "rejects")) == rows_of(rejects)


def test_rejects_of_files(spark: SparkSession, tmp_path: Path) -> None:
    """`message` is the index in all files."""
    sent = messages()
    tables = [pa.table({"payload": pa.array(sent[at : at + 50], pa.binary())}) for at in range(0, len(sent), 50)]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number:02}.parquet")
    paths = sorted(tmp_path.glob("*.parquet"))
    capture = spark_udfs.capture(paths=paths, format=FORMAT, mode="PERMISSIVE")
    capture.write(tmp_path / "lake", rejects=tmp_path / "rejects")
    wf.Capture(sent, FORMAT, mode="PERMISSIVE").write(tmp_path / "one", rejects=tmp_path / "rejects.parquet")
    found, wanted = (pq.read_table(tmp_path / name) for name in ("rejects", "rejects.parquet"))
    assert found.schema.remove_metadata() == wanted.schema.remove_metadata()
    assert rows_of(found) == rows_of(wanted)
    assert len(found) > 1


def test_failfast_rejects_nothing(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([], f"{OFFSET} long, value binary")
    with pytest.raises(wf.OptionError, match="option rejects"):
        spark_udfs.capture(df, "value", FORMAT, order_by=[OFFSET]).write(tmp_path / "a", rejects=tmp_path / "b")
