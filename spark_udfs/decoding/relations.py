"""The pgoutput messages that describe tables, for `decode`: with them, every task can read any part of a stream."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StringType, StructField, StructType

import wireformat as wf
from wireformat.chunks.relations import NEEDED_TAGS, event_of
from wireformat.formats.pgoutput.messages import RECORDS
from wireformat.formats.pgoutput.reader import PgOutput
from wireformat.formats.pgoutput.relations import CLOSES, OPENS, TELLS, RelationEvent, Relations, role_of
from wireformat.framing.copy_data import ENVELOPE, ENVELOPE_BYTES

from ..fields import column_of
from ..positions import PositionColumns, no_position, not_unique

STREAM, POSITION, PAYLOAD = "stream", "position", "payload"

_KINDS = {tag: kind for tag, (kind, _) in RECORDS["postgresql"].items()}
STATE_TAGS = tuple(tag for tag, kind in _KINDS.items() if role_of(kind) in (TELLS, OPENS, CLOSES))
"""The kind bytes of messages that describe a relation, or with which streamed blocks and transactions begin and end."""

BEGIN_TAGS = tuple(tag for tag, kind in _KINDS.items() if kind is wf.Begin)
"""The kind bytes of messages that begin a plain transaction. They matter only after a connection that broke inside a
block. Any other message that can be the first on a new connection has the same meaning in a block and outside."""

SNAPSHOT_STEP, MOST_SNAPSHOTS = 64, 64
"""How many state messages are between two snapshots of a stream's relations, at least, and how many snapshots a worker
keeps at most: each has all tables."""

Key = tuple[Any, ...]


def needed_rows(df: DataFrame, payload: StructField, positions: PositionColumns) -> DataFrame:
    """Returns the pgoutput messages that later messages depend on, with their positions.

    These messages describe tables, and begin or end streamed blocks. The result also has the BEGIN of each transaction:
    if a connection broke inside a block, the next BEGIN ends the block. `Timeline` collects only those BEGINs.

    returns   position, a struct of the columns order_by; stream, a struct of stream_by, if there are any; payload
    """
    message = column_of(payload)
    columns = [_struct(positions.order_by).alias(POSITION)]
    if positions.stream_by:
        columns.append(_struct(positions.stream_by).alias(STREAM))
    return df.where(is_of_kind(message, NEEDED_TAGS)).select(*columns, message.alias(PAYLOAD))


def is_of_kind(message: Column, tags: Iterable[int]) -> Column:
    """Returns whether the kind byte of the message, after its envelope if it has one, is one of these."""
    first, enveloped = (F.hex(F.substring(message, number, 1)) for number in (1, ENVELOPE_BYTES + 1))
    kind = F.when(first == f"{ENVELOPE:02X}", enveloped).otherwise(first)
    return kind.isin(*[f"{tag:02X}" for tag in tags])


def _struct(fields: Sequence[StructField]) -> Column:
    return F.struct(*[column_of(field).alias(field.name) for field in fields])


class _Stream(NamedTuple):
    """The state messages of one stream, sorted by position."""

    positions: list[Key]
    events: list[RelationEvent]


class Timeline:
    """The relations of all streams of a capture at each position; pickled to the workers.

    stream_by, order_by     names of the columns
    """

    def __init__(self, found: DataFrame, options: wf.ReadOptions) -> None:
        """Collects the `needed_rows`. Raises BadRows for positions that are null or not unique."""
        fields = {field.name: field.dataType for field in found.schema}
        order, stream = fields[POSITION], fields.get(STREAM, StructType())
        assert isinstance(order, StructType), "`needed_rows` made it"
        assert isinstance(stream, StructType), "`needed_rows` made it"
        self.order_by = order.names
        self.stream_by = stream.names
        self._streams: dict[Key, _Stream] = {}
        self._snapshots: dict[Key, list[Relations]] = {}
        self._last: dict[Key, tuple[int, Relations]] = {}
        """Of each stream, the relations that were asked for last: the next ones mostly follow."""
        messages: dict[Key, list[tuple[Key, bytes]]] = {}
        for row in _collected(found):
            key = tuple(row[STREAM]) if self.stream_by else ()
            position = tuple(row[POSITION])
            if None in position:
                raise no_position([name for name, value in zip(self.order_by, position, strict=True) if value is None])
            messages.setdefault(key, []).append((position, bytes(row[PAYLOAD])))
        for key, given in messages.items():
            given.sort()
            positions = [position for position, _ in given]
            if len(set(positions)) < len(positions):
                raise not_unique("two messages at the same position")
            self._streams[key] = _read(given, options)

    @property
    def columns(self) -> list[str]:
        """The columns that give the stream and position of a message: stream_by, then order_by."""
        return [*self.stream_by, *self.order_by]

    def runs(self, keys: Sequence[tuple[Key, Key]], last: MessageRun | None) -> Iterator[MessageRun]:
        """Splits messages into runs, within which no state message of another task is missing.

        keys    stream and position of each message, sorted
        last    the run before them
        """
        start = 0
        for stop in self._stops(keys):
            stream, position = keys[start]
            positions = self._positions(stream)
            count = bisect_left(positions, position)
            follows = last is not None and (last.stream, last.state_count) == (stream, count)
            relations = None if follows else self._relations(stream, count)
            last = MessageRun(start, stop, stream, bisect_right(positions, keys[stop - 1][1]), relations)
            yield last
            start = stop

    def _stops(self, keys: Sequence[tuple[Key, Key]]) -> Iterator[int]:
        """Yields the ends of runs: a run ends where the stream has a state message before the next message."""
        count, last = 0, None
        for index, (stream, position) in enumerate(keys):
            positions = self._positions(stream)
            before = bisect_left(positions, position)
            if index and (stream != last or before != count):
                yield index
            count, last = before + (before < len(positions) and positions[before] == position), stream
        if keys:
            yield len(keys)

    def _positions(self, stream: Key) -> list[Key]:
        return self._streams[stream].positions if stream in self._streams else []

    def _relations(self, key: Key, count: int) -> Relations:
        """Returns the relations after the first `count` state messages of a stream, from others before them."""
        events = self._streams[key].events if key in self._streams else []
        step = max(SNAPSHOT_STEP, len(events) // MOST_SNAPSHOTS)
        kept = self._snapshots.setdefault(key, [Relations()])
        while len(kept) <= count // step:
            begin = (len(kept) - 1) * step
            kept.append(_after(kept[-1], events[begin : begin + step]))
        last, relations = self._last.get(key, (0, kept[0]))
        begin = count // step * step
        if begin <= last <= count:
            begin = last
        else:
            relations = kept[count // step]
        self._last[key] = count, _after(relations, events[begin:count])
        return self._last[key][1].copy()


class MessageRun(NamedTuple):
    """Messages of one stream that follow each other.

    start, stop     indices of the messages
    stream          their stream
    state_count     the number of state messages of the stream up to the last one
    relations       the relations before them; None: those after the previous run
    """

    start: int
    stop: int
    stream: Key
    state_count: int
    relations: Relations | None


def _collected(found: DataFrame) -> list[Row]:
    """Collects the messages of STATE_TAGS and, after each block without a stop, the first message of BEGIN_TAGS."""
    payload = F.col(PAYLOAD)
    rows = found.where(is_of_kind(payload, STATE_TAGS)).collect()
    broken = _broken([(row[STREAM] if STREAM in found.columns else None, row[POSITION], row[PAYLOAD]) for row in rows])
    if not broken:
        return rows
    fields = {field.name: field.dataType for field in found.schema}
    of, begin, end = (F.col(f"_{name}") for name in ("of", "begin", "end"))
    schema = StructType(
        [
            StructField("_of", fields.get(STREAM, StringType())),
            *[StructField(name, fields[POSITION]) for name in ("_begin", "_end")],
        ]
    )
    blocks = F.broadcast(found.sparkSession.createDataFrame(broken, schema))
    here = F.col(STREAM) if STREAM in fields else F.lit(None)
    position = F.col(POSITION)
    inside = here.eqNullSafe(of) & (position > begin) & (end.isNull() | (position < end))
    others = found.where(is_of_kind(payload, BEGIN_TAGS)).join(blocks, inside)
    first = F.min(F.struct(position, *([here.alias(STREAM)] if STREAM in fields else []), F.col(PAYLOAD)))
    return rows + others.groupBy(of, begin).agg(first.alias("first")).select("first.*").collect()


def _broken(messages: Sequence[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """Returns stream and position of each STREAM START without a STREAM STOP, and the position of the next message.

    messages   stream, position and payload of each state message
    """
    bounds: dict[Key, list[tuple[Key, int, Any, Any]]] = {}
    for stream, position, payload in messages:
        body = payload[ENVELOPE_BYTES:] if payload[0] == ENVELOPE else payload
        kind = body[0]
        is_bad_stop = kind == ord("E") and len(body) > 1  # a CORRUPT record that closes no block
        if kind != ord("R") and not is_bad_stop and None not in tuple(position):
            key = () if stream is None else tuple(stream)
            bounds.setdefault(key, []).append((tuple(position), kind, stream, position))
    found = []
    for of_stream in bounds.values():
        of_stream.sort(key=itemgetter(0))
        for (_, kind, stream, begin), following in zip_longest(of_stream, of_stream[1:]):
            if kind == ord("S") and (following is None or following[1] != ord("E")):
                found.append((stream, begin, None if following is None else following[3]))
    return found


def _after(relations: Relations, events: Sequence[RelationEvent]) -> Relations:
    result = relations.copy()
    for event in events:
        result.take(event)
    return result


def _read(given: Sequence[tuple[Key, bytes]], options: wf.ReadOptions) -> _Stream:
    """Returns the events of a stream's messages."""
    reader = PgOutput()
    events = [event_of(reader, message, options) for _, message in given]
    return _Stream([position for position, _ in given], events)
