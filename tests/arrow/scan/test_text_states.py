"""Tables of states accept what Python's strict decoders accept, and stop where these stop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.scan.joined_texts import JOINABLE, LOOKS_AHEAD
from wireformat.arrow.scan.transcode import text_states

WITH_STATES = sorted(JOINABLE - LOOKS_AHEAD - {"charmap"})


def wrong_bytes(encoding: str, data: bytes) -> tuple[int, int] | None:
    """Where the first wrong character begins, and how many bytes of it are wrong, by Python."""
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start, error.end - error.start
    return None


def walked(encoding: str, data: bytes) -> tuple[int, int] | None:
    """The same, by the table."""
    states = text_states(encoding)
    assert states is not None
    state = begin = 0
    for at, byte in enumerate(data):
        begin = at if state == 0 else begin
        state = int(states[state, byte])
        if state == len(states) - 1:
            return begin, max(at - begin, 1)
    return (begin, len(data) - begin) if state else None


@pytest.mark.parametrize("encoding", WITH_STATES)
@given(st.lists(st.one_of(st.integers(0, 255), st.integers(0x80, 0xFF)), max_size=9).map(bytes))
def test_as_python(encoding: str, data: bytes) -> None:
    assert walked(encoding, data) == wrong_bytes(encoding, data)


@pytest.mark.parametrize("encoding", ["gbk", "big5", "shift_jis", "johab", "koi8-r", "cp1252"])
def test_all_characters_of_two_bytes(encoding: str) -> None:
    for first in range(256):
        for second in range(256):
            data = bytes((first, second))
            assert walked(encoding, data) == wrong_bytes(encoding, data), data


@pytest.mark.parametrize("encoding", [*sorted(LOOKS_AHEAD), "punycode"])
def test_encodings_without_a_table(encoding: str) -> None:
    assert text_states(encoding) is None
