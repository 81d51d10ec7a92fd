"""decode: decodes a DataFrame of messages into a DataFrame of row changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType, StringType, StructField, StructType

import wireformat as wf
from wireformat.options.checks import one_of, texts
from wireformat.options.keywords import checks_keywords

from ..fields import (
    ARROW_CANNOT,
    IN_ARROW,
    PANDAS_CANNOT,
    carrier,
    check_frame,
    column_of,
    field_of,
    is_text,
    packed,
    parts_of,
    payload_of,
    unpacked,
)
from ..positions import PositionColumns
from ..schemas import arrow_types, change_fields, change_names
from .batches import decode_batches, decode_frames
from .relations import Timeline, needed_rows
from .task import DecodingPlan, Kept


@checks_keywords
def decode(
    df: DataFrame,
    payload: str = "value",
    format: str = "gaussdb-binary",
    *,
    keep: Sequence[str] = (),
    mode: str = "FAILFAST",
    columns: Sequence[str] | None = None,
    tables: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Sequence[str] | None = None,
    dialect: str = "postgresql",
    order_by: Sequence[str] = (),
    stream_by: Sequence[str] = (),
    engine: str = "arrow",
) -> DataFrame:
    """Decodes a column of messages into rows, one per record.

    df          batch or streaming
    payload     the binary column with the messages; null gives no rows
    keep        columns of df that come first in the result, repeated for each record of their message
    columns     columns of the row-change table; None for all, without `message`
    order_by    for pgoutput: columns (integers or strings) that order the messages. With them, the partitions of a
                batch can be any parts of the streams: the call collects the messages that describe tables. Without,
                each partition must hold a whole stream in its order. The rows of other formats need no order
    stream_by   columns (integers or strings) that identify a stream, if df has more than one
    engine      arrow (mapInArrow), or pandas (mapInPandas), which returns the same rows

    The other options are those of `wireformat.ReadOptions`. Raises OptionError when called, and TypeError if df is no
    DataFrame. Bad input is found when the result is computed: in FAILFAST mode, the query ends with the text of the
    DecodeError.
    """
    check_frame("df", df)
    run, cannot = ENGINES[one_of("engine", engine, tuple(ENGINES))]
    names = change_names(columns)
    kept = _kept_fields(df, keep, names)
    messages = payload_of(df, payload)
    plan = DecodingPlan.check(
        format,
        names,
        keep=[
            Kept(field.name, field.nullable, isinstance(field.dataType, (IntegralType, StringType))) for field in kept
        ],
        mode=mode,
        encoding=encoding,
        encoding_errors=encoding_errors,
        heartbeat_unit=heartbeat_unit,
        tables=tables,
        kinds=kinds,
        known_tables=known_tables,
        dialect=dialect,
    )
    timeline, positions = None, []
    if order_by or stream_by:
        fields = PositionColumns.check(df, order_by, stream_by)
        if plan.format == "pgoutput":
            _check_is_batch(df)
            timeline = Timeline(needed_rows(df, messages, fields), plan.options)
            positions = [column_of(field) for field in fields.fields]
    sent = [column_of(messages), *[packed(field, cannot) for field in kept], *positions]
    columns_sent = [column.alias(str(index)) for index, column in enumerate(sent)]
    decoded = run(df.select(*columns_sent), plan, timeline, [carrier(field, cannot) for field in kept])
    if any(is_text(field, cannot) for field in kept):
        return decoded.select(*[unpacked(field, cannot) for field in kept], *names)
    return decoded


def _check_is_batch(df: DataFrame) -> None:
    if df.isStreaming:
        raise wf.OptionError(
            "option order_by: expected a batch DataFrame, got a streaming one; use capture(…).changes() for it"
        )


def _run_arrow(df: DataFrame, plan: DecodingPlan, timeline: Timeline | None, kept: Sequence[StructField]) -> DataFrame:
    return df.mapInArrow(
        partial(decode_batches, plan, timeline), StructType([*kept, *change_fields(plan.columns, plan.format)])
    )


def _run_pandas(df: DataFrame, plan: DecodingPlan, timeline: Timeline | None, kept: Sequence[StructField]) -> DataFrame:
    nullable = [
        StructField(field.name, field.dataType, True, field.metadata) for field in kept
    ]  # pandas columns always are
    types = [
        arrow_types(StructType([field])).field(0).type if isinstance(field.dataType, IN_ARROW) else None
        for field in nullable
    ]
    return df.mapInPandas(
        partial(decode_frames, plan, timeline, types),
        StructType([*nullable, *change_fields(plan.columns, plan.format)]),
    )


ENGINES = {"arrow": (_run_arrow, ARROW_CANNOT), "pandas": (_run_pandas, PANDAS_CANNOT)}


def _kept_fields(df: DataFrame, keep: Sequence[str], names: Sequence[str]) -> list[StructField]:
    """Returns the fields of the kept columns; raises OptionError if the result had no columns, or two of one name."""
    keep = texts("keep", keep)
    if not keep and not names:
        raise wf.OptionError("option columns: expected at least one column to return or to keep")
    taken = {name.lower(): "the row-change table has a column of this name" for name in names}
    for name in keep:
        if name.lower() in taken:
            raise wf.OptionError(f"option keep: {name!r}: {taken[name.lower()]}; rename the one in the input")
        taken[name.lower()] = "it is named twice"
    fields = [field_of(df, "keep", name) for name in keep]
    for field in fields:
        if any(isinstance(part, ARROW_CANNOT) for part in parts_of(field.dataType)):
            raise wf.OptionError(
                f"option keep: {field.name!r} has intervals within {field.dataType.simpleString()}, which Spark does "
                "not take back from Python; cast it to string"
            )
    return fields
