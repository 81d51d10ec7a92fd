"""`MicroBatchReader`: answers a question about a stream that never ends, one micro-batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from ..arrow.committed.assembler import Transactions
from ..arrow.committed.chunk_items import ChunkEnd
from ..arrow.schemas import widened
from ..capture_reading import Rows
from ..errors import StateError
from ..formats.pgoutput.relations import Relations
from ..options import ReadOptions
from ..sources.decoding import SourceDecoder
from ..sources.handed_rows import HandedRows
from ..sources.source import SourceMessages
from ..stream.attempts import AttemptKey
from ..stream.chunk_plan import ChunkPlan, LaterFate
from ..stream.records_before import RecordsBefore
from ..stream.saved import START_OVER
from .capture import ChunkCapture
from .records import needs_records
from .saved import Left, StreamState, read_piece, write_piece
from .saved_records import HELD_COLUMNS

PIECE_BYTES = 1 << 20
"""About the size of a piece: messages that follow each other. While a transaction is open, all pieces that have rows of
it are held."""


class Pieces(Protocol):
    """Holds the pieces of a stream that have rows of open transactions. A number is never used twice."""

    def put(self, number: int, piece: bytes) -> None:
        """Stores a piece."""

    def get(self, number: int) -> bytes | None:
        """Returns a piece; None if there is none."""

    def drop(self, number: int) -> None:
        """Removes a piece."""


NameOf = Callable[[pa.RecordBatch, int], str]
"""Returns what names a message in errors, by the positions of some messages and its index among them."""


class MicroBatch(ChunkCapture):
    """The messages of a micro-batch, or of a piece of it that was held; later messages are not known yet.

    messages   whose last column has them; the others have their positions
    left       what the messages before have left
    fates      of held messages: how transactions have ended that were open after them. Only their rows are returned

    When an answer has been read to its end, `end` and `left` say what is left. `positions` has a row for each message,
    after those of earlier ones whose records waited for these.
    """

    def __init__(
        self,
        messages: pa.RecordBatch,
        format: str,
        left: Left,
        fates: Mapping[AttemptKey, LaterFate] | None,
        name: NameOf,
        **options: Any,
    ) -> None:
        self.positions = _positions(left, messages)
        self._left = left
        super().__init__(
            pa.chunked_array([messages.columns[-1]]),
            format,
            plan=ChunkPlan(left.start, {} if fates is None else dict(fates)),
            relations=left.relations,
            before=left.records._replace(name=partial(name, self.positions)),
            **options,
        )
        self._is_held = fates is not None
        self._is_at_end = False
        self.end: ChunkEnd | None = None

    @property
    def left(self) -> Left:
        """What the messages have left for the next ones."""
        return self._left if self.end is None else replace(self._left, start=self.end.start)

    def _relations(self) -> Relations | None:
        self._left = replace(self._left, relations=self._left.relations.copy())  # the decoder adds to it
        return self._left.relations

    def _read(self, decoder: SourceDecoder, rows_of: Callable[[SourceMessages], Iterator[Rows]]) -> Iterator[Rows]:
        yield from super()._read(decoder, rows_of)
        records, positions = _renumbered(decoder.before_next, self.positions)
        self._left = replace(self._left, records=records, positions=positions)

    def _decoded(self, options: ReadOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        wider = widened(schema, "message", *HELD_COLUMNS) if needs_records(options) else schema
        for batch in super()._decoded(options, wider):
            yield batch.select(schema.names)

    def _committed(self, options: Any, **others: Any) -> Iterator[HandedRows]:
        if self._is_held:
            others["has_outside"] = False
        for handed in super()._committed(options, **others):
            if self._is_at_end or not self._is_held:
                yield handed

    def _later(self, transactions: Transactions) -> Iterator[pa.RecordBatch]:
        self._is_at_end = True
        self.end = transactions.end_chunk()
        if self._is_held:
            yield from super()._later(transactions)


Ask = Callable[[MicroBatch], Iterator[pa.RecordBatch]]
"""Asks a question of some messages, and reads the answer to its end."""


class MicroBatchReader:
    """Reads a stream in micro-batches.

    options   of wf.Capture
    state     what the micro-batches before have left; after `take`, what they have left with that one
    pieces    has those of the state

    Messages are record batches whose last column has them; the others have their positions.
    """

    def __init__(
        self, format: str, options: Mapping[str, Any], state: StreamState, pieces: Pieces, name: NameOf
    ) -> None:
        self._format = format
        self._options = options
        self._pieces = pieces
        self._name = name
        self.state = state
        self.unknown_prepared: tuple[str, ...] = ()
        self.dropped = 0

    def take_records(self, messages: pa.RecordBatch, ask: Ask) -> Iterator[pa.RecordBatch]:
        """Yields the answer to a question about each record of the next messages, such as `changes`."""
        chunk = self._chunk(messages, self.state.left)
        yield from ask(chunk)
        self.dropped = chunk.rows_dropped
        self.state = replace(self.state, left=chunk.left)

    def take(self, messages: pa.RecordBatch, ask: Ask) -> Iterator[pa.RecordBatch]:
        """Yields the answer to a question about the transactions that are committed in the next messages."""
        before = self.state
        chunk = self._chunk(messages, before.left)
        yield from ask(chunk)
        end = _end(chunk)
        self.unknown_prepared, self.dropped = chunk.unknown_prepared, chunk.rows_dropped
        yield from self._late(end.ended, ask)
        if any(one.has_rows for one in end.open):
            self._hold(messages)
        else:
            held = tuple(() if one.was is None else before.held[one.was] for one in end.open)
            self.state = replace(before, left=chunk.left, held=held)
        for number in _numbers(before.held) - _numbers(self.state.held):
            self._pieces.drop(number)

    def _late(self, ended: Mapping[int, LaterFate], ask: Ask) -> Iterator[pa.RecordBatch]:
        """Yields the answer about held rows whose transactions have ended."""
        fates: dict[int, dict[AttemptKey, LaterFate]] = {}
        for index, fate in ended.items():
            for number, key in self.state.held[index] if fate.facts is not None else ():
                fates.setdefault(number, {})[key] = fate
        for number in sorted(fates):
            piece = self._pieces.get(number)
            if piece is None:
                raise StateError(
                    f"saved state: expected piece {number} of the messages of open transactions, got none: restore it "
                    f"from a copy, {START_OVER}"
                )
            left, messages = read_piece(piece)
            yield from ask(self._chunk(messages, left, fates[number]))

    def _hold(self, messages: pa.RecordBatch) -> None:
        """Reads the messages again, piece by piece, and holds the pieces with rows of open transactions."""
        state, left = self.state, self.state.left
        held = [[*pieces] for pieces in state.held]
        found: dict[int, tuple[Left, pa.RecordBatch]] = {}
        for number, piece in enumerate(_pieces(messages), state.next_piece):
            chunk = self._chunk(piece, left)
            for _ in chunk.committed(tables=()):
                pass
            end = _end(chunk)
            before, held = held, []
            for one in end.open:
                pieces = [] if one.was is None else before[one.was]
                held.append([*pieces, (number, one.key)] if one.has_rows else pieces)
            found[number] = left, piece
            left = chunk.left
        self.state = replace(
            state, left=left, held=tuple(map(tuple, held)), next_piece=max(found, default=state.next_piece - 1) + 1
        )
        for number in sorted(found.keys() & _numbers(self.state.held)):
            self._pieces.put(number, write_piece(*found[number]))

    def _chunk(
        self, messages: pa.RecordBatch, left: Left, fates: Mapping[AttemptKey, LaterFate] | None = None
    ) -> MicroBatch:
        return MicroBatch(messages, self._format, left, fates, self._name, threads=1, **self._options)


def _positions(left: Left, messages: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the positions of messages, after those of earlier ones that `left` has rows of."""
    names = messages.schema.names[:-1]
    columns = messages.columns[:-1]
    if left.positions:
        before = zip(*left.positions, strict=True)
        columns = [
            pa.concat_arrays([pa.array(values, column.type), column])
            for values, column in zip(before, columns, strict=True)
        ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _renumbered(records: RecordsBefore, positions: pa.RecordBatch) -> tuple[RecordsBefore, tuple[tuple[Any, ...], ...]]:
    """Returns records whose waiting rows have the messages 0, 1, …, and the positions of these messages."""
    rows = records.held_rows
    if rows is None:
        return records, ()
    at = zip(*(column.take(rows["message"]).to_pylist() for column in positions.columns), strict=True)
    numbers = pa.array(range(len(rows)), pa.int64())
    rows = rows.set_column(rows.schema.get_field_index("message"), "message", numbers)
    return records._replace(held_rows=rows), tuple(at)


def _end(chunk: MicroBatch) -> ChunkEnd:
    assert chunk.end is not None, "the answer was not read to its end"
    return chunk.end


def _numbers(held: Sequence[Sequence[tuple[int, AttemptKey]]]) -> set[int]:
    return {number for pieces in held for number, _ in pieces}


def _pieces(messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields the messages in pieces of about PIECE_BYTES."""
    count = max(1, -(-messages.nbytes // PIECE_BYTES))
    size = max(1, -(-len(messages) // count))
    for first in range(0, len(messages), size):
        yield messages.slice(first, size)
