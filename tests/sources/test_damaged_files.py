"""Files of messages that have lost bytes: they are read as a Decoder reads these bytes, and no row is lost silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wireformat as wf

ROWS = 4


def batches(format: str) -> list[bytes]:
    """A batched message for each of some transactions."""
    found: list[bytes] = []
    for number in range(ROWS):
        lsn = 0x6000 + 100 * number
        row = wf.TupleData(("id",), (str(number),), ("integer",))
        events = [
            wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn),
            wf.Insert(lsn=lsn + 10, table_schema="s", table_name="t", new=row),
            wf.Commit(lsn=lsn + 90, xid=number + 1),
        ]
        found += wf.encode(events, format, options={"sending-batch": 1})
    return found


def of_file(path: Path, format: str, mode: str) -> Any:
    """The kinds of the records, or the error, and where it is."""
    try:
        return wf.Capture(path, format, mode=mode).changes(columns=["kind"]).read_all()["kind"].to_pylist()
    except wf.DecodeError as error:
        return type(error), error.stream_offset


def of_bytes(data: bytes, format: str, mode: str) -> Any:
    decoder = wf.Decoder(format, mode=mode)
    try:
        decoder.feed(data)
        decoder.close()
        return [event.kind for event in decoder.events()]
    except wf.DecodeError as error:
        return type(error), error.stream_offset


@pytest.mark.parametrize("format", ["gaussdb-binary", "gaussdb-json", "gaussdb-text"])
def test_after_the_first_message(tmp_path: Path, format: str) -> None:
    """A byte after a gap may look like the beginning of a text that is not batched, and does not say where it ends."""
    messages = batches(format)
    data, first = b"".join(messages), len(messages[0])
    path = tmp_path / "captured.bin"
    for at in range(first, 2 * first):
        for lost in (1, 2, 3):
            path.write_bytes(data[:at] + data[at + lost :])
            for mode in ("FAILFAST", "PERMISSIVE"):
                found = of_file(path, format, mode)
                assert found == of_bytes(path.read_bytes(), format, mode), (at, lost, mode)
                assert isinstance(found, tuple) or mode == "PERMISSIVE" or found.count("INSERT") == ROWS


@pytest.mark.parametrize("format", ["gaussdb-json", "gaussdb-text"])
def test_one_message_that_is_not_batched(tmp_path: Path, format: str) -> None:
    row = wf.TupleData(("id",), ("1",), ("integer",))
    (message,) = wf.encode([wf.Insert(lsn=5, table_schema="s", table_name="t", new=row)], format)
    path = tmp_path / "captured.bin"
    path.write_bytes(message)
    assert of_file(path, format, "FAILFAST") == ["INSERT"]
