"""The current rows of a table without a key: the whole row identifies it.

Equal rows are counted. Where some values were not sent, such a value equals any other one: `rows_in_order`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from ..schemas import arrow_types, as_declared
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
    last = F.when(F.col("step") == MORE, F.col("at"))
    found = counted.groupBy(*values).agg(
        (F.sum("step") - F.least(F.min("balance"), F.lit(0))).alias("left"),
        F.max_by("_sequence", last).alias("_sequence"),
        # by grouping, Spark makes 0 of -0, and a setting of the session leaves out what it groups by
        F.max_by(F.struct(*values), last).alias("row"),
    )
    shown = zip([*streams, *names.values()], [*rows.streams, *rows.fields], strict=True)
    columns = [F.col(f"row.{name}").alias(field.name, metadata=field.metadata) for name, field in shown]
    twins = found.select("row", "_sequence", F.explode(F.array_repeat(F.lit(0), F.col("left").cast("int"))))
    return twins.select(*columns, "_sequence", F.lit(None).cast("array<string>").alias("_unchanged"))


def rows_in_order(rows: TypedRows, changes: DataFrame) -> DataFrame:
    """Returns the rows as `wireformat.arrow.latest` does. One task has all changes of a stream, and holds its table.

    changes   those of `rows` after the last TRUNCATE
    """
    names = [field.name for field in rows.streams]
    fields = [*rows.streams, *rows.fields, rows.all.schema["_sequence"]]
    schema = StructType([*fields, StructField("_unchanged", ArrayType(StringType()))])
    parts = changes.repartition(*rows.stream) if names else changes.repartition(1)
    # a key change that was split is a delete and an insert with one position
    in_order = parts.sortWithinPartitions(rows.position, rows.change != F.lit("delete"))
    numbered = in_order.toDF(*map(str, range(len(in_order.columns))))  # mapInArrow takes a dot in a name for a field
    return numbered.mapInArrow(partial(current_batches, in_order.columns, names, arrow_types(schema)), schema)


def current_batches(
    columns: Sequence[str], streams: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that returns the current rows.

    columns   the names of the columns
    streams   the names of stream_by
    """
    from wireformat.arrow.typed_tables.latest import LatestRows  # loads numba, which the driver does not need

    rows, is_empty = LatestRows((), streams), True
    for batch in batches:
        rows.take(batch.rename_columns([*columns]))
        is_empty = False
    if not is_empty:
        for found in rows.result().to_batches():
            yield as_declared(found, schema)
