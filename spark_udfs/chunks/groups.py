"""The rows of a task: the messages of a chunk, stream after stream, in the order of their positions."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf

from ..position_errors import not_unique
from ..task import shown_value


class Group(NamedTuple):
    """The messages of one stream in one chunk.

    chunk       number of the chunk
    plan        what came before the first message; None if nothing came
    stream      the values of stream_by
    messages    read once
    """

    chunk: int
    plan: Any
    stream: tuple[Any, ...]
    messages: GroupMessages

    @property
    def key(self) -> str:
        """The stream as a text."""
        return stream_key(self.stream)


def stream_key(values: Sequence[Any]) -> str:
    """Returns the values of stream_by as a text."""
    return json.dumps(values, ensure_ascii=False)


class GroupMessages:
    """The messages of a group, and the positions of those that were read.

    names   of the columns order_by
    """

    def __init__(
        self, slices: Iterable[pa.RecordBatch], stream: Sequence[tuple[str, Any]], names: Sequence[str]
    ) -> None:
        self._slices = slices
        self._stream = stream
        self.names = names
        self._read: list[list[pa.Array]] = []
        self._firsts = [0]

    def reader(self) -> pa.RecordBatchReader:
        """Returns the messages, which can be read once."""
        schema = pa.schema([pa.field("payload", pa.binary())])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._slices:
                *order, messages = batch.columns
                self._read.append(order)
                self._firsts.append(self._firsts[-1] + len(messages))
                yield pa.RecordBatch.from_arrays([messages.cast(pa.binary())], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def columns(self, messages: pa.Array) -> list[pa.Array]:
        """Returns the columns order_by of messages, by their indices in the group."""
        joined = [pa.chunked_array(column).combine_chunks() for column in zip(*self._read, strict=True)]
        return [column.take(messages) for column in joined]

    def note(self, message: int) -> str:
        """Returns what identifies a message in an error: `partition=3, offset=17`."""
        batch = int(np.searchsorted(self._firsts, message, "right")) - 1
        row = message - self._firsts[batch]
        values = [column[row].as_py() for column in self._read[batch]]
        return ", ".join(
            f"{name}={shown_value(value)}" for name, value in [*self._stream, *zip(self.names, values, strict=True)]
        )

    def located(self, error: wf.WireformatError) -> wf.WireformatError:
        """Returns an error with the note of its message in place of the index."""
        if not isinstance(error, (wf.DecodeError, wf.OrderError, wf.BadRows, wf.BadCell)) or error.message is None:
            return error
        return error.add(note=self.note(error.message), message=None)


def groups(batches: Iterable[pa.RecordBatch], streams: Sequence[str], order: Sequence[str]) -> Iterator[Group]:
    """Yields the groups of a task; each must be read before the next one. Raises BadRows for equal positions.

    batches    chunk, stream_by, order_by, message: as `Messages.in_chunks` sorts them
    streams    the names of stream_by
    order      the names of order_by
    """
    plan: Any = None
    for (chunk, *stream), slices in groupby(_slices(batches, streams, order), itemgetter(0)):
        rows = (of_group for _, of_group in slices)
        if stream == [PLAN]:
            plan = pickle.loads(next(rows).column(0)[0].as_py())
            continue
        yield Group(chunk, plan, tuple(stream), GroupMessages(rows, [*zip(streams, stream, strict=True)], order))


PLAN = object()
"""Stands in place of a stream where the message is a plan."""


def _slices(
    batches: Iterable[pa.RecordBatch], streams: Sequence[str], order: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Yields chunk and stream with some of their messages: order_by and message; or chunk and PLAN with a plan."""
    last: list[pa.Scalar] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        *keys, messages = batch.columns
        is_new = [_differs(column, last and last[index]) for index, column in enumerate(keys)]
        is_plan = np.asarray(keys[-1].is_null())
        same = np.flatnonzero(~np.logical_or.reduce(is_new) & ~is_plan)
        if len(same):
            named = zip([*streams, *order], (column[int(same[0])].as_py() for column in keys[1:]), strict=True)
            raise not_unique(f"two messages at {', '.join(f'{name}={shown_value(value)}' for name, value in named)}")
        bounds = np.flatnonzero(
            np.logical_or.reduce([*is_new[: 1 + len(streams)], is_plan]) | np.append(True, is_plan[:-1])
        )
        rows = pa.RecordBatch.from_arrays([*keys[1 + len(streams) :], messages], names=[*order, "message"])
        for start, stop in pairwise([*bounds.tolist(), len(messages)]):
            chunk, *stream = (column[start].as_py() for column in keys[: 1 + len(streams)])
            if is_plan[start]:
                yield (chunk, PLAN), rows.select(["message"]).slice(start, 1)
            else:
                yield (chunk, *stream), rows.slice(start, stop - start)
        last = [column[-1] for column in keys]


def _differs(column: pa.Array, before: pa.Scalar | None) -> Any:
    """Returns bool[n]: whether each value differs from the previous one; `before` precedes the first."""
    found = np.ones(len(column), bool)
    found[0] = before is None or column[0] != before
    found[1:] = pc.fill_null(pc.not_equal(column[1:], column[:-1]), True).to_numpy(zero_copy_only=False)
    return found
