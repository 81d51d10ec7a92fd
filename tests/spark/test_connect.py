"""Spark Connect: the same functions against a server, where what a client of it needs is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .messages import transaction

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import spark_udfs

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
try:
    spark_udfs.register(spark)
    raw = spark.createDataFrame([(7, bytes.fromhex(sys.argv[1]))], "seq int, payload binary")
    raw.createOrReplaceTempView("raw")
    format = "gaussdb-binary"
    found = [
        spark_udfs.decode(raw, "payload", keep=["seq"]),
        spark_udfs.decode(raw, "payload", keep=["seq"], engine="pandas"),
        spark.sql(f"SELECT * FROM wal_changes(TABLE(raw), format => '{format}')"),
        spark.sql(f"SELECT r.seq, c.* FROM raw r LATERAL VIEW inline(wal_decode(r.payload, '{format}')) c"),
        spark.sql(f"SELECT seq, inline(wal_decode_pandas(payload, '{format}')) FROM raw"),
    ]
    found.append(spark_udfs.transactions(found[0], order_by=["seq"], chunks=2))
    for rows in found:
        print(rows.where("kind = 'INSERT'").selectExpr("seq", "new['v']", "lsn_text(lsn)").collect())
finally:
    spark.stop()
"""


def test_every_way() -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs the extra pyspark[connect]")
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", PROGRAM, transaction("a").hex()]
    found = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    row = "[Row(seq=7, new[v]='a', lsn_text(lsn)='0/11')]"
    assert found.stdout.splitlines() == [row] * 6
