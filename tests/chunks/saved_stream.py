"""Streams that stopped inside transactions, with their states, as files: `python -m tests.chunks.saved_stream FOLDER`.

The files under `saved` were written so, and stay as they are: later releases must go on with them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import wireformat as wf

from .stream_in_micro_batches import StoppedStream, committed
from .test_records import events_of_users

KEPT = Path(__file__).parent / "saved"
STATE, PIECE, MESSAGES = "stream.state", "piece-{}.state", "messages.arrow"

STOPS = {"pgoutput": ("block", "prepared", "streamed"), "test-decoding": ("plain", "prepared")}
"""The stages of transactions that are open where a stream of a format stops."""

WAITING = "gaussdb-binary"
"""The format of a stream that stops at a BEGIN which waits for what follows it."""

FILTERS: dict[str, Any] = {"strict": True, "skip_empty_xacts": True, "exclude_users": ["a"]}
"""The options of the streams, since version 2."""

MICRO_BATCHES = 3


def stopped(format: str, stages: Sequence[str]) -> tuple[list[bytes], int]:
    """Returns messages, and after how many of them transactions in these stages are open that have rows."""
    for seed in range(1000):
        messages = [*wf.encode(wf.testing.stream(2, 14, seed=seed, format=format), format)]
        for count in range(30, len(messages) - 10):
            capture = wf.Capture(messages[:count], format)
            capture.committed().read_all()
            if {*stages} <= {one.stage for one in capture.position.open if one.changes}:
                return messages, count
    raise AssertionError(f"no stream of {format} with open transactions in the stages {', '.join(stages)}")


def stopped_at_begin() -> tuple[list[bytes], int]:
    """Returns messages, and after how many of them comes the first row of a transaction that is kept."""
    messages = events_of_users(1)
    rows = wf.arrow.changes(messages, WAITING, columns=["message", "kind"], **FILTERS).to_pylist()
    return messages, next(row["message"] for row in rows if row["kind"] == "INSERT")


def keep(folder: Path) -> None:
    """Writes messages and state of a stream of each format; `is_read` says which messages the state has taken."""
    stops = {format: stopped(format, stages) for format, stages in STOPS.items()} | {WAITING: stopped_at_begin()}
    for format, (messages, count) in stops.items():
        stream = StoppedStream(format, **FILTERS)
        for number in range(MICRO_BATCHES):
            bounds = [count * (number + step) // MICRO_BATCHES for step in range(2)]
            stream.take(messages[slice(*bounds)], committed)
        into = folder / format
        into.mkdir(parents=True)
        assert stream.state is not None
        (into / STATE).write_bytes(stream.state)
        for number, piece in stream.pieces.items():
            (into / PIECE.format(number)).write_bytes(piece)
        rows = pa.table({"message": messages, "is_read": [index < count for index in range(len(messages))]})
        with pa.ipc.new_stream(str(into / MESSAGES), rows.schema) as writer:
            writer.write_table(rows)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
