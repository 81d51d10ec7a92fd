"""Writes row changes by compiled code, and all other rows by the writer of the format, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import LimitExceeded
from ...events import ROW_CHANGES, Heartbeat
from ...formats.direct.layouts import ByteLayout
from ...framing.gauss_batch import CLOSE_BY_TIMEOUT, END, MORE
from ..arrays import Array, read_only
from ..jit.intrinsics import BLOCK
from .columns import Lists, Texts, lists_of, texts_of
from .control_records import control_records
from .events import Row, RowEvents, is_same_record, rows_of, write_event
from .heads import NO_CODE, Heads
from .kernel import HEAD_BYTES, Marks, measure_rows, write_rows
from .layouts import KEPT_KINDS, Layouts, LayoutWriter, RowForm

RANGE_BYTES = MOST_BATCH_BYTES = 1 << 28
"""How many bytes are written at once, if it is more than one row, and the longest batches that compiled code writes:
offsets of Arrow's binary arrays have 31 bits."""


EVENT_ROWS = 1 << 11
"""Rows that are Python values at a time."""


class CompiledWriter:
    """Writes rows as messages.

    writer        of the format; it makes a message of each record
    batch_bytes   a message of framed records is closed once it is longer
    adapt_to      the format to whose abilities events are adapted, if they are
    """

    def __init__(self, writer: LayoutWriter, form: RowForm, batch_bytes: int, adapt_to: str | None) -> None:
        self._writer, self._form, self._batch_bytes, self._adapt_to = writer, form, batch_bytes, adapt_to
        self._heads = Heads()
        self._layouts = Layouts(writer, form)
        self._events = RowEvents()
        self._open = b""
        self._marks = Marks.of(form.null, form.tag)

    def write(self, batch: pa.RecordBatch, first_row: int) -> Iterator[pa.Array]:
        """Yields the messages that are complete with these rows; `first_row` is the index of the first of them."""
        yield from self._messages(batch, self._measured(batch, first_row))

    def flush(self) -> list[bytes]:
        """The message that is still open, as a sender closes it after a while."""
        return [self._open[: -len(MORE)] + CLOSE_BY_TIMEOUT] if self._open else []

    def _measured(self, batch: pa.RecordBatch, first_row: int) -> _Measured:
        form, layouts = self._form, self._layouts
        codes, firsts = self._heads.codes(batch, _kinds(batch, framed=form.framed))
        found = _Measured(batch.num_rows, layouts.in_use())
        others = np.flatnonzero(codes == NO_CODE)
        if pc.all(pc.is_in(batch.column("kind").take(pa.array(others)), KEPT_KINDS)).as_py():
            for rows, records in control_records(batch, others, self._writer.form, framed=form.framed):
                found.give_records(rows, records)
        by_python = np.union1d(others[found.counts[others] == 0], firsts)
        records = _records(batch, by_python)
        waiting, values = next(records, (-1, []))
        tuples = _tuples(batch)
        ahead: dict[int, Row] = {}
        row = 0
        while True:
            row = measure_rows(
                row,
                codes,
                layouts.indexes,
                layouts.fixed,
                layouts.no_nulls,
                *tuples,
                HEAD_BYTES if form.framed else 0,
                self._marks,
                found.counts,
                found.layouts,
                found.sizes,
            )
            if row == batch.num_rows:
                return found
            if row == waiting:
                one, (waiting, values) = values, next(records, (-1, []))
            else:
                if row not in ahead:  # more of them are to come if no layout was good for one before
                    end = row + (EVENT_ROWS if int(codes[row]) in layouts.refused else 1)
                    same = row + np.flatnonzero(codes[row:end] == codes[row])
                    ahead |= zip(same.tolist(), rows_of(batch.take(pa.array(same))), strict=True)
                one = [ahead.pop(row)]
            event = self._events.event(first_row + row, one)
            messages = layouts.repeated(event) or write_event(self._writer, event, self._adapt_to)
            is_alone = not form.framed or (isinstance(event, Heartbeat) and event.lsn is None)
            found.give(row, messages if is_alone else [message[: -len(END)] for message in messages], is_alone=is_alone)
            names = [name for image in ("new", "old") for name, _ in one[0][image] or ()]
            layouts.learn(int(codes[row]), event, messages, names, found.known)
            row += len(one)

    def _messages(self, batch: pa.RecordBatch, found: _Measured) -> Iterator[pa.Array]:
        form = self._form
        first_pieces, pieces = found.pieces()
        given_ends, given_alone, given = found.given()
        tuples, lsns = _tuples(batch), batch.column("lsn").fill_null(0).to_numpy()
        given_at = begin = 0
        room = found.sizes + 5 * np.maximum(found.counts, 1)  # what separates records, or ends a message before them
        written = np.cumsum(room)
        while begin < batch.num_rows:
            before = written[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(written, before + RANGE_BYTES)))
            buffer = pa.allocate_buffer(len(self._open) + int(written[end - 1] - before) + BLOCK)
            out = np.frombuffer(buffer, np.uint8)
            out[: len(self._open)] = np.frombuffer(self._open, np.uint8)
            ends = np.empty(2 * int(np.maximum(found.counts[begin:end], 1).sum()) + 1, np.int64)
            at, messages, given_at = write_rows(
                begin,
                end,
                found.layouts,
                found.sizes,
                first_pieces,
                pieces,
                *tuples,
                form.new_first,
                lsns,
                self._marks,
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
            yield pa.Array.from_buffers(pa.binary(), messages, [None, pa.py_buffer(offsets), buffer.slice(0, last)])
            begin = end


def _kinds(batch: pa.RecordBatch, *, framed: bool) -> Array:
    """int32[n]: the index in ROW_CHANGES of the kind of each row that a layout may say, NO_CODE for others."""
    kinds = pc.index_in(batch.column("kind"), pa.array([*ROW_CHANGES]))
    is_other = batch.column("xid").is_valid()
    if framed:  # records have an LSN, and all values
        unsent = pc.list_value_length(batch.column("unchanged")).fill_null(0)
        is_other = pc.or_(is_other, pc.or_(batch.column("lsn").is_null(), pc.greater(unsent, 0)))
    return pc.if_else(is_other, None, kinds).fill_null(NO_CODE).to_numpy()


def _tuples(batch: pa.RecordBatch) -> tuple[Lists, Texts, Lists, Texts]:
    """The new and the old tuple of rows, each as ranges of values, and the values."""
    new, old = batch.column("new"), batch.column("old")
    return lists_of(new), texts_of(new.items), lists_of(old), texts_of(old.items)


def _records(batch: pa.RecordBatch, rows: Array) -> Iterator[tuple[int, list[Row]]]:
    """The records of some rows as Python values, with the first row of each: one of TRUNCATE may have several."""
    record: list[Row] = []
    first = 0
    for start in range(0, len(rows), EVENT_ROWS):
        some = rows[start : start + EVENT_ROWS]
        for row, values in zip(some.tolist(), rows_of(batch.take(pa.array(some))), strict=True):
            if record and not (row == first + len(record) and is_same_record(record[0], values)):
                yield first, record
                record = []
            first = first if record else row
            record.append(values)
    if record:
        yield first, record


class _Measured:
    """What is known of rows before they are written; see `write_rows`.

    known   the layouts that the rows have
    """

    def __init__(self, count: int, known: list[ByteLayout]) -> None:
        self.layouts = np.full(count, NO_CODE, np.int32)
        self.sizes = np.zeros(count, np.int64)
        self.counts = np.zeros(count, np.int32)
        self.known = known
        self._rows: list[int] = []
        self._messages: list[bytes] = []
        self._alone: list[bool] = []
        self._records: list[tuple[Array, pa.Array]] = []

    def give(self, row: int, messages: list[bytes], *, is_alone: bool) -> None:
        """Notes the messages of a row. Those that are not alone among batches of records are records without an end."""
        self.counts[row] = len(messages)
        self.sizes[row] = sum(map(len, messages))
        self._rows += [row] * len(messages)
        self._messages += messages
        self._alone += [is_alone] * len(messages)

    def give_records(self, rows: Array, records: pa.Array) -> None:
        """Notes a record of each of some rows."""
        self.counts[rows] = 1
        self.sizes[rows] = pc.binary_length(records).to_numpy()
        self._records.append((rows, records.cast(pa.large_binary())))

    def given(self) -> tuple[Array, Array, Array]:
        """The ends of the given messages in the order of their rows, whether they are alone, and their bytes."""
        rows = np.concatenate([np.array(self._rows, np.int64), *(rows for rows, _ in self._records)])
        messages = [pa.array(self._messages, pa.large_binary()), *(records for _, records in self._records)]
        alone = np.zeros(len(rows), np.uint8)
        alone[: len(self._alone)] = self._alone
        order = np.argsort(rows, kind="stable")
        _, offsets, data = pa.concat_arrays(messages).take(pa.array(order)).buffers()
        ends = np.frombuffer(offsets, np.int64)[1 : len(rows) + 1]
        return ends, alone[order], read_only(np.frombuffer(data, np.uint8))

    def pieces(self) -> tuple[Array, Texts]:
        """The first piece of each layout, and all pieces."""
        parts = [(*(before for before, _ in layout.cells), layout.tail) for layout in self.known]
        firsts = np.cumsum([0, *map(len, parts)], dtype=np.int32)
        starts = np.cumsum([0, *map(len, chain.from_iterable(parts))], dtype=np.int32)
        data = np.frombuffer(b"".join(chain.from_iterable(parts)) + bytes(BLOCK), np.uint8)
        return firsts, Texts(read_only(starts), read_only(data), read_only(np.empty(0, np.uint8)), 0)
