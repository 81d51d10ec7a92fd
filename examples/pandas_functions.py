"""Three vectorised functions of your own on raw messages, with pandas: mapInPandas, applyInPandas and a pandas UDF.

python examples/pandas_functions.py     reads the sample capture beside this file
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wireformat.errors import needs

with needs("spark", "this example"):
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

    import spark_udfs

CAPTURE = Path(__file__).resolve().with_name("sample_capture.parquet")

LINES = spark_udfs.typed_reader(
    "public.order_lines", {"order_id": "bigint", "sku": "nvarchar2", "quantity": "smallint", "price": "numeric(12,2)"}
)
CUSTOMERS = spark_udfs.typed_reader("public.customers", {"id": "bigint", "name": "varchar", "tags": "text[]"})
KINDS = spark_udfs.change_reader(columns=["message", "kind"])


def order_values(messages: DataFrame) -> DataFrame:
    """mapInPandas: the value of each order line of one stream, in one partition and in order."""

    def values(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for lines in LINES.each(frame["payload"] for frame in frames):
            written = lines[lines["_change_type"].isin(["insert", "update"])]
            yield pd.DataFrame({"sku": written["sku"], "value": written["quantity"] * written["price"]})

    return messages.coalesce(1).sortWithinPartitions("seq").mapInPandas(values, "sku string, value decimal(18,2)")


def tagged_customers(messages: DataFrame) -> DataFrame:
    """applyInPandas: each stream is a group. The column of lists returns to Spark without Python objects."""

    @spark_udfs.arrow_results
    def tagged(stream: pd.DataFrame) -> pd.DataFrame:
        changes = CUSTOMERS(stream.sort_values("seq")["payload"])
        return changes.drop_duplicates("id", keep="last")[["id", "name", "tags"]]

    return messages.groupBy("stream").applyInPandas(tagged, "id bigint, name string, tags array<string>")


def kinds_of_messages(messages: DataFrame) -> DataFrame:
    """A pandas UDF: a row of counts for each message."""

    @F.pandas_udf("inserts long, updates long, deletes long")  # type: ignore[call-overload]
    def kinds(payloads: pd.Series) -> pd.DataFrame:
        rows = KINDS(payloads)
        counts = rows.groupby(["message", "kind"]).size().unstack(fill_value=0)
        wanted = counts.reindex(index=range(len(payloads)), columns=["INSERT", "UPDATE", "DELETE"], fill_value=0)
        return wanted.set_axis(["inserts", "updates", "deletes"], axis=1)

    return messages.select("seq", kinds("payload").alias("kinds")).select("seq", "kinds.*")


def main(spark: SparkSession) -> None:
    """Shows what the three functions return."""
    messages = spark.read.parquet(str(CAPTURE)).withColumn("stream", F.lit("sample"))  # seq: long, payload: binary
    print("\n== mapInPandas: what was ordered most, by value")
    order_values(messages).groupBy("sku").sum("value").orderBy(F.desc("sum(value)"), "sku").show(5)
    print("== applyInPandas: customers with tags")
    tagged_customers(messages).where("size(tags) > 0").orderBy("id").show(5)
    print("== pandas UDF: kinds of changes in each message")
    kinds_of_messages(messages).orderBy("seq").show(5)


if __name__ == "__main__":
    main(spark_udfs.local_session("*"))
