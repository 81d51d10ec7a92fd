"""Rows of the row-change table to messages: `encode`."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...events import Truncate
from ...formats.base import Writer
from ...formats.registry import find_format, find_row
from ...limits import SENDER_BATCH_BYTES
from ...options import ReadOptions, resolve
from ...options.checks import flag, mapping, number, one_of
from ...options.keywords import checks_keywords
from ..row_changes import RowChanges, joined_batches, record_batches
from ..schemas import CHANGES
from .columns import are_sound
from .compiled_writer import EVENT_ROWS, MOST_BATCH_BYTES, RANGE_BYTES, CompiledWriter
from .events import RowEvents, rows_of, write_event
from .layouts import FORMS

ROWS = 1 << 16
"""Rows that are written together."""

FEW_ROWS = 1 << 10
"""For fewer rows, Arrow's own check is faster than `are_sound`."""

REQUIRED = ("kind", "table_schema", "table_name", "new", "old", "types")
"""Columns that rows cannot do without."""


@checks_keywords
def encode(
    changes: RowChanges,
    format: str,
    *,
    options: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
    batch_bytes: int = SENDER_BATCH_BYTES,
    adapt: bool = False,
    engine: str = "scan",
) -> pa.ChunkedArray:
    """Encodes rows of the row-change table as the messages that a server with these options would send.

    changes     rows as `changes` returns them, in the order of the stream: a pyarrow Table, or record batches
    options, encoding, batch_bytes   as for `wireformat.encode`
    adapt       leave out what the format cannot express, as docs/formats/differences.md lists; else it is an error
    engine      "scan" writes `gaussdb-binary` and `pgoutput` with compiled code, "declaration" all with events
    returns     a chunked array of binary values, one for each message

    Raises OptionError, TypeError, and EncodeError for a row that is not a record, or that the format cannot express.
    """
    chosen = find_format(format)
    one_of("engine", engine, ("scan", "declaration"))
    checked = ReadOptions.check(encoding=encoding).encoding
    given = mapping("options", options)
    writer = chosen.writer(given, encoding=checked, batch_bytes=number("batch_bytes", batch_bytes, 0))
    batches = map(conformed, joined_batches(record_batches(changes)))
    adapt_to = format if flag("adapt", adapt) else None
    batched = find_row(format).options  # those of a server that sends batches; the writer has checked all
    resolved = resolve(given, batched) if batched else {}
    is_plain = not resolved.get("skip-empty-xacts") and batch_bytes <= MOST_BATCH_BYTES
    if engine == "scan" and format in FORMS and is_plain and codecs.lookup(checked).name == "utf-8":
        batching = "sending-batch"
        alone = chosen.writer({**given, batching: 0} if batching in given else given, encoding=checked, batch_bytes=0)
        compiled = CompiledWriter(alone, FORMS[format], batch_bytes if resolved.get(batching) else 0, adapt_to)
        return pa.chunked_array(list(_written_compiled(batches, compiled)), pa.binary())
    return pa.chunked_array(list(_written_events(batches, writer, adapt_to)), pa.binary())


def conformed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with all columns of the row-change table, valid to the last byte; raises TypeError."""
    missing = [name for name in REQUIRED if name not in batch.schema.names]
    if missing:
        raise TypeError(f"row changes: expected the columns {', '.join(REQUIRED)}; missing are {', '.join(missing)}")
    columns = []
    for field in CHANGES:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        try:
            columns.append(column if column.type.equals(field.type) else pc.cast(column, field.type))
        except pa.ArrowException:
            raise TypeError(f"row changes: {field.name}: expected {field.type}, got {column.type}") from None
    found = pa.RecordBatch.from_arrays(columns, schema=CHANGES)
    try:
        found.validate()
        if found.num_rows < FEW_ROWS or not all(map(are_sound, found.columns)):
            found.validate(full=True)
    except pa.ArrowException as error:
        raise TypeError(f"row changes: expected valid Arrow data: {error}") from None
    return found


def _written_events(batches: Iterable[pa.RecordBatch], writer: Writer, adapt_to: str | None) -> Iterator[pa.Array]:
    events = (event for _, event in RowEvents().events(_numbered(batches)))
    messages = (message for event in events for message in write_event(writer, event, adapt_to))
    while chunk := [*islice(messages, EVENT_ROWS)]:
        yield pa.array(chunk, pa.binary())
    yield pa.array(writer.flush(), pa.binary())


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, dict[str, Any]]]:
    count = 0
    for batch in batches:
        for start in range(0, batch.num_rows, EVENT_ROWS):
            for row in rows_of(batch.slice(start, EVENT_ROWS)):
                yield count, row
                count += 1


def _written_compiled(batches: Iterable[pa.RecordBatch], writer: CompiledWriter) -> Iterator[pa.Array]:
    count = 0
    for batch in _whole_records(batches):
        yield from writer.write(batch, count)
        count += batch.num_rows
    yield pa.array(writer.flush(), pa.binary())


def _whole_records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of a good size, which do not end inside of a TRUNCATE of several tables."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        size = max(1, min(ROWS, RANGE_BYTES * batch.num_rows // (batch.nbytes + 1)))
        for start in range(0, batch.num_rows, size):
            rows = batch.slice(start, size)
            if held is not None:
                (rows,) = pa.Table.from_batches([held, rows]).combine_chunks().to_batches()
            kinds = rows.column("kind")
            end = rows.num_rows
            while end and kinds[end - 1].as_py() == Truncate.kind:
                end -= 1
            held = rows.slice(end) if end < rows.num_rows else None
            if end:
                yield rows.slice(0, end)
    if held is not None:
        yield held
