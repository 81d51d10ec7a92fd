"""pandas frames in the worker: what mapInPandas runs, and rows as pandas and Python values that Spark takes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from .batches import pieces
from .relations import Timeline
from .task import Plan, Task


def decode_frames(plan: Plan, timeline: Timeline | None, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """What mapInPandas runs: each frame holds the messages, the kept columns, and those that place it."""
    task = Task(plan, timeline)
    for frame in frames:
        behind = 1 + len(plan.keep)
        kept = frame.iloc[:, 1:behind].set_axis([column.name for column in plan.keep], axis=1)
        placed = [frame.iloc[:, place].to_list() for place in range(behind, frame.shape[1])]
        yield from _rows_with_kept(task, frame.iloc[:, 0].to_list(), kept, placed)
    task.close()


def _rows_with_kept(
    task: Task, messages: list[Any], kept: pd.DataFrame, placed: Sequence[list[Any]]
) -> Iterator[pd.DataFrame]:
    sizes = np.array([len(pickle.dumps(row)) for row in kept.itertuples(name=None)], np.int64)

    def note(index: int) -> str | None:
        return task.plan.note(lambda place: kept.iat[index, place])

    for places, rows in task.rows(messages, note, placed):
        for start, stop in pieces(places, rows, sizes):
            repeated = kept.iloc[places.slice(start, stop - start).to_numpy()].reset_index(drop=True)
            piece = rows.slice(start, stop - start)
            series = {name: series_of(column) for name, column in zip(rows.schema.names, piece.columns, strict=True)}
            yield pd.concat([repeated, pd.DataFrame(series)], axis=1)


class Pairs(list[Any]):
    """A map as its pairs. Spark asks a map only for its items; a dict would lose a name that comes twice."""

    def items(self) -> Pairs:
        """The pairs, in order."""
        return self


def series_of(column: pa.Array) -> pd.Series:
    """A column of rows as a series; numbers and times stay Arrow's: null needs no float, and no zone shifts them."""
    if pa.types.is_nested(column.type):
        return pd.Series(python_values(column), dtype=object)
    return pd.Series(column, dtype=pd.ArrowDtype(column.type))


def python_values(column: pa.Array) -> list[Any]:
    """A column as the Python values that Spark's own conversion takes."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if pairs is None else Pairs(pairs) for pairs in values]
    return values
