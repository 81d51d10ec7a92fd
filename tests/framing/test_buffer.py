"""The buffer behind wf.Decoder: whole messages out of any pieces, in steps that grow with the bytes and no faster."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.framing.buffer import MessageBuffer
from wireformat.framing.gauss_batch import find_end, frames

from .. import strategies
from ..handmade import COMMIT, HEARTBEAT, INSERT, SAMPLES, change, message

BARE = HEARTBEAT + b"F"


class WatchedFindEnd:
    """find_end that counts its calls, where each begins to search, and how many bytes were copied to be shown to it.

    searches    (where in the message the search began, where it ended; 0 if it found the end of the message)
    """

    def __init__(self) -> None:
        self.calls = 0
        self.searches: list[tuple[int, int]] = []
        self.copied_bytes = 0
        self._last: Any = None

    def __call__(self, data: bytes | bytearray, start: int, searched: int, seen: int) -> tuple[bool, int]:
        self.calls += 1
        if data is not self._last and not isinstance(data, memoryview):
            self.copied_bytes += len(data)
            self._last = data
        found, stop = find_end(data, start, searched, seen)
        self.searches.append((searched - start, 0 if found else stop - start))
        return found, stop

    def check_that_nothing_is_searched_twice(self) -> None:
        """Every search begins where the one before ended, or at the beginning of the next message."""
        for (_, ended), (began, _) in zip(self.searches, self.searches[1:], strict=False):
            assert began == ended


@given(st.lists(st.sampled_from(list(SAMPLES.values())), max_size=8), st.data())
def test_whole_messages_come_out_of_any_pieces(messages: list[bytes], data: st.DataObject) -> None:
    buffer = MessageBuffer(find_end)
    found = [one for piece in data.draw(strategies.cuts(b"".join(messages))) for one in buffer.feed(piece)]
    assert found == messages
    assert buffer.close() == []
    assert buffer.lost is None


def test_the_rest_comes_at_the_end() -> None:
    buffer = MessageBuffer(find_end)
    assert buffer.feed(BARE + BARE[:5]) == [BARE]
    assert buffer.close() == [BARE[:5]]
    assert buffer.close() == []


def test_broken_framing_ends_the_search() -> None:
    buffer = MessageBuffer(find_end)
    broken = message(INSERT)[:-1] + b"?"
    assert buffer.feed(BARE + broken + BARE) == [BARE, broken + BARE]
    assert buffer.lost is not None
    assert buffer.close() == []


@pytest.mark.slow
def test_a_mebibyte_byte_by_byte_is_searched_once() -> None:
    """One call a byte, and none of them looks at a record again."""
    body = change(b"I", b"public", b"orders", b"")
    count = (1 << 20) // (len(body) + 13)
    batch = message(*[body] * count)
    watched = WatchedFindEnd()
    buffer = MessageBuffer(watched)
    for place in range(len(batch) - 1):
        assert not buffer.feed(batch[place : place + 1])
    assert buffer.feed(batch[-1:]) == [batch]
    assert len(list(frames(batch))) == count
    assert watched.calls <= len(batch) + 1
    watched.check_that_nothing_is_searched_twice()


def test_one_large_record_byte_by_byte_is_not_copied_again_and_again() -> None:
    batch = message(b"?" + bytes(1 << 18))
    watched = WatchedFindEnd()
    buffer = MessageBuffer(watched)
    found = [one for place in range(len(batch)) for one in buffer.feed(batch[place : place + 1])]
    assert found == [batch]
    assert watched.copied_bytes <= 2 * len(batch)


def test_find_end_is_told_what_it_has_seen() -> None:
    told: list[tuple[int, int]] = []

    def find_end(data: bytes | bytearray, start: int, searched: int, seen: int) -> tuple[bool, int]:
        told.append((start, seen))
        end = data.find(b";", start)
        return end >= 0, end + 1 if end >= 0 else start

    buffer = MessageBuffer(find_end)
    assert [buffer.feed(piece) for piece in (b"ab", b"c;d;ef", b"g", b";")] == [[], [b"abc;", b"d;"], [], [b"efg;"]]
    assert told == [(0, 0), (0, 2), (4, 2), (6, 2), (0, 2), (0, 3)]


def test_many_messages_in_one_piece_are_not_copied_again_and_again() -> None:
    data = message(COMMIT) * 2000
    watched = WatchedFindEnd()
    assert len(MessageBuffer(watched).feed(data)) == 2000
    assert watched.calls <= 2001
    assert watched.copied_bytes <= 4 * len(data)
