"""The framing of batches: where records lie, where a message ends, and that both ways to find out agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.framing.frames import record
from wireformat.framing.gauss_batch import CLOSE_BY_TIMEOUT, END, MORE, find_end, frames

from .. import handmade, strategies
from ..handmade import BEGIN, COMMIT, HEARTBEAT, INSERT, SAMPLES, message

MESSAGES = list(SAMPLES.values())


def test_frames_of_a_batch() -> None:
    data = message(BEGIN, INSERT, COMMIT)
    found = list(frames(data))
    assert [frame.record for frame in found] == [0, 1, 2]
    assert [frame.lsn for frame in found] == [0x10, 0x11, 0x12]
    assert [data[frame.start : frame.stop] for frame in found] == [BEGIN, INSERT, COMMIT]


def test_frame_of_a_bare_heartbeat() -> None:
    (frame,) = frames(HEARTBEAT + b"F")
    assert (frame.record, frame.start, frame.stop, frame.lsn) == (0, 0, 25, None)


def test_written_as_by_hand() -> None:
    assert record(0x10, INSERT) == handmade.record(INSERT)
    records = MORE.join([record(0x10, BEGIN), record(0x11, COMMIT)])
    assert records + END == message(BEGIN, COMMIT)
    assert records + CLOSE_BY_TIMEOUT == message(BEGIN, COMMIT, end=b"P\0\0\0\0")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("tail", [b"", b"F", b"\0\0\0\0", b"P\0\0\0\0", b"h" * 30])
def test_the_end_is_found_whatever_follows(name: str, tail: bytes) -> None:
    size = len(SAMPLES[name])
    assert find_end(SAMPLES[name] + tail, 0, 0) == (True, size)
    assert find_end(b"F" + SAMPLES[name] + tail, 1, 1) == (True, 1 + size)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_end_in_a_truncation(name: str) -> None:
    """And the search goes on where it stopped, at the beginning of a record."""
    data = SAMPLES[name]
    starts = {0, *(frame.start - 12 for frame in frames(data) if frame.lsn is not None)}
    searched = 0
    for stop in range(len(data)):
        found, searched = find_end(data[:stop], 0, searched)
        assert not found
        assert searched in starts
        assert searched <= stop
    assert find_end(data, 0, searched) == (True, len(data))


@given(strategies.mutated(MESSAGES))
def test_both_ways_agree(data: bytes) -> None:
    """What is framed well is found whole; what is found is framed well; broken is broken for both."""
    whole, frames_break_at = or_place(lambda: list(frames(data)))
    end, search_breaks_at = or_place(lambda: find_end(data, 0, 0))
    if end is None:
        assert search_breaks_at == frames_break_at
    elif end[0]:
        assert list(frames(data[: end[1]]))
        assert (end[1] == len(data)) == (whole is not None)
    else:
        assert whole is None


@given(st.binary(max_size=80))
def test_any_bytes_are_frames_or_an_error_with_a_place(data: bytes) -> None:
    found, place = or_place(lambda: list(frames(data)))
    assert found or 0 <= place <= len(data)


def or_place(read: Callable[[], Any]) -> tuple[Any, Any]:
    """(what is read, None), or (None, the byte at which the framing is broken)."""
    try:
        return read(), None
    except wf.DecodeError as error:
        return None, error.message_offset
