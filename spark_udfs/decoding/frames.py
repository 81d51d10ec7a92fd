"""Decoding of pandas frames in the worker: messages with kept columns become rows that begin with the kept ones."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from .batches import row_ranges, value_bytes
from .relations import Timeline
from .task import DecodingPlan, Task
from .unconverted import series_of


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
        positions = [frame.iloc[:, column].to_list() for column in range(first, frame.shape[1])]
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
