"""The framing of text batches: where records lie, where a message ends, and that both ways to find out agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.framing.buffer import NoFraming
from wireformat.framing.frames import Frame, record
from wireformat.framing.text_batch import END, find_end, frames

from .. import strategies
from .test_gauss_batch import or_place

MESSAGES = [
    END,
    record(5, b"") + END,
    record(5, b"commit") + END,
    record(1, b"BEGIN CSN: 1 first_lsn: 0/1")
    + record((1 << 64) - 1, b"table s t INSERT:")
    + record(3, b"commit")
    + END,
]


def test_frames_of_a_batch() -> None:
    data = b"\0\0\0\x0e" + bytes(7) + b"\x10commit" + b"\0\0\0\x08" + b"\xff" * 8 + bytes(4)
    assert record(16, b"commit") + record((1 << 64) - 1, b"") + END == data
    assert list(frames(data)) == [Frame(0, 12, 18, 16), Frame(1, 30, 30, (1 << 64) - 1)]


def test_a_text_alone_is_one_frame() -> None:
    assert list(frames(b"BEGIN")) == [Frame(0, 0, 5, None)]
    assert list(frames(b"{")) == [Frame(0, 0, 1, None)]
    with pytest.raises(NoFraming):
        find_end(b"BEGIN", 0, 0)


@pytest.mark.parametrize("data", MESSAGES)
@pytest.mark.parametrize("tail", [b"", END, b"x", b"BEGIN"])
def test_the_end_is_found_whatever_follows(data: bytes, tail: bytes) -> None:
    assert find_end(data + tail, 0, 0) == (True, len(data))
    assert find_end(b"\0" + data + tail, 1, 1) == (True, 1 + len(data))


@pytest.mark.parametrize("data", MESSAGES)
def test_no_end_in_a_truncation(data: bytes) -> None:
    searched = 0
    for stop in range(len(data)):
        found, searched = find_end(data[:stop], 0, searched)
        assert not found
        assert searched <= stop
    assert find_end(data, 0, searched) == (True, len(data))


@given(strategies.mutated(MESSAGES) | st.binary(max_size=60))
def test_both_ways_agree(data: bytes) -> None:
    """What is framed well is found whole; what is found is framed well; broken is broken for both."""
    if data and data[0] >= 0x42:
        return
    whole, frames_break_at = or_place(lambda: list(frames(data)))
    end, search_breaks_at = or_place(lambda: find_end(data, 0, 0))
    if end is None:
        assert search_breaks_at == frames_break_at
    elif end[0]:
        list(frames(data[: end[1]]))
        assert (end[1] == len(data)) == (whole is not None)
    else:
        assert whole is None


def test_a_stream_after_a_bad_length() -> None:
    decoder = wf.Decoder("gaussdb-text", mode="PERMISSIVE")
    decoder.feed(MESSAGES[2] + b"\0\0\0\1" + MESSAGES[2])
    decoder.feed(b"more")
    commit, rest, more = decoder.events()
    assert (commit.kind, rest.raw, more.raw) == ("COMMIT", b"\0\0\0\1" + MESSAGES[2], b"more")
