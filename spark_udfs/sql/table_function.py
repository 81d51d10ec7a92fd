"""wal_changes: the Arrow table function that decodes a table of messages."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

import wireformat as wf

from ..decoding.batches import rows_with_kept
from ..decoding.task import DecodingPlan, Kept, Task
from .arguments import read_arguments

NAME = "wal_changes"


class WalChanges:
    """Returns the rows of the messages of a table with the columns seq and payload; seq comes back first.

    Spark creates one instance per partition. `SELECT * FROM wal_changes(TABLE(...), format => '...', mode => '...')`;
    the options are those of `arguments.OPTIONS`.
    """

    def __init__(self) -> None:
        self._task: Task | None = None

    def eval(
        self, messages: pa.RecordBatch, format: pa.Array | None = None, *given: pa.Array, **named: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one batch. Each argument is an array of equal values."""
        if not messages.num_rows:
            return iter(())
        if self._task is None:
            options = read_arguments(NAME, format, given, named)
            self._task = Task(DecodingPlan.check(**options, keep=[Kept("seq", is_shown=True)]))
        seq = _column(messages, "seq")
        payload = _column(messages, "payload")
        if not pa.types.is_integer(seq.type):
            raise wf.OptionError(f"{NAME}: seq must be an integer, it is {seq.type}")
        if not (pa.types.is_binary(payload.type) or pa.types.is_large_binary(payload.type)):
            raise wf.OptionError(f"{NAME}: payload must be binary, it is {payload.type}")
        return rows_with_kept(self._task, payload, [pa.field("seq", pa.int64())], [seq.cast(pa.int64())])

    def terminate(self) -> None:
        """Called after the last batch."""
        if self._task is not None:
            self._task.close()


def _column(messages: pa.RecordBatch, name: str) -> pa.Array:
    """Returns the column of this name; as in SQL, the case does not matter."""
    indices = [index for index, found in enumerate(messages.schema.names) if found.lower() == name]
    if len(indices) != 1:
        there = ", ".join(messages.schema.names)
        raise wf.OptionError(f"{NAME}: the table must have one column {name}, it has {there}; rename with AS {name}")
    return messages.column(indices[0])
