"""Compiled code finds the ends of messages where their framing finds them, and leaves it the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.registry import ROWS, find_format
from wireformat.framing.buffer import MessageBuffer
from wireformat.framing.text_batch import is_batched
from wireformat.sources import files
from wireformat.sources.splitting import ends_finder

from ..golden_cases import CASES

FORMATS = [name for name in ROWS if ends_finder(find_format(name)) is not None]
TEXTS = ("gaussdb-json", "gaussdb-text")
LINES = [
    b"BEGIN 733",
    b"table public.\"a\nb\": INSERT: id[integer]:1 note[text]:'it''s\n\"one\"'",
    b"table public.t: DELETE: (no-tuple-data)",
    b"message: transactional: 1 prefix: p, sz: 3 content:a\nb",
    b"COMMIT 733",
]


def messages_of(format: str) -> list[bytes]:
    if format == "test-decoding":
        return LINES
    return [message for case in CASES if case.format == format for message in case.messages[:20]]


def test_the_formats() -> None:
    assert FORMATS == ["gaussdb-binary", "gaussdb-json", "gaussdb-text", "test-decoding"]


def split(format: str, chunks: list[bytes], *, compiled: bool) -> tuple[list[list[bytes]], str, bool]:
    """The messages after each chunk and at the end, and why the framing is lost."""
    found = find_format(format)
    buffer = MessageBuffer(found.find_end, found.separator)
    if compiled:
        buffer.find_ends = ends_finder(found)
    messages = [*map(buffer.feed, chunks), buffer.close()]
    return messages, str(buffer.lost), buffer.is_unframed


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_cut_anywhere_and_changed(format: str, data: st.DataObject) -> None:
    messages = data.draw(st.lists(st.sampled_from(messages_of(format)), max_size=12))
    separator = find_format(format).separator
    stream = bytearray(b"".join(message + separator for message in messages))
    for at in data.draw(st.lists(st.integers(0, max(len(stream) - 1, 0)), max_size=2)) if stream else ():
        stream[at] = data.draw(st.integers(0, 255))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [bytes(stream[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert split(format, chunks, compiled=True) == split(format, chunks, compiled=False)


@pytest.mark.parametrize("format", FORMATS)
def test_a_large_file(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in larger pieces after its first ones, by compiled code; offsets in it stay what they are."""
    messages = [message for message in messages_of(format) if format not in TEXTS or is_batched(message)][:100]
    separator = find_format(format).separator
    path = tmp_path / "messages.bin"
    path.write_bytes(b"".join(message + separator for message in messages) + b"\xff broken")
    found = []
    for large, if_loaded, is_compiled in ((1 << 30, 1 << 30, 0), (100, 100, 1), (1 << 30, 100, 1)):
        monkeypatch.setattr(files, "READ_BYTES", 100)
        monkeypatch.setattr(files, "LARGE_IF_LOADED_BYTES", if_loaded)
        monkeypatch.setattr(files, "LARGE_READ_BYTES", 1000)
        monkeypatch.setattr(files, "LARGE_BYTES", large)
        loaded: list[object] = []
        monkeypatch.setattr(
            files, "_ends_finder", lambda format, loaded=loaded: loaded.append(0) or ends_finder(format)
        )
        source = files.message_file(path, "messages.bin", find_format(format))
        given = [*source.read()]
        assert len(loaded) == is_compiled
        assert [message for one in given for message in one.messages][: len(messages)] == messages
        assert sum(one.read_bytes for one in given) == path.stat().st_size
        found.append(wf.Capture(path, format, mode="PERMISSIVE").changes().read_all())
    assert found[0] == found[1] == found[2]
    assert found[0]["raw"][-1].as_py() == b"\xff broken"
