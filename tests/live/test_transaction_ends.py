"""Where a stream is cut."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.live.messages import GAUSSDB as GAUSSDB_FEEDBACK
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


GAUSSDB = [
    ("mppdb-json", {}),
    ("opengauss-test-decoding", {}),
    *((f"gaussdb-{style}", {"sending-batch": batch}) for style in ("binary", "json", "text") for batch in (0, 1)),
]


def gaussdb_transaction(format: str, options: dict[str, int], value: str, encoding: str) -> list[bytes]:
    new = wf.TupleData(names=("id", "name"), values=("1", value), types=("integer", "text"))
    if format.startswith("gaussdb"):
        begin, commit = wf.Begin(lsn=90, csn=8, first_lsn=90), wf.Commit(lsn=99, xid=5)
    else:
        begin, commit = wf.Begin(xid=5), wf.Commit(xid=5, csn=9, commit_time="2024-01-01 00:00:00+00")
    row = wf.Insert(lsn=95, table_schema="public", table_name="t", new=new)
    events = (begin, row, commit)
    return [sent(100, one) for one in wf.encode(events, format, options=options, encoding=encoding, batch_bytes=1)]


@pytest.mark.parametrize(("format", "options"), GAUSSDB, ids=str)
@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "shift_jis"])
def test_texts_in_other_encodings_do_not_move_the_ends(format: str, options: dict[str, int], encoding: str) -> None:
    """The second byte of the letter is a backslash; its encoding is given, or not known."""
    letter = b"\x83\\".decode(encoding)
    for value in (letter, f"{letter}'", f'{letter}"', f"{letter}',\"}}]", f"{letter}\nCOMMIT 5"):
        messages = gaussdb_transaction(format, options, value, encoding)
        for reading in ({"encoding": encoding}, {"encoding_errors": "replace", "mode": "DROPMALFORMED"}):
            cutter = Cutter(ends_of(format, **reading), feedback=GAUSSDB_FEEDBACK)
            found = [cut(cutter, [one]).whole for one in messages]
            assert found == [0] * (len(messages) - 1) + [1]


@pytest.mark.parametrize("broken", ["BEGIN", "row", "COMMIT"])
def test_a_transaction_with_a_broken_record_is_not_cut(broken: str) -> None:
    """Not at a keepalive either: a BEGIN, or the end, may be what cannot be read."""
    begin, row, commit = gaussdb_transaction("mppdb-json", {}, "a", "utf-8")
    messages = [begin, row, commit, begin, row, commit]
    messages[["BEGIN", "row", "COMMIT"].index(broken)] = sent(100, b"{")
    cutter = Cutter(ends_of("mppdb-json", mode="DROPMALFORMED"), feedback=GAUSSDB_FEEDBACK)
    keepalive = b"k" + (1000).to_bytes(8, "little") + bytes(17)
    found = [cut(cutter, [one, keepalive]) for one in messages]
    ends = [index for index, piece in enumerate(found) if piece.lsn is not None]
    assert ends == ([5] if broken == "COMMIT" else [2, 5])
    with pytest.raises(wf.ShortData):
        cut(Cutter(ends_of("mppdb-json", mode="FAILFAST"), feedback=GAUSSDB_FEEDBACK), messages)
