"""Transactions of a streaming DataFrame. Open ones are kept in Spark's state, so a query continues after a stop."""

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
from .position_errors import out_of_order

STATE = "state binary"
PIECE_KEY, PIECE = "number bigint", "rows binary"

STREAM_KIND, ROWS_KIND = "wireformat.stream", "wireformat.rows"

STREAM: Shape = {"order_by": [TEXT], "last": [NAME], "next_piece": COUNT}
"""The fields of version 1 of a stream's state, which never change. The state of `Transactions` follows them.

order_by     names of columns
last         their values and the number of the record in the last row
next_piece   the number of the next piece of rows

The key of a stream, which `packing` makes, and the names and types above belong to the state too.
"""

FRESH_BYTES = 32 << 20
"""The bytes of open rows that are held in memory within a micro-batch. If there are more, they go to the state."""

TAKEN_BYTES = 8 << 20
"""The approximate bytes of rows that are processed at once. Pieces in the state and returned batches are no larger."""


class Held:
    """A store of `wf.arrow.Transactions`: rows of open transactions. After a micro-batch, all are in Spark's state.

    A piece is never rewritten. When most of its rows are no longer open, the open ones are put into another piece.
    """

    def __init__(self, pieces: Any, number: int) -> None:
        """pieces: a MapState; number: of the next piece."""
        self.number = number
        self._pieces = pieces
        self._fresh: dict[int, pa.RecordBatch] = {}
        self._bytes = 0

    def put(self, rows: pa.RecordBatch) -> int:
        """Stores rows; returns the number of the piece."""
        number = self.number
        self.number += 1
        self._fresh[number] = rows
        self._bytes += rows.nbytes
        if self._bytes > FRESH_BYTES:
            self.save()
        return number

    def get(self, number: int) -> pa.RecordBatch:
        """Returns the rows of a piece."""
        if number in self._fresh:
            return self._fresh[number]
        found = self._pieces.getValue((number,))
        if found is None:
            raise KeyError(number)
        return read_piece(found[0])

    def drop(self, number: int) -> None:
        """Removes a piece."""
        if number in self._fresh:
            self._bytes -= self._fresh.pop(number).nbytes
        else:
            self._pieces.removeKey((number,))

    def save(self) -> None:
        """Writes the rows in memory to the state."""
        for number, rows in self._fresh.items():
            self._pieces.updateValue((number,), (seal(ROWS_KIND, 1, pack(rows)),))
        self._fresh.clear()
        self._bytes = 0


class Processor(StatefulProcessor):
    """Puts each stream's packed rows into transactions, micro-batch by micro-batch; yields packed committed rows."""

    def __init__(self, layout: Layout, options: dict[str, Any]) -> None:
        self._layout = layout
        self._options = options

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state of a stream: the machine with the position of its last row, and the pieces of open rows."""
        self._machine = handle.getValueState("machine", STATE)
        self._pieces = handle.getMapState("pieces", PIECE_KEY, PIECE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        """Processes the rows of a micro-batch; raises OrderError for rows that precede earlier ones."""
        within = self._layout.within
        packed_rows = [Packed.of(packed, within) for frame in rows for packed in frame["rows"]]
        state = self._machine.get()
        last, next_piece, machine = (None, 0, None) if state is None else read_stream(state[0], self._layout)
        first = min(one.first for one in packed_rows)
        if last is not None and list(map(type, last)) != list(map(type, first)):
            raise wf.OptionError(
                f"option order_by: expected {', '.join(within)} of the types in earlier micro-batches of stream "
                f"{key[0]}, got others: cast them, or begin anew with a new checkpoint folder"
            )
        if last is not None and first <= last:
            raise out_of_order(
                f"rows of stream {key[0]} that follow those of earlier micro-batches",
                f"a row at {_position_text(within, first)} after one at {_position_text(within, last)}; "
                "Spark reads files in the order of their modification times",
            )
        held = Held(self._pieces, next_piece)
        with wf.arrow.Transactions(**self._options, store=held, state=machine) as transactions:
            for batch in merged(packed_rows, within):
                for piece in _slices(batch):
                    for committed in transactions.take(piece):
                        for out in _slices(committed):
                            yield pd.DataFrame({"rows": [pack(out)]})
            log_unknown_prepared(transactions.take_unknown_prepared(), f"stream {key[0]}")
            machine = transactions.state
        held.save()
        self._machine.update((write_stream(self._layout, max(one.last for one in packed_rows), held.number, machine),))

    def close(self) -> None:
        """Closes nothing: no resources are held between micro-batches."""


def write_stream(layout: Layout, last: Sequence[Any], next_piece: int, transactions: bytes) -> bytes:
    """Returns the saved state of a stream."""
    fields = {"order_by": layout.order_by, "last": last, "next_piece": next_piece}
    return seal(STREAM_KIND, 1, dump(fields) + b"\n" + transactions)


def read_stream(data: bytes, layout: Layout) -> tuple[tuple[Any, ...], int, bytes]:
    """Returns `last`, `next_piece`, state of `Transactions`; raises StateError, or OptionError for other columns."""
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
    """Returns the rows of a piece, an Arrow IPC stream; raises StateError."""
    _, payload = unseal(ROWS_KIND, (1,), data)
    try:
        return unpack(payload)
    except (pa.ArrowException, OSError, StopIteration):
        raise damaged(ROWS_KIND, "an Arrow IPC stream of one batch", "other bytes") from None


def _position_text(names: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def _slices(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields the rows, about TAKEN_BYTES at a time."""
    count = -(-rows.nbytes // TAKEN_BYTES) or 1
    size = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)
