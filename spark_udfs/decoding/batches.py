"""Decoding in the worker, of Arrow batches and of pandas frames.

Messages with kept columns become rows that begin with the kept ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc

from .relations import Timeline
from .task import DecodingPlan, Task
from .unconverted import series_of

RESULT_BATCH_BYTES = 32 << 20
"""The size limit of a batch that is returned to Spark; a single row may be larger. The JVM holds one or two batches per
task. The decoder's own batches are smaller, but kept columns, repeated for each row, can have any size."""


def decode_batches(
    plan: DecodingPlan, timeline: Timeline | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow. A batch has the messages, the kept columns, and the columns of `timeline`."""
    task = Task(plan, timeline)
    for batch in batches:
        messages, *others = batch.columns
        kept, positions = others[: len(plan.keep)], others[len(plan.keep) :]
        fields = [
            field.with_name(column.name).with_nullable(column.nullable)
            for field, column in zip(list(batch.schema)[1 : 1 + len(kept)], plan.keep, strict=True)
        ]
        yield from rows_with_kept(task, messages, fields, kept, [column.to_pylist() for column in positions])
    task.close()


def rows_with_kept(
    task: Task,
    messages: pa.Array,
    fields: Sequence[pa.Field],
    kept: Sequence[pa.Array],
    positions: Sequence[list[Any]] = (),
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the messages. Each row begins with the kept values of its message, in these fields."""
    sizes = value_bytes(kept, len(messages))

    def note(message: int) -> str | None:
        return task.plan.note(lambda column: kept[column][message].as_py())

    for message_of_row, rows in task.rows(messages, note, positions):
        schema = pa.schema([*fields, *rows.schema])
        for start, stop in row_ranges(message_of_row, rows, sizes):
            repeated = [column.take(message_of_row.slice(start, stop - start)) for column in kept]
            columns = [*repeated, *rows.slice(start, stop - start).columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def row_ranges(
    message_of_row: pa.Array, rows: pa.RecordBatch, sizes: np.ndarray[Any, Any], limit: int = RESULT_BATCH_BYTES
) -> Iterator[tuple[int, int]]:
    """Splits rows into ranges of at most `limit` bytes, or of one row.

    message_of_row  int64[rows]: the index of the message of each row
    sizes           int64[messages]: bytes of the kept values of each message
    """
    kept = np.concatenate([[0], np.cumsum(sizes[message_of_row.to_numpy()])])

    def split(start: int, stop: int) -> Iterator[tuple[int, int]]:
        size = rows.slice(start, stop - start).nbytes + int(kept[stop] - kept[start])
        if size <= limit or stop - start == 1:
            yield start, stop
        else:
            middle = (start + stop) // 2
            yield from split(start, middle)
            yield from split(middle, stop)

    return split(0, rows.num_rows)


def value_bytes(columns: Sequence[pa.Array], count: int) -> np.ndarray[Any, Any]:
    """Returns int64[count], the approximate bytes of each row's values. Values of fixed width are not counted."""
    sizes = np.zeros(count, np.int64)
    for column in columns:
        if pa.types.is_nested(column.type):
            sizes += [column.slice(row, 1).nbytes for row in range(count)]
        elif column.type in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    return sizes


def decode_frames(
    plan: DecodingPlan, timeline: Timeline | None, types: Sequence[pa.DataType | None], frames: Iterator[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    """The function for mapInPandas. A frame has the messages, the kept columns, and the columns of `timeline`.

    types   of the kept columns, where Arrow repeats them; None where pandas repeats Python objects
    """
    task = Task(plan, timeline)
    for frame in frames:
        first = 1 + len(plan.keep)
        kept = [_kept(frame.iloc[:, index], kind) for index, kind in enumerate(types, 1)]
        given = (frame.iloc[:, column] for column in range(first, frame.shape[1]))
        positions = [pa.array(column, from_pandas=True).to_pylist() for column in given]  # with None for NaN and NA
        yield from _rows_with_kept(task, frame.iloc[:, 0].to_list(), kept, positions)
    task.close()


def _kept(column: pd.Series, kind: pa.DataType | None) -> pa.Array | pd.Series:
    """Returns a kept column, its text read back."""
    if kind is None:
        return column
    if pa.types.is_binary(kind):
        return pa.array(column, kind, from_pandas=True)
    text = pa.array(column, pa.string(), from_pandas=True)
    return (text.cast(pa.int64()) if pa.types.is_timestamp(kind) else text).cast(kind)


def _rows_with_kept(
    task: Task, messages: list[Any], kept: Sequence[pa.Array | pd.Series], positions: Sequence[list[Any]]
) -> Iterator[pd.DataFrame]:
    names = [column.name for column in task.plan.keep]
    sizes = value_bytes([column for column in kept if isinstance(column, pa.Array)], len(messages))
    for column in kept:
        if isinstance(column, pd.Series):
            sizes += np.array([len(pickle.dumps(value)) for value in column], np.int64)

    def note(message: int) -> str | None:
        return task.plan.note(lambda column: kept[column][message].as_py())  # what is shown is not nested

    for message_of_row, rows in task.rows(messages, note, positions):
        for start, stop in row_ranges(message_of_row, rows, sizes):
            numbers = message_of_row.slice(start, stop - start)
            repeated = [_repeated(column, numbers) for column in kept]
            columns = [*repeated, *map(series_of, rows.slice(start, stop - start).columns)]
            yield pd.DataFrame(dict(zip([*names, *rows.schema.names], columns, strict=True)), copy=False)


def _repeated(column: pa.Array | pd.Series, numbers: pa.Array) -> pd.Series:
    if isinstance(column, pd.Series):
        return column.iloc[numbers.to_numpy()].reset_index(drop=True)
    return series_of(column.take(numbers))
