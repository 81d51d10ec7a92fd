"""From raw messages to current tables on Spark: each table ends as the server has it, values compared as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
    """Many small queries."""
    set_conf("spark.sql.adaptive.enabled", "false")
    set_conf("spark.sql.shuffle.partitions", 1)
    set_conf("spark.sql.inMemoryColumnarStorage.compressed", "false")
    set_conf("spark.sql.execution.arrow.localRelationThreshold", 0)  # else the messages lie in one partition


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


def captured(spark: SparkSession, format: str, readings: Mapping[str, list[bytes]]) -> spark_udfs.Capture:
    """The readings of one format, a stream each; they lie in two partitions, and one of them in both.

    In PERMISSIVE, for two tables have values of every type, also such that no type holds: these are null.
    """
    parts = [
        pa.table({READING: [name] * len(found), "seq": range(len(found)), "payload": pa.array(found, pa.binary())})
        for name, found in sorted(readings.items())
    ]
    raw = spark.createDataFrame(pa.concat_tables(parts))
    return spark_udfs.capture(raw, "payload", format, mode="PERMISSIVE", **STREAM)


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


def current(typed: DataFrame, table: Table) -> pa.Table:
    """The table by these changes, for which the messages are read once."""
    typed = typed.cache()
    found = spark_udfs.latest(typed, keys_of(table), stream_by=[READING]).toArrow()
    typed.unpersist()
    return found


def for_each(names: Set[Table], check: Callable[[Table], None]) -> None:
    assert len(names) > 25
    with ThreadPoolExecutor(2) as pool:  # one plans while the other runs
        assert len(list(pool.map(check, sorted(names)))) == len(names)


def names_of(listed: pa.Table, wanted: Wanted) -> set[Table]:
    """The tables of a list, which has all that the servers hold, without those that the readings cannot say."""
    names = {(row["table_schema"], row["table_name"]) for row in listed.to_pylist()}
    unsaid = {one[1] for one in wanted.unsaid if len(one) == 2}
    assert all(held.keys() - unsaid <= names for held in wanted.servers.values())
    return names


def assert_rows(table: Table, found: pa.Table, listed: pa.Table, wanted: Wanted) -> None:
    columns = pa.schema([field for field in found.schema if not field.name.startswith("_") and field.name != READING])
    held = {server: tables.get(table, []) for server, tables in wanted.servers.items()}
    typed = {server: typed_rows(table, rows, listed, columns).to_pylist() for server, rows in held.items()}
    got: dict[str, list[dict[str, Any]]] = {reading: [] for reading in wanted.readings}
    for row in found.to_pylist():
        got[row[READING]].append(row)
    for reading, server in wanted.readings.items():
        names = held[server][0] if held[server] else ()
        shown = [name for name in names if (reading, table, name) not in wanted.unsaid]
        assert lines(got[reading], shown) == lines(typed[server], shown), (reading, table)
        unsent = [row[name] for row in got[reading] for name in row["_unchanged"] or () if name in shown]
        assert unsent == [None] * len(unsent), (reading, table)  # columns that the table got after the row


def binary_columns(capture: spark_udfs.Capture) -> set[tuple[str, Table, str]]:
    """Columns of readings that had values in a binary form that the package does not read."""
    names = F.from_json(F.col("detail")["binary"], "array<string>")
    changes = capture.changes(columns=["table_schema", "table_name", "detail"])
    found = changes.where("detail['binary'] is not null and table_name is not null")
    rows = found.select(READING, "table_schema", "table_name", F.explode(names)).distinct().collect()
    return {(reading, (schema, name), column) for reading, schema, name, column in rows}


def held_by(readings: Iterable[str]) -> Wanted:
    """What is stored beside the captures of these readings."""
    servers = {reading: (PLAIN if reading in STYLES else reading).split("-")[0] for reading in readings}
    return Wanted({server: read_tables(server) for server in set(servers.values())}, servers)


STATED_KEYS = {("public", name) for name in ("altered", "by_key", "by_two_keys", "by_row", "by_nothing")}
"""Tables whose keys are not named: the streams state a column and then the whole row, one column, two, the whole row,
and none."""


def test_every_table_by_pgoutput(spark: SparkSession, live: Live | None) -> None:
    """By all captures and a slot that is read live, at once: nothing of one stream gets into the tables of another."""
    stored = held_by(BY_PGOUTPUT)
    readings = {name: read_capture(name).messages for name in BY_PGOUTPUT}
    servers, held = dict(stored.readings), dict(stored.servers)
    if live:
        readings[SLOT], servers[SLOT], held[SLOT] = live.payloads, SLOT, live.tables
    capture = captured(spark, "pgoutput", readings)
    in_binary = binary_columns(capture)
    assert {reading for reading, _, _ in in_binary} == {name for name in BY_PGOUTPUT if name.endswith("-binary")}
    wanted = Wanted(held, servers, in_binary)
    listed = capture.tables().toArrow()

    def check(table: Table) -> None:
        if table in STATED_KEYS:
            found = capture.latest(quoted(table)).toArrow()
        else:
            found = current(capture.typed(quoted(table)), table)
        assert_rows(table, found, listed, wanted)

    for_each(names_of(listed, wanted), check)


def test_every_table_by_text(spark: SparkSession) -> None:
    """By test_decoding and by GaussDB's styles, which state no keys; JSON cannot say a row without columns.

    The changes of a table by several formats are put together where they have the same types.
    """
    by_format: dict[str, dict[str, list[bytes]]] = {}
    for reading in BY_TEXT:
        format, messages = messages_of(reading)
        by_format.setdefault(format, {})[reading] = messages
    captures = {format: captured(spark, format, readings) for format, readings in by_format.items()}
    lists = {format: capture.tables().toArrow() for format, capture in captures.items()}
    wanted = {format: held_by(readings) for format, readings in by_format.items()}
    wanted["gaussdb-json"] = replace(wanted["gaussdb-json"], unsaid={("gaussdb-json", WITHOUT_COLUMNS)})
    names = {format: names_of(lists[format], wanted[format]) for format in captures}
    assert WITHOUT_COLUMNS not in names["gaussdb-json"]

    def check(table: Table) -> None:
        alike: dict[str, dict[str, DataFrame]] = {}
        for format, capture in captures.items():
            if table in names[format]:
                typed = capture.typed(quoted(table))
                alike.setdefault(typed.schema.simpleString(), {})[format] = typed
        for frames in alike.values():
            found = current(reduce(DataFrame.unionAll, frames.values()), table)
            servers = {name: held for format in frames for name, held in wanted[format].servers.items()}
            readings = {name: server for format in frames for name, server in wanted[format].readings.items()}
            assert_rows(table, found, lists[next(iter(frames))], Wanted(servers, readings))

    for_each(set().union(*names.values()), check)


def test_streamed_text_says_no_rows(spark: SparkSession) -> None:
    name = "15-test-decoding-streaming"
    capture = captured(spark, "test-decoding", {name: read_capture(name).messages})
    with pytest.raises(Exception, match="got STREAM_CHANGE, a change of which nothing but its transaction was sent"):
        capture.typed("public.by_key", schema={"id": "integer"}).toArrow()
