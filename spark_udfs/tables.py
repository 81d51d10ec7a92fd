"""tables: which tables changes are about, with their columns as they were over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

import wireformat as wf

from .carriers import column_of
from .fields import check_frame, field_of
from .positions import Places

POSITION = "position"
NEEDED = ("kind", "table_schema", "table_name", "new", "old", "unchanged", "types")
"""Columns that changes must have; `detail` too, where they have it."""
KINDS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "RELATION")


def tables(changes: DataFrame, *, order_by: Sequence[str] = ()) -> DataFrame:
    """The tables of changes, a row for each version of each: the columns are those of `wireformat.arrow.tables`.

    changes    of `transactions`, or of `decode`; a batch
    order_by   columns (integers or strings) that order the messages, where changes have no `sequence`
    Tasks look at what records say about columns, and hand on each thing that is said once, with its first and last
    position: little is put together, and the result is the same however the rows are cut. What is said of some columns
    alone, as by a DELETE with its key, counts for the version that was there where it was said first. Raises
    OptionError.
    """
    check_frame("changes", changes)
    if changes.isStreaming:
        raise wf.OptionError("tables: expected changes that are all there; a streaming DataFrame never is")
    columns = [column_of(field_of(changes, "changes", name)) for name in NEEDED]
    if "detail" in changes.columns:
        columns.append(column_of(field_of(changes, "changes", "detail")))
    given = changes.where(F.col("kind").isin(*KINDS)).select(*columns, _position(changes, order_by).alias(POSITION))
    position = to_arrow_schema(given.select(POSITION).schema).field(0).type
    said = (
        given.mapInArrow(partial(_said, position), from_arrow_schema(_sayings_schema(position)))
        .groupBy("table_schema", "table_name", "facts")
        .agg(F.min("first").alias("first"), F.max("last").alias("last"), F.sum("changes").alias("changes"))
    )
    listed = from_arrow_schema(_tables_schema(position))

    def versions(of_table: pa.Table) -> pa.Table:
        return _versions(of_table, position)

    return said.groupBy("table_schema", "table_name").applyInArrow(versions, listed)


def _position(changes: DataFrame, order_by: Sequence[str]) -> Column:
    """Where a row stands, as one value."""
    if "sequence" in changes.columns and not order_by:
        return F.col("sequence")
    if not order_by:
        raise wf.OptionError("option order_by: expected columns that order the messages, since there is no sequence")
    names = [*(field.name for field in Places.check(changes, order_by, ()).order_by), "record"]
    return F.struct(*[column_of(field_of(changes, "order_by", name)).alias(name) for name in names])


def _sayings_schema(position: pa.DataType) -> pa.Schema:
    from wireformat.arrow.column_sayings import sayings_schema

    return sayings_schema(position)


def _tables_schema(position: pa.DataType) -> pa.Schema:
    from wireformat.arrow.table_list import tables_schema

    return tables_schema(position)


def _said(position: pa.DataType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from wireformat.arrow.column_sayings import sayings

    for batch in batches:
        yield sayings(batch, batch[POSITION].cast(position))


def _versions(said: pa.Table, position: pa.DataType) -> pa.Table:
    from wireformat.arrow.column_sayings import versions_of_sayings

    return versions_of_sayings(said.to_pylist(), position)
