"""tables: lists the tables of a stream, with their columns over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.arrow.row_changes import TABLE_COLUMNS, TABLE_KINDS

from .carriers import column_of
from .fields import check_frame, field_of, format_of
from .named_columns import raw_head
from .positions import PositionColumns
from .schemas import arrow_types, with_format

POSITION = "position"


def tables(changes: DataFrame, *, order_by: Sequence[str] = (), format: str | None = None) -> DataFrame:
    """Lists the tables of a stream, with one row per version; the columns are those of `wireformat.arrow.tables`.

    changes    the result of `transactions` or `decode`; a batch
    order_by   columns (integers or strings) that order the messages, if changes have no `sequence`
    format     the format of the changes, if the metadata of their column `types` do not name it

    Each task collects the distinct facts about columns with their first and last position, so little data is combined,
    and the result does not depend on the partitioning. A fact about some of the columns, such as a DELETE with its key,
    counts for the version at its first position. Raises OptionError. If there are several rows and none could be read,
    the query ends with the text of a BadRows.
    """
    check_frame("changes", changes)
    return tables_of(changes, order_by, format_of([changes], format), judged=True)


def tables_of(changes: DataFrame, order_by: Sequence[str], format: str | None, *, judged: bool = False) -> DataFrame:
    """Returns `tables` of changes in this format.

    judged   whether these are all rows of an input; if none could be read, the query then ends with a BadRows
    """
    if changes.isStreaming:
        raise wf.OptionError("tables: expected a batch, got a streaming DataFrame")
    columns = [column_of(field_of(changes, "changes", name)) for name in TABLE_COLUMNS]
    if "detail" in changes.columns:
        columns.append(F.when(F.col("kind") == "RELATION", F.col("detail")).alias("detail"))
    rows = changes if judged else changes.where(F.col("kind").isin(*TABLE_KINDS))
    given = rows.select(*columns, raw_head(changes).alias("raw"), _position(changes, order_by).alias(POSITION))
    position = arrow_types(given.select(POSITION).schema).field(0).type
    observed = (
        given.mapInArrow(partial(_observed, position), from_arrow_schema(_observations_schema(position)))
        .groupBy("table_schema", "table_name", "facts")
        .agg(F.min("first").alias("first"), F.max("last").alias("last"), F.sum("changes").alias("changes"))
    )
    listed = StructType(with_format(from_arrow_schema(_tables_schema(position)).fields, format))

    def versions(of_table: pa.Table) -> pa.Table:
        return _versions(of_table, position, format)

    return observed.groupBy("table_schema", "table_name").applyInArrow(versions, listed)


def _position(changes: DataFrame, order_by: Sequence[str]) -> Column:
    """Returns the position of a row as one value."""
    if "sequence" in changes.columns and not order_by:
        return F.col("sequence")
    if not order_by:
        raise wf.OptionError("option order_by: expected columns that order the messages, because there is no sequence")
    names = [*(field.name for field in PositionColumns.check(changes, order_by, ()).order_by), "record"]
    return F.struct(*[column_of(field_of(changes, "order_by", name)).alias(name) for name in names])


def _observations_schema(position: pa.DataType) -> pa.Schema:
    from wireformat.arrow.typed_tables.observations import observations_schema

    return observations_schema(position)


def _tables_schema(position: pa.DataType) -> pa.Schema:
    from wireformat.arrow.typed_tables.tables import tables_schema

    return tables_schema(position)


def _observed(position: pa.DataType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the facts about columns in the rows. The last row has no table; it says whether any row could be read."""
    from wireformat.arrow.typed_tables.observations import observations
    from wireformat.arrow.unread import ReadSummary

    seen = ReadSummary()
    for batch in batches:
        seen = seen.and_of(batch)
        yield observations(batch, batch[POSITION].cast(position))
    last = {"facts": seen._replace(rows=0, messages=0).to_json(), "changes": seen.rows}
    yield pa.RecordBatch.from_pylist([last], _observations_schema(position))


def _versions(observed: pa.Table, position: pa.DataType, format: str | None) -> pa.Table:
    """Returns the versions of one table. Of the rows without a table, raises BadRows if no task could read a row."""
    from wireformat.arrow.typed_tables.observations import versions_of_observations
    from wireformat.arrow.unread import ReadSummary

    rows = observed.to_pylist()
    if rows[0]["table_name"] is None:
        seen = ReadSummary()
        for row in rows:
            seen = seen.and_these(
                ReadSummary.from_json(row["facts"])._replace(rows=row["changes"], messages=row["changes"])
            )
        seen.check(format)
        return _tables_schema(position).empty_table()
    return versions_of_observations(rows, position)
