"""The rows of a task: the messages of a chunk, stream after stream, in the order of their positions."""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import wireformat as wf
from wireformat.chunks.relations import needed_messages
from wireformat.stream.chunk_plan import ChunkPlan

from ..decoding.task import shown_value
from ..positions import not_unique

if TYPE_CHECKING:
    from wireformat.chunks.records import SeenRecords
    from wireformat.chunks.summary import ChunkSummary


class MessagesOfGroup(Protocol):
    """The messages of a group."""

    @property
    def names(self) -> Sequence[str]:
        """The names of order_by."""

    @property
    def has_lasting_positions(self) -> bool:
        """Whether a message has the same position in other captures of the stream."""

    @property
    def needed(self) -> list[bytes]:
        """The messages of pgoutput that later ones need, without repetitions."""

    def source(self) -> Any:
        """Returns the messages, as `wireformat.Capture` takes them; to be read once."""

    def columns(self, messages: pa.Array) -> list[pa.Array]:
        """Returns the columns order_by of messages, by their indices in the group. One call for many is cheaper."""

    def name(self, message: int) -> str:
        """Returns what names a message in errors, by its index in the group."""

    def located(self, error: wf.WireformatError) -> wf.WireformatError:
        """Returns an error with what identifies its message, in place of the index in the group."""

    def name_records(self, seen: SeenRecords) -> None:
        """Puts names in place of the indices of messages, unless the driver counts them."""

    def place(self, summary: ChunkSummary) -> None:
        """Puts the columns order_by in place of the indices of messages, unless the driver does that."""


