"""latest: the table as it stands after its typed changes. Rows with a key are found in latest_by_key.py.

Of a table without a key the whole row is the key, and equal rows are counted: `rows_by_value`. Where some values were
not sent, such a value equals any other one: `rows_in_order`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

import wireformat as wf
from wireformat.arrow.typed_tables.latest import earlier_tables
from wireformat.arrow.typed_tables.typed_changes import (
    ABOUT_COLUMNS,
    CHANGE_TYPES,
    NO_OLD_ROW,
    NO_SEQUENCE,
    OTHER_CHANGE,
    ROW_CHANGE_TYPES,
    UPDATES,
    bad_changes,
    no_key,
    no_stream,
)
from wireformat.options.checks import texts
from wireformat.options.keywords import checks_keywords

from ..fields import check_frame, field_of, is_set
from ..positions import position_field
from ..schemas import arrow_types, as_declared
from .latest_by_key import rows_by_key
from .typed_rows import TypedRows, table_columns


@checks_keywords
def latest(typed: DataFrame, keys: Sequence[str], *, stream_by: Sequence[str] = ()) -> DataFrame:
    """Returns the current rows of a table, from its changes.

    typed       the result of `typed` for one table, from changes that went through `transactions`; not streaming
    keys        the columns of the replica identity, or of another key of the table. []: the whole row is the key, and
                equal rows are counted; updates and deletes then need the complete old row (REPLICA IDENTITY FULL)
    stream_by   columns (integers or strings) that identify a stream, which `typed` kept: each stream has a table of
                this name, and all of them are processed at once
    returns     the columns stream_by; the table's columns; `_sequence` of the row's last change; `_unchanged`, the
                columns that are null because no change has sent their value, or null if there are none

    Without keys, a value that was not sent equals any other one. If there are such values, one task has all changes of
    a stream, and holds its table in memory.

    Changes are ordered by `_sequence`; the order of the input rows does not matter. A value that was not sent keeps its
    previous value, even if the row had another key then. A TRUNCATE removes all rows. So does DROP TABLE, once the
    changes have a row of a new table of this name, in a format that sends the OIDs of tables (`_relation_id`). If the
    changes do not begin with the table's first row, the result has only the rows that they mention.

    The call runs a small query for the last TRUNCATE and for changes without a key or sequence. If rows moved to other
    keys without some of their values, or if the table has had several OIDs, it runs one more query for each. Save
    `typed` as a table or cache it if it is expensive to compute. Raises OptionError, TypeError, and BadRows for changes
    that cannot be ordered or applied.
    """
    return latest_rows(checked_rows(typed, keys, stream_by))


def checked_rows(typed: DataFrame, keys: Sequence[str], stream_by: Sequence[str]) -> TypedRows:
    """Returns the changes with the checked options of `latest`."""
    check_frame("typed", typed)
    return TypedRows(typed, _checked_keys(typed, keys), _checked_streams(typed, stream_by))


def latest_rows(rows: TypedRows) -> DataFrame:
    """Returns the current rows of a table; see `latest`."""
    facts = _facts(rows)
    _check(facts, _faults_of_order(rows))
    if len(facts["relations"]) > 1:
        _tell_of_earlier_tables(facts["relations"], rows)
        rows = rows.of_last_relation()
        facts = _facts(rows)
    changes, faults = rows.after(facts["truncated"]), _faults_of_table(rows)
    if facts["truncated"] is not None and any(facts[name] for name in faults):  # those before it need not be known
        facts |= changes.agg(*_counted(faults)).collect()[0].asDict()
    _check(facts, faults)
    if not rows.keys:
        return (rows_in_order if facts["lacks_values"] else rows_by_value)(rows, changes)
    unsent = {name for names in facts["unsent"] for name in names}
    split = bool(facts["inserts_unsent"])
    return rows_by_key(rows, changes, unsent, moves_unsent=split or bool(facts["moves_unsent"]), split=split)


def _checked_keys(typed: DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    keys = texts("keys", keys)
    if typed.isStreaming:
        raise wf.OptionError("latest: expected a batch, got a streaming DataFrame")
    for name in ABOUT_COLUMNS:
        field_of(typed, "typed", name)
    _check_cases(typed)
    for name in keys:
        field_of(typed, "keys", name, table_columns(typed))
        if name not in table_columns(typed) or keys.count(name) > 1:
            fault = "is named twice" if keys.count(name) > 1 else "is not a column of the table"
            raise wf.OptionError(f"option keys: {name!r} {fault}")
    return keys


def _check_cases(typed: DataFrame) -> None:
    """Raises OptionError if Spark takes two columns of the table for one."""
    if is_set(typed, "spark.sql.caseSensitive"):
        return
    known: dict[str, str] = {}
    for name in table_columns(typed):
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise wf.OptionError(
                f"latest: the columns {other!r} and {name!r} of the table differ in case only: set "
                "spark.sql.caseSensitive to true"
            )


def _checked_streams(typed: DataFrame, stream_by: Sequence[str]) -> Sequence[StructField]:
    stream_by = texts("stream_by", stream_by)
    fields = [position_field(typed, "stream_by", name) for name in stream_by]
    for name in stream_by:
        if name in (*ABOUT_COLUMNS, *table_columns(typed)) or stream_by.count(name) > 1:
            fault = "is named twice" if stream_by.count(name) > 1 else "is not a column that typed kept"
            raise wf.OptionError(f"option stream_by: {name!r} {fault}")
    return fields


def _facts(rows: TypedRows) -> dict[str, Any]:
    """Returns what one query over all changes tells, and for each fault how many changes have it.

    truncated         position of the last TRUNCATE
    unsent            sets of columns that were not sent
    moves_unsent      whether an update moves a row to another key without all of its values
    inserts_unsent    whether an insert lacks values, which shows that key changes were split
    lacks_values      whether a change has a value neither in the new row nor in the old one
    relations         the OIDs that the table has had
    """
    faults = {**_faults_of_order(rows), **_faults_of_table(rows)}
    query = rows.all.agg(
        F.max(F.when(rows.is_truncate, rows.position)).alias("truncated"),
        F.collect_set("_unchanged").alias("unsent"),
        F.bool_or(rows.moves & rows.lists_unsent).alias("moves_unsent"),
        F.bool_or((rows.change == "insert") & rows.lists_unsent).alias("inserts_unsent"),
        F.bool_or(rows.lacks_values).alias("lacks_values"),
        F.collect_set(rows.relation_id).alias("relations"),
        *_counted(faults),
    )
    facts: dict[str, Any] = query.collect()[0].asDict()
    return facts


def _counted(faults: Mapping[str, Column]) -> list[Column]:
    return [F.count_if(fault).alias(name) for name, fault in faults.items()]


def _tell_of_earlier_tables(relations: Sequence[int], rows: TypedRows) -> None:
    if not rows.streams:
        logging.getLogger("spark_udfs").warning(earlier_tables(relations))


def _check(facts: dict[str, Any], faults: Iterable[str]) -> None:
    """Raises BadRows for changes that cannot be ordered or applied."""
    for name in faults:
        if facts[name]:
            raise bad_changes(facts[name], name)


def _faults_of_order(rows: TypedRows) -> dict[str, Column]:
    """Returns the conditions of changes that cannot be ordered, keyed by the end of the error message."""
    is_known = rows.change.isin(*CHANGE_TYPES)
    sequence = F.col("_sequence")
    faults = {
        OTHER_CHANGE: ~is_known | rows.change.isNull(),
        NO_SEQUENCE: sequence.isNull() | sequence["commit_lsn"].isNull() | sequence["ordinal"].isNull(),
    }
    if rows.streams:
        is_null = reduce(or_, (column.isNull() for column in rows.stream))
        faults[no_stream([field.name for field in rows.streams])] = is_null
    return faults


def _faults_of_table(rows: TypedRows) -> dict[str, Column]:
    """Returns the conditions of changes that cannot be applied to the table, keyed likewise."""
    is_row = rows.change.isin(*ROW_CHANGE_TYPES)
    if rows.keys:
        is_null = reduce(or_, (key.isNull() for key in rows.new_key))
        return {no_key(rows.keys): is_row & is_null}
    return {NO_OLD_ROW: rows.change.isin(*UPDATES) & F.col("_old").isNull()}


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
