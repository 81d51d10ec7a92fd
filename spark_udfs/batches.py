"""Arrow batches in the worker: messages and kept columns in, rows with the kept columns before them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .relations import Timeline
from .task import Plan, Task

PIECE_BYTES = 32 << 20
"""How large a batch may be that goes back to Spark, unless one row is larger: the JVM holds one or two of them for
each task. The decoder's own batches are smaller; kept columns, repeated for each row, can be any size."""


def decode_batches(
    plan: Plan, timeline: Timeline | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What mapInArrow runs: each batch holds the messages, the kept columns, and those that place it."""
    task = Task(plan, timeline)
    for batch in batches:
        messages, *others = batch.columns
        kept, placed = others[: len(plan.keep)], others[len(plan.keep) :]
        fields = [
            field.with_name(column.name).with_nullable(column.nullable)
            for field, column in zip(list(batch.schema)[1 : 1 + len(kept)], plan.keep, strict=True)
        ]
        yield from rows_with_kept(task, messages, fields, kept, [column.to_pylist() for column in placed])
    task.close()


def rows_with_kept(
    task: Task,
    messages: pa.Array,
    fields: Sequence[pa.Field],
    kept: Sequence[pa.Array],
    placed: Sequence[list[Any]] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of the messages; each begins with the kept values of its message, in these fields."""
    sizes = value_bytes(kept, len(messages))

    def note(index: int) -> str | None:
        return task.plan.note(lambda place: kept[place][index].as_py())

    for places, rows in task.rows(messages, note, placed):
        schema = pa.schema([*fields, *rows.schema])
        for start, stop in pieces(places, rows, sizes):
            repeated = [column.take(places.slice(start, stop - start)) for column in kept]
            columns = [*repeated, *rows.slice(start, stop - start).columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def pieces(
    places: pa.Array, rows: pa.RecordBatch, sizes: np.ndarray[Any, Any], limit: int = PIECE_BYTES
) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges of at most `limit` bytes, or one row.

    places      int64[rows]: the message of each row
    sizes       int64[messages]: bytes of the kept values of each message
    """
    kept = np.concatenate([[0], np.cumsum(sizes[places.to_numpy()])])

    def cut(start: int, stop: int) -> Iterator[tuple[int, int]]:
        size = rows.slice(start, stop - start).nbytes + int(kept[stop] - kept[start])
        if size <= limit or stop - start == 1:
            yield start, stop
        else:
            middle = (start + stop) // 2
            yield from cut(start, middle)
            yield from cut(middle, stop)

    return cut(0, rows.num_rows)


def value_bytes(columns: Sequence[pa.Array], count: int) -> np.ndarray[Any, Any]:
    """int64[count]: bytes of each row's values, about: those of fixed width do not matter."""
    sizes = np.zeros(count, np.int64)
    for column in columns:
        if pa.types.is_nested(column.type):
            sizes += [column.slice(row, 1).nbytes for row in range(count)]
        elif column.type in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    return sizes
