"""Options and columns are checked where decode is called, and the text says what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import spark_udfs
import wireformat as wf

from ..chunks.test_records import events_of_users
from .messages import transaction

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    columns = "partition int, offset bigint, value binary, text string, Kind string"
    return spark.createDataFrame([(3, 17, transaction("a"), "t", "k")], columns)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"format": "gaussdb-binry"}, "unknown format 'gaussdb-binry', did you mean 'gaussdb-binary'?"),
        ({"kep": ["offset"]}, "unknown option 'kep', did you mean 'keep'?"),
        ({"mode": "PERMISIVE"}, "option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED; got 'PERMISIVE'"),
        ({"engine": "arow"}, "option engine: expected arrow, pandas; got 'arow', did you mean 'arrow'?"),
        ({"encoding": "utf-17"}, "option encoding: "),
        ({"encoding_errors": "ignore"}, "option encoding_errors: expected strict, replace; got 'ignore'"),
        ({"heartbeat_unit": "m"}, "option heartbeat_unit: expected s, ms, us; got 'm'"),
        ({"tables": "public.t"}, "option tables: expected a list"),
        ({"kinds": ["INSRT"]}, "option kinds: "),
        ({"columns": ["knd"]}, "option columns: no column 'knd', did you mean 'kind'?"),
        ({"columns": ["message"]}, "option columns: 'message' does not exist on Spark"),
        ({"columns": []}, "option columns: expected at least one column to return or to keep"),
        ({"columns": "kind"}, "option columns: expected a list"),
        ({"payload": "valu"}, "option payload: no column 'valu', did you mean 'value'?; there are partition, offset, "),
        ({"payload": "text"}, "option payload: expected a binary column, 'text' is string"),
        ({"keep": ["offst"]}, "option keep: no column 'offst', did you mean 'offset'?"),
        ({"keep": "offset"}, "option keep: expected a list"),
        ({"keep": ["Kind"]}, "option keep: 'Kind': the row-change table has a column of this name"),
        ({"keep": ["offset", "offset"]}, "option keep: 'offset': it is named twice"),
    ],
)
def test_wrong_options(messages: DataFrame, options: dict[str, Any], text: str) -> None:
    with pytest.raises(wf.OptionError) as caught:
        spark_udfs.decode(messages, **options)
    assert text in str(caught.value)


def test_a_column_that_is_there_twice(messages: DataFrame) -> None:
    twice = messages.select("value", "value")
    with pytest.raises(wf.OptionError, match="option payload: there are 2 columns 'value'"):
        spark_udfs.decode(twice)


def test_columns_that_differ_in_case_only(messages: DataFrame, set_conf: Callable[[str, Any], None]) -> None:
    other = messages.select("value", F.lit(b"x").alias("Value"))
    with pytest.raises(wf.OptionError, match="option payload: there are 2 columns 'value'"):
        spark_udfs.decode(other)
    for true in ("true", "TRUE"):
        set_conf("spark.sql.caseSensitive", true)
        assert spark_udfs.decode(other).count() == spark_udfs.decode(messages).count() > 0


def test_a_name_of_the_table_can_be_kept_where_the_column_is_not_asked_for(messages: DataFrame) -> None:
    rows = spark_udfs.decode(messages, keep=["Kind"], columns=["record"], kinds=["INSERT"])
    assert rows.collect() == [("k", 1)]


def test_options_in_sql_by_place(spark: SparkSession, messages: DataFrame) -> None:
    messages.createOrReplaceTempView("messages")
    call = "wal_decode(value, 'gaussdb-binary', 'PERMISSIVE', NULL, 'replace', 's', array('public.*'), array('INSERT'))"
    assert spark.sql(f"SELECT inline({call}) FROM messages").select("new").collect() == [({"id": "1", "v": "a"},)]


def test_a_wrong_option_in_sql(spark: SparkSession, messages: DataFrame) -> None:
    messages.createOrReplaceTempView("messages")
    with pytest.raises(PythonException, match="wal_decode: unknown option 'mood', did you mean 'mode'"):
        spark.sql("SELECT wal_decode(value, 'gaussdb-binary', mood => 'x') FROM messages").collect()


Given = Callable[[list[str]], Any]
USERS = events_of_users(0)


def captured(df: DataFrame, of: Given) -> spark_udfs.Capture:
    position: dict[str, Any] = {"order_by": of(["offset"]), "stream_by": of(["stream"])}
    return spark_udfs.capture(df, exclude_users=of(["a"]), known_tables=of(["s.t"]), **position)


ASKED: dict[str, Callable[[DataFrame, Given], Any]] = {
    "decode": lambda df, of: spark_udfs.decode(
        df,
        keep=of(["offset"]),
        columns=of(["kind", "table_name"]),
        tables=of(["s.t"]),
        kinds=of(["INSERT"]),
        known_tables=of(["s.t"]),
        order_by=of(["offset"]),
        stream_by=of(["stream"]),
    ),
    "changes": lambda df, of: captured(df, of).changes(
        columns=of(["kind", "table_name"]), tables=of(["s.t"]), kinds=of(["BEGIN", "INSERT"])
    ),
    "committed": lambda df, of: captured(df, of).committed(tables=of(["s.t"])),
    "typed": lambda df, of: captured(df, of).typed("s.t", split_key_changes=True, keys=of(["id"])),
    "latest of a capture": lambda df, of: captured(df, of).latest("s.t", keys=of(["id"])),
    "latest": lambda df, of: spark_udfs.latest(
        captured(df, list).typed("s.t"), keys=of(["id"]), stream_by=of(["stream"])
    ),
    "change_reader": lambda df, of: spark_udfs.change_reader(
        columns=of(["kind", "table_name"]),
        tables=of(["s.t"]),
        kinds=of(["BEGIN", "INSERT"]),
        known_tables=of(["s.t"]),
        exclude_users=of(["a"]),
    )(pd.Series(USERS)),
    "typed_reader": lambda df, of: spark_udfs.typed_reader(
        "s.t", {"id": "bigint"}, known_tables=of(["s.t"]), exclude_users=of(["a"])
    )(pd.Series(USERS)),
}


@pytest.mark.parametrize("ask", ASKED)
def test_lists_of_names_may_be_generators(spark: SparkSession, ask: str) -> None:
    df = spark.createDataFrame([("one", *row) for row in enumerate(USERS)], "stream string, offset int, value binary")

    def rows(of: Given) -> list[str]:
        found = ASKED[ask](df, of)
        plain = found.astype(object) if isinstance(found, pd.DataFrame) else found.toArrow().to_pandas()
        return sorted(map(repr, plain.to_dict("records")))

    wanted = rows(list)
    assert rows(lambda names: (name for name in names)) == wanted != []
