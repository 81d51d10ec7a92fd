"""Rules as Spark SQL give what the rules in Python give, for every combination of values."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from spark_udfs.sql_rules import is_resent, is_undone, truncate_tie, truncate_ties
from wireformat import Position
from wireformat.lsn import signed
from wireformat.options.reading import KINDS
from wireformat.stream.attempts import Attempt
from wireformat.stream.controls import Control

pytestmark = pytest.mark.spark

NUMBERS = (None, 0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
"""Unsigned numbers around the places where bigints change their sign."""


def bits(number: int | None) -> int | None:
    return None if number is None else signed(number)


def test_a_resent_transaction(spark: SparkSession) -> None:
    cases = [*product(NUMBERS, repeat=4)]
    names = ["commit_lsn", "csn", "highest_lsn", "highest_csn"]
    rows = [(number, *map(bits, case)) for number, case in enumerate(cases)]
    given = spark.createDataFrame(rows, "number int, " + ", ".join(f"{name} bigint" for name in names))
    found = given.select("number", is_resent(*map(F.col, names)).alias("found")).collect()
    expected = {
        number: Position(1, highest_lsn, highest_csn).covers(lsn, csn)
        for number, (lsn, csn, highest_lsn, highest_csn) in enumerate(cases)
    }
    assert {row["number"]: row["found"] for row in found} == expected
    assert {*expected.values()} == {True, False}


def test_an_undone_subtransaction(spark: SparkSession) -> None:
    undone: list[tuple[int, ...]] = [(), *((one,) for one in NUMBERS if one is not None), (1, 1 << 63)]
    cases = [*product(undone, NUMBERS)]
    rows = [(number, [signed(one) for one in xids], bits(xid)) for number, (xids, xid) in enumerate(cases)]
    given = spark.createDataFrame(rows, "number int, undone array<bigint>, xid bigint")
    found = given.select("number", is_undone(F.col("undone"), F.col("xid")).alias("found")).collect()
    attempts: list[Attempt[Any]] = [Attempt(Control("BEGIN"), undone={*xids}) for xids, _ in cases]
    expected = {number: attempts[number].is_undone(xid) for number, (_, xid) in enumerate(cases)}
    assert {row["number"]: row["found"] for row in found} == expected
    assert {*expected.values()} == {True, False}


def test_the_rows_of_a_truncate(spark: SparkSession) -> None:
    names = (None, "", "a", "a.b", "b", "ä", "\U00010348")
    cases = [*product(KINDS, names, names)]
    rows = [(number, *case) for number, case in enumerate(cases)]
    given = spark.createDataFrame(rows, "number int, kind string, table_schema string, table_name string")
    found = given.select("number", truncate_tie().alias("tie")).collect()
    kinds, schemas, tables = (pa.array(column, pa.string()) for column in zip(*cases, strict=True))
    ties = truncate_ties(pa.record_batch([kinds, schemas, tables], ["kind", "table_schema", "table_name"]))
    assert {row["number"]: bytes(row["tie"]) for row in found} == {
        number: tie.encode() for number, tie in enumerate(ties.to_pylist())
    }
    assert len({*ties.to_pylist()}) == 37
