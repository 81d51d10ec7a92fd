"""A stream that is stopped and begun again from its state after each micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import wireformat as wf
from wireformat.chunks.micro_batches import MicroBatchReader
from wireformat.chunks.saved import Settings, StreamState, read_stream, write_stream
from wireformat.options import ReadOptions

FILTERS = ("strict", "exclude_users", "skip_empty_xacts")


class Pieces(dict[int, bytes]):
    """Pieces in memory."""

    def put(self, number: int, piece: bytes) -> None:
        assert number not in self, "a piece is rewritten"
        self[number] = piece

    def drop(self, number: int) -> None:
        del self[number]


def batch_of(messages: Sequence[bytes], first: int) -> pa.RecordBatch:
    offsets = pa.array(range(first, first + len(messages)), pa.int64())
    return pa.record_batch({"offset": offsets, "message": pa.array([*map(bytes, messages)], pa.binary())})


def message_at(positions: pa.RecordBatch, message: int) -> str:
    """What names a message: its index in the whole stream."""
    return f"message {positions['offset'][message]}"


class StoppedStream:
    """Takes messages in micro-batches; see above."""

    def __init__(self, format: str, question: str = "transactions", **options: Any) -> None:
        filters = ReadOptions.check(**{name: options[name] for name in FILTERS if name in options})
        self.settings = Settings(
            format,
            question,
            options.get("two_phase", "commit"),
            options.get("drop_resent", True),
            ("offset",),
            filters.strict,
            filters.skip_empty_xacts,
            tuple(sorted(filters.exclude_users)),
        )
        self._options = options
        self.pieces = Pieces()
        self.offset = 0
        self.state: bytes | None = None
        self.unknown_prepared: tuple[str, ...] = ()

    def take(self, messages: Sequence[bytes], ask: Any) -> list[pa.RecordBatch]:
        state = StreamState() if self.state is None else read_stream(self.state, self.settings)
        reader = MicroBatchReader(self.settings.format, self._options, state, self.pieces, message_at)
        take = reader.take if self.settings.question == "transactions" else reader.take_records
        found = [*take(batch_of(messages, self.offset), ask)]
        self.offset += len(messages)
        self.state = write_stream(replace(reader.state, last=(self.offset,)), self.settings)
        again = read_stream(self.state, self.settings).left
        assert (again.start, again.positions) == (reader.state.left.start, reader.state.left.positions)
        self.unknown_prepared += reader.unknown_prepared
        assert {number for pieces in reader.state.held for number, _ in pieces} == {*self.pieces}
        return found


def committed(capture: wf.Capture) -> Iterator[pa.RecordBatch]:
    yield from capture.committed()
