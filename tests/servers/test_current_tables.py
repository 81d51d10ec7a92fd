"""From raw messages to current tables on Spark: each table ends as the server has it, values compared as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf

from ..spark.conftest import set_conf, spark
from .captures import read_capture, read_tables
from .conftest import Runs
from .current_tables import keys_of, lines, quoted, typed_rows
from .replica import Table
from .tables import Row, all_tables
from .test_agreement import as_gaussdb
from .test_agreement import quote_identifier as quote

__all__ = ["set_conf", "spark"]

pytestmark = pytest.mark.spark

SOME = ("altered", "by_row", "long_by_key")
"""Tables that need most: columns that change, rows without a key, values that are not sent while the key changes. That
all readings say the same changes of all tables is what test_agreement.py is about."""


@pytest.fixture(autouse=True)
def few_rows(set_conf: Callable[[str, Any], None]) -> None:
    """Many small queries: compiling them would take longer than running them."""
    set_conf("spark.sql.codegen.wholeStage", "false")
    set_conf("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    set_conf("spark.sql.adaptive.enabled", "false")
    set_conf("spark.sql.shuffle.partitions", 1)


@pytest.fixture(autouse=True)
def empty_cache(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


def committed(spark: SparkSession, messages: list[bytes], format: str) -> tuple[DataFrame, pa.Table]:
    """The committed changes of messages that lie in three partitions, and the list of tables."""
    raw = spark.createDataFrame(pa.table({"seq": range(len(messages)), "payload": pa.array(messages, pa.binary())}))
    raw = raw.repartition(3)
    known = spark_udfs.relations(raw, "payload", order_by=["seq"]) if format == "pgoutput" else None
    changes = spark_udfs.decode(raw, "payload", format, keep=["seq"], relations=known).cache()
    listed = spark_udfs.tables(changes, order_by=["seq"]).toArrow()
    return spark_udfs.transactions(changes, order_by=["seq"]).cache(), listed


def assert_current(rows: DataFrame, listed: pa.Table, held: dict[Table, list[Row]], names: Iterable[Table]) -> None:
    """In PERMISSIVE, for two tables have values of every type, also such that no type holds: these are null."""
    for table in names:
        typed = spark_udfs.typed(rows, quoted(table), listed, mode="PERMISSIVE").cache()
        found = spark_udfs.latest(typed, keys_of(table)).toArrow()
        typed.unpersist()
        columns = [field for field in found.schema if not field.name.startswith("_")]
        wanted = typed_rows(table, held[table], listed, pa.schema(columns))
        shown = list(held[table][0]) if held[table] else []
        assert lines(found, shown) == lines(wanted, shown), table
        assert not any(set(row["_unchanged"] or ()) & set(shown) for row in found.to_pylist()), table


def test_every_table(spark: SparkSession) -> None:
    """Streamed and two-phase, with the tables' versions, from a capture."""
    rows, listed = committed(spark, read_capture("18-pgoutput-4-two-phase").messages, "pgoutput")
    held = read_tables(18)
    assert len(held) > 25
    alike = [table for table in held if table[0] == "S.a"][2:]  # but for their names
    assert_current(rows, listed, held, [table for table in held if table not in alike])


READINGS = {
    "18-pgoutput-1": "pgoutput",
    "18-pgoutput-3": "pgoutput",
    "15-pgoutput-3-streaming": "pgoutput",
    "15-test-decoding-plain": "test-decoding",
    "15-test-decoding-two-phase": "test-decoding",
}


@pytest.mark.parametrize("name", READINGS)
def test_readings(spark: SparkSession, name: str) -> None:
    rows, listed = committed(spark, read_capture(name).messages, READINGS[name])
    held = read_tables(name.split("-")[0])
    assert_current(rows, listed, held, [("public", table) for table in SOME])


@pytest.mark.parametrize("format", ["gaussdb-binary", "gaussdb-json", "gaussdb-text"])
def test_gaussdb(spark: SparkSession, format: str) -> None:
    """The same changes as GaussDB would send them: without the columns that were not sent, and without TRUNCATE."""
    events = list(wf.decode(read_capture("18-pgoutput-1").messages, "pgoutput"))
    names = {
        f"oid:{event.type_oid}": f"{quote(event.namespace)}.{quote(event.name)}"
        for event in events
        if isinstance(event, wf.Type) and format != "gaussdb-binary"
    }
    said = [found for event in events if (found := as_gaussdb(event, names, format)) is not None]
    options = {"include-timestamp": True, "sending-batch": 1}
    rows, listed = committed(spark, list(wf.encode(said, format, options=options)), format)
    assert_current(rows, listed, read_tables(18), [("public", table) for table in SOME])


def test_a_slot_that_is_read_live(spark: SparkSession, runs: Runs) -> None:
    server, stream = runs(18)
    assert stream is not None
    rows, listed = committed(spark, stream.payloads, "pgoutput")
    with server.connect() as session:
        held = all_tables(session)
    assert_current(rows, listed, held, [("public", table) for table in (*SOME, "other_big", "child")])


def test_streamed_text_says_no_rows(spark: SparkSession) -> None:
    rows, listed = committed(spark, read_capture("15-test-decoding-streaming").messages, "test-decoding")
    with pytest.raises(Exception, match="got STREAM_CHANGE, a change of which nothing but its transaction was sent"):
        spark_udfs.typed(rows, "public.by_key", listed).toArrow()