class Group(NamedTuple):
    """The messages of one stream in one chunk.

    chunk       number of the chunk
    plan        what the group needs of the other chunks; None if the question needs nothing
    stream      the values of stream_by
    messages    read once
    """

    chunk: int
    plan: ChunkPlan | None
    stream: tuple[Any, ...]
    messages: MessagesOfGroup

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

    has_lasting_positions = True

    def __init__(
        self, slices: Iterable[pa.RecordBatch], stream: Sequence[tuple[str, Any]], names: Sequence[str]
    ) -> None:
        self._slices = slices
        self._stream = stream
        self.names = names
        self._read: list[list[pa.Array]] = []
        self._firsts = [0]
        self._lost: Exception | None = None
        """Why the messages ended early."""

    @classmethod
    def known(cls, positions: pa.RecordBatch, stream: Sequence[tuple[str, Any]], names: Sequence[str]) -> GroupMessages:
        """Returns messages that are read elsewhere.

        positions   of the messages: the columns order_by
        """
        found = cls((), stream, names)
        found._note(positions.columns, len(positions))
        return found

    def source(self) -> pa.RecordBatchReader:
        """Returns the messages, which can be read once."""
        schema = pa.schema([pa.field("payload", pa.binary())])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._noting_lost():
                *order, messages = batch.columns
                everything = pa.array(np.arange(len(messages)))
                # copies, since all columns of a batch from the JVM lie in one buffer, with the messages
                self._note([column.take(everything) for column in order], len(messages))
                yield pa.RecordBatch.from_arrays([messages.cast(pa.binary())], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    @property
    def needed(self) -> list[bytes]:
        """The messages of pgoutput that later ones need, without repetitions."""
        messages = (value for batch in self.source() for value in batch.column(0).to_pylist())
        return needed_messages(message for message in messages if message is not None)

    def _noting_lost(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._slices
        except Exception as error:
            self._lost = error
            raise

    def _note(self, order: list[pa.Array], count: int) -> None:
        self._read.append(order)
        self._firsts.append(self._firsts[-1] + count)

    def columns(self, messages: pa.Array) -> list[pa.Array]:
        """Returns the columns order_by of messages, by their indices in the group. One call for many is cheaper."""
        indices = np.asarray(messages)
        bounds = [indices.min(), indices.max()] if len(indices) else [0, 0]
        first, last = (int(at) for at in np.searchsorted(self._firsts, bounds, "right") - 1)
        joined = (
            pa.chunked_array(column).combine_chunks() for column in zip(*self._read[first : last + 1], strict=True)
        )
        own = pa.array(indices - self._firsts[first])
        return [column.take(own) for column in joined]

    def name(self, message: int) -> str:
        """Returns what names a message in errors: `partition=3, offset=17`."""
        batch = int(np.searchsorted(self._firsts, message, "right")) - 1
        row = message - self._firsts[batch]
        values = [column[row].as_py() for column in self._read[batch]]
        return ", ".join(
            f"{name}={shown_value(value)}" for name, value in [*self._stream, *zip(self.names, values, strict=True)]
        )

    def located(self, error: wf.WireformatError) -> wf.WireformatError:
        """Returns an error with the note of its message in place of the index.

        Raises what ended the messages early, if that was the reason: those before it are read first.
        """
        if self._lost is not None:
            raise self._lost
        if not isinstance(error, (wf.DecodeError, wf.OrderError, wf.BadRows, wf.BadCell)) or error.message is None:
            return error
        if isinstance(error, (wf.DecodeError, wf.OrderError)):
            error.add(source=None)  # a DataFrame, which has no name
        return error.add(note=self.name(error.message), message=None)

    def name_records(self, seen: SeenRecords) -> None:
        """Puts names in place of the indices of messages."""
        seen.records = [
            one._replace(message=self.name(one.message)) if isinstance(one.message, int) and one.facts else one
            for one in seen.records
        ]

    def place(self, summary: ChunkSummary) -> None:
        """Puts the columns order_by in place of the indices of messages."""
        for error in (summary.error, *summary.items[-1:]):
            if isinstance(error, wf.WireformatError):
                self.located(error)
        ends = [position for one in summary.observed for position in (one.first, one.last)]
        columns = self.columns(pa.array([end["message"] for end in ends], pa.int64())) if ends else []
        values = zip(*(column.to_pylist() for column in columns), strict=True)
        named = [
            {**dict(zip(self.names, of_end, strict=True)), "record": end["record"]}
            for of_end, end in zip(values, ends, strict=True)
        ]
        summary.observed = [
            one._replace(first=first, last=last)
            for one, first, last in zip(summary.observed, named[::2], named[1::2], strict=True)
        ]


class NotSorted(Exception):
    """The messages of a partition do not come in the order of stream and position."""


class OtherPartitions(Exception):
    """The partitions of the DataFrame have other messages than when their positions were looked at."""


class Range(NamedTuple):
    """What a chunk has of a stream.

    rank         index of the chunk among those of the stream
    first, last  the positions of its first and last message
    partition    of the DataFrame, which has the chunk, and maybe others
    """

    rank: int
    first: tuple[Any, ...]
    last: tuple[Any, ...]
    partition: int


Ranges = Mapping[str, Mapping[int, Range]]
"""By stream and number of the chunk."""

Plans = Mapping[int, Mapping[str, ChunkPlan]]
"""By number of the chunk and stream."""


def groups(
    batches: Iterable[pa.RecordBatch],
    streams: Sequence[str],
    order: Sequence[str],
    plans: Plans | None = None,
    ranges: Ranges | None = None,
    stream_messages: Mapping[str, int] | None = None,
    *,
    is_planned: bool = False,
    partition: int | None = None,
) -> Iterator[Group]:
    """Yields the groups of a task; each must be read before the next one.

    batches     chunk, stream_by, order_by, message: as `Messages.in_chunks` returns them
    streams     the names of stream_by
    order       the names of order_by
    plans       by the number of the chunk, if they are not among the messages
    ranges      that the chunks must have, if they are known
    stream_messages   by stream, how many messages it must have, if a chunk is a whole stream
    is_planned  whether each group of these chunks has a plan, and each plan a group
    partition   the number of the task's partition, if plans are not among the messages: the task may have lost all of
                them. Where Spark has joined partitions, a task has other chunks, as its messages show

    Raises BadRows for equal positions, NotSorted, OtherPartitions.
    """
    last: int | None = None
    of_chunk: Mapping[str, ChunkPlan] = {}
    siblings = _Siblings(ranges if plans is not None else None)
    absent = siblings.of_partition(partition)  # chunks of the task whose messages have not come
    missing: set[str] = set()
    for (chunk, *stream), slices in groupby(_slices(batches, streams, order), itemgetter(0)):
        rows: Iterator[pa.RecordBatch] = (of_group for _, of_group in slices)
        if chunk != last:
            _check_none(missing)
            absent = (absent if last is not None else set()) | siblings.of_chunk(chunk)
            absent.discard(chunk)
            last, of_chunk = chunk, _plans_of(plans, chunk)
            missing = {*of_chunk}
        if stream == [PLAN]:
            _check_none(missing)
            of_chunk = pickle.loads(next(rows).column(0)[0].as_py())
            missing = {*of_chunk}
            continue
        key = stream_key(stream)
        missing.discard(key)
        if is_planned and key not in of_chunk:
            raise OtherPartitions
        if ranges is not None:
            rows = _checked(rows, ranges.get(key, {}).get(chunk))
        if stream_messages is not None:
            rows = _counted(rows, stream_messages.get(key, 0))
        yield Group(
            chunk, of_chunk.get(key), tuple(stream), GroupMessages(rows, [*zip(streams, stream, strict=True)], order)
        )
    _check_none(missing.union(*(_plans_of(plans, chunk) for chunk in absent)))


class _Siblings:
    """Which chunks are in one partition.

    ranges   None if it is not asked for
    """

    def __init__(self, ranges: Ranges | None) -> None:
        self._partition_of: dict[int, int] = {}
        self._chunks: dict[int, set[int]] = {}
        for of_stream in (ranges or {}).values():
            for chunk, found in of_stream.items():
                self._partition_of[chunk] = found.partition
                self._chunks.setdefault(found.partition, set()).add(chunk)

    def of_partition(self, partition: int | None) -> set[int]:
        """Returns the chunks of a partition."""
        return set() if partition is None else {*self._chunks.get(partition, ())}

    def of_chunk(self, chunk: int) -> set[int]:
        """Returns the chunks of a partition that has a chunk, the first time; then none."""
        return self._chunks.pop(self._partition_of.get(chunk, -1), set())


def _plans_of(plans: Plans | None, chunk: int | None) -> Mapping[str, ChunkPlan]:
    return {} if plans is None or chunk is None else plans.get(chunk, {})


def _check_none(missing: Collection[str]) -> None:
    """Raises OtherPartitions for streams of which a chunk had messages before."""
    if missing:
        raise OtherPartitions


def _checked(slices: Iterable[pa.RecordBatch], known: Range | None) -> Iterator[pa.RecordBatch]:
    """Yields the slices of a group, which are sorted; raises OtherPartitions for positions outside of its range."""
    for rows in slices:
        first, last = (tuple(column[at].as_py() for column in rows.columns[:-1]) for at in (0, -1))
        if known is None or first < known.first or last > known.last:
            raise OtherPartitions
        yield rows


def _counted(slices: Iterable[pa.RecordBatch], messages: int) -> Iterator[pa.RecordBatch]:
    """Yields the slices of a group; raises OtherPartitions if there are more or fewer messages."""
    for rows in slices:
        messages -= len(rows)
        yield rows
    if messages:
        raise OtherPartitions


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
        is_plan = np.asarray(keys[-1].is_null())
        follows = ~(is_plan | np.append(last is None, is_plan[:-1]))
        steps = [signs(column, last and last[index]) for index, column in enumerate(keys)]
        steps[0] = np.abs(steps[0])  # chunks come in any order
        changes = reduce(lambda first, second: np.where(first == 0, second, first), steps)
        _check_order(changes, follows, keys[1:], [*streams, *order])
        is_new = ~follows | np.logical_or.reduce([step != 0 for step in steps[: 1 + len(streams)]])
        is_new[0] = True
        rows = pa.RecordBatch.from_arrays([*keys[1 + len(streams) :], messages], names=[*order, "message"])
        for start, stop in pairwise([*np.flatnonzero(is_new).tolist(), len(messages)]):
            chunk, *stream = (column[start].as_py() for column in keys[: 1 + len(streams)])
            if is_plan[start]:
                yield (chunk, PLAN), pa.RecordBatch.from_arrays([messages.slice(start, 1)], names=["message"])
            else:
                yield (chunk, *stream), rows.slice(start, stop - start)
        last = None if is_plan[-1] else [column[-1] for column in keys]


def signs(column: pa.Array, before: pa.Scalar | None) -> Any:
    """Returns int8[n]: 1 if a value is more than the one before it, -1 if less, else 0; `before` precedes the first."""
    previous = pa.concat_arrays([pa.array([None if before is None else before.as_py()], column.type), column[:-1]])
    more, less = (np.asarray(pc.fill_null(than(column, previous), False)) for than in (pc.greater, pc.less))
    return more.astype(np.int8) - less.astype(np.int8)


def _check_order(changes: Any, follows: Any, keys: Sequence[pa.Array], names: Sequence[str]) -> None:
    """Raises NotSorted, or BadRows if two messages have the same position."""
    if (follows & (changes < 0)).any():
        raise NotSorted
    same = np.flatnonzero(follows & (changes == 0))
    if len(same):
        values = (column[int(same[0])].as_py() for column in keys)
        shown = ", ".join(f"{name}={shown_value(value)}" for name, value in zip(names, values, strict=True))
        raise not_unique(f"two messages at {shown}")
