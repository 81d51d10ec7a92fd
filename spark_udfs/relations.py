"""relations: what a pgoutput capture says about its tables, collected, so that every task can read any part of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StringType, StructField, StructType

import wireformat as wf
from wireformat.formats.pgoutput.messages import RECORDS
from wireformat.formats.pgoutput.reader import PgOutput
from wireformat.formats.pgoutput.relations import CLOSES, OPENS, TELLS, Relations, Said, role_of
from wireformat.framing.copy_data import ENVELOPE, ENVELOPE_BYTES

from .carriers import column_of
from .fields import check_frame, field_of
from .positions import Places

STREAM, POSITION, PAYLOAD = "stream", "position", "payload"

_KINDS = {tag: kind for tag, (kind, _) in RECORDS["postgresql"].items()}
STATE_TAGS = tuple(tag for tag, kind in _KINDS.items() if role_of(kind) in (TELLS, OPENS, CLOSES))
"""The kind bytes of messages that describe a relation, or with which streamed blocks and transactions begin and end."""

BEGIN_TAGS = tuple(tag for tag, kind in _KINDS.items() if kind is wf.Begin)
"""Those of messages that begin a plain transaction: they count only where a connection broke inside a block. Any other
message that may come first on a new connection means the same in a block and outside."""

SNAPSHOT_STEP = 64

Key = tuple[Any, ...]


def relations(
    df: DataFrame, payload: str = "value", *, order_by: Sequence[str], stream_by: Sequence[str] = ()
) -> DataFrame:
    """Returns the pgoutput messages that later messages depend on, with their positions, for `decode`.

    These messages describe tables, and begin or end streamed blocks. The result also has the BEGIN of each transaction,
    a few bytes each: if a connection broke inside a block, the next BEGIN ends the block. `decode` collects only those
    BEGINs.

    order_by    columns that order the messages; their values must be unique within a stream
    stream_by   columns that identify a stream, if df holds more than one
    returns     position, a struct of the columns order_by; stream, a struct of stream_by, if there are any; payload

    The columns must hold integers or strings. You can save the result as a table and append to it. Raises OptionError.
    """
    check_frame("df", df)
    Places.check(df, order_by, stream_by)
    message = column_of(field_of(df, "payload", payload))
    columns = [_struct(df, "order_by", order_by).alias(POSITION)]
    if stream_by:
        columns.append(_struct(df, "stream_by", stream_by).alias(STREAM))
    return df.where(_kind(message).isin(*map(_hex, STATE_TAGS + BEGIN_TAGS))).select(*columns, message.alias(PAYLOAD))


def _hex(tag: int) -> str:
    return f"{tag:02X}"


def _kind(message: Column) -> Column:
    """The kind byte of the message, behind its envelope if it has one, as hex digits."""
    first, enveloped = (F.hex(F.substring(message, place, 1)) for place in (1, ENVELOPE_BYTES + 1))
    return F.when(first == f"{ENVELOPE:02X}", enveloped).otherwise(first)


def _struct(df: DataFrame, option: str, names: Sequence[str]) -> Any:
    return F.struct(*[column_of(field_of(df, option, name)).alias(name) for name in names])


class _Stream(NamedTuple):
    """What one stream says, in order."""

    positions: list[Key]
    events: list[Said]


class Timeline:
    """What all streams of a capture say about relations, by position; pickled to the workers.

    stream_by, order_by     the columns
    """

    def __init__(self, found: DataFrame, options: wf.ReadOptions) -> None:
        """Collects the result of `relations`. Raises OptionError for another table, and for positions that are not
        unique."""
        fields = {field.name: field.dataType for field in found.schema}
        position, stream = fields.get(POSITION), fields.get(STREAM, StructType())
        if not isinstance(position, StructType) or not isinstance(stream, StructType) or PAYLOAD not in fields:
            raise wf.OptionError("option relations: expected what spark_udfs.relations returns")
        self.order_by = position.names
        self.stream_by = stream.names
        self._streams: dict[Key, _Stream] = {}
        self._snapshots: dict[Key, list[Relations]] = {}
        messages: dict[Key, list[tuple[Key, bytes]]] = {}
        for row in _collected(found):
            key = tuple(row[STREAM]) if self.stream_by else ()
            place = tuple(row[POSITION])
            if None in place:
                raise wf.OptionError("option relations: a position is null")
            messages.setdefault(key, []).append((place, bytes(row[PAYLOAD])))
        for key, given in messages.items():
            given.sort()
            places = [place for place, _ in given]
            if len(set(places)) < len(places):
                raise wf.OptionError("option relations: two messages of a stream have the same position")
            self._streams[key] = _read(given, options)

    @property
    def columns(self) -> list[str]:
        """Those that place a message: stream_by, then order_by."""
        return [*self.stream_by, *self.order_by]

    def runs(self, keys: Sequence[tuple[Key, Key]], last: Run | None) -> Iterator[Run]:
        """Cut messages into runs that can be read one after the other.

        keys    stream and position of each message, in their order
        last    the run before them
        """
        begin = 0
        for end in self._ends(keys):
            stream, place = keys[begin]
            positions = self._positions(stream)
            said = bisect_left(positions, place)
            follows = last is not None and (last.stream, last.said) == (stream, said)
            known = None if follows else self._known(stream, said)
            last = Run(begin, end, stream, bisect_right(positions, keys[end - 1][1]), known)
            yield last
            begin = end

    def _ends(self, keys: Sequence[tuple[Key, Key]]) -> Iterator[int]:
        """Where runs end: before a message between which and the one before it the stream said something."""
        said, last = 0, None
        for index, (stream, place) in enumerate(keys):
            positions = self._positions(stream)
            before = bisect_left(positions, place)
            if index and (stream != last or before != said):
                yield index
            said, last = before + (before < len(positions) and positions[before] == place), stream
        if keys:
            yield len(keys)

    def _positions(self, stream: Key) -> list[Key]:
        return self._streams[stream].positions if stream in self._streams else []

    def _known(self, key: Key, said: int) -> Relations:
        """What a stream has said with so many messages; every SNAPSHOT_STEP of them it is kept."""
        events = self._streams[key].events if key in self._streams else []
        kept = self._snapshots.setdefault(key, [Relations()])
        while len(kept) <= said // SNAPSHOT_STEP:
            begin = (len(kept) - 1) * SNAPSHOT_STEP
            kept.append(_after(kept[-1], events[begin : begin + SNAPSHOT_STEP]))
        begin = said // SNAPSHOT_STEP * SNAPSHOT_STEP
        return _after(kept[said // SNAPSHOT_STEP], events[begin:said])


class Run(NamedTuple):
    """Messages that follow each other.

    start, stop     places of the messages
    stream          theirs
    said            how many messages about relations its stream has up to the last one
    known           what is known before them; None: what was known after the run before
    """

    start: int
    stop: int
    stream: Key
    said: int
    known: Relations | None


def _collected(found: DataFrame) -> list[Row]:
    """The messages of STATE_TAGS; and of BEGIN_TAGS the first behind each block without a stop."""
    kind = _kind(F.col(PAYLOAD))
    said = found.where(kind.isin(*map(_hex, STATE_TAGS))).collect()
    broken = _broken([(row[STREAM] if STREAM in found.columns else None, row[POSITION], row[PAYLOAD]) for row in said])
    if not broken:
        return said
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
    others = found.where(kind.isin(*map(_hex, BEGIN_TAGS))).join(blocks, inside)
    first = F.min(F.struct(position, *([here.alias(STREAM)] if STREAM in fields else []), F.col(PAYLOAD)))
    return said + others.groupBy(of, begin).agg(first.alias("first")).select("first.*").collect()


def _broken(said: Sequence[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """Stream and position of each STREAM START that no STREAM STOP follows, and the position of what follows."""
    marks: dict[Key, list[tuple[Key, int, Any, Any]]] = {}
    for stream, position, payload in said:
        kind, *more = payload[ENVELOPE_BYTES:] if payload[0] == ENVELOPE else payload
        is_bad_stop = kind == ord("E") and more  # it is CORRUPT, and closes nothing
        if kind != ord("R") and not is_bad_stop and None not in tuple(position):
            key = () if stream is None else tuple(stream)
            marks.setdefault(key, []).append((tuple(position), kind, stream, position))
    found = []
    for of_stream in marks.values():
        of_stream.sort(key=itemgetter(0))
        for (_, kind, stream, begin), following in zip_longest(of_stream, of_stream[1:]):
            if kind == ord("S") and (following is None or following[1] != ord("E")):
                found.append((stream, begin, None if following is None else following[3]))
    return found


def _after(known: Relations, events: Sequence[Said]) -> Relations:
    learned = known.copy()
    for event in events:
        learned.take(event)
    return learned


def _read(given: Sequence[tuple[Key, bytes]], options: wf.ReadOptions) -> _Stream:
    """The events of a stream's messages."""
    reader = PgOutput()
    return _Stream([place for place, _ in given], [_said(reader, message, options) for _, message in given])


def _said(reader: PgOutput, message: bytes, options: wf.ReadOptions) -> Said:
    """What a message says; one that cannot be read says what it does where it stands in the stream."""
    frame = None
    try:
        (frame,) = reader.frames(message)
        return reader.read(message, frame, options)
    except wf.DecodeError:
        return (frame and reader.lost(message, frame, options)) or wf.Unknown(raw=b"")
