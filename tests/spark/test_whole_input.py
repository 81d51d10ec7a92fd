"""What is judged over a whole input: the same answers as Arrow's, whatever Spark leaves out of its plan."""

from __future__ import annotations

import re
from collections.abc import Callable
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


def decoded(spark: SparkSession, messages: list[bytes], format: str, **options: Any) -> DataFrame:
    rows = [(place, message) for place, message in enumerate(messages)]
    raw = spark.createDataFrame(rows, "seq bigint, value binary").repartition(3, "seq")
    return spark_udfs.decode(raw, format=format, keep=["seq"], **options)


@pytest.fixture(params=["true", "false"], ids=["adaptive", "static"])
def session(request: pytest.FixtureRequest, spark: SparkSession, set_conf: Callable[[str, Any], None]) -> SparkSession:
    set_conf(ADAPTIVE, request.param)
    return spark


VERBS: dict[str, Callable[[DataFrame], Any]] = {
    "transactions": lambda rows: spark_udfs.transactions(rows, order_by=["seq"]).collect(),
    "count": lambda rows: spark_udfs.transactions(rows, order_by=["seq"], chunks=1).count(),
    "of a table": lambda rows: (
        spark_udfs.transactions(rows, order_by=["seq"]).where("table_name = 't'").select("record").collect()
    ),
    "open": lambda rows: spark_udfs.open_transactions(rows, order_by=["seq"]).where("table_name = 't'").collect(),
    "without bytes": lambda rows: spark_udfs.transactions(rows.drop("raw"), order_by=["seq"]).collect(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_corrupt_rows_only(session: SparkSession, verb: str) -> None:
    """The branch with the rows that could be delivered is empty, and Spark may drop the other one with it."""
    with pytest.raises(
        Exception, match=r"expected records that could be read, got CORRUPT .*a transaction with an unreadable record"
    ):
        VERBS[verb](decoded(session, TORN, "gaussdb-binary", mode="PERMISSIVE"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_format_that_does_not_fit(session: SparkSession, verb: str) -> None:
    rows = decoded(session, BINARY, "pgoutput")
    with pytest.raises(Exception, match="22 rows, all of them UNKNOWN or CORRUPT") as caught:
        VERBS[verb](rows)
    assert "rows of pgoutput that could be read" in str(caught.value)
    assert ("22 of 22 messages begin like those of gaussdb-binary" in str(caught.value)) == (verb != "without bytes")


@pytest.mark.slow
def test_tables_and_typed_name_it_too(spark: SparkSession) -> None:
    rows = decoded(spark, BINARY, "pgoutput")
    verbs: list[Callable[[], Any]] = [
        lambda: spark_udfs.tables(rows, order_by=["seq"]).collect(),
        lambda: spark_udfs.typed(rows, "public.t", {"id": "integer"}),
        lambda: spark_udfs.typed(rows, "public.t", order_by=["seq"]),
    ]
    for verb in verbs:
        with pytest.raises(Exception, match="begin like those of gaussdb-binary"):
            verb()


def test_in_sql(spark: SparkSession) -> None:
    rows = [(place, message) for place, message in enumerate(BINARY)]
    spark.createDataFrame(rows, "seq bigint, payload binary").createOrReplaceTempView("other_bytes")
    read = "wal_changes(TABLE(SELECT seq, payload FROM other_bytes), format => 'pgoutput')"
    query = f"SELECT * FROM wal_transactions(TABLE(SELECT * FROM {read}) WITH SINGLE PARTITION ORDER BY (seq, record))"
    with pytest.raises(Exception, match="begin like those of gaussdb-binary"):
        spark.sql(query).collect()


def test_decode_gives_the_rows(spark: SparkSession) -> None:
    """A partition is not judged; an error of the bytes says what they look like."""
    assert decoded(spark, BINARY, "pgoutput").where("kind = 'UNKNOWN'").count() == len(BINARY)
    with pytest.raises(Exception, match=r"look.? like gaussdb-binary"):
        decoded(spark, BINARY, "test-decoding").collect()


def test_no_rows_are_no_error(session: SparkSession) -> None:
    for messages in ([], LINES[:1], BINARY[:1]):
        rows = decoded(session, messages, "pgoutput" if messages == BINARY[:1] else "test-decoding")
        assert spark_udfs.transactions(rows, order_by=["seq"]).collect() == []
        assert spark_udfs.tables(rows, order_by=["seq"]).collect() == []


@pytest.mark.parametrize("kept", [True, False])
def test_the_format_is_known_from_the_columns(spark: SparkSession, kept: bool, tmp_path: Any) -> None:
    """Through transactions and files; where it is not known, it can be given."""
    for format, size in (("test-decoding", "300"), ("opengauss-test-decoding", 300)):
        lines = [line.replace(b"COMMIT 5", b"COMMIT 5 CSN 8") if size == 300 else line for line in LINES[:3]]
        rows = decoded(spark, lines, format)
        assert rows.schema["types"].metadata == {"wireformat.format": format}
        path = str(tmp_path / format)
        spark_udfs.transactions(rows, order_by=["seq"]).write.parquet(path)
        committed = spark.read.parquet(path)
        if not kept:
            committed = committed.withMetadata("types", {})
        given = {} if kept else {"format": format}
        assert [row.size for row in spark_udfs.typed(committed, "public.t", **given).collect()] == [size]
        listed = spark_udfs.tables(committed, **given)
        plain = committed.withMetadata("types", {})
        assert [row.size for row in spark_udfs.typed(plain, "public.t", listed).collect()] == [size]
    with pytest.raises(wf.OptionError, match=r"expected pgoutput, but the metadata .* say opengauss-test-decoding"):
        spark_udfs.typed(rows, "public.t", format="pgoutput", order_by=["seq"])


def test_misspelled_schemas(spark: SparkSession) -> None:
    rows = decoded(spark, LINES, "test-decoding")
    with pytest.raises(wf.OptionError, match=r"no row of public\.t names a column 'sise', did you mean 'size'"):
        spark_udfs.typed(rows, "public.t", {"id": "integer", "sise": "text"})
    with pytest.raises(wf.OptionError, match="unknown type 'integr' of column id, did you mean 'integer'"):
        spark_udfs.typed(rows, "public.t", {"id": "integr"})
    found = spark_udfs.typed(rows, "public.t", {"id": "bigint", "later": "bigint", "$1": "text"})
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
    """The key of the DELETE would be lost: Spark and Arrow raise the same error."""
    arrow, rows = wf.arrow.changes(NAMELESS, "sql-decoding"), decoded(spark, NAMELESS, "sql-decoding")
    if "id" in schema:
        wanted = wf.arrow.typed(arrow, "public.t", schema=schema)["id"].to_pylist()
        assert [row.id for row in spark_udfs.typed(rows, "public.t", schema).collect()] == wanted == [1, 1]
        return
    errors = []
    for call in (
        lambda: wf.arrow.typed(arrow, "public.t", schema=schema),
        lambda: spark_udfs.typed(rows, "public.t", schema),
    ):
        with pytest.raises(
            wf.OptionError, match="name a column 'id', which is not in the schema, did you mean 'idd'"
        ) as e:
            call()
        errors.append(str(e.value))
    assert errors[0] == errors[1]


def test_the_error_of_a_missing_table_names_near_ones(spark: SparkSession) -> None:
    arrow, rows = wf.arrow.changes(LINES, "test-decoding"), decoded(spark, LINES, "test-decoding")
    listed = wf.arrow.tables(arrow)
    for name, words in {"public.tt": "public.tt, did you mean public.t?", "x.orders": "there are public.t"}.items():
        for call in (
            lambda name=name: wf.arrow.typed(arrow, name),
            lambda name=name: spark_udfs.typed(rows, name, order_by=["seq"]),
        ):
            with pytest.raises(wf.BadRows, match=re.escape(words)):
                call()
        with pytest.raises(wf.OptionError, match=re.escape(words)):
            wf.arrow.typed(arrow, name, schema=listed)


def test_keys_without_a_split_are_refused(spark: SparkSession) -> None:
    arrow, rows = wf.arrow.changes(LINES, "test-decoding"), decoded(spark, LINES, "test-decoding")
    for call in (
        lambda: wf.arrow.typed(arrow, "public.t", keys=["id"]),
        lambda: spark_udfs.typed(rows, "public.t", {"id": "integer"}, keys=["id"]),
        lambda: spark_udfs.typed(rows, "public.t", keys=["id"], order_by=["seq"]),
    ):
        with pytest.raises(wf.OptionError, match="option keys: needs split_key_changes=True"):
            call()


@pytest.mark.slow
def test_columns_that_came_later(spark: SparkSession) -> None:
    """What an older row holds there was never sent: `latest` lists it."""
    committed = spark_udfs.transactions(decoded(spark, LINES, "test-decoding"), order_by=["seq"]).cache()
    for schema in (None, {"id": "integer", "later": "integer"}):
        rows = spark_udfs.latest(spark_udfs.typed(committed, "public.t", schema), keys=["id"])
        found = {row.id: (row.later, row._unchanged) for row in rows.collect()}
        assert found == {1: (None, ["later"]), 2: (5, None)}
