"""From raw messages to current tables on Spark: each table ends as the server has it, values compared as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf

from ..spark.conftest import set_conf, spark
from .captures import capture_names, read_capture, read_tables
from .conftest import Runs
from .current_tables import keys_of, lines, quoted, typed_rows
from .gaussdb_styles import STYLES, WITHOUT_COLUMNS, said_by_gaussdb
from .installations import installations
from .replica import Table
from .tables import Row, all_tables

__all__ = ["set_conf", "spark"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # a second session, beside the servers


@pytest.fixture(autouse=True)
def few_rows(set_conf: Callable[[str, Any], None]) -> None:
    """Many small queries: compiling them would take longer than running them."""
    set_conf("spark.sql.codegen.wholeStage", "false")
    set_conf("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    set_conf("spark.sql.adaptive.enabled", "false")
    set_conf("spark.sql.shuffle.partitions", 1)
    set_conf("spark.sql.inMemoryColumnarStorage.compressed", "false")
    set_conf("spark.sql.inMemoryColumnarStorage.batchSize", 500)  # sorted by table, most batches need not be read


@pytest.fixture(autouse=True)
def empty_cache(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


class Live(NamedTuple):
    """A slot that was read while the tables changed, and what the server holds now."""

    payloads: list[bytes]
    tables: dict[Table, list[Row]]


@pytest.fixture
def live(request: pytest.FixtureRequest) -> Live | None:
    """None where this server is not installed: the captures are there all the same."""
    if 18 not in installations():
        return None
    runs: Runs = request.getfixturevalue("runs")
    server, stream = runs(18)
    assert stream is not None
    with server.connect() as session:
        return Live(stream.payloads, all_tables(session))


READING, SLOT = "reading", "the slot"
STREAM = {"order_by": ["seq"], "stream_by": [READING]}

BY_PGOUTPUT = capture_names("pgoutput")
"""Every version of the protocol, streaming on and off, two-phase on and off, cells in text and binary form, live."""

BY_TEXT = [
    *(name for name in capture_names("test-decoding") if not name.endswith(("-streaming", "-all"))),
    *STYLES,
]
"""test_decoding where it sends rows, and GaussDB's styles: here no types have modifiers."""

PLAIN = "18-pgoutput-1"
"""What is said in GaussDB's styles."""

GAUSSDB: dict[str, Any] = {"include-timestamp": True, "sending-batch": 1}


def messages_of(reading: str) -> tuple[str, list[bytes]]:
    """The format of a reading of BY_TEXT, and its messages."""
    if reading not in STYLES:
        return "test-decoding", read_capture(reading).messages
    said = said_by_gaussdb(wf.decode(read_capture(PLAIN).messages, "pgoutput"), reading)
    return reading, list(wf.encode(said, reading, options=GAUSSDB))


def decoded(spark: SparkSession, format: str, readings: Mapping[str, list[bytes]]) -> DataFrame:
    """The records of some readings of one format, whose messages lie in three partitions."""
    parts = [
        pa.table({READING: [name] * len(found), "seq": range(len(found)), "payload": pa.array(found, pa.binary())})
        for name, found in readings.items()
    ]
    raw = spark.createDataFrame(pa.concat_tables(parts)).repartition(3)
    known = spark_udfs.relations(raw, "payload", **STREAM) if format == "pgoutput" else None
    return spark_udfs.decode(raw, "payload", format, keep=[READING, "seq"], relations=known)


@dataclass(frozen=True)
class Wanted:
    """What the tables have to be.

    servers    what each server holds
    readings   the server of each reading
    unsaid     tables that a reading cannot say, and columns of tables that it does not say as text
    """

    servers: Mapping[str, dict[Table, list[Row]]]
    readings: Mapping[str, str]
    unsaid: Set[tuple[str, Table] | tuple[str, Table, str]] = frozenset()


