"""Transactions of a streaming DataFrame: what is open lies in Spark's own state, so a query goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import wireformat as wf
from wireformat.stream.saved import COUNT, NAME, TEXT, Shape, damaged, dump, load, seal, unseal

from .logs import log_unknown_prepared
from .packing import Layout, Packed, merged, pack, unpack

STATE = "state binary"
PIECE_KEY, PIECE = "number bigint", "rows binary"

STREAM_KIND, ROWS_KIND = "wireformat.stream", "wireformat.rows"

STREAM: Shape = {"order_by": [TEXT], "last": [NAME], "next_piece": COUNT}
"""The fields of version 1 of a stream's state, which is never changed. Behind them is the state of `Transactions`.

order_by     names of columns
last         their values and the number of the record in the last row
next_piece   the number of the next piece of rows

The key of a stream, which `packing` makes, and the names and types above belong to the state too.
"""

FRESH_BYTES = 32 << 20
"""How many bytes of rows that are held back wait in memory for the end of their transaction in the same micro-batch;
more of them go to the state."""

TAKEN_BYTES = 8 << 20
"""About how many bytes of rows are taken at once: the pieces that lie in the state, and the batches that come out, are
no larger."""


class Held:
    """A store of `wf.arrow.Transactions`: rows of open transactions, at the end of a micro-batch all in Spark's state.

    A piece is never rewritten; where most of it has ended, what is open in it comes again in another.
    """

    def __init__(self, pieces: Any, number: int) -> None:
        """pieces: a MapState; number: of the next piece."""
        self.number = number
        self._pieces = pieces
        self._fresh: dict[int, pa.RecordBatch] = {}
        self._bytes = 0

    def put(self, rows: pa.RecordBatch) -> int:
        """Keep rows; returns the number of the piece."""
        number = self.number
        self.number += 1
        self._fresh[number] = rows
        self._bytes += rows.nbytes
        if self._bytes > FRESH_BYTES:
            self.save()
        return number

    def get(self, number: int) -> pa.RecordBatch:
        """The rows of a piece."""
        if number in self._fresh:
            return self._fresh[number]
        found = self._pieces.getValue((number,))
        if found is None:
            raise KeyError(number)
        return read_piece(found[0])

    def drop(self, number: int) -> None:
        """Forget a piece."""
        if number in self._fresh:
            self._bytes -= self._fresh.pop(number).nbytes
        else:
            self._pieces.removeKey((number,))

    def save(self) -> None:
        """Put what is in memory into the state."""
        for number, rows in self._fresh.items():
            self._pieces.updateValue((number,), (seal(ROWS_KIND, 1, pack(rows)),))
        self._fresh.clear()
        self._bytes = 0


class Processor(StatefulProcessor):
    """The transactions of each stream, micro-batch by micro-batch: packed rows in, packed committed rows out."""

    def __init__(self, layout: Layout, options: dict[str, Any]) -> None:
        self._layout = layout
        self._options = options

    def init(self, handle: StatefulProcessorHandle) -> None:
        """The state of a stream: the machine with the position of its last row, and the pieces that it holds."""
        self._machine = handle.getValueState("machine", STATE)
        self._pieces = handle.getMapState("pieces", PIECE_KEY, PIECE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        """Take what came; raises OptionError for rows that lie before others that came earlier."""
        within = self._layout.within
        parts = [Packed.of(packed, within) for frame in rows for packed in frame["rows"]]
        state = self._machine.get()
        last, next_piece, machine = (None, 0, None) if state is None else read_stream(state[0], self._layout)
        first = min(part.first for part in parts)
        if last is not None and list(map(type, last)) != list(map(type, first)):
            raise wf.OptionError(
                f"option order_by: expected {', '.join(within)} of the types in earlier micro-batches of stream "
                f"{key[0]}, got others: cast them, or begin anew with a new checkpoint folder"
            )
        if last is not None and first <= last:
            raise wf.OptionError(
                f"option order_by: rows must come in their order from one micro-batch to the next; a row at "
                f"{_place(within, first)} of stream {key[0]} came after one at {_place(within, last)}. Spark takes "
                "files by the time of their last modification"
            )
        held = Held(self._pieces, next_piece)
        with wf.arrow.Transactions(**self._options, store=held, state=machine) as transactions:
            for batch in merged(parts, within):
                for piece in _pieces(batch):
                    for committed in transactions.take(piece):
                        for out in _pieces(committed):
                            yield pd.DataFrame({"rows": [pack(out)]})
            log_unknown_prepared(transactions.take_unknown_prepared(), f"stream {key[0]}")
            machine = transactions.state
        held.save()
        self._machine.update((write_stream(self._layout, max(part.last for part in parts), held.number, machine),))

    def close(self) -> None:
        """Nothing is open."""


def write_stream(layout: Layout, last: Sequence[Any], next_piece: int, transactions: bytes) -> bytes:
    """The state of a stream."""
    fields = {"order_by": layout.order_by, "last": last, "next_piece": next_piece}
    return seal(STREAM_KIND, 1, dump(fields) + b"\n" + transactions)


def read_stream(data: bytes, layout: Layout) -> tuple[tuple[Any, ...], int, bytes]:
    """`last`, `next_piece` and the state of `Transactions`; raises StateError, OptionError for another order_by."""
    version, payload = unseal(STREAM_KIND, _STREAM_READERS, data)
    return _STREAM_READERS[version](payload, layout)


def _read_stream_1(payload: memoryview, layout: Layout) -> tuple[tuple[Any, ...], int, bytes]:
    line, _, transactions = bytes(payload).partition(b"\n")
    fields = load(STREAM_KIND, line, STREAM)
    if fields["order_by"] != [*layout.order_by]:
        raise wf.OptionError(
            f"option order_by: expected the columns with which the query was begun, {', '.join(fields['order_by'])}, "
            f"got {', '.join(layout.order_by)}: name the first, or begin anew with a new checkpoint folder"
        )
    if len(fields["last"]) != len(layout.within):
        raise damaged(STREAM_KIND, "a value for each column of order_by in last", "more or fewer")
    return tuple(fields["last"]), fields["next_piece"], transactions


_STREAM_READERS = {1: _read_stream_1}


def read_piece(data: bytes) -> pa.RecordBatch:
    """The rows of a piece, an Arrow IPC stream; raises StateError."""
    _, payload = unseal(ROWS_KIND, (1,), data)
    try:
        return unpack(payload)
    except (pa.ArrowException, OSError, StopIteration):
        raise damaged(ROWS_KIND, "an Arrow IPC stream of one batch", "other bytes") from None


def _place(names: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def _pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows, about TAKEN_BYTES at a time."""
    count = -(-rows.nbytes // TAKEN_BYTES) or 1
    size = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)
