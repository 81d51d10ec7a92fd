"""Decode the sample capture on Spark, look at the rows, count them, and write them as Parquet: `make demo`.

python examples/demo.py [FOLDER]     the rows go to FOLDER; without it, to build/demo
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from wireformat.errors import needs

with needs("spark", "this example"):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

    import spark_udfs

CAPTURE = Path(__file__).resolve().with_name("sample_capture.parquet")
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURE.parent.parent / "build" / "demo"
CHANGES = str(FOLDER / "changes")


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    print(f"\n== {name}", flush=True)
    start = perf_counter()
    yield
    print(f"   {perf_counter() - start:.1f} s", flush=True)


with step("Start Spark on all cores of this machine"):
    spark = spark_udfs.local_session("*")
    spark_udfs.register(spark)  # the SQL functions, once a session

with step(f"Decode {CAPTURE.name} and write the row changes as Parquet"):
    messages = spark.read.parquet(str(CAPTURE))  # seq: long, payload: binary
    decoded = spark_udfs.decode(messages, payload="payload", format="gaussdb-binary", keep=["seq"])
    decoded.write.mode("overwrite").parquet(CHANGES)
    changes = spark.read.parquet(CHANGES)
    print(f"   {messages.count():,} messages, {changes.count():,} rows of {len(changes.columns)} columns")

table = F.coalesce(F.concat("table_schema", F.lit("."), "table_name"), F.lit("(no table)")).alias("table")

with step("The row-change table: for each table, the first row of each kind"):
    first = changes.groupBy(table, "kind").agg(F.min(F.struct("seq", "record")).alias("place")).select("place.*")
    rows = changes.join(first, ["seq", "record"]).orderBy("seq", "record")
    lsn = F.expr("lsn_text(lsn)").alias("lsn")
    rows.select("seq", "record", "kind", lsn, table, "new", "old").show(30, truncate=48)

with step("Rows by table and kind"):
    counts = (
        changes.groupBy(table).pivot("kind", ["INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "HEARTBEAT"]).count()
    )
    counts.na.fill(0).orderBy("table").show(truncate=False)

with step("In SQL, straight from the messages: what was ordered"):
    messages.createOrReplaceTempView("capture")
    query = """
        SELECT new['currency'] AS currency, count(*) AS orders, sum(CAST(new['total'] AS DECIMAL(12, 2))) AS total
        FROM wal_changes(TABLE(SELECT seq, payload FROM capture), format => 'gaussdb-binary')
        WHERE kind = 'INSERT' AND table_schema = 'public' AND table_name = 'orders'
        GROUP BY currency ORDER BY currency"""
    print(query + "\n")
    spark.sql(query).show()

spark.stop()
print(f"The row changes are in {CHANGES}")
