"""write(rejects=…) of several streams, and of streams that go on: each record that cannot be read is there once."""

from __future__ import annotations

from collections.abc import Sequence
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
from .raw_streams import OFFSET, PLACE, STREAM, Streams, rows_of, write
from .test_capture_rejects import FORMAT, LAYOUTS, SCHEMAS, named_by_offset

pytestmark = pytest.mark.spark

UNREADABLE = [b"I\0", b"~?", b"B"]


def damaged(seed: int) -> list[bytes]:
    """A stream among whose messages are some that cannot be read, of which many are equal."""
    found = [*map(bytes, wf.encode(wf.testing.stream(2, 25, seed=seed, format=FORMAT), FORMAT))]
    chance = Random(seed)
    for _ in range(20):
        found.insert(chance.randrange(len(found) + 1), chance.choice(UNREADABLE))
    return [*found, UNREADABLE[0]]


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def written_alone(messages: Sequence[bytes], folder: Path, **options: Any) -> pa.Table:
    """Writes a whole stream on one machine; returns its rejects."""
    capture = wf.Capture(messages, FORMAT, mode="PERMISSIVE")
    capture.write(folder / "lake", rejects=folder / "rejects.parquet", schemas=SCHEMAS, **options)
    return pq.read_table(folder / "rejects.parquet")


def unreadable(messages: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Where bytes are that cannot be read."""
    found = wf.arrow.changes(messages, FORMAT, mode="PERMISSIVE", columns=["message", "kind", "raw"]).to_pylist()
    return [(row["message"], row["raw"]) for row in found if row["kind"] in ("CORRUPT", "UNKNOWN")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_several_streams(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    streams = {name: damaged(seed) for seed, name in enumerate(("a", "b", "c"))}
    make, chunks = LAYOUTS[layout]
    df = spark.read.parquet(make(streams, tmp_path / "raw", Random(1)))
    capture = spark_udfs.capture(df, "value", FORMAT, mode="PERMISSIVE", chunks=chunks, **PLACE)
    done = capture.write(tmp_path / "lakes", rejects=tmp_path / "rejects", schemas=SCHEMAS).toArrow()
    for name, messages in streams.items():
        rejects = pq.read_table(tmp_path / "rejects" / name)
        wanted = named_by_offset(written_alone(messages, tmp_path / name))
        assert len({*wanted["kind"].to_pylist()}) > 1
        errors = [text.replace(f"{STREAM}={name}, ", "") for text in rejects["error"].to_pylist()]
        found = rejects.set_column(rejects.column_names.index("error"), "error", pa.array(errors))
        assert rows(found) == rows(wanted)
        bad = [(row[OFFSET], row["raw"]) for row in rejects.to_pylist() if row["raw"] is not None]
        assert sorted(bad) == unreadable(messages)
    own = {row[STREAM]: row["corrupt"] for row in done.to_pylist() if row["table_name"] is None}
    assert own == {name: len(unreadable(messages)) for name, messages in streams.items()}


def oldest_needed(messages: Sequence[bytes]) -> int:
    """Returns the index of the first message of what is open at the end."""
    capture = wf.Capture(messages, FORMAT, mode="DROPMALFORMED")
    begun = [row["message"] for row in capture.open().to_pylist()]
    return min(begun, default=len(messages))


@pytest.mark.parametrize(
    ("again", "state", "seed"),
    [("everything", "changes", 1), ("what is needed", "changes", 2), ("what is needed", "latest", 3)],
)
def test_going_on(spark: SparkSession, tmp_path: Path, again: str, state: str, seed: int) -> None:
    """In three parts, of which each begins where the one before it, or at the oldest message that is still needed."""
    streams: Streams = {name: damaged(seed + number) for number, name in enumerate(("a", "b"))}
    options: dict[str, Any] = {"state": state, "format": "delta" if state == "latest" else "parquet"}
    after = None
    counts = dict.fromkeys(streams, 0)
    begins = dict.fromkeys(streams, 0)
    for share in (0.4, 0.7, 1.0):
        ends = {name: int(len(messages) * share) for name, messages in streams.items()}
        tables = [rows_of(name, messages, range(begins[name], ends[name])) for name, messages in streams.items()]
        df = spark.read.parquet(write(tables, tmp_path / f"raw {share}"))
        capture = spark_udfs.capture(df, "value", FORMAT, mode="PERMISSIVE", chunks=3, after=after, **PLACE)
        done = capture.write(tmp_path / "lakes", rejects=tmp_path / "rejects", schemas=SCHEMAS, **options)
        for row in done.collect():
            counts[row[STREAM]] += row["corrupt"] if row["table_name"] is None else 0
        after = {(name,): wf.lake.position(tmp_path / "lakes" / name) for name in streams}
        if again == "what is needed":
            begins = {name: oldest_needed(messages[: ends[name]]) for name, messages in streams.items()}
    for name, messages in streams.items():
        rejects = pq.read_table(tmp_path / "rejects" / name).to_pylist()
        bad = [(row[OFFSET], row["raw"]) for row in rejects if row["raw"] is not None]
        assert sorted(bad) == unreadable(messages)
        assert counts[name] == len(bad)
        wanted = named_by_offset(written_alone(messages, tmp_path / name, **options)).to_pylist()
        others = ([row for row in found if row["raw"] is None] for found in (rejects, wanted))
        misfits, of_one = (
            [(row[OFFSET], row["record"], row["new"], row["error"]) for row in found] for found in others
        )
        assert sorted(map(repr, misfits)) == sorted(map(repr, of_one))
        for table in tables_of(tmp_path / name / "lake"):
            one, other = (
                values(read(path, table).select(["id", "status", "_sequence"]))  # others depend on where a write ends
                for path in (tmp_path / name / "lake", tmp_path / "lakes" / name)
            )
            assert other == one


def test_going_on_in_another_lake(spark: SparkSession, tmp_path: Path) -> None:
    """The first write to it leaves the rejects of the first write to the other lake where they are."""
    messages = damaged(1)
    after, begin = None, 0
    for number, share in enumerate((0.5, 1.0)):
        end = int(len(messages) * share)
        some = rows_of("one", messages, range(begin, end)).drop_columns([STREAM])
        df = spark.read.parquet(write([some], tmp_path / f"raw {share}"))
        capture = spark_udfs.capture(df, "value", FORMAT, mode="PERMISSIVE", order_by=[OFFSET], after=after)
        for _ in range(2):
            capture.write(tmp_path / f"lake {number}", rejects=tmp_path / "rejects")
            rejects = pq.read_table(tmp_path / "rejects").to_pylist()
            assert sorted((row[OFFSET], row["raw"]) for row in rejects) == unreadable(messages[:end])
        begin = oldest_needed(messages[:end])
        after = wf.lake.position(tmp_path / f"lake {number}")
