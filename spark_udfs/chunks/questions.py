"""The questions of a capture, as the workers answer them for the messages of a chunk or of a stream."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import wireformat as wf
from wireformat.errors import counted
from wireformat.stream.capture_position import CapturePosition

from ..decoding.batches import RESULT_BATCH_BYTES
from ..decoding.task import named_errors
from .groups import Group
from .reading import Reading, same_rows

if TYPE_CHECKING:
    from wireformat.chunks.capture import ChunkCapture


Ask = Callable[["ChunkCapture", Group], Iterator[pa.RecordBatch]]
"""Asks a question of the capture of a group. The rows have the columns of the answer."""


def answer_batches(
    reading: Reading, ask: Ask, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that answers a question, group after group.

    schema   of the answer: the columns stream_by, then those of the answer
    """
    dropped = 0
    with same_rows():
        for group in reading.groups(batches):
            capture = reading.capture(group)
            try:
                answers = map(partial(_answered, group=group, schema=schema), ask(capture, group))
                yield from chain.from_iterable(answers)  # which keeps none of them
            except wf.WireformatError as error:
                raise group.messages.located(error) from None
            dropped += capture.rows_dropped
    _tell_of_dropped(dropped, reading)


def latest_batches(
    reading: Reading,
    after: Mapping[str, CapturePosition],
    table: TypedTable,
    keys: Sequence[str],
    listed: Mapping[str, pa.Table],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that returns the current rows of a table, from all messages of a stream.

    after    the positions after which the streams go on
    keys     []: the identity that each stream states
    listed   the list of tables of each stream: what a table has been in one says nothing of another
    schema   of the answer: the columns stream_by, then those of the answer
    """
    dropped = 0
    with same_rows():
        for group in reading.groups(batches):
            given, own = after.get(group.key), replace(table, listed=listed.get(group.key))
            capture = wf.Capture(group.messages.source(), reading.format, after=given, threads=1, **reading.options)
            try:
                current = capture.latest_by(own.part(), own.table, keys)
            except wf.WireformatError as error:
                raise group.messages.located(error) from None
            for rows in current.to_batches():
                yield from _answered(rows, group, schema)
            dropped += capture.dropped
    _tell_of_dropped(dropped, reading)


def _answered(rows: pa.RecordBatch, group: Group, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields rows of an answer, with the columns stream_by first."""
    for part in limited(rows):
        fields = zip(group.stream, schema.types, strict=False)
        columns = [*[pa.repeat(pa.scalar(value, type), len(part)) for value, type in fields], *part.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _tell_of_dropped(count: int, reading: Reading) -> None:
    if count:
        logging.getLogger(__package__).warning(
            "DROPMALFORMED left out %s of %s in this task", counted(count, "record"), reading.format
        )


def limited(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches of at most RESULT_BATCH_BYTES, or of one row."""
    if rows.nbytes <= RESULT_BATCH_BYTES or len(rows) < 2:
        yield rows
        return
    middle = len(rows) // 2
    yield from limited(rows.slice(0, middle))
    yield from limited(rows.slice(middle))


def ask_changes(
    columns: Sequence[str], kept: Sequence[str], options: Mapping[str, Any], capture: ChunkCapture, group: Group
) -> Iterator[pa.RecordBatch]:
    """Asks for every record, with the columns `kept` of order_by first."""
    for rows in capture.changes(columns=["message", *columns], **options):
        order = dict(zip(group.messages.names, group.messages.columns(rows["message"]), strict=True)) if kept else {}
        own = {name: rows[name] for name in columns}
        if "error" in own:
            own["error"] = named_errors(own["error"], rows["message"], group.messages.name)
        found = [*[order[name] for name in kept], *own.values()]
        yield pa.RecordBatch.from_arrays(found, names=[*kept, *columns])


def ask_committed(tables: Sequence[str] | None, capture: ChunkCapture, group: Group) -> Iterator[pa.RecordBatch]:
    """Asks for the rows of committed transactions."""
    for rows in capture.committed(tables=tables):
        yield rows.drop_columns(["message"])


def ask_messages(prefix: str | None, capture: ChunkCapture, group: Group) -> Iterator[pa.RecordBatch]:
    """Asks for logical messages."""
    for rows in capture.messages(prefix=prefix):
        sequence = rows["_sequence"]  # its fields are null where it is, which Arrow cannot cast to fields without null
        fields = [pa.field(field.name, field.type) for field in sequence.type]
        nullable = pa.StructArray.from_arrays(sequence.flatten(), fields=fields, mask=sequence.is_null())
        yield pa.RecordBatch.from_arrays([nullable, *rows.columns[1:]], names=rows.schema.names)


def ask_open(capture: ChunkCapture, group: Group) -> Iterator[pa.RecordBatch]:
    """Asks for the rows of transactions that have not ended."""
    yield from capture.open().drop_columns(["message"]).to_batches()


def ask_position(capture: ChunkCapture, group: Group) -> Iterator[pa.RecordBatch]:
    """Asks for the number of the chunk, and the position at its end, with what is open there."""
    for _ in capture.committed(tables=()):
        pass
    columns = [pa.array([group.chunk], pa.int32()), pa.array([capture.position.to_json()])]
    yield pa.RecordBatch.from_arrays(columns, names=["chunk", "position"])


@dataclass(frozen=True)
class TypedTable:
    """The checked arguments of `typed`, pickled to the workers.

    table      name of the table
    columns    its columns as Spark can take them: an Arrow schema, or a mapping of column to SQL type
    listed     the list of tables
    versions   by stream and chunk, if the table has several versions: the index of the one of the first row
    options    images, evolution, complete, split_key_changes, keys
    """

    table: str
    columns: Any
    listed: pa.Table | None
    versions: Mapping[tuple[str, int | None], int]
    format: str
    mode: str
    options: Mapping[str, Any]

    def part(self, group: Group | None = None) -> Any:
        """Returns what reads the rows of a group."""
        from wireformat.arrow.typed_tables.batch import TypedOptions
        from wireformat.arrow.typed_tables.table import TypedPart

        given = self.options
        options = TypedOptions(self.mode, given["images"], given["complete"], given["split_key_changes"], given["keys"])
        return TypedPart(
            self.table,
            schema=self.columns,
            options=options,
            evolution=given["evolution"],
            kept=(),
            format=self.format,
            versions=self.listed,
            current=-1 if group is None else self.versions.get((group.key, group.chunk), -1),
        )


def ask_typed(table: TypedTable, capture: ChunkCapture, group: Group) -> Iterator[pa.RecordBatch]:
    """Asks for the committed changes of a table."""
    yield from capture.typed_by(table.part(group), table.table)


def ask_steps(table: TypedTable, keys: Sequence[str], capture: ChunkCapture, group: Group) -> Iterator[pa.RecordBatch]:
    """Asks for the steps of keys that the committed changes of a table make; see `tables.key_steps`."""
    from ..tables.key_steps import steps_of  # loads numba, which the driver does not need

    for rows in capture.typed_by(table.part(group), table.table):
        yield steps_of(rows, keys)
