"""`Chunk`: reads the row changes of one chunk of a stream, without the chunks before it.

The transactions of a stream are found in three steps. `Chunk` divides the rows of each chunk into segments and makes a
short summary. `segment_fates` reads the summaries of all chunks in order and finds the fate of each segment. The caller
then joins the rows with the fates of their segments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import OptionError
from ...limits import OPEN_TRANSACTIONS_BYTES
from ...stream.attempts import Attempt, facts_of
from ...stream.controls import Control
from ...stream.positions import Position
from ..schemas import SEGMENT, SEQUENCE, committed_schema
from .batch import ControlRow, Item, RowPosition, Rows, RowsBetween, check_columns
from .facts import stretch_facts
from .open_rows import OpenRows
from .output import Output
from .plain_transactions import is_plain
from .row_ranges import HERE, RowRange, row_indices, taken
from .spill import RowSpill, Store


def chunk_schema(changes: pa.Schema) -> pa.Schema:
    """Returns the schema of committed rows with `_segment`; raises OptionError if the rows have such a column."""
    if SEGMENT.name in changes.names:
        raise OptionError(f"row changes: expected no column {SEGMENT.name}, which the result adds, got one; rename it")
    return committed_schema(changes).append(SEGMENT)


class Chunk:
    """Takes the row changes of one chunk of a stream, in order. The result does not depend on how they are batched.

    drop_resent           drop whole transactions that were sent again within the same segment
    controls              return control records too, which open transactions keep
    memory_limit, store   as in `Transactions`, for plain transactions that span batches

    The column `_segment` has the number of the row's segment, whose fate `segment_fates` finds. A negative number is a
    segment of whole transactions: the row has the facts of its transaction, and `sequence` has the number of the
    transaction in the segment if it has neither commit_lsn nor csn. Otherwise the row has the values of its own record,
    and `sequence.ordinal` is its index in the segment.

    Raises OrderError at a CORRUPT row, OptionError. Errors that depend on other chunks are raised by `segment_fates`.
    """

    def __init__(
        self,
        *,
        drop_resent: bool = True,
        controls: bool = False,
        memory_limit: int = OPEN_TRANSACTIONS_BYTES,
        store: Store | None = None,
    ) -> None:
        self._drop_resent = drop_resent
        self._controls = controls
        self._own_store = RowSpill(memory_limit) if store is None else None
        self._open_rows = OpenRows(self._own_store or store)
        self._ended: list[RowRange] = []
        self._schema: pa.Schema | None = None
        self._pending: _PendingTransaction | None = None
        self._summary: list[list[Any]] = []
        self._segments = 0
        self._whole_segments = 0
        self._position_in_segment = Position()

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yields rows of this batch and of earlier ones. Read the iterator to its end."""
        self._schema = check_columns(batch.schema, self._schema)
        rows = Rows.of(batch)
        output = self._output_of(rows)
        for item, position in rows.with_positions(rows.items()):
            yield from self._item(item, position, rows, output)
        yield from output.flush()
        self._open_rows.release(self._ended)
        self._ended = []
        if self._pending is not None:
            self._pending.hold(rows, self._open_rows)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yields the remaining rows, after the last batch."""
        if self._pending is not None:
            yield from self._divide_pending()

    @property
    def summary(self) -> bytes:
        """The summary of the chunk for `segment_fates`: control records, and counts of rows and transactions."""
        return json.dumps(self._summary, separators=(",", ":")).encode()

    def close(self) -> None:
        """Removes the files."""
        if self._own_store is not None:
            self._own_store.close()

    def _output_of(self, rows: Rows) -> _ChunkOutput:
        open_rows = self._open_rows
        schema = chunk_schema(self._schema)
        return _ChunkOutput(
            rows, schema, Output(rows, schema, lambda number: Rows.of(open_rows.get(number)), open_rows.row_bytes)
        )

    def _item(self, item: Item, position: RowPosition, rows: Rows, output: _ChunkOutput) -> Iterator[pa.RecordBatch]:
        pending = self._pending
        if pending is not None:
            if isinstance(item, RowsBetween) or (isinstance(item, ControlRow) and item.control.kind == "ORIGIN"):
                pending.add(item, position)
                return
            if isinstance(item, ControlRow) and item.control.kind == "COMMIT" and is_plain(pending.begin, item.control):
                self._complete(pending, item, rows, output)
                return
            yield from self._divide_pending(output)
        if isinstance(item, ControlRow) and item.control.kind == "BEGIN":
            self._pending = _PendingTransaction(item, position)
        else:
            self._add(item, position, rows, output)

    def _add(self, item: Item, position: RowPosition, rows: Rows, output: _ChunkOutput) -> None:
        """Adds an item to the summary, and its rows to the output."""
        if isinstance(item, RowsBetween):
            segment, first = self._add_rows(item, position)
            output.add(item.start, item.stop, segment, first)
        elif isinstance(item, ControlRow):
            segment = self._append(["control", _given_fields(item.control), position])
            if self._controls:
                output.add(item.row, item.row + 1, segment, 0, is_control=True)
        else:
            found = stretch_facts(rows, item, self._position_in_segment)
            begin = rows.control(int(item.begins[0]))
            segment = self._add_whole(begin, position, len(found.resent), *found.highest)
            output.whole.add_stretch(item, found.facts, found.resent & self._drop_resent, segment)

    def _append(self, item: list[Any]) -> int:
        """Adds an item to the summary, and returns the number of its segment."""
        self._position_in_segment = Position()
        self._summary.append(item)
        self._segments += 1
        return self._segments - 1

    def _add_rows(self, rows: RowsBetween, position: RowPosition) -> tuple[int, int]:
        """Returns the segment of rows between control records, and how many rows it had before, in other batches."""
        last = self._summary[-1] if self._summary else None
        if last is not None and last[0] == "rows" and not last[2] and not rows.lone:
            first, last[1] = last[1], last[1] + rows.count
            return self._segments - 1, first
        return self._append(["rows", rows.count, rows.lone, position]), 0

    def _add_whole(self, begin: Control, position: RowPosition, count: int, lsn: int | None, csn: int | None) -> int:
        """Adds whole transactions to the summary, and returns the number of their segment."""
        if self._position_in_segment.transactions == 0:
            self._whole_segments += 1
            self._summary.append(["whole", 0, None, None, _given_fields(begin), position])
        self._position_in_segment = self._position_in_segment.advanced(lsn, csn, count)
        self._summary[-1][1:4] = self._position_in_segment[:3]
        return -self._whole_segments

    def _complete(self, pending: _PendingTransaction, end: ControlRow, rows: Rows, output: _ChunkOutput) -> None:
        """Adds the pending transaction, which its COMMIT has made whole."""
        facts = facts_of(pending.begin, end.control, self._position_in_segment.transactions + 1)
        resent = self._drop_resent and self._position_in_segment.covers(facts.commit_lsn, facts.csn)
        segment = self._add_whole(pending.first, pending.position, 1, facts.commit_lsn, facts.csn)
        self._pending = None
        self._ended += [row_range for row_range, _ in pending.held]
        attempt = Attempt(pending.begin, pending.held)
        attempt.handles += [
            ((HERE, item.start, item.stop), item.count) for item, _ in pending.items if isinstance(item, RowsBetween)
        ]
        if not resent:
            output.whole.add(attempt, facts, segment)

    def _divide_pending(self, output: _ChunkOutput | None = None) -> Iterator[pa.RecordBatch]:
        """Adds the items of the pending transaction one by one, since it is not a whole transaction of this chunk."""
        pending, self._pending = self._pending, None
        assert pending is not None
        for (number, _, _), _ in pending.held:
            held = Rows.of(self._open_rows.get(number))
            held_output = self._output_of(held)
            for item, position in held.with_positions(held.items()):
                self._add(item, position, held, held_output)
            yield from held_output.flush()
        self._open_rows.release(row_range for row_range, _ in pending.held)
        if output is not None:
            for item, position in pending.items:
                self._add(item, position, output.rows, output)


class _PendingTransaction:
    """A plain transaction that has begun and has not ended.

    first      its BEGIN
    begin      its BEGIN, with the origin of an ORIGIN record
    position   the position of the BEGIN
    held       the row ranges of its rows in earlier batches, each with its number of delivered rows
    items      its items in this batch, with their positions
    """

    def __init__(self, begin: ControlRow, position: RowPosition) -> None:
        self.first = self.begin = begin.control
        self.position = position
        self.held: list[tuple[RowRange, int]] = []
        self.items: list[tuple[ControlRow | RowsBetween, RowPosition]] = [(begin, position)]

    def add(self, item: ControlRow | RowsBetween, position: RowPosition) -> None:
        """Adds an item."""
        self.items.append((item, position))
        if isinstance(item, ControlRow):
            self.begin = self.begin._replace(origin=item.control.origin)

    def hold(self, rows: Rows, store: OpenRows) -> None:
        """Moves its rows out of a batch that ends."""
        if self.items:
            first, _ = self.items[0]
            indices = np.arange(first.row if isinstance(first, ControlRow) else first.start, len(rows.codes))
            row_range = store.put(taken(rows.batch, indices[rows.kept[indices]]))
            self.held.append((row_range, sum(item.count for item, _ in self.items if isinstance(item, RowsBetween))))
            self.items = []


class _ChunkOutput:
    """Collects rows of one batch, and builds batches of them: rows of whole transactions, and of other segments."""

    def __init__(self, rows: Rows, schema: pa.Schema, whole: Output) -> None:
        self.rows = rows
        self.whole = whole
        self._schema = schema
        self._waiting: list[tuple[int, int, int, int, bool]] = []

    def add(self, start: int, stop: int, segment: int, first: int, *, is_control: bool = False) -> None:
        """Adds rows of a segment, or a control record. `first` is the index of the first delivered row in it."""
        self._waiting.append((start, stop, segment, first, is_control))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yields all added rows."""
        yield from self.whole.batches()
        if self._waiting:
            starts, stops, segments, firsts, are_control = np.array(self._waiting, np.int64).T
            indices, range_of = row_indices(starts, stops)
            returned = self.rows.delivered[indices] | are_control[range_of].astype(bool)
            indices, range_of = indices[returned], range_of[returned]
            before = self.rows.counted_before
            ordinals = (firsts - before[starts])[range_of] + before[indices]
            rows = taken(self.rows.batch, indices)
            zeros = pa.array(np.zeros(len(indices), np.int64))
            added = {
                "sequence": pa.StructArray.from_arrays([zeros, pa.array(ordinals)], fields=list(SEQUENCE)),
                SEGMENT.name: pa.array(segments[range_of], SEGMENT.type),
                **{name: pa.nulls(len(indices), pa.string()) for name in ("username", "origin")},
            }
            columns = [added[field.name] if field.name in added else rows[field.name] for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _given_fields(control: Control) -> dict[str, Any]:
    """Returns the fields of a control record that are not None."""
    return {name: value for name, value in zip(Control._fields, control, strict=True) if value is not None}


__all__ = ["Chunk", "chunk_schema"]
