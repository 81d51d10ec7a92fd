"""typed: the changes of one table, with real column types."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

import wireformat as wf
from wireformat.arrow.row_changes import HIDDEN_KINDS, RELATION_ID_COLUMN, TABLE_COLUMNS
from wireformat.errors import counted
from wireformat.identifiers import split_table
from wireformat.options.checks import texts
from wireformat.options.table_names import one_table, written

from .batches import BATCH_BYTES
from .carriers import ARROW_CANNOT, carrier, column_of, is_text, packed, unpacked
from .fields import check_frame, field_of, format_of
from .named_columns import check_named, check_readable, raw_head
from .schemas import arrow_types
from .tables import tables_of
from .typed_columns import spark_columns

OPTIONAL_COLUMNS = ("sequence", "record", "xid", "commit_time")
"""Columns that are returned or identify a change in an error, if changes have them."""


def typed(
    changes: DataFrame,
    table: str,
    schema: Any = None,
    *,
    images: str = "new",
    mode: str = "FAILFAST",
    evolution: str = "union",
    complete: bool = False,
    split_key_changes: bool = False,
    keys: Sequence[str] | None = None,
    order_by: Sequence[str] = (),
    keep: Sequence[str] = (),
    format: str | None = None,
) -> Any:
    """Returns the changes of one table, with real column types: runs `wireformat.arrow.typed` in every task.

    changes    the result of `transactions`, or of `decode` (then `_sequence` is null); batch or streaming
    table      `public.orders`; names with a dot in double quotes
    schema     None calls `tables`, which reads the changes when you call this function. Otherwise the result of
               `tables`, a mapping of column to SQL type, or a pyarrow or Spark schema. A streaming DataFrame needs one.
               For a batch and a schema that is not the result of `tables`, the call checks that the rows name every
               column
    order_by   columns that order the messages, if schema is None and changes have no `sequence`
    keep       columns of changes that come first in the result, such as those that identify a stream
    format     the format of the changes, if the metadata of their column `types` do not name it
    returns    a DataFrame; with evolution="versions", a dict of DataFrames, keyed by the version numbers of `tables`

    The other options, the columns and the types are those of `wireformat.arrow.typed`, except that a time of day is the
    text as sent. Raises OptionError when called, and BadRows if there are several versions and evolution is "error".
    Bad values are found when the result is computed: in FAILFAST mode, the query ends with the text of the BadCell.
    """
    options = {
        "images": images,
        "mode": mode,
        "complete": complete,
        "split_key_changes": split_key_changes,
        "keys": keys,
        "keep": keep,
    }
    check_frame("changes", changes)
    one_table(table)
    _check_options(mode, images, complete, split_key_changes, keys)
    order_by = texts("order_by", order_by)
    kept = _kept_fields(changes, keep)
    own = _rows_of(changes, table, (*keep, *order_by))
    options["format"] = format = format_of([changes, *([schema] if isinstance(schema, DataFrame) else [])], format)
    if isinstance(schema, StructType):
        schema = _arrow_schema(schema)
    elif isinstance(schema, DataFrame):
        schema = schema.toArrow()
    elif schema is None:
        if changes.isStreaming:
            raise wf.OptionError(
                "option schema: a streaming DataFrame needs one; pass the result of tables() for an earlier batch"
            )
        schema = tables_of(own, order_by, format).toArrow()
        if not schema.num_rows:
            check_readable(changes, own, format)
            raise _no_such_table(changes, table)
    if evolution == "versions" and not isinstance(schema, pa.Table):
        raise wf.OptionError('option evolution: "versions" needs None or the result of tables() as schema')
    columns = spark_columns(schema, table, format)
    if not changes.isStreaming and not isinstance(schema, pa.Table):
        check_named(changes, own, list(columns) if isinstance(columns, Mapping) else columns.names, table, format)
    if isinstance(schema, pa.Table):
        options["versions"] = schema
        _check_versions(schema, table, evolution)
    if evolution != "versions":
        return _run(own, kept, TypedPlan(table, columns, {**options, "evolution": evolution}))
    return {
        row["version"]: _run(
            own, kept, TypedPlan(table, spark_columns(schema.slice(index, 1), table, format), options, row["version"])
        )
        for index, row in enumerate(schema.to_pylist())
        if (row["table_schema"], row["table_name"]) == split_table(table)
    }


def _check_options(*options: Any) -> None:
    """Raises OptionError before any change is read."""
    from wireformat.arrow.typed_tables.batch import TypedOptions  # loads numba

    TypedOptions(*options)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Raises OptionError for a type that Arrow does not have."""
    try:
        return arrow_types(schema)
    except PySparkTypeError as error:
        raise wf.OptionError(f"option schema: expected types that Arrow has: {error}") from None


def _no_such_table(changes: DataFrame, table: str) -> wf.BadRows:
    """Returns the error with the tables that the name may mean, for which it reads the changes."""
    from wireformat.arrow.unread import no_such_table

    names = changes.where(F.col("table_name").isNotNull()).select("table_schema", "table_name").distinct().collect()
    namespace, name = split_table(table)
    return no_such_table(
        written((namespace, name)), {written((row.table_schema or "", row.table_name)) for row in names}
    )


