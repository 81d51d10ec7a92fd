"""strict, exclude_users and skip_empty_xacts in all questions of a batch: what wf.Capture answers, however the messages
are divided.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from wireformat.options.table_names import written

from ..chunks.test_records import events_of_users
from ..lake.reading import read, tables_of, values
from .raw_streams import PLACE, STREAM, Streams, assert_same, expected
from .test_capture_filters import ALL, LAYOUTS

pytestmark = pytest.mark.spark

KEYS = {"s.t": ["id"], "shop.orders_0": ["id"]}


def generated(seed: int, format: str) -> list[bytes]:
    """A stream with logical messages, in which an empty transaction precedes some of the others.

    If it were not left out, the one after it, with the same commit LSN, would be one that is sent again.
    """
    chance, found = Random(seed), []
    begun: list[wf.events.Event] = []
    for event in wf.testing.stream(2, 30, seed=seed, format=format):
        found.append(event)
        if event.kind == "BEGIN":
            begun = [event]
        elif event.kind == "COMMIT" and begun:
            first = found.index(begun[0])
            found.insert(len(found) - 1, wf.Message(lsn=1, transactional=True, prefix="in", content="a"))
            if chance.random() < 0.5:
                found[first:first] = [
                    begun[0],
                    event,
                    wf.Message(lsn=1, transactional=False, prefix="out", content="b"),
                ]
    return [*map(bytes, wf.encode(found, format))]


def with_open_end(messages: list[bytes], format: str) -> list[bytes]:
    """Returns messages up to a place where a transaction with rows is open."""
    for count in range(len(messages) - 1, 0, -1):
        if len(wf.Capture(messages[:count], format, **ALL).open()):
            return messages[:count]
    raise AssertionError(f"no open transaction in {format}")


@cache
def streams_of(format: str) -> Streams:
    made = {
        seed: events_of_users(seed, records=3 * seed or None) if format == "gaussdb-binary" else generated(seed, format)
        for seed in range(3)
    }
    return {f"stream {seed}": with_open_end(messages, format) for seed, messages in made.items()}


CASES = [
    ("gaussdb-binary", "in order", "s.t"),
    ("gaussdb-binary", "many chunks", "s.t"),
    ("pgoutput", "many chunks", "shop.orders_0"),
    pytest.param(("test-decoding", "in order", "shop.orders_0"), marks=pytest.mark.slow),
]


class Asked:
    """A capture on Spark, and the streams that one machine reads."""

    def __init__(self, capture: spark_udfs.Capture, format: str, table: str) -> None:
        self.capture, self.format, self.table = capture, format, table
        self.streams = streams_of(format)

    def one(self, messages: Any) -> wf.Capture:
        return wf.Capture(messages, self.format, threads=1, **ALL)

    def check(self, found: pa.Table, ask: Any) -> None:
        wanted = expected(self.streams, lambda _, messages: ask(self.one(messages)))
        assert len(wanted) > 0
        assert_same(found, wanted.cast(pa.schema([found.schema.field(name) for name in wanted.column_names])))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: " ".join(case[:2]))
def asked(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    format, layout, table = request.param
    write, chunks = LAYOUTS[layout]
    df = spark.read.parquet(write(streams_of(format), tmp_path_factory.mktemp("raw") / "files", Random(format)))
    return Asked(spark_udfs.capture(df, "value", format, chunks=chunks, **PLACE, **ALL), format, table)


def test_tables(asked: Asked) -> None:
    names = ["table_schema", "table_name", "version", "columns", "types", "key_columns", "changes"]
    asked.check(asked.capture.tables().toArrow().select([STREAM, *names]), lambda one: one.tables().select(names))


def test_open(asked: Asked) -> None:
    asked.check(asked.capture.open().toArrow(), lambda one: one.open())


def test_typed(asked: Asked) -> None:
    schema = asked.capture._listed.drop_columns(["first", "last"])
    nowhere = pa.array([None] * len(schema), pa.struct({"message": pa.int64(), "record": pa.int32()}))
    for name in ("first", "last"):
        schema = schema.append_column(name, nowhere)
    asked.check(
        asked.capture.typed(asked.table).toArrow(), lambda one: one.typed(asked.table, schema=schema).read_all()
    )


def test_latest(asked: Asked) -> None:
    schema = {"id": "bigint"}
    asked.check(
        asked.capture.latest(asked.table, keys=["id"], schema=schema).toArrow(),
        lambda one: one.latest(asked.table, keys=["id"], schema=schema),
    )


def test_messages(asked: Asked) -> None:
    wanted = expected(asked.streams, lambda _, messages: asked.one(messages).messages().read_all())
    assert {*wanted["transactional"].to_pylist()} == ({True, False} if asked.format != "gaussdb-binary" else set())
    assert_same(asked.capture.messages().toArrow(), wanted)


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_write(asked: Asked, tmp_path: Path, state: str) -> None:
    options: dict[str, Any] = {"state": state}
    if state == "latest" and asked.format != "pgoutput":
        options["keys"] = ["id"]
    done = asked.capture.write(tmp_path / "lakes", **options).toArrow()
    for name, messages in asked.streams.items():
        one = asked.one(messages)
        wanted = one.write(tmp_path / "one" / name, **options)
        counts = [column for column in wanted.column_names if column not in ("folder", "files")]
        found = [row for row in done.to_pylist() if row[STREAM] == name]
        assert sorted(repr([row[column] for column in counts]) for row in found) == sorted(
            repr([row[column] for column in counts]) for row in wanted.to_pylist()
        )
        lake = tmp_path / "lakes" / name.replace(" ", "~20")
        assert {*tables_of(lake)} == {*tables_of(tmp_path / "one" / name)} != set()
        for table in tables_of(lake):
            rows, others = (values(read(folder, table)) for folder in (lake, tmp_path / "one" / name))
            assert rows == others, written(table)
        position = wf.lake.position(lake)
        assert position is not None
        assert position.delivered == one.position.delivered
        assert {*position.open} == {*one.position.open}
