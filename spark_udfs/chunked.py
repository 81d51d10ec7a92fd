"""Transactions of a batch DataFrame: rows are split into chunks, labelled, and joined with their labels.

Narrow rows, without the values, are sorted within each chunk and read twice: for the summaries of the chunks, from
which one task per stream finds the fates of transactions that span chunks; and for the labels, which are joined with
the fates. The rows themselves are read once and joined with their labels by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from wireformat.arrow.committed.batch import NEEDED_DETAILS
from wireformat.arrow.committed.fates import DELIVERED, FATES, OPEN, WHOLE
from wireformat.stream.controls import DELIVERED_KINDS

from .carriers import ARROW_CANNOT, carrier, is_text, unpacked
from .fields import format_of
from .labels import (
    FACT_COLUMNS,
    FATE_COLUMNS,
    RECORD_COLUMNS,
    NarrowRows,
    check_batches,
    fates_of_stream,
    label_batches,
    summary_batches,
    unknown_of_stream,
)
from .named_columns import raw_head
from .positions import PositionColumns, chunk_of
from .schemas import change_fields
from .sql_rules import is_resent, is_undone, truncate_tie

ROWS = ("INSERT", "UPDATE", "DELETE")
"""The kinds of most rows. Their `detail` is not needed here."""

CHUNK = StructField("chunk", IntegerType())


def committed_rows(
    changes: DataFrame,
    positions: PositionColumns,
    fields: Sequence[StructField],
    chunks: int,
    two_phase: str,
    drop_resent: bool,
) -> DataFrame:
    """Returns the result of `transactions`, with the columns `fields`."""
    narrow = NarrowRows(
        len(positions.stream_by), _names(positions), two_phase, drop_resent, format=format_of([changes], None)
    )
    found, fates = _labels_and_fates(changes, positions, chunks, narrow)
    own, fate = partial(_column, "own"), partial(_column, "fate")
    is_whole = fate("fate") == WHOLE
    wanted = fate("fate").isin(WHOLE, DELIVERED) & ~is_undone(fate("undone"), own("xid"))
    if drop_resent:
        numbers = [of(name) for of in (own, fate) for name in ("commit_lsn", "csn")]
        wanted &= ~(is_whole & is_resent(*numbers))
    is_numbered = own("commit_lsn").isNull() & own("csn").isNull()
    number = own("number") + F.when(is_numbered, fate("sequence")).otherwise(F.lit(0))
    sequence = F.struct(
        F.coalesce(F.when(is_whole, number).otherwise(fate("sequence")), own("number")).alias("commit_lsn"),
        F.coalesce(
            F.when(is_whole, own("ordinal")).otherwise(own("ordinal") + fate("first_ordinal")), own("ordinal")
        ).alias("ordinal"),
    )
    facts = {name: F.when(is_whole, own(name)).otherwise(_as_time(fate(name), name)) for name in FACT_COLUMNS}
    labels = found.where(wanted).select(
        *_keys(found, len(narrow.keys)),
        sequence.alias("sequence"),
        *[column.alias(name) for name, column in facts.items()],
    )
    rows = _rows_with_keys(changes.where(F.col("kind").isin(*DELIVERED_KINDS)), positions)
    joined = _joined(rows, labels, len(narrow.keys), "inner")
    of_row = {field.name: _of_row(index) for index, field in enumerate(changes.schema)}
    of_label = {name: F.col(name) for name in ("sequence", *FACT_COLUMNS)}
    columns = {**of_row, **of_label}
    rows = joined.select(*[columns[field.name].alias(field.name, metadata=field.metadata) for field in fields])
    return rows.union(_checked(fates, narrow, fields))


def open_rows(
    changes: DataFrame, positions: PositionColumns, chunks: int, two_phase: str, drop_resent: bool
) -> DataFrame:
    """Returns the result of `open_transactions`."""
    format = format_of([changes], None)
    narrow = NarrowRows(
        len(positions.stream_by), _names(positions), two_phase, drop_resent, controls=True, format=format
    )
    found, fates = _labels_and_fates(changes, positions, chunks, narrow)
    labels = found.where(_column("fate", "fate") == OPEN).select(*_keys(found, len(narrow.keys)))
    joined = _joined(_rows_with_keys(changes, positions), labels, len(narrow.keys), "left_semi")
    rows = joined.select(
        *[_of_row(index).alias(field.name, metadata=field.metadata) for index, field in enumerate(changes.schema)]
    )
    return rows.union(_checked(fates, narrow, changes.schema.fields))


def _checked(fates: DataFrame, narrow: NarrowRows, fields: Sequence[StructField]) -> DataFrame:
    """Returns a DataFrame without rows, with these fields, that raises the errors of the rows.

    If no row can be delivered, or a filter keeps none, Spark drops the branch of the labels and the errors in it. This
    branch is not part of a join, so Spark does not drop it. Its input is shuffled for the labels anyway.
    """
    carried = StructType([carrier(field, ARROW_CANNOT) for field in fields])
    verdicts = fates.where(F.col("verdict").isNotNull()).select("verdict").coalesce(1)
    checked = verdicts.mapInArrow(partial(check_batches, narrow), carried)
    if any(is_text(field, ARROW_CANNOT) for field in fields):
        return checked.select(*[unpacked(field, ARROW_CANNOT) for field in fields])
    return checked


def unknown_prepared_rows(
    changes: DataFrame, positions: PositionColumns, chunks: int, two_phase: str, drop_resent: bool
) -> DataFrame:
    """Returns the result of `unknown_prepared`."""
    narrow = NarrowRows(len(positions.stream_by), _names(positions), two_phase, drop_resent)
    fields = [*_stream_fields(positions), StructField("gid", StringType())]
    found = _summaries(_narrow_rows(changes, positions, chunks), positions, narrow).applyInArrow(
        lambda summaries: unknown_of_stream(narrow, summaries), _positional(fields)
    )
    return found.toDF(*[field.name for field in fields])


def _names(positions: PositionColumns) -> tuple[str, ...]:
    return tuple(field.name for field in positions.fields)


def _column(prefix: str, name: str) -> Column:
    return F.col(f"{prefix}_{name}")


def _of_row(index: int) -> Column:
    return F.col(f"row_{index}")


def _keys(labels: DataFrame, count: int) -> list[Column]:
    return [F.col(f"key_{index}") for index in range(count)]


def _within() -> list[Column]:
    """Returns the columns that identify the rows of a message: the record, and the table in a TRUNCATE of several."""
    return [F.col("record"), truncate_tie()]


def _labels_and_fates(
    changes: DataFrame, positions: PositionColumns, chunks: int, narrow: NarrowRows
) -> tuple[DataFrame, DataFrame]:
    """Returns the labels with fates, and the fates of all streams with their verdicts.

    The labels have a row for each row that may be delivered: key_0 …, own_… from its chunk, fate_… from its stream.
    """
    rows = _narrow_rows(changes, positions, chunks)
    streams, keys = len(positions.stream_by), len(narrow.keys)
    stream_fields = _stream_fields(positions)
    key_fields = [*[StructField(f.name, f.dataType) for f in positions.fields], *_within_fields()]
    chunk, segment = CHUNK, StructField("segment", IntegerType())
    facts = _fact_fields()
    numbers = [StructField("number", LongType(), False), StructField("ordinal", LongType(), False)]
    labels = rows.mapInArrow(
        partial(label_batches, narrow), _positional([chunk, *key_fields, *numbers, *facts, segment])
    )
    labels = labels.toDF(
        "own_chunk", *[f"key_{index}" for index in range(keys)], *[f"own_{f.name}" for f in (*numbers, *facts, segment)]
    )
    fate_fields = list(from_arrow_schema(FATES.remove_metadata()).fields)
    of_fate = [StructField(f.name, f.dataType) for name in FATE_COLUMNS for f in fate_fields if f.name == name]
    fates = _summaries(rows, positions, narrow).applyInArrow(
        lambda found: fates_of_stream(narrow, found),  # Spark evaluates the annotations of a function that has some
        _positional([chunk, *stream_fields, segment, *of_fate, StructField("verdict", BinaryType())]),
    )
    of_stream = [f"stream_{index}" for index in range(streams)]
    fates = fates.toDF("fate_chunk", *of_stream, "fate_segment", *[f"fate_{n}" for n in FATE_COLUMNS], "verdict")
    same = [
        F.col("own_chunk") == F.col("fate_chunk"),
        F.col("own_segment") == F.col("fate_segment"),
        *[F.col(f"key_{index}") == F.col(f"stream_{index}") for index in range(streams)],
    ]
    of_rows = fates.where(F.col("verdict").isNull()).drop("verdict")
    return labels.join(F.broadcast(of_rows), reduce(and_, same)), fates


def _summaries(rows: DataFrame, positions: PositionColumns, narrow: NarrowRows) -> GroupedData:
    """Returns the summaries and verdicts of the chunks, grouped by stream."""
    results = [StructField("summary", BinaryType()), StructField("verdict", BinaryType())]
    fields = [CHUNK, *_stream_fields(positions), *results]
    summaries = rows.mapInArrow(partial(summary_batches, narrow), _positional(fields))
    return summaries.groupBy(*[F.col(str(1 + index)) for index in range(len(positions.stream_by))])


def _stream_fields(positions: PositionColumns) -> list[StructField]:
    return [StructField(f.name, f.dataType) for f in positions.stream_by]


def _narrow_rows(changes: DataFrame, positions: PositionColumns, chunks: int) -> DataFrame:
    """Returns the rows that `labels` reads, one chunk per partition."""
    within = _within()
    detail = F.when(~F.col("kind").isin(*ROWS), F.col("detail"))
    columns = [
        chunk_of(changes, positions, chunks, within),
        *positions.columns,
        *within,
        *[F.col(name) for name in RECORD_COLUMNS],
        *[F.try_element_at(detail, F.lit(key)) for key in NEEDED_DETAILS],
        raw_head(changes),
    ]
    rows = changes.select(*[column.alias(str(index)) for index, column in enumerate(columns)])
    order = [str(index) for index in range(1 + len(positions.fields) + len(within))]
    return rows.repartitionById(chunks, "0").sortWithinPartitions(*order)


def _rows_with_keys(changes: DataFrame, positions: PositionColumns) -> DataFrame:
    """Returns all columns as row_0 …, followed by row_key_0 …"""
    rows = [F.col(f"`{name.replace('`', '``')}`").alias(f"row_{index}") for index, name in enumerate(changes.columns)]
    keys = [column.alias(f"row_key_{index}") for index, column in enumerate([*positions.columns, *_within()])]
    return changes.select(*rows, *keys)


def _joined(rows: DataFrame, labels: DataFrame, keys: int, how: str) -> DataFrame:
    same = [F.col(f"row_key_{index}") == F.col(f"key_{index}") for index in range(keys)]
    return rows.join(labels, reduce(and_, same), how)


def _as_time(column: Column, name: str) -> Column:
    return F.timestamp_micros(column) if name == "commit_time" else column


def _within_fields() -> list[StructField]:
    (record,) = change_fields(["record"])
    return [record, StructField("tie", BinaryType())]


def _fact_fields() -> list[StructField]:
    types = {field.name: field.dataType for field in from_arrow_schema(FATES.remove_metadata()).fields}
    (time,) = change_fields(["commit_time"])
    return [time if name == "commit_time" else StructField(name, types[name]) for name in FACT_COLUMNS]


def _positional(fields: Sequence[StructField]) -> StructType:
    return StructType([StructField(str(index), f.dataType, f.nullable) for index, f in enumerate(fields)])
