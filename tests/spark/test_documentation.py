"""The examples of README.md and of pages that need Spark run; what they are about is tested elsewhere."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_udfs
import wireformat as wf
from examples import pandas_functions

from ..test_documentation import BLOCK, ROOT, SAMPLE
from .conftest import COMPILED
from .messages import transaction

pytestmark = pytest.mark.spark

SQL_BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)
PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")


def statements(page: str) -> list[str]:
    """The statements of a page's SQL blocks, each of which ends in a semicolon."""
    return [one.strip() for block in SQL_BLOCK.findall(page) for one in block.split(";") if one.strip()]


@pytest.fixture(autouse=True)
def as_users_run_them(set_conf: Callable[[str, Any], None]) -> None:
    for name, value in COMPILED.items():
        set_conf(name, value)


@pytest.fixture
def raw(spark: SparkSession) -> None:
    messages = spark.createDataFrame([(3, 17, transaction("a"))], "partition int, offset bigint, value binary")
    messages.createOrReplaceTempView("raw")
    changes = spark_udfs.decode(messages, keep=["offset"])
    changes.createOrReplaceTempView("changes")
    changes.selectExpr("offset AS seq", "'s' AS stream", "*").createOrReplaceTempView("changes_of_topics")


def test_readme(spark: SparkSession) -> None:
    """Its Python, then its SQL; Spark's session began in another folder, where it would look for the sample."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in BLOCK.findall(page):
            exec(compile(block.replace(SAMPLE, str(ROOT / SAMPLE)), "README.md", "exec"), names)
    assert names["spark"] is spark
    assert "orders" in printed.getvalue()
    (statement,) = SQL_BLOCK.findall(page)
    rows = spark.sql(statement)
    assert rows.columns == ["seq", "kind", "lsn", "table_name", "order_id"]
    assert {row.table_name for row in rows.limit(50).collect()} == {"orders"}


def test_the_blocks_of_the_page_run(spark: SparkSession) -> None:
    names: dict[str, object] = {}
    blocks = BLOCK.findall(PAGE)
    for block in blocks:
        exec(compile(block, "docs/spark.md", "exec"), names)
    assert names["changes"].count() == 3  # type: ignore[attr-defined]
    assert names["pg_changes"].count() == 4  # type: ignore[attr-defined]
    assert names["spark"] is spark


@pytest.mark.parametrize("statement", statements(PAGE))
def test_statements_of_the_page(spark: SparkSession, raw: None, set_conf: object, statement: str) -> None:
    if "python_worker_logs" in statement:
        set_conf("spark.sql.pyspark.worker.logging.enabled", "true")  # type: ignore[operator]
    spark.sql(statement).collect()


def test_page_of_captures(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in BLOCK.findall((ROOT / "docs" / "spark_capture.md").read_text(encoding="utf-8")):
            exec(compile(block, "docs/spark_capture.md", "exec"), names)
    assert "order_lines" in printed.getvalue()


def test_page_of_pandas_functions(spark: SparkSession) -> None:
    names: dict[str, object] = {}
    for block in BLOCK.findall((ROOT / "docs" / "pandas_functions.md").read_text(encoding="utf-8")):
        exec(compile(block, "docs/pandas_functions.md", "exec"), names)
    assert names["taxed"].collect() == [(1, 14.875)]  # type: ignore[attr-defined]
    assert names["paid_orders"].collect() == [(1, ["new", "paid"], None)]  # type: ignore[attr-defined]
    counted = names["counted"].orderBy("offset").collect()  # type: ignore[attr-defined]
    assert sum(row["count"]["inserts"] for row in counted) == 1


@pytest.mark.slow
def test_example_of_pandas_functions(spark: SparkSession) -> None:
    """Each gives what `wf.Capture` says."""
    capture = wf.Capture(pandas_functions.CAPTURE, "gaussdb-binary")
    messages = spark.read.parquet(str(pandas_functions.CAPTURE)).selectExpr("*", "'s' AS stream")
    lines = capture.typed("public.order_lines", schema={"quantity": "smallint", "price": "numeric(12,2)"}).read_all()
    written = [row for row in lines.to_pylist() if row["_change_type"] in ("insert", "update")]
    values = pandas_functions.order_values(messages)
    total = sum(row["quantity"] * row["price"] for row in written)
    assert values.agg({"value": "sum"}).collect() == [(total,)]
    tags = {
        row["id"]: row["tags"]
        for row in capture.typed("public.customers", schema={"id": "bigint", "tags": "text[]"}).read_all().to_pylist()
    }
    assert {row.id: row.tags for row in pandas_functions.tagged_customers(messages).collect()} == tags
    kinds = pandas_functions.kinds_of_messages(messages).selectExpr("sum(inserts)", "sum(deletes)")
    wanted = wf.arrow.changes(messages.toArrow()["payload"], "gaussdb-binary")["kind"].to_pylist()
    assert kinds.collect() == [(wanted.count("INSERT"), wanted.count("DELETE"))]


@pytest.mark.slow
def test_page_of_kafka(spark: SparkSession) -> None:
    """On a table with Kafka's columns; both ways give the same rows."""
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in BLOCK.findall(page):
            exec(compile(block, "docs/kafka.md", "exec"), names)
    lines = [line[2:] for block in BLOCK.findall(page) for line in block.splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == lines
    (statement,) = SQL_BLOCK.findall(page)
    assert [(*row,) for row in spark.sql(statement).collect()] == [(0, 1, "INSERT", "teapot"), (0, 4, "UPDATE", "cup")]


@pytest.mark.slow
def test_page_of_current_tables(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python, then its SQL."""
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "current_tables.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in BLOCK.findall(page):
            exec(compile(block, "docs/current_tables.md", "exec"), names)
    assert printed.getvalue().count("\n") == 12
    assert names["orders"].count() == 1631  # type: ignore[attr-defined]
    view, *questions = statements(page)
    spark.sql(view)
    assert spark.table("all_orders").count() == 1631
    found = {statement: spark.sql(statement).collect() for statement in questions}
    assert [len(rows) for rows in found.values()] == [3, 4848, 1631, 1631]
    assert sum(row["orders"] for row in next(iter(found.values()))) == 1631
    source = names["order_changes"](names["capture"], {"order_id": "bigint"})  # type: ignore[operator]
    assert source.columns == ["order_id", *names["changes"].columns[8:]]  # type: ignore[attr-defined]
