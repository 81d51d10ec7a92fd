"""The groups of a task hold the positions of the messages that were read, and not the messages."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from spark_udfs.chunks.groups import groups

MESSAGE = bytes(1 << 20)
COUNT = 50


def test_messages_that_were_read_are_not_held(tmp_path: Path) -> None:
    """As Spark sends them: a batch is one piece of memory."""
    schema = pa.schema([("0", pa.int32()), ("1", pa.string()), ("2", pa.int64()), ("3", pa.binary())])
    path = tmp_path / "batches"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for number in range(COUNT):
            writer.write_batch(pa.record_batch([[0], ["stream"], [number], [MESSAGE]], schema=schema))
    before = pa.total_allocated_bytes()
    with pa.OSFile(str(path)) as file:
        read = 0
        for group in groups(pa.ipc.open_stream(file), ["name"], ["offset"]):
            for batch in group.messages.reader():
                read += len(batch)
            del batch
            assert pa.total_allocated_bytes() - before < 5 * len(MESSAGE)
            assert group.messages.note(7) == "name=stream, offset=7"
    assert read == COUNT
