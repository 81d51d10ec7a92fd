"""`spark.readStream.format("wireformat")` on a slot of a real server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import wireformat as wf

from ..spark.conftest import spark
from .databases import Database

__all__ = ["spark"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # each query starts processes of Python; see test_slot_ranges

SECRET = "a-secret-word"

Sink = Callable[[DataFrame, int], Any]


class Stream:
    """A stream from the slot of a database into a list of batches."""

    def __init__(self, spark: SparkSession, db: Database, folder: Path) -> None:
        self.spark = spark
        self.db = db
        self.checkpoint = str(folder / "checkpoint")
        self.batches: list[pa.Table] = []
        wf.live.create_slot(db.dsn, db.slot)

    def load(self, schema: str | None = None, **options: str) -> DataFrame:
        given = {
            "url": f"{self.db.dsn} password={SECRET}",
            "slot": self.db.slot,
            "publication": "p",
            "reconnectSeconds": "5",
            **options,
        }
        reader = self.spark.readStream.format("wireformat").options(**given)
        return (reader if schema is None else reader.schema(schema)).load()

    def run(self, frame: DataFrame, sink: Sink | None = None) -> Any:
        """Reads what there is; returns the last progress."""
        found = frame.writeStream.foreachBatch(sink or self.keep).option("checkpointLocation", self.checkpoint)
        query = found.trigger(availableNow=True).start()
        query.awaitTermination()
        return query.lastProgress

    def keep(self, rows: DataFrame, number: int) -> None:
        self.batches.append(rows.toArrow())

    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches for row in batch.to_pylist()]


@pytest.fixture
def stream(spark: SparkSession, db: Database, tmp_path: Path) -> Stream:
    return Stream(spark, db, tmp_path)


def test_changes_of_all_tables(stream: Stream) -> None:
    """Whole transactions, at least one a batch; the next run goes on where this one ended; the server forgets them."""
    db = stream.db
    for id in range(3):
        db.execute(f"insert into t select {id} * 100 + i, 'name', 1 from generate_series(1, 10) i")
    db.execute("begin", "delete from t where id > 205", "rollback", "update t set name = 'é' where id = 1")
    frame = stream.load(maxRowsPerTrigger="15")
    stream.run(frame)
    rows = stream.rows()
    assert [batch.num_rows for batch in stream.batches if batch.num_rows] == [10, 10, 11]
    assert [row["kind"] for row in rows] == ["INSERT"] * 30 + ["UPDATE"]
    assert [row["sequence"]["ordinal"] for row in rows] == [*range(10)] * 3 + [0]
    assert dict(rows[-1]["new"])["name"] == "é"
    assert len({tuple(row["sequence"].values()) for row in rows}) == 31
    confirmed = db.confirmed()
    assert confirmed > max(row["commit_lsn"] for row in rows)

    stream.batches.clear()
    db.execute("insert into t values (1000, 'later', 1)")
    stream.run(frame)
    assert [dict(row["new"])["id"] for row in stream.rows()] == ["1000"]
    assert db.confirmed() > confirmed


def test_typed_changes_of_a_table(stream: Stream) -> None:
    """Every kind of column is as a capture of the same messages has it; the catalogue says which columns there are."""
    db = stream.db
    db.execute("create type mood as enum ('fine')")
    db.execute("create table other (id int)", "alter publication p add table other")
    db.execute("create table wide (id bigint primary key, at timestamptz, day date, hour time, tags text[], m mood)")
    db.execute("alter publication p add table wide", "insert into other values (7)")
    db.execute("insert into wide values (1, '2026-01-02 03:04:05+00', '2026-01-02', '03:04', '{a,b}', 'fine')")
    db.execute("update wide set m = null")
    frame = stream.load(table="public.wide")
    names = ["id", "at", "day", "hour", "tags", "m"]
    kinds = ["bigint", "timestamp", "date", "string", "array<string>", "string"]
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema][:6] == [
        *zip(names, kinds, strict=True)
    ]
    stream.run(frame)
    first, second = stream.rows()
    assert (first["id"], first["hour"], first["tags"], first["m"]) == (1, "03:04:00", ["a", "b"], "fine")
    assert first["at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert (second["_change_type"], second["m"], second["hour"]) == ("update", None, "03:04:00")


def test_publications_with_filters_columns_and_origin(stream: Stream) -> None:
    """The columns are those that are published, and the rows too; `origin` leaves out what another server has sent."""
    db = stream.db
    db.execute("create table wide (id int primary key, seen text, secret text)")
    db.execute("create publication part for table wide (id, seen) where (id > 10)")
    db.execute(
        "insert into wide values (5, 'a', 'x'), (50, 'b', 'y')",
        "update wide set id = 60 where id = 5",  # comes into the filter
        "update wide set id = 6 where id = 50",  # leaves it
        f"select pg_replication_origin_create('o{db.name}')",
        f"select pg_replication_origin_session_setup('o{db.name}')",
        "insert into wide values (70, 'from elsewhere', 'z')",
        "select pg_replication_origin_session_reset()",
    )
    frame = stream.load(table="public.wide", publication="part", origin="none")
    assert [field.name for field in frame.schema][:2] == ["id", "seen"]
    assert "secret" not in frame.schema.fieldNames()
    stream.run(frame)
    assert [(row["_change_type"], row["id"], row["seen"]) for row in stream.rows()] == [
        ("insert", 50, "b"),
        ("insert", 60, "a"),
        ("delete", 50, None),
    ]
    db.execute(f"select pg_replication_origin_drop('o{db.name}')")


def test_columns_of_ones_own(stream: Stream) -> None:
    stream.db.execute("insert into t values (1, 'a', 2.5)")
    frame = stream.load("id bigint, price double, _change_type string", table="public.t")
    stream.run(frame)
    assert stream.rows() == [{"id": 1, "price": 2.5, "_change_type": "insert"}]
    stream.checkpoint += "2"
    with pytest.raises(PySparkException, match="no column 'prize'"):
        stream.run(stream.load("id bigint, prize double", table="public.t"))


def test_a_batch_that_fails_comes_again_as_it_was(stream: Stream) -> None:
    """The end that was logged holds, whatever came since; the slot stays where the sink is."""
    db = stream.db
    db.execute("insert into t values (1, 'a', 1)", "insert into t values (2, 'b', 2)")
    frame, begun = stream.load(table="public.t"), stream.db.confirmed()
    seen: list[list[int]] = []

    def fail(rows: DataFrame, number: int) -> None:
        seen.append([row.id for row in rows.collect()])
        raise RuntimeError("the sink is down")

    with pytest.raises(PySparkException, match="the sink is down") as caught:
        stream.run(frame, fail)
    assert SECRET not in str(caught.value)
    assert db.confirmed() == begun
    db.execute("insert into t values (3, 'c', 3)")
    stream.run(stream.load(table="public.t"))
    first, *rest = [batch["id"].to_pylist() for batch in stream.batches if batch.num_rows]
    assert ([first], rest) == (seen, [[3]])


def test_a_table_that_gets_a_column(stream: Stream) -> None:
    """A column that the rows of the query do not have is an error, and not left out; a new query has it."""
    frame = stream.load(table="public.t")
    stream.db.execute("alter table t add column added int", "insert into t values (1, 'a', 1, 5)")
    with pytest.raises(PySparkException, match=r"also added.*; start the query again"):
        stream.run(frame)
    stream.run(stream.load(table="public.t"))
    assert [(row["id"], row["added"]) for row in stream.rows()] == [(1, 5)]


def test_progress_and_an_idle_slot(stream: Stream) -> None:
    """A slot moves although nothing in it changes, and the progress says how far behind it is."""
    db = stream.db
    begun = db.confirmed()
    db.execute("create table unpublished (id int)", "insert into unpublished values (1)")
    progress = stream.run(stream.load())
    assert db.confirmed() > begun
    (source,) = progress.sources
    assert re.search(r'"lag_bytes": ?0\b', str(source.latestOffset))
    assert stream.rows() == []
    frame = stream.load()
    shown = [str(progress.json), frame._jdf.queryExecution().toString()]  # type: ignore[operator]
    written = [
        path.read_text() for path in Path(stream.checkpoint).rglob("*") if path.is_file() and path.suffix != ".crc"
    ]
    assert written
    assert not [text for text in (*shown, *written) if SECRET in text]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slot": "", "publication": "p"}, "option slot: a stream needs its name"),
        ({"slot": "nothing"}, "slot: nothing does not exist; create it with wireformat.live.create_slot"),
        ({"publication": "nothing"}, "publication: nothing does not exist"),
        ({"table": "public.nothing"}, "option table: p does not publish public.nothing.*it publishes: public.t"),
    ],
)
def test_what_is_not_there(stream: Stream, options: dict[str, str], words: str) -> None:
    with pytest.raises(PySparkException, match=words):
        stream.run(stream.load(**options))


def test_a_slot_that_somebody_advanced(stream: Stream) -> None:
    db = stream.db
    frame = stream.load()
    db.execute("insert into t values (1, 'a', 1)")
    stream.run(frame)
    db.execute("insert into t values (2, 'b', 2)")
    db.execute(f"select pg_replication_slot_advance('{db.slot}', pg_current_wal_lsn())")
    with pytest.raises(PySparkException, match=r"advanced by another client.*start with a new checkpoint"):
        stream.run(frame)
