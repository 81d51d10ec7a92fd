"""Decoding of Arrow batches in the worker: messages with kept columns become rows that begin with the kept ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .relations import Timeline
from .task import DecodingPlan, Task

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