def assert_current(changes: DataFrame, wanted: Wanted) -> None:
    """Every table of the records ends as its server holds it, by each reading.

    In PERMISSIVE, for two tables have values of every type, also such that no type holds: these are null.
    """
    listed = spark_udfs.tables(changes, order_by=[READING, "seq"]).toArrow()
    names = {(row["table_schema"], row["table_name"]) for row in listed.to_pylist()}
    assert all(held.keys() <= names for held in wanted.servers.values())
    assert len(names) > 25
    rows = spark_udfs.transactions(changes, **STREAM).sort("table_schema", "table_name").cache()

    def check(table: Table) -> None:
        typed = spark_udfs.typed(rows, quoted(table), listed, mode="PERMISSIVE", keep=[READING]).cache()
        found = spark_udfs.latest(typed, keys_of(table), stream_by=[READING]).toArrow()
        typed.unpersist()
        assert_rows(table, found, listed, wanted)

    with ThreadPoolExecutor(2) as pool:  # one plans while the other runs
        assert len(list(pool.map(check, sorted(names)))) == len(names)


def assert_rows(table: Table, found: pa.Table, listed: pa.Table, wanted: Wanted) -> None:
    columns = pa.schema([field for field in found.schema if not field.name.startswith("_") and field.name != READING])
    held = {server: tables.get(table, []) for server, tables in wanted.servers.items()}
    typed = {server: typed_rows(table, rows, listed, columns).to_pylist() for server, rows in held.items()}
    got: dict[str, list[dict[str, Any]]] = {reading: [] for reading in wanted.readings}
    for row in found.to_pylist():
        got[row[READING]].append(row)
    for reading, server in wanted.readings.items():
        if (reading, table) in wanted.unsaid:
            assert not got[reading]
            continue
        names = held[server][0] if held[server] else ()
        shown = [name for name in names if (reading, table, name) not in wanted.unsaid]
        assert lines(got[reading], shown) == lines(typed[server], shown), (reading, table)
        unsent = [row[name] for row in got[reading] for name in row["_unchanged"] or () if name in shown]
        assert unsent == [None] * len(unsent), (reading, table)  # columns that the table got after the row


def binary_columns(changes: DataFrame) -> set[tuple[str, Table, str]]:
    """Columns of readings that had values in a binary form that the package does not read."""
    names = F.from_json(F.col("detail")["binary"], "array<string>")
    found = changes.where("detail['binary'] is not null and table_name is not null")
    rows = found.select(READING, "table_schema", "table_name", F.explode(names)).distinct().collect()
    return {(reading, (schema, name), column) for reading, schema, name, column in rows}


def held_by(readings: Iterable[str]) -> Wanted:
    """What is stored beside the captures of these readings."""
    servers = {reading: (PLAIN if reading in STYLES else reading).split("-")[0] for reading in readings}
    return Wanted({server: read_tables(server) for server in set(servers.values())}, servers)


def test_every_table_by_pgoutput(spark: SparkSession, live: Live | None) -> None:
    """By all captures and a slot that is read live, at once: nothing of one stream gets into the tables of another."""
    stored = held_by(BY_PGOUTPUT)
    readings = {name: read_capture(name).messages for name in BY_PGOUTPUT}
    servers, held = dict(stored.readings), dict(stored.servers)
    if live:
        readings[SLOT], servers[SLOT], held[SLOT] = live.payloads, SLOT, live.tables
    changes = decoded(spark, "pgoutput", readings).cache()
    in_binary = binary_columns(changes)
    assert {reading for reading, _, _ in in_binary} == {name for name in BY_PGOUTPUT if name.endswith("-binary")}
    assert_current(changes, Wanted(held, servers, in_binary))


def test_every_table_by_text(spark: SparkSession) -> None:
    """By test_decoding and by GaussDB's styles; JSON cannot say a row without columns."""
    by_format: dict[str, dict[str, list[bytes]]] = {}
    for reading in BY_TEXT:
        format, messages = messages_of(reading)
        by_format.setdefault(format, {})[reading] = messages
    changes = reduce(DataFrame.unionByName, [decoded(spark, *one) for one in by_format.items()]).cache()
    stored = held_by(BY_TEXT)
    assert_current(changes, Wanted(stored.servers, stored.readings, {("gaussdb-json", WITHOUT_COLUMNS)}))


def test_streamed_text_says_no_rows(spark: SparkSession) -> None:
    name = "15-test-decoding-streaming"
    rows = spark_udfs.transactions(decoded(spark, "test-decoding", {name: read_capture(name).messages}), **STREAM)
    with pytest.raises(Exception, match="got STREAM_CHANGE, a change of which nothing but its transaction was sent"):
        spark_udfs.typed(rows, "public.by_key", {"id": "integer"}).toArrow()
