"""Decoding of pandas frames in the worker, and rows as the pandas and Python values that Spark accepts."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from .batches import row_ranges
from .relations import Timeline
from .task import Plan, Task


def decode_frames(plan: Plan, timeline: Timeline | None, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The function for mapInPandas. A frame has the messages, the kept columns, and the columns of `timeline`."""
    task = Task(plan, timeline)
    for frame in frames:
        first = 1 + len(plan.keep)
        kept = frame.iloc[:, 1:first].set_axis([column.name for column in plan.keep], axis=1)
        positions = [frame.iloc[:, column].to_list() for column in range(first, frame.shape[1])]
        yield from _rows_with_kept(task, frame.iloc[:, 0].to_list(), kept, positions)
    task.close()


def _rows_with_kept(
    task: Task, messages: list[Any], kept: pd.DataFrame, positions: Sequence[list[Any]]
) -> Iterator[pd.DataFrame]:
    sizes = np.array([len(pickle.dumps(row)) for row in kept.itertuples(name=None)], np.int64)

    def note(message: int) -> str | None:
        return task.plan.note(lambda column: kept.iat[message, column])

    for message_of_row, rows in task.rows(messages, note, positions):
        for start, stop in row_ranges(message_of_row, rows, sizes):
            repeated = kept.iloc[message_of_row.slice(start, stop - start).to_numpy()].reset_index(drop=True)
            columns = rows.slice(start, stop - start).columns
            series = {name: series_of(column) for name, column in zip(rows.schema.names, columns, strict=True)}
            yield pd.concat([repeated, pd.DataFrame(series)], axis=1)


class Pairs(list[Any]):
    """A map as a list of pairs. Spark only calls `items`; a dict would lose a name that occurs twice."""

    def items(self) -> Pairs:
        """Returns the pairs, in order."""
        return self


def series_of(column: pa.Array) -> pd.Series:
    """Returns a column as a series. Numbers and times stay Arrow values: nulls and time zones change nothing."""
    if pa.types.is_nested(column.type):
        return pd.Series(python_values(column), dtype=object)
    return pd.Series(column, dtype=pd.ArrowDtype(column.type))


def python_values(column: pa.Array) -> list[Any]:
    """Returns a column as the Python values that Spark converts."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if pairs is None else Pairs(pairs) for pairs in values]
    return values
