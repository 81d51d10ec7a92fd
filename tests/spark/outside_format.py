"""A program that decodes messages of a made-up format on Spark, `python -m … FILE`; its package is on PYTHONPATH."""

from __future__ import annotations

import sys

import spark_udfs

from .conftest import SETTINGS


def main(path: str) -> None:
    """Print kind, table and new row of each record, by the DataFrame function and by SQL."""
    spark = spark_udfs.local_session(2, settings=SETTINGS)
    spark_udfs.register(spark)
    raw = spark.read.parquet(path)
    raw.createOrReplaceTempView("raw")
    rows = spark_udfs.decode(raw, payload="payload", format="fixed-width", keep=["seq"])
    sql = "SELECT seq, c.* FROM raw LATERAL VIEW inline(wal_decode(payload, 'fixed-width')) c"
    for found in (rows, spark.sql(sql)):
        for row in found.orderBy("seq").collect():
            print(row.kind, row.table_name, row.new and sorted(row.new.items()))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
