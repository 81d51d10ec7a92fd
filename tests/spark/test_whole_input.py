"""What is judged over a whole input: captures on Spark raise the errors of one machine, and lose none of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf

from ..golden_cases import find_case

pytestmark = pytest.mark.spark

BINARY = find_case("b_opt_x1t1o1e0_single").messages[:22]
TORN = [b"\0\0\0\xffabc"] * 5
LINES = [
    b"BEGIN 5",
    b"table public.t: INSERT: id[integer]:1 size[tinyint]:'300' \"$1\"[text]:'x'",
    b"COMMIT 5",
    b"BEGIN 6",
    b"table public.t: INSERT: id[integer]:2 size[tinyint]:'1' \"$1\"[text]:'x' later[integer]:5",
    b"COMMIT 6",
]

ADAPTIVE = "spark.sql.adaptive.enabled"


def raw(spark: SparkSession, messages: Sequence[bytes]) -> DataFrame:
    rows = [(place, message) for place, message in enumerate(messages)]
    return spark.createDataFrame(rows, "seq bigint, value binary").repartition(3, "seq")


def capture_of(spark: SparkSession, messages: Sequence[bytes], format: str, **options: Any) -> spark_udfs.Capture:
    return spark_udfs.capture(raw(spark, messages), format=format, order_by=["seq"], **options)


@pytest.fixture(params=["true", "false"], ids=["adaptive", "static"])
def session(request: pytest.FixtureRequest, spark: SparkSession, set_conf: Callable[[str, Any], None]) -> SparkSession:
    set_conf(ADAPTIVE, request.param)
    return spark


VERBS: dict[str, Callable[[spark_udfs.Capture], Any]] = {
    "changes": lambda capture: capture.changes().collect(),
    "committed": lambda capture: capture.committed().collect(),
    "count": lambda capture: capture.committed().count(),
    "of a table": lambda capture: capture.committed().where("table_name = 't'").select("record").collect(),
    "open": lambda capture: capture.open().where("table_name = 't'").collect(),
    "tables": lambda capture: capture.tables().collect(),
    "typed": lambda capture: capture.typed("public.t", schema={"id": "integer"}).collect(),
    "position": lambda capture: capture.position,
}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("changes", "tables")])
def test_corrupt_rows_only(session: SparkSession, verb: str) -> None:
    """Spark may drop a branch that it finds empty, and with it the errors that it would have raised."""
    with pytest.raises(wf.OrderError, match=r"records that could be read, got CORRUPT .*with an unreadable record"):
        VERBS[verb](capture_of(session, TORN, "gaussdb-binary", mode="PERMISSIVE"))


def test_changes_of_corrupt_rows_only(session: SparkSession) -> None:
    """They are what was asked for, as on one machine."""
    found = capture_of(session, TORN, "gaussdb-binary", mode="PERMISSIVE").changes()
    assert [row["kind"] for row in found.collect()] == ["CORRUPT"] * len(TORN)
    assert wf.Capture(TORN, "gaussdb-binary", mode="PERMISSIVE").changes().read_all().num_rows == len(TORN)


def test_changes_in_a_format_that_does_not_fit(session: SparkSession) -> None:
    with pytest.raises(wf.WireformatError) as expected:
        wf.Capture(BINARY, "pgoutput").changes().read_all()
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        capture_of(session, BINARY, "pgoutput").changes()


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "changes"])
def test_a_format_that_does_not_fit(session: SparkSession, verb: str) -> None:
    with pytest.raises(wf.WireformatError, match="22 of 22 messages begin like those of gaussdb-binary") as expected:
        wf.Capture(BINARY, "pgoutput").committed().read_all()
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        VERBS[verb](capture_of(session, BINARY, "pgoutput"))


@pytest.mark.parametrize("verb", ["committed", "open", "position"])
def test_records_of_another_format_that_cannot_be_read(session: SparkSession, verb: str) -> None:
    """A transaction with such a record is not complete, which the error of one machine says first."""
    with pytest.raises(wf.OrderError, match="got CORRUPT") as expected:
        wf.Capture(LINES, "pgoutput", mode="PERMISSIVE").committed().read_all()
    words = re.escape(str(expected.value)).replace("message\\ 0,\\ record\\ 0", "record\\ 0")
    with pytest.raises(wf.OrderError, match=words.replace("nothing", "nothing,\\ at\\ seq=0")):
        VERBS[verb](capture_of(session, LINES, "pgoutput", mode="PERMISSIVE"))


def test_positions_name_the_message_that_breaks_the_order(session: SparkSession) -> None:
    """The driver plans with what the workers have found, which does not say where it was."""
    lines = [*LINES[:3], LINES[1], *LINES[3:]]
    with pytest.raises(wf.OrderError, match="message 3, record 0") as expected:
        wf.Capture(lines, "test-decoding").committed().read_all()
    capture = capture_of(session, lines, "test-decoding")
    words = re.escape(str(expected.value)).replace("message\\ 3,\\ record\\ 0,\\ open\\ nothing", "record.*at\\ seq=3")
    for read in (lambda: capture.position, lambda: capture.unknown_prepared):
        with pytest.raises(wf.OrderError, match=words):
            read()


def test_in_sql(spark: SparkSession) -> None:
    rows = [(place, message) for place, message in enumerate(BINARY)]
    spark.createDataFrame(rows, "seq bigint, payload binary").createOrReplaceTempView("other_bytes")
    read = "wal_changes(TABLE(SELECT seq, payload FROM other_bytes), format => 'pgoutput')"
    query = f"SELECT * FROM wal_transactions(TABLE(SELECT * FROM {read}) WITH SINGLE PARTITION ORDER BY (seq, record))"
    with pytest.raises(Exception, match="begin like those of gaussdb-binary"):
        spark.sql(query).collect()


def test_decode_gives_the_rows(spark: SparkSession) -> None:
    """A partition is not judged; an error of the bytes says what they look like."""
    decoded = spark_udfs.decode(raw(spark, BINARY), format="pgoutput")
    assert decoded.where("kind = 'UNKNOWN'").count() == len(BINARY)
    with pytest.raises(Exception, match=r"look.? like gaussdb-binary"):
        spark_udfs.decode(raw(spark, BINARY), format="test-decoding").collect()


def test_no_rows_are_no_error(session: SparkSession) -> None:
    for messages in ([], LINES[:1]):
        capture = capture_of(session, messages, "test-decoding")
        assert capture.committed().collect() == []
        assert capture.tables().collect() == []


def test_the_format_decides_what_a_type_is(spark: SparkSession) -> None:
    for format, size in (("test-decoding", "300"), ("opengauss-test-decoding", 300)):
        lines = [line.replace(b"COMMIT 5", b"COMMIT 5 CSN 8") if size == 300 else line for line in LINES[:3]]
        capture = capture_of(spark, lines, format)
        assert [row.size for row in capture.typed("public.t").collect()] == [size]


def test_misspelled_schemas(spark: SparkSession) -> None:
    capture = capture_of(spark, LINES, "test-decoding")
    with pytest.raises(wf.OptionError, match="unknown type 'integr' of column id, did you mean 'integer'"):
        capture.typed("public.t", schema={"id": "integr"})
    found = capture.typed("public.t", schema={"id": "bigint", "later": "bigint", "$1": "text"})
    assert sorted(tuple(row)[:3] for row in found.collect()) == [(1, None, "x"), (2, 5, "x")]


NAMELESS = [
    b"BEGIN 5",
    b"insert into public.t values (1, 'x');",
    b"delete from public.t where id = 1;",
    b"COMMIT 5",
]
"""INSERTs of sql-decoding name no columns, and the DELETE names its key."""


@pytest.mark.parametrize("schema", [{"idd": "integer", "size": "text"}, {"id": "integer", "size": "text"}])
def test_a_schema_without_a_column_of_a_delete(spark: SparkSession, schema: dict[str, str]) -> None:
    """The key of the DELETE would be lost."""
    found = capture_of(spark, NAMELESS, "sql-decoding").typed("public.t", schema=schema)
    if "id" in schema:
        assert [row.id for row in found.collect()] == [1, 1]
        return
    with pytest.raises(Exception, match="name a column 'id', which is not in the schema, did you mean 'idd'"):
        found.collect()


def test_the_error_of_a_missing_table_names_near_ones(spark: SparkSession) -> None:
    capture = capture_of(spark, LINES, "test-decoding")
    for name, words in {"public.tt": "public.tt, did you mean public.t?", "x.orders": "there are public.t"}.items():
        with pytest.raises(wf.BadRows, match=re.escape(words)):
            capture.typed(name)
        with pytest.raises(wf.BadRows, match=re.escape(words)):
            capture.latest(name)


def test_keys_without_a_split_are_refused(spark: SparkSession) -> None:
    capture = capture_of(spark, LINES, "test-decoding")
    with pytest.raises(wf.OptionError, match="option keys: needs split_key_changes=True"):
        capture.typed("public.t", schema={"id": "integer"}, keys=["id"])


@pytest.mark.slow
def test_columns_that_came_later(spark: SparkSession) -> None:
    """What an older row holds there was never sent: `latest` lists it."""
    for schema in (None, {"id": "integer", "later": "integer"}):
        rows = capture_of(spark, LINES, "test-decoding").latest("public.t", keys=["id"], schema=schema)
        found = {row.id: (row.later, row._unchanged) for row in rows.collect()}
        assert found == {1: (None, ["later"]), 2: (5, None)}
