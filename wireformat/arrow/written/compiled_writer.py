"""Writes row changes by compiled code, and all other rows by the writer of the format, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ...errors import LimitExceeded
from ...events import (
    Begin,
    Commit,
    Delete,
    Event,
    Heartbeat,
    Insert,
    Message,
    Origin,
    Relation,
    RowChange,
    Truncate,
    Type,
    Unknown,
    Update,
)
from ...formats.base import Writer
from ...formats.direct.layouts import REFUSALS, ByteLayout, ValueWriter
from ...framing.gauss_batch import CLOSE_BY_TIMEOUT, END, MORE
from ..arrays import Array, read_only
from ..jit.intrinsics import BLOCK
from .columns import RowColumns
from .events import RowEvents, rows_of, write_event
from .kernel import HEAD_BYTES, MOST_CODES, NO_CODE, measure_rows, write_rows

RANGE_BYTES = MOST_BATCH_BYTES = 1 << 28
"""How many bytes are written at once, if it is more than one row, and the longest batches that compiled code writes:
offsets of Arrow's binary arrays have 31 bits."""


class LayoutWriter(Writer, Protocol):
    """A writer that tells the layouts of rows."""

    def layout(self, event: RowChange) -> tuple[ByteLayout, int | None] | None:
        """The layout of rows like this one, with the number of their relation, if they have one; None if such rows are
        not written from layouts now."""


class RowForm(NamedTuple):
    """How compiled code writes the rows of a format.

    null, tag   the bytes of a NULL, and those before the length of a value
    new_first   whether the new tuple comes before the old one
    framed      whether rows are records of gauss_batch
    """

    null: bytes
    tag: bytes
    new_first: bool
    framed: bool


FORMS: Mapping[str, RowForm] = {
    "gaussdb-binary": RowForm(null=b"\xff\xff\xff\xff", tag=b"", new_first=True, framed=True),
    "pgoutput": RowForm(null=b"n", tag=b"t", new_first=False, framed=False),
}

EVENT_ROWS = 1 << 11
"""Rows that are Python values at a time."""

_KEEP = frozenset(
    (Relation, Begin, Commit, Origin, Type, Heartbeat, Unknown, Message, Insert, Update, Delete, Truncate)
)
"""Events after which layouts stay as they are, unless they bring relations along. Those of a Relation's
table change; all other events may open or close a block, in which tables are described anew."""


class CompiledWriter:
    """Writes rows as messages.

    writer        of the format; it makes a message of each record
    batch_bytes   a message of framed records is closed once it is longer
    adapt_to      the format to whose abilities events are adapted, if they are
    """

    def __init__(self, writer: LayoutWriter, form: RowForm, batch_bytes: int, adapt_to: str | None) -> None:
        self._writer, self._form, self._batch_bytes, self._adapt_to = writer, form, batch_bytes, adapt_to
        self._events = RowEvents()
        self._open = b""
        self._null, self._tag = (read_only(np.frombuffer(part, np.uint8)) for part in (form.null, form.tag))

    def write(self, batch: pa.RecordBatch, first_row: int) -> Iterator[pa.Array]:
        """Yields the messages that are complete with these rows; `first_row` is the index of the first of them."""
        rows = RowColumns(batch, needs_lsn=self._form.framed)
        yield from self._messages(rows, self._measured(rows, first_row))

    def flush(self) -> list[bytes]:
        """The message that is still open, as a sender closes it after a while."""
        return [self._open[: -len(MORE)] + CLOSE_BY_TIMEOUT] if self._open else []

    def _measured(self, rows: RowColumns, first_row: int) -> _Measured:
        form, found = self._form, _Measured(rows.count)
        learned = _Layouts(self._writer, form, found)
        by_python = np.union1d(np.flatnonzero(rows.codes == NO_CODE), rows.firsts)
        values = chain.from_iterable(
            rows_of(rows.batch.take(pa.array(by_python[start : start + EVENT_ROWS])))
            for start in range(0, len(by_python), EVENT_ROWS)
        )
        events = self._events.events(zip((by_python + first_row).tolist(), values, strict=True))
        waiting = iter((*by_python.tolist(), rows.count))
        next_one = next(waiting)
        row = 0
        while True:
            row = measure_rows(
                row,
                rows.codes,
                learned.indexes,
                learned.fixed,
                learned.no_nulls,
                rows.starts,
                rows.stops,
                rows.new.offsets,
                rows.new.valid,
                rows.old.offsets,
                rows.old.valid,
                HEAD_BYTES if form.framed else 0,
                len(form.null),
                len(form.tag) + 4,
                found.layouts,
                found.sizes,
            )
            if row == rows.count:
                return found
            if row == next_one:
                next_one = next(waiting)
                event = None if rows.continues[row] else next(events)[1]
            else:
                ((_, event),) = self._events.events([(first_row + row, rows_of(rows.batch.slice(row, 1))[0])])
            if event is not None:
                messages = write_event(self._writer, event, self._adapt_to)
                found.give(row, messages, self._is_alone(event))
                learned.learn(int(rows.codes[row]), event, len(messages), int(rows.value_counts[row]))
            row += 1

    def _is_alone(self, event: Event) -> bool:
        """Whether its message is one by itself among batches of records."""
        return not self._form.framed or (isinstance(event, Heartbeat) and event.lsn is None)

    def _messages(self, rows: RowColumns, found: _Measured) -> Iterator[pa.Array]:
        form = self._form
        first_pieces, piece_starts, pieces = found.pieces()
        given_ends, given_alone, given = found.given(form.framed)
        given_at = begin = 0
        room = found.sizes + 5 * np.maximum(found.counts, 1)  # what separates records, or ends a message before them
        written = np.cumsum(room)
        while begin < rows.count:
            before = written[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(written, before + RANGE_BYTES)))
            out = np.empty(len(self._open) + int(written[end - 1] - before) + BLOCK, np.uint8)
            out[: len(self._open)] = np.frombuffer(self._open, np.uint8)
            ends = np.empty(2 * int(np.maximum(found.counts[begin:end], 1).sum()) + 1, np.int64)
            at, messages, given_at = write_rows(
                begin,
                end,
                found.layouts,
                first_pieces,
                piece_starts,
                pieces,
                rows.starts,
                rows.stops,
                rows.new.offsets,
                rows.new.valid,
                rows.new.data,
                rows.old.offsets,
                rows.old.valid,
                rows.old.data,
                form.new_first,
                rows.lsns,
                self._null,
                self._tag,
                form.framed,
                self._batch_bytes,
                found.counts,
                given_ends,
                given_alone,
                given,
                given_at,
                out,
                len(self._open),
                ends,
            )
            last = int(ends[messages - 1]) if messages else 0
            if last >= 1 << 31:
                raise LimitExceeded(f"an Arrow array of messages holds 2147483647 bytes, these have {last}")
            self._open = out[last:at].tobytes()
            offsets = np.zeros(messages + 1, np.int32)
            offsets[1:] = ends[:messages]
            yield pa.Array.from_buffers(pa.binary(), messages, [None, pa.py_buffer(offsets), pa.py_buffer(out[:last])])
            begin = end