def _check_versions(listed: pa.Table, table: str, evolution: str) -> None:
    """Raises BadRows if the list has several versions of the table and evolution is "error"."""
    later = [
        row
        for row in listed.to_pylist()
        if (row["table_schema"], row["table_name"]) == split_table(table) and row["version"] > 1
    ]
    if later and evolution == "error":
        expected, got = "the same columns all the time, as evolution=error wants", "version 2 of the table"
        raise wf.BadRows(expected, f"{got}, first at {later[0]['first']}", table=table)


def _kept_fields(changes: DataFrame, keep: Sequence[str]) -> list[StructField]:
    return [field_of(changes, "keep", name) for name in texts("keep", keep)]


def _rows_of(changes: DataFrame, table: str, keep: Sequence[str]) -> DataFrame:
    """Returns the rows that may belong to the table, and the columns that are needed."""
    columns = [field_of(changes, "changes", name) for name in TABLE_COLUMNS]
    columns += [field for field in changes.schema if field.name in OPTIONAL_COLUMNS or field.name in keep]
    columns = list({field.name: field for field in columns}.values())
    namespace, name = one_table(table)
    own = (F.col("table_schema") == namespace) & (F.col("table_name") == name)
    may_be = F.col("kind").isin(*HIDDEN_KINDS) | ((F.col("kind") == "TRUNCATE") & F.col("table_name").isNull())
    own_rows = changes.where(own | may_be)
    added = [] if "raw" in keep else [raw_head(changes).alias("raw")]
    if "detail" in changes.columns:
        relation_id = F.try_element_at(F.col("detail"), F.lit("relation_id")).cast("bigint")
        added.append(relation_id.alias(RELATION_ID_COLUMN))
    return own_rows.select(*[_carried(field) for field in columns], *added)


def _carried(field: StructField) -> Column:
    column = packed(field, ARROW_CANNOT)
    return column.alias(field.name) if is_text(field, ARROW_CANNOT) else column


@dataclass(frozen=True)
class TypedPlan:
    """The checked arguments of `typed`, pickled to the workers.

    columns     the table's columns: an Arrow schema, or a mapping of column to SQL type
    options     the options of wireformat.arrow.typed
    version     the number of the version to return; None for all
    """

    table: str
    columns: Any
    options: dict[str, Any]
    version: int | None = None

    def typed(self, changes: pa.Table) -> pa.Table:
        """Returns the typed rows of some changes."""
        if self.version is not None:
            changes = _of_version(changes, self)
        from wireformat.arrow.typed_tables.table import typed_part

        return typed_part(changes, self.table, schema=self.columns, **self.options)


def _of_version(changes: pa.Table, plan: TypedPlan) -> pa.Table:
    """Returns the rows of the version of the plan."""
    from wireformat.arrow.typed_tables.rows import rows_of_table
    from wireformat.arrow.typed_tables.selections import BatchSelection
    from wireformat.arrow.typed_tables.tables import versions_of

    namespace, name = split_table(plan.table)
    known = versions_of(plan.options["versions"], namespace, name, plan.options["format"])
    found = []
    for rows in rows_of_table(changes, namespace, name):
        numbers = known.take(rows, np.arange(len(rows.kinds)))
        chosen = rows.chosen(np.flatnonzero(numbers + 1 == plan.version))
        found += [one.batch.take(pa.array(one.rows)) for one in chosen.selections if isinstance(one, BatchSelection)]
    return pa.Table.from_batches(found) if found else changes.slice(0, 0)


def _run(changes: DataFrame, kept: Sequence[StructField], plan: TypedPlan) -> DataFrame:
    carried = [carrier(field, ARROW_CANNOT) for field in kept]
    others = [field for field in wf.arrow.CHANGES if field.name not in plan.options["keep"]]
    given = pa.schema([*arrow_types(StructType(carried)), *others])
    schema = plan.typed(given.empty_table()).schema.remove_metadata()
    own = from_arrow_schema(schema).fields[len(kept) :]
    rows = changes.mapInArrow(partial(_typed_batches, plan, schema), StructType([*carried, *own]))
    if any(is_text(field, ARROW_CANNOT) for field in kept):
        return rows.select(*[unpacked(field, ARROW_CANNOT) for field in kept], *map(column_of, own))
    return rows


def _typed_batches(plan: TypedPlan, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow. It joins small batches, because each batch costs as much as thousands of rows."""
    from wireformat.arrow.schemas import DROPPED

    dropped = 0
    for table in _grouped(batches):
        found = plan.typed(table)
        dropped += int((found.schema.metadata or {}).get(DROPPED, 0))
        columns = zip(found.columns, schema.types, strict=True)
        same = [
            column if column.type == type else column.cast(type) for column, type in columns
        ]  # a cast of equal types would lose null structs
        yield from pa.Table.from_arrays(same, schema=schema).to_batches()
    if dropped:
        logging.getLogger(__package__).warning(
            "DROPMALFORMED left out %s of %s in this task", counted(dropped, "change"), plan.table
        )


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.nbytes for one in held) >= BATCH_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
