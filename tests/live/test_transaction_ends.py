"""Where a stream of pgoutput is cut."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wireformat.live.transaction_ends import Cutter, Piece, ends_of


def sent(lsn: int, payload: bytes) -> bytes:
    """A message with its envelope."""
    return b"w" + lsn.to_bytes(8, "big") + bytes(16) + payload


def transaction(commit_lsn: int) -> list[bytes]:
    """BEGIN, a change, COMMIT; it ends 8 bytes after its commit."""
    numbers = commit_lsn.to_bytes(8, "big")
    begin = b"B" + numbers + bytes(12)
    commit = b"C\0" + numbers + (commit_lsn + 8).to_bytes(8, "big") + bytes(8)
    return [sent(commit_lsn - 8, begin), sent(commit_lsn - 8, b"I\0\0\0\1N\0\0"), sent(commit_lsn, commit)]


def keepalive(lsn: int, *, asks: bool = False) -> bytes:
    return b"k" + lsn.to_bytes(8, "big") + bytes(8) + bytes([asks])


def cut(cutter: Cutter, messages: list[bytes]) -> Piece:
    return cutter.piece(pa.array(messages, pa.binary()))


@pytest.mark.parametrize("places", [[0], [3], [6], [0, 1, 2], [2, 6], [0, 3, 6, 6]])
def test_keepalives_are_left_out_wherever_they_come(places: list[int]) -> None:
    messages = [*transaction(100), *transaction(200)]
    mixed = list(messages)
    for place in reversed(places):
        mixed.insert(place, keepalive(50))
    piece = cut(Cutter(ends_of("pgoutput")), mixed)
    assert piece.messages.to_pylist() == messages
    assert (piece.whole, piece.lsn, piece.received) == (6, 208, 200)


def test_keepalives_alone() -> None:
    piece = cut(Cutter(ends_of("pgoutput")), [keepalive(50), keepalive(60, asks=True)])
    assert (len(piece.messages), piece.lsn, piece.received, piece.asked) == (0, 60, 60, True)


@pytest.mark.parametrize("size", range(1, 11))
def test_what_is_committed_later_is_left_out(size: int) -> None:
    """However the stream comes in pieces."""
    messages = [*transaction(100), *transaction(200), *transaction(300), keepalive(400)]
    cutter = Cutter(ends_of("pgoutput"), until=200)
    pieces = [cut(cutter, messages[first : first + size]) for first in range(0, len(messages), size)]
    assert [one for piece in pieces for one in piece.messages.to_pylist()] == messages[:3]
    assert [piece.lsn for piece in pieces if piece.lsn is not None][-1] == 200


def test_a_keepalive_beyond_the_end() -> None:
    piece = cut(Cutter(ends_of("pgoutput"), until=200), [*transaction(100), keepalive(400)])
    assert (len(piece.messages), piece.lsn) == (3, 200)
