"""The current rows of a table without a key of which some values were not sent: such a value equals any other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from ..schemas import arrow_types, as_declared
from .typed_rows import TypedRows


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
