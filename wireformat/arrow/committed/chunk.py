"""Transactions of a stream that is cut into chunks: each chunk by itself, a walk over short summaries, the join.

`Chunk` reads one chunk without knowing what stands before it; `carry` walks the summaries of all chunks in order and
says what becomes of what lies in more than one; `deliver` makes committed rows of a chunk's rows and that.
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
from .batch import ControlRow, RowPosition, RowRun, Rows, Stretch, check_columns
from .facts import stretch_facts
from .open_rows import OpenRows
from .output import Output
from .plain_transactions import is_plain
from .row_ranges import HERE, RowRange, spread, taken
from .spill import RowSpill, Store


def chunk_schema(changes: pa.Schema) -> pa.Schema:
    """The schema of a chunk's rows: that of committed rows, and `_segment`; raises OptionError where there is one."""
    if SEGMENT.name in changes.names:
        raise OptionError(f"row changes: {SEGMENT.name} is added, got a column named so")
    return committed_schema(changes).append(SEGMENT)


class Chunk:
    """Takes the row changes of one chunk of a stream, in order; what it gives back does not depend on the batches.

    drop_resent     leave out whole transactions that were sent again behind others of the same stretch
    controls        give control records back too, for `open_rows`
    memory_limit, store   as in `Transactions`: for a plain transaction that spans batches

    A row has in `_segment` where its fate is found. Below 0 its transaction is whole, and its facts are there;
    `sequence` has the number of the transaction in the stretch where there is neither commit_lsn nor csn. From 0 on it
    has what its own record says, and `sequence.ordinal` is its index in the segment.
    Raises OrderError at a CORRUPT row, OptionError; what depends on other chunks is found by `carry`.
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
        self._own = RowSpill(memory_limit) if store is None else None
        self._held = OpenRows(self._own or store)
        self._ended: list[RowRange] = []
        self._schema: pa.Schema | None = None
        self._pending: _Pending | None = None
        self._items: list[list[Any]] = []
        self._numbered = 0
        self._stretches = 0
        self._in_stretch = Position()

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of this batch and those before it; to be read to its end."""
        self._schema = check_columns(batch.schema, self._schema)
        rows = Rows.of(batch)
        output = self._output_of(rows)
        for item, position in rows.with_positions(rows.items()):
            yield from self._item(item, position, rows, output)
        yield from output.flush()
        self._held.release(self._ended)
        self._ended = []
        if self._pending is not None:
            self._pending.hold(rows, self._held)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rest of the rows."""
        if self._pending is not None:
            yield from self._give_up()

    @property
    def summary(self) -> bytes:
        """The chunk for `carry`: control records that matter elsewhere, counts of rows and of whole transactions."""
        return json.dumps(self._items, separators=(",", ":")).encode()

    def close(self) -> None:
        """Remove the files."""
        if self._own is not None:
            self._own.close()

    def _output_of(self, rows: Rows) -> _ChunkOutput:
        held = self._held
        schema = chunk_schema(self._schema)
        return _ChunkOutput(rows, schema, Output(rows, schema, lambda number: Rows.of(held.get(number)), held.bytes_of))

    def _item(
        self, item: ControlRow | RowRun | Stretch, position: RowPosition, rows: Rows, output: _ChunkOutput
    ) -> Iterator[pa.RecordBatch]:
        pending = self._pending
        if pending is not None:
            if isinstance(item, RowRun) or (isinstance(item, ControlRow) and item.control.kind == "ORIGIN"):
                pending.add(item, position)
                return
            if isinstance(item, ControlRow) and item.control.kind == "COMMIT" and is_plain(pending.begin, item.control):
                self._complete(pending, item, rows, output)
                return
            yield from self._give_up(output)
        if isinstance(item, ControlRow) and item.control.kind == "BEGIN":
            self._pending = _Pending(item, position)
        else:
            self._add(item, position, rows, output)

    def _add(
        self, item: ControlRow | RowRun | Stretch, position: RowPosition, rows: Rows, output: _ChunkOutput
    ) -> None:
        """An item of the summary, and its rows."""
        if isinstance(item, RowRun):
            number, first = self._run(item, position)
            output.add((HERE, item.start, item.stop), number, first)
        elif isinstance(item, ControlRow):
            number = self._append(["control", _lean(item.control), position])
            if self._controls:
                output.add((HERE, item.row, item.row + 1), number, 0, is_control=True)
        else:
            found = stretch_facts(rows, item, self._in_stretch)
            begin = rows.control(int(item.begins[0]))
            segment = self._count(begin, position, len(found.resent), *found.highest)
            output.whole.add_stretch(item, found.facts, found.resent & self._drop_resent, segment)

    def _append(self, item: list[Any]) -> int:
        self._in_stretch = Position()
        self._items.append(item)
        self._numbered += 1
        return self._numbered - 1

    def _run(self, run: RowRun, position: RowPosition) -> tuple[int, int]:
        """The number of a run, and how many rows of it there were before: it may have begun in another batch."""
        last = self._items[-1] if self._items else None
        if last is not None and last[0] == "rows" and not last[2] and not run.lone:
            first, last[1] = last[1], last[1] + run.count
            return self._numbered - 1, first
        return self._append(["rows", run.count, run.lone, position]), 0

    def _count(self, begin: Control, position: RowPosition, count: int, lsn: int | None, csn: int | None) -> int:
        """Whole transactions: the number of their stretch."""
        if self._in_stretch.transactions == 0:
            self._stretches += 1
            self._items.append(["whole", 0, None, None, _lean(begin), position])
        self._in_stretch = self._in_stretch.behind(lsn, csn, count)
        self._items[-1][1:4] = self._in_stretch[:3]
        return -self._stretches

    def _complete(self, pending: _Pending, end: ControlRow, rows: Rows, output: _ChunkOutput) -> None:
        """A plain transaction that did not come in a stretch is whole."""
        facts = facts_of(pending.begin, end.control, self._in_stretch.transactions + 1)
        resent = self._drop_resent and self._in_stretch.covers(facts.commit_lsn, facts.csn)
        segment = self._count(pending.first, pending.position, 1, facts.commit_lsn, facts.csn)
        self._pending = None
        self._ended += [part for part, _ in pending.pieces]
        attempt = Attempt(pending.begin, pending.pieces)
        attempt.pieces += [
            ((HERE, item.start, item.stop), item.count) for item, _ in pending.items if isinstance(item, RowRun)
        ]
        if not resent:
            output.whole.add(attempt, facts, segment)

    def _give_up(self, output: _ChunkOutput | None = None) -> Iterator[pa.RecordBatch]:
        """What began as a plain transaction is none that is whole: its items count one by one."""
        pending, self._pending = self._pending, None
        assert pending is not None
        for part, _ in pending.pieces:
            held = Rows.of(self._held.get(part[0]))
            held_output = self._output_of(held)
            for item, position in held.with_positions(held.items()):
                self._add(item, position, held, held_output)
            yield from held_output.flush()
        self._held.release(part for part, _ in pending.pieces)
        if output is not None:
            for item, position in pending.items:
                self._add(item, position, output.rows, output)


class _Pending:
    """A plain transaction that has begun.

    first, begin   its BEGIN; with what an ORIGIN said
    position        where the BEGIN is
    pieces         its rows in earlier batches
    items          what this batch has of it, and where
    """

    def __init__(self, begin: ControlRow, position: RowPosition) -> None:
        self.first = self.begin = begin.control
        self.position = position
        self.pieces: list[tuple[RowRange, int]] = []
        self.items: list[tuple[ControlRow | RowRun, RowPosition]] = [(begin, position)]

    def add(self, item: ControlRow | RowRun, position: RowPosition) -> None:
        """It goes on."""
        self.items.append((item, position))
        if isinstance(item, ControlRow):
            self.begin = self.begin._replace(origin=item.control.origin)

    def hold(self, rows: Rows, held: OpenRows) -> None:
        """The batch ends."""
        if self.items:
            first, _ = self.items[0]
            indices = np.arange(first.row if isinstance(first, ControlRow) else first.start, len(rows.codes))
            part = held.put(taken(rows.batch, indices[rows.kept[indices]]))
            self.pieces.append((part, sum(item.count for item, _ in self.items if isinstance(item, RowRun))))
            self.items = []


class _ChunkOutput:
    """Rows of one batch that wait to be built: of whole transactions, and of segments."""

    def __init__(self, rows: Rows, schema: pa.Schema, whole: Output) -> None:
        self.rows = rows
        self.whole = whole
        self._schema = schema
        self._waiting: list[tuple[int, int, int, int, bool]] = []

    def add(self, part: RowRange, number: int, first: int, *, is_control: bool = False) -> None:
        """The rows of a segment, the first of them its `first`th; or a control record."""
        _, start, stop = part
        self._waiting.append((start, stop, number, first, is_control))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """All of them."""
        yield from self.whole.batches()
        if self._waiting:
            starts, stops, numbers, firsts, are_control = np.array(self._waiting, np.int64).T
            indices, of = spread(starts, stops)
            wanted = self.rows.delivered[indices] | are_control[of].astype(bool)
            indices, of = indices[wanted], of[wanted]
            ordinals = (firsts - self.rows.before[starts])[of] + self.rows.before[indices]
            rows = taken(self.rows.batch, indices)
            zeros = pa.array(np.zeros(len(indices), np.int64))
            own = {
                "sequence": pa.StructArray.from_arrays([zeros, pa.array(ordinals)], fields=list(SEQUENCE)),
                SEGMENT.name: pa.array(numbers[of], SEGMENT.type),
                **{name: pa.nulls(len(indices), pa.string()) for name in ("username", "origin")},
            }
            columns = [own[field.name] if field.name in own else rows[field.name] for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _lean(control: Control) -> dict[str, Any]:
    """What a control record says."""
    return {name: value for name, value in zip(Control._fields, control, strict=True) if value is not None}


__all__ = ["Chunk", "chunk_schema"]
