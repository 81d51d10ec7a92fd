"""The SQL functions: how they can be called, and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

import spark_udfs
import wireformat as wf
from wireformat.lsn import signed

from .messages import transaction

pytestmark = pytest.mark.spark

LSNS = (0, 1, 0xCFE5C80, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFF_FFFFFFFF, 0x80000000_00000000, 0xFFFFFFFF_FFFFFFFF)


@pytest.fixture(scope="module", autouse=True)
def raw(spark: SparkSession) -> None:
    rows = [(7, transaction("a", "b")), (8, None), (9, transaction("c"))]
    spark.createDataFrame(rows, "seq int, payload binary").createOrReplaceTempView("raw")


def inserted(rows: DataFrame) -> list[Any]:
    found = rows.where("kind = 'INSERT'").selectExpr("seq", "new['v'] AS v").collect()
    return sorted((row.seq, row.v) for row in found)


WANTED = [(7, "a"), (7, "b"), (9, "c")]


class TestTableFunction:
    @pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint"])
    def test_seq_of_any_integer_type(self, spark: SparkSession, kind: str) -> None:
        table = f"TABLE(SELECT CAST(seq AS {kind}) AS seq, payload FROM raw)"
        rows = spark.sql(f"SELECT * FROM wal_changes({table}, 'gaussdb-binary')")
        assert rows.schema["seq"].dataType.simpleString() == "bigint"
        assert inserted(rows) == WANTED

    def test_columns_are_found_by_name(self, spark: SparkSession) -> None:
        table = "TABLE(SELECT 'x' AS other, payload AS Payload, seq AS SEQ FROM raw)"
        assert inserted(spark.sql(f"SELECT * FROM wal_changes({table}, format => 'gaussdb-binary')")) == WANTED

    def test_schema_is_that_of_the_table_after_seq(self, spark: SparkSession) -> None:
        rows = spark.sql("SELECT * FROM wal_changes(TABLE(raw), format => 'gaussdb-binary')")
        assert rows.columns == ["seq", *wf.arrow.CHANGES.names[1:]]
        assert rows.schema["commit_time"].dataType.simpleString() == "timestamp"

    def test_partitions(self, spark: SparkSession) -> None:
        rows = spark.sql("SELECT * FROM wal_changes(TABLE(raw) PARTITION BY seq % 2, format => 'gaussdb-binary')")
        assert inserted(rows) == WANTED

    def test_a_wrong_table(self, spark: SparkSession) -> None:
        with pytest.raises(PythonException, match="wal_changes: the table must have one column seq, it has payload"):
            spark.sql("SELECT * FROM wal_changes(TABLE(SELECT payload FROM raw), 'gaussdb-binary')").collect()


class TestScalars:
    @pytest.mark.parametrize("function", ["wal_decode", "wal_decode_pandas"])
    def test_null_is_null_and_no_row_of_inline(self, spark: SparkSession, function: str) -> None:
        rows = spark.sql(f"SELECT seq, {function}(payload, 'gaussdb-binary') AS rows FROM raw")
        assert sorted((row.seq, row.rows is None) for row in rows.collect()) == [(7, False), (8, True), (9, False)]
        assert inserted(spark.sql(f"SELECT seq, inline({function}(payload, 'gaussdb-binary')) FROM raw")) == WANTED

    @pytest.mark.parametrize("function", ["wal_decode", "wal_decode_pandas"])
    def test_a_message_without_records_is_an_empty_array(self, spark: SparkSession, function: str) -> None:
        call = f"{function}(payload, 'gaussdb-binary', kinds => array('HEARTBEAT'))"
        assert spark.sql(f"SELECT size({call}) FROM raw WHERE seq = 9").collect() == [(0,)]

    def test_two_in_one_query(self, spark: SparkSession) -> None:
        calls = [
            "wal_decode(payload, 'gaussdb-binary')",
            "wal_decode(payload, 'gaussdb-binary', kinds => array('BEGIN'))",
        ]
        rows = spark.sql(f"SELECT size({calls[0]}), size({calls[1]}) FROM raw WHERE seq = 7")
        assert rows.collect() == [(4, 1)]


class TestLsn:
    def test_same_as_in_python(self, spark: SparkSession) -> None:
        lsns = spark.createDataFrame([(signed(lsn), wf.lsn_text(lsn)) for lsn in LSNS], "lsn bigint, text string")
        rows = lsns.selectExpr("lsn_text(lsn) = text", "lsn_value(text) = lsn", "lsn_value(lower(text)) = lsn")
        assert rows.collect() == [(True, True, True)] * len(LSNS)

    def test_null_is_null(self, spark: SparkSession) -> None:
        assert spark.sql("SELECT lsn_text(NULL), lsn_value(NULL)").collect() == [(None, None)]

    @pytest.mark.parametrize(
        "text", ["", "0", "0/", "/0", "0/123456789", "123456789/0", "0/G", " 0/1", "0/1\n", "0/1/2"]
    )
    def test_other_text_is_an_error(self, spark: SparkSession, text: str) -> None:
        with pytest.raises(ValueError, match="expected two hexadecimal numbers"):
            wf.lsn_value(text)
        with pytest.raises(SparkRuntimeException, match="lsn_value: an LSN is two hexadecimal numbers"):
            spark.createDataFrame([(text,)], "text string").selectExpr("lsn_value(text)").collect()

    def test_anywhere_in_a_query(self, spark: SparkSession) -> None:
        spark.createDataFrame([(1, 10), (2, 20), (3, 30)], "n int, lsn bigint").createOrReplaceTempView("lsns")
        query = """
            SELECT lsn_text(max(a.lsn)) AS high FROM lsns a JOIN lsns b ON lsn_text(a.lsn) = lsn_text(b.lsn)
            WHERE a.lsn >= lsn_value('0/14') GROUP BY lsn_text(a.lsn) HAVING lsn_value(max(lsn_text(a.lsn))) > 0
            ORDER BY high
        """
        assert spark.sql(query).collect() == [("0/14",), ("0/1E",)]

    def test_a_comparison_is_pushed_to_files(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.createDataFrame([(1,), (10,)], "lsn bigint").write.parquet(str(tmp_path / "rows"))
        spark.read.parquet(str(tmp_path / "rows")).createOrReplaceTempView("rows")
        plan = spark.sql("EXPLAIN SELECT * FROM rows WHERE lsn > lsn_value('0/5')").collect()[0][0]
        assert "GreaterThan(lsn,5)" in plan

    def test_in_a_stream(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.createDataFrame([(1,), (10,)], "lsn bigint").write.parquet(str(tmp_path / "in"))
        stream = spark.readStream.schema("lsn bigint").parquet(str(tmp_path / "in"))
        rows = stream.selectExpr("lsn_text(lsn) AS text").where("lsn_value(text) > 5")
        query = rows.writeStream.format("memory").queryName("texts").trigger(availableNow=True).start()
        query.awaitTermination()
        assert spark.table("texts").collect() == [("0/A",)]


def test_again_does_no_harm(spark: SparkSession) -> None:
    spark_udfs.register(spark)
    assert spark.sql("SELECT lsn_text(1)").collect() == [("0/1",)]
    assert inserted(spark.sql("SELECT * FROM wal_changes(TABLE(raw), format => 'gaussdb-binary')")) == WANTED


def test_a_new_session_needs_its_own(spark: SparkSession) -> None:
    other = spark.newSession()
    spark_udfs.register(other)
    assert other.sql("SELECT lsn_value('0/1')").collect() == [(1,)]
