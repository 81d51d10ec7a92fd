"""A stream that is stopped and begun again from its state after each micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import wireformat as wf
from wireformat.chunks.endless import EndlessStream
from wireformat.chunks.saved import Settings, StreamState, read_stream, write_stream


class Pieces(dict[int, bytes]):
    """Pieces in memory."""

    def put(self, number: int, piece: bytes) -> None:
        assert number not in self, "a piece is rewritten"
        self[number] = piece

    def drop(self, number: int) -> None:
        del self[number]


def batch_of(messages: Sequence[bytes]) -> pa.RecordBatch:
    return pa.record_batch({"message": pa.array([*map(bytes, messages)], pa.binary())})


class Endless:
    """See above."""

    def __init__(self, format: str, question: str = "transactions", **options: Any) -> None:
        two_phase, drop_resent = options.get("two_phase", "commit"), options.get("drop_resent", True)
        self.settings = Settings(format, question, two_phase, drop_resent, ("offset",))
        self._options = options
        self.pieces = Pieces()
        self.offset = 0
        self.state: bytes | None = None
        self.unknown_prepared: tuple[str, ...] = ()

    def take(self, messages: Sequence[bytes], ask: Any) -> list[pa.RecordBatch]:
        state = StreamState() if self.state is None else read_stream(self.state, self.settings)
        stream = EndlessStream(self.settings.format, self._options, state, self.pieces)
        take = stream.take if self.settings.question == "transactions" else stream.take_records
        found = [*take(batch_of(messages), lambda capture, _: ask(capture))]
        self.offset += len(messages)
        self.state = write_stream(replace(stream.state, last=(self.offset,)), self.settings)
        assert read_stream(self.state, self.settings).left.start == stream.state.left.start
        self.unknown_prepared += stream.unknown_prepared
        assert {number for pieces in stream.state.held for number, _ in pieces} == {*self.pieces}
        return found


def committed(capture: wf.Capture) -> Iterator[pa.RecordBatch]:
    yield from capture.committed()