class _Measured:
    """What is known of rows before they are written; see `write_rows`."""

    def __init__(self, count: int) -> None:
        self.layouts = np.full(count, NO_CODE, np.int32)
        self.sizes = np.zeros(count, np.int64)
        self.counts = np.zeros(count, np.int32)
        self.known: list[ByteLayout] = []
        self._given: list[bytes] = []
        self._alone: list[bool] = []

    def give(self, row: int, messages: list[bytes], is_alone: bool) -> None:
        """Notes the messages of a row."""
        self.counts[row] = len(messages)
        self.sizes[row] = sum(map(len, messages))
        self._given += messages
        self._alone += [is_alone] * len(messages)

    def given(self, framed: bool) -> tuple[Array, Array, Array]:
        """The ends of the given messages, whether they are alone, and their bytes, of records without an end."""
        cut = len(END) if framed else 0
        parts = [
            message if is_alone else message[: len(message) - cut]
            for message, is_alone in zip(self._given, self._alone, strict=True)
        ]
        ends = np.cumsum([*map(len, parts)], dtype=np.int64)
        return ends, np.array(self._alone, np.uint8), read_only(np.frombuffer(b"".join(parts), np.uint8))

    def pieces(self) -> tuple[Array, Array, Array]:
        """The first piece of each layout, where each piece starts, and the bytes of all."""
        parts = [(*(before for before, _ in layout.cells), layout.tail) for layout in self.known]
        firsts = np.cumsum([0, *map(len, parts)], dtype=np.int32)
        starts = np.cumsum([0, *map(len, chain.from_iterable(parts))], dtype=np.int32)
        data = b"".join(chain.from_iterable(parts))
        return firsts, starts, read_only(np.frombuffer(data, np.uint8))


class _Layouts:
    """The layouts of the numbers of some rows, as far as they are known now."""

    def __init__(self, writer: LayoutWriter, form: RowForm, found: _Measured) -> None:
        self.indexes = np.full(MOST_CODES, NO_CODE, np.int32)
        self.fixed = np.zeros(MOST_CODES, np.int64)
        self.no_nulls = np.zeros(MOST_CODES, np.uint8)
        self._writer, self._form, self._found = writer, form, found
        self._text = form.tag + len(_TEXT).to_bytes(4, "big") + _TEXT.encode()
        self._users: dict[Any, set[int]] = {}

    def learn(self, code: int, event: Event, messages: int, values: int) -> None:
        """After an event of a row with this number was written as so many messages; the row has so many values."""
        if type(event) not in _KEEP:
            self.indexes[:] = NO_CODE
        for key in _changed(event, messages):
            for user in self._users.pop(key, ()):
                self.indexes[user] = NO_CODE
        if code == NO_CODE or not isinstance(event, RowChange):
            return
        found = self._writer.layout(event)
        if found is None or len(found[0].cells) != values:
            return
        layout, relation_id = found
        nulls = {_tried(write, None) for _, write in layout.cells}
        if not nulls <= {self._form.null, None} or any(_tried(write, _TEXT) != self._text for _, write in layout.cells):
            return
        self.no_nulls[code] = None in nulls
        self.indexes[code] = len(self._found.known)
        self.fixed[code] = len(layout.tail) + sum(len(before) for before, _ in layout.cells)
        self._found.known.append(layout)
        for key in ((event.table_schema, event.table_name), relation_id):
            self._users.setdefault(key, set()).add(code)


_TEXT = "\\x07"
"""A value that types which have a binary form write in that, and others as a text."""


def _tried(write: ValueWriter, value: str | None) -> bytes | None:
    """How a value is written; None where it cannot be said."""
    try:
        return write(value)
    except REFUSALS:
        return None


def _changed(event: Event, messages: int) -> tuple[Any, ...]:
    """Whose layouts are no longer good: names of tables, and numbers of relations."""
    if isinstance(event, Relation):
        return (event.table_schema, event.table_name), event.relation_id
    if isinstance(event, RowChange) and messages > 1:
        return ((event.table_schema, event.table_name),)
    return (None,) if messages > 1 else ()
