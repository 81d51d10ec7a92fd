"""The current rows of a table without a key: the whole row identifies it, and equal rows are counted."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from .typed_rows import TypedRows

MORE, LESS = 1, -1


def rows_by_value(rows: TypedRows, changes: DataFrame) -> DataFrame:
    """Returns each row as many times as the table contains it.

    An insert adds a row, a delete removes one, an update removes the old and adds the new one. If more rows are removed
    than were added, the history does not begin with the table's first row, and those rows existed before it.
    """
    names = {field.name: f"c{index}" for index, field in enumerate(rows.fields)}
    streams = [f"s{index}" for index in range(len(rows.streams))]
    of_stream = [column.alias(name) for column, name in zip(rows.stream, streams, strict=True)]

    def image(step: int, value: dict[str, Column]) -> Column:
        return F.struct(
            F.lit(step).alias("step"), *of_stream, *[column.alias(names[name]) for name, column in value.items()]
        )

    new = {name: rows.row_value(name) for name in names}
    old = {name: rows.old(name) for name in names}
    images = (
        F.when(rows.change == "insert", F.array(image(MORE, new)))
        .when(rows.change == "delete", F.array(image(LESS, new)))
        .otherwise(F.array(image(LESS, old), image(MORE, new)))
    )
    steps = changes.select("_sequence", rows.position.alias("at"), F.explode(images).alias("image"))
    values = [F.col(name) for name in (*streams, *names.values())] or [F.lit(0).alias("c0")]
    in_order = Window.partitionBy(*values).orderBy("at.lsn", "at.ordinal", "step")
    balance = F.sum("step").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    counted = steps.select("_sequence", "at", "image.*").withColumn("balance", balance)
    found = counted.groupBy(*values).agg(
        (F.sum("step") - F.least(F.min("balance"), F.lit(0))).alias("left"),
        F.max_by("_sequence", F.when(F.col("step") == MORE, F.col("at"))).alias("_sequence"),
    )
    shown = zip([*streams, *names.values()], [*rows.streams, *rows.fields], strict=True)
    columns = [F.col(name).alias(field.name, metadata=field.metadata) for name, field in shown]
    twins = found.select("*", F.explode(F.array_repeat(F.lit(0), F.col("left").cast("int"))))
    return twins.select(*columns, "_sequence", F.lit(None).cast("array<string>").alias("_unchanged"))
