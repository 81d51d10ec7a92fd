"""Transactions of a batch DataFrame: cut into chunks, a label for each row, and the rows joined with their labels.

Narrow rows, without the values, are sorted chunk by chunk and read twice: for the summaries of the chunks, which one
task a stream walks to find the fates of what lies in more than one chunk; and for the labels, which are joined with the
fates. The rows themselves are read once and meet their labels by their place.
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
    FATE,
    RECORD_COLUMNS,
    Narrow,
    check_batches,
    fates_of_stream,
    label_batches,
    summary_batches,
    unknown_of_stream,
)
from .named_columns import raw_head
from .positions import Places, chunk_of
from .schemas import change_fields
from .sql_rules import is_resent, is_undone, truncate_tie

ROWS = ("INSERT", "UPDATE", "DELETE")
"""The kinds of most rows: their `detail` does not matter here."""

CHUNK = StructField("chunk", IntegerType())


def committed_rows(
    changes: DataFrame, places: Places, fields: Sequence[StructField], chunks: int, two_phase: str, drop_resent: bool
) -> DataFrame:
    """The result of `transactions`, whose columns are `fields`."""
    narrow = Narrow(len(places.stream_by), _names(places), two_phase, drop_resent, format=format_of([changes], None))
    found, fates = _labels_and_fates(changes, places, chunks, narrow)
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
    told = {name: F.when(is_whole, own(name)).otherwise(_as_time(fate(name), name)) for name in FACT_COLUMNS}
    labels = found.where(wanted).select(
        *_keys(found, len(narrow.keys)),
        sequence.alias("sequence"),
        *[column.alias(name) for name, column in told.items()],
    )
    rows = _rows_with_keys(changes.where(F.col("kind").isin(*DELIVERED_KINDS)), places)
    joined = _joined(rows, labels, len(narrow.keys), "inner")
    of_row = {field.name: _of_row(place) for place, field in enumerate(changes.schema)}
    of_label = {name: F.col(name) for name in ("sequence", *FACT_COLUMNS)}
    columns = {**of_row, **of_label}
    rows = joined.select(*[columns[field.name].alias(field.name, metadata=field.metadata) for field in fields])
    return rows.union(_checked(fates, narrow, fields))


def open_rows(changes: DataFrame, places: Places, chunks: int, two_phase: str, drop_resent: bool) -> DataFrame:
    """The result of `open_transactions`."""
    format = format_of([changes], None)
    narrow = Narrow(len(places.stream_by), _names(places), two_phase, drop_resent, controls=True, format=format)
    found, fates = _labels_and_fates(changes, places, chunks, narrow)
    labels = found.where(_column("fate", "fate") == OPEN).select(*_keys(found, len(narrow.keys)))
    joined = _joined(_rows_with_keys(changes, places), labels, len(narrow.keys), "left_semi")
    rows = joined.select(
        *[_of_row(place).alias(field.name, metadata=field.metadata) for place, field in enumerate(changes.schema)]
    )
    return rows.union(_checked(fates, narrow, changes.schema.fields))


def _checked(fates: DataFrame, narrow: Narrow, fields: Sequence[StructField]) -> DataFrame:
    """No rows, in these fields: a branch that raises the errors that rows gave.

    Where there are no rows that could be delivered, or a filter leaves none, Spark drops the branch of the labels and
    the errors in it. This one is in no join with which it could be dropped. Its input was shuffled for the labels.
    """
    carried = StructType([carrier(field, ARROW_CANNOT) for field in fields])
    said = fates.where(F.col("verdict").isNotNull()).select("verdict").coalesce(1)
    checked = said.mapInArrow(partial(check_batches, narrow), carried)
    if any(is_text(field, ARROW_CANNOT) for field in fields):
        return checked.select(*[unpacked(field, ARROW_CANNOT) for field in fields])
    return checked


def unknown_prepared_rows(
    changes: DataFrame, places: Places, chunks: int, two_phase: str, drop_resent: bool
) -> DataFrame:
    """The result of `unknown_prepared`."""
    narrow = Narrow(len(places.stream_by), _names(places), two_phase, drop_resent)
    fields = [*_stream_fields(places), StructField("gid", StringType())]
    found = _summaries(_narrow_rows(changes, places, chunks), places, narrow).applyInArrow(
        lambda summaries: unknown_of_stream(narrow, summaries), _numbered(fields)
    )
    return found.toDF(*[field.name for field in fields])


def _names(places: Places) -> tuple[str, ...]:
    return tuple(field.name for field in places.fields)


def _column(prefix: str, name: str) -> Column:
    return F.col(f"{prefix}_{name}")


def _of_row(place: int) -> Column:
    return F.col(f"row_{place}")


def _keys(labels: DataFrame, count: int) -> list[Column]:
    return [F.col(f"key_{place}") for place in range(count)]


def _within() -> list[Column]:
    """What tells the rows of a message apart: the record, and of a TRUNCATE of several tables the table."""
    return [F.col("record"), truncate_tie()]


def _labels_and_fates(changes: DataFrame, places: Places, chunks: int, narrow: Narrow) -> tuple[DataFrame, DataFrame]:
    """A row for each one that may be delivered: key_0 …, own_… as its chunk says it, fate_… as its stream does.

    And what the streams say, with their verdicts.
    """
    rows = _narrow_rows(changes, places, chunks)
    streams, keys = len(places.stream_by), len(narrow.keys)
    stream_fields = _stream_fields(places)
    key_fields = [*[StructField(f.name, f.dataType) for f in places.fields], *_within_fields()]
    chunk, segment = CHUNK, StructField("segment", IntegerType())
    told = _told_fields()
    numbers = [StructField("number", LongType(), False), StructField("ordinal", LongType(), False)]
    labels = rows.mapInArrow(partial(label_batches, narrow), _numbered([chunk, *key_fields, *numbers, *told, segment]))
    labels = labels.toDF(
        "own_chunk", *[f"key_{place}" for place in range(keys)], *[f"own_{f.name}" for f in (*numbers, *told, segment)]
    )
    fate_fields = list(from_arrow_schema(FATES.remove_metadata()).fields)
    of_fate = [StructField(f.name, f.dataType) for name in FATE for f in fate_fields if f.name == name]
    fates = _summaries(rows, places, narrow).applyInArrow(
        lambda found: fates_of_stream(narrow, found),  # Spark wants the hints of anything that has some
        _numbered([chunk, *stream_fields, segment, *of_fate, StructField("verdict", BinaryType())]),
    )
    of_stream = [f"stream_{place}" for place in range(streams)]
    fates = fates.toDF("fate_chunk", *of_stream, "fate_segment", *[f"fate_{n}" for n in FATE], "verdict")
    same = [
        F.col("own_chunk") == F.col("fate_chunk"),
        F.col("own_segment") == F.col("fate_segment"),
        *[F.col(f"key_{place}") == F.col(f"stream_{place}") for place in range(streams)],
    ]
    of_rows = fates.where(F.col("verdict").isNull()).drop("verdict")
    return labels.join(F.broadcast(of_rows), reduce(and_, same)), fates


def _summaries(rows: DataFrame, places: Places, narrow: Narrow) -> GroupedData:
    """The summaries and the verdicts of the chunks, by stream."""
    said = [StructField("summary", BinaryType()), StructField("verdict", BinaryType())]
    fields = [CHUNK, *_stream_fields(places), *said]
    summaries = rows.mapInArrow(partial(summary_batches, narrow), _numbered(fields))
    return summaries.groupBy(*[F.col(str(1 + place)) for place in range(len(places.stream_by))])


def _stream_fields(places: Places) -> list[StructField]:
    return [StructField(f.name, f.dataType) for f in places.stream_by]


def _narrow_rows(changes: DataFrame, places: Places, chunks: int) -> DataFrame:
    """What `labels` reads, one chunk a partition."""
    within = _within()
    detail = F.when(~F.col("kind").isin(*ROWS), F.col("detail"))
    columns = [
        chunk_of(changes, places, chunks, within),
        *places.columns,
        *within,
        *[F.col(name) for name in RECORD_COLUMNS],
        *[F.try_element_at(detail, F.lit(key)) for key in NEEDED_DETAILS],
        raw_head(changes),
    ]
    rows = changes.select(*[column.alias(str(place)) for place, column in enumerate(columns)])
    order = [str(place) for place in range(1 + len(places.fields) + len(within))]
    return rows.repartitionById(chunks, "0").sortWithinPartitions(*order)


def _rows_with_keys(changes: DataFrame, places: Places) -> DataFrame:
    """All columns as row_0 …, and after them row_key_0 …."""
    rows = [F.col(f"`{name.replace('`', '``')}`").alias(f"row_{place}") for place, name in enumerate(changes.columns)]
    keys = [column.alias(f"row_key_{place}") for place, column in enumerate([*places.columns, *_within()])]
    return changes.select(*rows, *keys)


def _joined(rows: DataFrame, labels: DataFrame, keys: int, how: str) -> DataFrame:
    same = [F.col(f"row_key_{place}") == F.col(f"key_{place}") for place in range(keys)]
    return rows.join(labels, reduce(and_, same), how)


def _as_time(column: Column, name: str) -> Column:
    return F.timestamp_micros(column) if name == "commit_time" else column


def _within_fields() -> list[StructField]:
    (record,) = change_fields(["record"])
    return [record, StructField("tie", BinaryType())]


def _told_fields() -> list[StructField]:
    types = {field.name: field.dataType for field in from_arrow_schema(FATES.remove_metadata()).fields}
    (time,) = change_fields(["commit_time"])
    return [time if name == "commit_time" else StructField(name, types[name]) for name in FACT_COLUMNS]


def _numbered(fields: Sequence[StructField]) -> StructType:
    return StructType([StructField(str(place), f.dataType, f.nullable) for place, f in enumerate(fields)])
