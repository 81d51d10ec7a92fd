"""What Spark calls to read a slot: offsets and slices on the driver, rows in the workers, and the columns of a table.

The columns come from the server's catalogue, and are the same as the stream describes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.chunks.capture import ChunkCapture
from wireformat.live.connection import Connection
from wireformat.live.snapshot import published_tables
from wireformat.options.table_names import one_table, written
from wireformat.stream.capture_position import SlotPosition

from ..schemas import arrow_types, as_declared, change_names, with_format
from ..tables.typed_rows import spark_columns, typed_part
from .options import SlotOptions
from .ranges import FORMAT, SlotRanges
from .transactions import Arrived, Limit

MESSAGES = "messages"
OLD = "_old"

VERSION = 2
"""Offsets have the fields of a SlotPosition, the LSN as a text. Checkpoints have them, so they are never changed.
Version 1 has no timeline."""


def schema_of(options: SlotOptions) -> StructType:
    """Returns the columns of the stream. Those of a table are found in the server's catalogue."""
    if options.table is None:
        found = from_arrow_schema(wf.arrow.committed_schema(wf.arrow.change_schema(change_names())))
        return StructType(with_format(list(found.fields), FORMAT))
    return from_arrow_schema(described_schema(options).remove_metadata())


def described_schema(options: SlotOptions) -> pa.Schema:
    """Returns the columns of typed changes, as the server's catalogue describes the table."""
    assert options.table is not None, "one table is read"
    listed = describe(options)
    return typed_part(spark_columns(listed, options.table, FORMAT), options.table, options.mode, FORMAT).schema


def columns_of(schema: pa.Schema) -> pa.Schema:
    """Returns the table's columns among those of typed changes: all if `_old` is there, else those that are named."""
    if OLD in schema.names:
        return pa.schema([*schema.field(OLD).type])
    facts = typed_part(pa.schema([]), "public.t", "PERMISSIVE", FORMAT).schema.names
    return pa.schema([field for field in schema if field.name not in facts])


@dataclass
class SlotSlice(InputPartition):
    """What a task reads.

    messages   an Arrow stream with the messages of some transactions
    """

    messages: bytes


class SlotStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a slot. Nothing is opened before Spark asks for it: workers have copies that only `read`."""

    def __init__(self, options: SlotOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._ranges: SlotRanges | None = None
        self._target: int | None = None
        self._moved = time.monotonic()
        self._reached = 0

    def __getstate__(self) -> dict[str, Any]:
        """What workers need: not the connection string."""
        options = replace(self._options, url="", service=None)
        return {"_options": options, "_schema": self._schema}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Returns where the slot is. Looks whether the table has the columns that the user has named."""
        if self._options.table is not None:
            columns = columns_of(arrow_types(self._schema))
            as_declared(pa.RecordBatch.from_pylist([], columns_of(described_schema(self._options))), columns)
        return _offset(self._opened().initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Returns the limit that the options set."""
        rows = self._options.maxrowspertrigger
        return ReadMaxBytes(self._options.maxbytespertrigger) if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Notes the end of the server's log: transactions that end after it are left for another run."""
        self._target = self._opened().look().lsn

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Returns where the next batch ends: after whole transactions, at least one, or where an idle server is.

        Spark has logged `start`: the slot is moved there. Raises OptionError if Spark asks for all that there is.
        """
        if isinstance(limit, ReadAllAvailable):
            raise wf.OptionError(
                "trigger once: expected a trigger with batches of maxBytesPerTrigger, got one that reads all there is "
                "at once: use trigger(availableNow=True)"
            )
        at = _position(start)
        ranges = self._opened()
        self._reached = at.lsn
        lsn = ranges.next(at, self._limit(limit), self._target)
        if lsn is None:
            lsn = ranges.idle_lsn if self._is_idle_due(at.lsn) else at.lsn
        if lsn is None or lsn <= at.lsn:
            if self._target is not None:
                ranges.close()  # the run ends here, and Spark may not call `stop`: the server hears it now
            return start
        self._moved, self._reached = time.monotonic(), lsn
        return _offset(ranges.after(at, lsn))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Returns the end of the server's log, with how far the slot is behind it."""
        found = self._opened().glance()
        if found is None:
            return None
        offset = _offset(SlotPosition(found.system, self._options.slot, found.lsn, found.timeline))
        return {**offset, "lag_bytes": max(found.lsn - self._reached, 0), "retained_bytes": found.retained or 0}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the slices of a range: the same whenever Spark asks, also after a restart."""
        first, last = _position(start), _position(end)
        if last.lsn <= first.lsn:
            return []
        return [SlotSlice(_packed(messages)) for messages in self._opened().slices(first, last)]

    def commit(self, end: dict[str, Any]) -> None:
        """Moves the slot: the sink has everything up to `end`."""
        self._opened().confirm(_position(end))

    def stop(self) -> None:
        """Ends the connections."""
        if self._ranges is not None:
            self._ranges.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a slice."""
        assert isinstance(partition, SlotSlice), "made by `partitions`"
        schema = arrow_types(self._schema)
        for rows in self._rows(partition, schema):
            yield as_declared(rows, schema)

    def _rows(self, slice: SlotSlice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        messages = _unpacked(slice.messages)
        capture = ChunkCapture(messages, FORMAT, mode=self._options.mode, threads=1)
        table = self._options.table
        if table is None:
            yield from capture.committed()
            return
        columns = columns_of(schema)
        if OLD in schema.names:  # else the user has named some columns
            check_columns(Arrived.of(messages).descriptions().values(), table, columns.names)
        yield from capture.typed_by(typed_part(columns, table, self._options.mode, FORMAT), table)

    def _opened(self) -> SlotRanges:
        if self._ranges is None:
            options = self._options
            self._ranges = SlotRanges(
                options.dsn,
                options.slot,
                options.publications,
                driver=options.driver,
                reconnect_seconds=options.reconnectseconds,
                plugin_options={} if options.origin is None else {"origin": options.origin},
            )
        return self._ranges

    def _limit(self, limit: ReadLimit) -> Limit:
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.maxbytespertrigger
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.maxrowspertrigger
        return Limit(size, rows)

    def _is_idle_due(self, lsn: int) -> bool:
        """Whether an idle stream moves on now. A run that ends does so once."""
        if self._target is not None:
            return lsn < self._target
        return time.monotonic() - self._moved >= self._options.idleseconds


def _offset(position: SlotPosition) -> dict[str, Any]:
    system, slot, lsn, timeline, _ = position
    return {"version": VERSION, "system": system, "slot": slot, "lsn": wf.lsn_text(lsn), "timeline": timeline}


def _position(offset: dict[str, Any]) -> SlotPosition:
    """Returns the position of an offset; raises StateError."""
    texts = {name: offset.get(name) for name in ("system", "slot", "lsn")}
    version, timeline = offset.get("version"), offset.get("timeline", 0)
    is_known = version in (1, VERSION) and ("timeline" in offset) is (version == VERSION)
    if not is_known or not all(isinstance(text, str) for text in texts.values()) or type(timeline) is not int:
        raise wf.StateError(
            f"checkpoint: expected the position of a slot, version 1 or {VERSION}, which this release reads, got "
            "another one: continue with the release that wrote it, or begin with another checkpoint"
        )
    return SlotPosition(str(texts["system"]), str(texts["slot"]), wf.lsn_value(str(texts["lsn"])), timeline)


def _packed(messages: pa.Array) -> bytes:
    """Returns messages as an Arrow stream; pgoutput shrinks to a fraction, and tasks travel through the driver."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([messages], names=[MESSAGES])
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> pa.Array:
    with pa.ipc.open_stream(packed) as reader:
        return reader.read_next_batch()[MESSAGES]


def describe(options: SlotOptions) -> pa.Table:
    """Returns what `Capture.tables` says of the table. Raises OptionError if it is not published, and ServerError."""
    assert options.table is not None, "one table is read"
    wanted = one_table(options.table)
    with Connection(options.dsn, options.driver) as connection:
        published = published_tables(connection, options.publications)
    for one in published:
        relation = one.relation
        if (relation.table_schema, relation.table_name) == wanted:
            facts = {"commit_lsn": 1, "commit_time": "2000-01-01 00:00:00+00"}
            begin, commit = wf.Begin(xid=0, **facts), wf.Commit(end_lsn=2, **facts)  # type: ignore[arg-type]
            messages = [*wf.encode([begin, *one.types, relation, commit], FORMAT)]
            return wf.Capture(messages, FORMAT).tables()
    names = ", ".join(written((one.relation.table_schema, one.relation.table_name)) for one in published)
    raise wf.OptionError(
        f"option table: {options.publication} does not publish {options.table}: ALTER PUBLICATION … ADD TABLE, or "
        f"choose one that it publishes: {names or 'it has none'}"
    )


def check_columns(descriptions: Iterable[bytes], table: str, names: Iterable[str]) -> None:
    """Raises BadRows if the stream describes a column of the table that the rows of Spark do not have."""
    known = {*names}
    for relation in wf.decode([one for one in descriptions if one.startswith(b"R")], FORMAT):
        if not isinstance(relation, wf.Relation) or (relation.table_schema, relation.table_name) != one_table(table):
            continue
        added = [name for name in relation.columns if name not in known]
        if added:
            raise wf.BadRows(
                f"the columns that {table} had when the query began",
                f"also {', '.join(added)}",
                table=table,
                hint="start the query again, which finds the columns of the table, or name the columns that you need "
                "with .schema(…)",
            )
