"""A message of a file: passing over those before it finds the same one as reading them, and the same error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import wireformat as wf
from wireformat.errors import WireformatError
from wireformat.formats.registry import find_format
from wireformat.framing.buffer import MessageBuffer
from wireformat.sources import files, picked, splitting
from wireformat.sources.picked import Picked, pick_message
from wireformat.sources.splitting import Skipped, skip_messages

from ..handmade import SAMPLES


def _changes(note: str) -> list[wf.Event]:
    row = wf.TupleData(names=("id", "note"), values=("7", note), types=("integer", "text"))
    rows = [wf.Insert(lsn=16 + number, table_schema="s", table_name="t", new=row) for number in range(3)]
    return [wf.Begin(lsn=1, csn=1, first_lsn=1), *rows, wf.Commit(lsn=90, xid=7)]


def _batches(format: str) -> list[bytes]:
    events = _changes("a text") + _changes("x" * 300)
    options = {"sending-batch": 1}
    small = [message for event in events for message in wf.encode([event], format, options=options)]
    return [*small, *wf.encode(events, format, options=options), *small]


def _lines() -> list[bytes]:
    return [
        b"BEGIN 7",
        b"table s.t: INSERT: id[integer]:7 note[text]:'two\nlines, and it''s \"one\n'",
        b"message: transactional: 1 prefix: app, sz: 6 content:one\nit",
        b'table s."a\n""b": INSERT: id[integer]:7 note[text]:\'' + b"x" * 300 + b"\\'",
        b"streaming message: transactional: 1 prefix: app, sz: 5",
        b"streaming change for TXN 7",
        b"table s.t: DELETE: (no-tuple-data)",
        b"COMMIT 7",
    ] * 2


FILES: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "binary": ("gaussdb-binary", lambda: [*SAMPLES.values(), *_batches("gaussdb-binary"), *SAMPLES.values()]),
    "json": ("gaussdb-json", lambda: _batches("gaussdb-json")),
    "text": ("gaussdb-text", lambda: _batches("gaussdb-text")),
    "lines": ("test-decoding", _lines),
}


@pytest.fixture
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads so small that every record is cut somewhere."""
    monkeypatch.setattr(files, "READ_BYTES", 40)
    monkeypatch.setattr(splitting, "READ_BYTES", 40)


def _pick(path: Path, format: str, index: int) -> Picked | str:
    try:
        return pick_message(files.file_source(path, path.name, find_format(format), None), index)
    except WireformatError as error:
        return str(error)


def _both(path: Path, format: str, index: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Picked | str, ...]:
    """The message where the ones before it are read, and where they are passed."""
    found = []
    for bytes_in_python in (1 << 40, 0):
        monkeypatch.setattr(picked, "PYTHON_BYTES", bytes_in_python)
        one = _pick(path, format, index)
        found.append(one if isinstance(one, str) else one._replace(before=[], error=None))
    return tuple(found)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("small_reads")
def test_every_message_is_found_where_it_begins(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format, make = FILES[name]
    separator = find_format(format).separator
    messages = make()
    path = tmp_path / "messages"
    path.write_bytes(b"".join(message + separator for message in messages))
    offset = 0
    for index, message in enumerate(messages):
        for one in _both(path, format, index, monkeypatch):
            assert one == Picked(message, [], offset)
        assert skip_messages(path, find_format(format), Skipped(0, 0), index) == Skipped(offset, index)
        offset += len(message) + len(separator)
    for one in _both(path, format, len(messages), monkeypatch):
        assert one == f"option message: messages has {len(messages)} messages, from 0 on; got {len(messages)}"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("small_reads")
def test_broken_bytes_are_found_as_they_are_when_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    format, make = FILES[name]
    separator = find_format(format).separator
    messages = make()
    data = b"".join(message + separator for message in messages)
    path = tmp_path / "messages"
    chance = Random(18)
    for _ in range(60):
        at = chance.randrange(len(data))
        path.write_bytes(data[:at] if chance.random() < 0.3 else data[:at] + chance.randbytes(2) + data[at + 2 :])
        buffer = MessageBuffer(find_format(format).find_end, separator)
        whole = len(buffer.feed(path.read_bytes())) - (buffer.lost is not None)
        for index in {0, whole // 2, max(whole - 1, 0)}:
            read, passed = _both(path, format, index, monkeypatch)
            assert read == passed
        read, passed = _both(path, format, whole, monkeypatch)
        if buffer.lost is None:
            assert read == passed
        else:  # what is left comes as it was read, in pieces
            assert isinstance(read, Picked)
            assert isinstance(passed, Picked)
            assert read.stream_offset == passed.stream_offset


def test_what_has_no_framing_is_not_passed(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.write_bytes(b"BEGIN 7")
    assert skip_messages(path, find_format("mppdb-json"), Skipped(0, 0), 3) == Skipped(0, 0)
