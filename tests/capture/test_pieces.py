"""A stream read in pieces gives what the whole gives, wherever it is cut."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wireformat as wf

from ..arrow.scan.small_limits import shrink
from ..examples import PROFILE
from ..servers.captures import read_capture
from .streams import stream, without_positions

PIECES = ("18-pgoutput-1", "18-pgoutput-3-streaming", "18-pgoutput-4-two-phase")
CUTS = 8 if PROFILE == "quick" else 40


@pytest.mark.parametrize("name", PIECES)
def test_a_stream_read_in_pieces(name: str) -> None:
    """Wherever the next piece begins, the rows are those of the whole, or an OrderError says what is missing."""
    messages, format = stream(name)
    whole = without_positions(wf.Capture(messages, format).committed().read_all())
    step = max(1, len(messages) // CUTS)
    refused = 0
    for end in range(0, len(messages), step):
        first = wf.Capture(messages[:end], format)
        handed_out = without_positions(first.committed().read_all())
        position = first.position.to_json()
        for begin in {0, max(0, end - 3), max(0, end - step), end}:
            second = wf.Capture(messages[begin:], format, after=position)
            try:
                more = without_positions(second.committed().read_all())
            except (wf.OrderError, wf.DecodeError):  # rows before the relations that are known at the position
                refused += 1
                continue
            assert pa.concat_tables([handed_out, more]) == whole, (end, begin)
        assert begins_at_the_oldest_message(messages, format, end, position, whole.slice(len(handed_out)))
    assert refused


def begins_at_the_oldest_message(
    messages: list[bytes], format: str, end: int, position: str, expected: pa.Table
) -> bool:
    """Whether the piece that begins with the first message of the oldest open transaction gives the rest."""
    found = wf.Capture(messages[:end], format).open()
    begin = min(found["message"].to_pylist(), default=end)
    return without_positions(wf.Capture(messages[begin:], format, after=position).committed().read_all()) == expected


@pytest.mark.parametrize("name", PIECES)
def test_an_older_piece_that_is_read_again_moves_no_position_back(name: str) -> None:
    messages, format = stream(name)
    whole = without_positions(wf.Capture(messages, format).committed().read_all())
    step = max(1, len(messages) // CUTS)
    for end in range(step, len(messages), step):
        first = wf.Capture(messages[:end], format)
        handed_out = len(first.committed().read_all())
        for older in (end // 3, end - 1):
            again = wf.Capture(messages[:older], format, after=first.position)
            assert not len(again.committed().read_all())
            rest = whole.slice(handed_out)
            position = again.position.to_json()
            assert begins_at_the_oldest_message(messages, format, end, position, rest), (end, older)


def test_a_position_covers_what_was_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each batch that was received, not after what was read ahead."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=100_000, MESSAGE_BATCH_ROWS=1000)
    monkeypatch.setattr("wireformat.arrow.committed.output.SETTLED_ROWS", 500)
    messages, format = stream("18-pgoutput-1")
    whole = without_positions(wf.Capture(messages, format).committed().read_all())
    capture = wf.Capture(pa.chunked_array([[message] for message in messages], pa.binary()), format)
    received: list[pa.Table] = []
    for batch in capture.committed():
        received.append(without_positions(pa.Table.from_batches([batch])))
        if len(received).bit_count() == 1:  # after the first, second, fourth, eighth … batch
            rest = wf.Capture(messages, format, after=capture.position).committed().read_all()
            assert pa.concat_tables([*received, without_positions(rest)]) == whole
    assert len(received) > 2


def test_relations_are_known_after_a_position() -> None:
    messages, format = stream("18-pgoutput-1")
    kinds = [event.kind for event in wf.decode(messages, format)]
    cut = [index + 1 for index, kind in enumerate(kinds) if kind == "COMMIT"][len(kinds) // 20]
    first = wf.Capture(messages[:cut], format)
    first.committed().read_all()
    assert first.position.relations
    rest = wf.Capture(messages[cut:], format, after=first.position).committed().read_all()
    whole = wf.Capture(messages, format).committed().read_all()
    assert without_positions(rest) == without_positions(whole).slice(len(whole) - len(rest))
    with pytest.raises(wf.UnknownRelation):
        wf.Capture(messages[cut:], format).committed().read_all()


@pytest.mark.parametrize("first_block_is_there", [True, False])
def test_streamed_transactions_of_test_decoding_in_pieces(first_block_is_there: bool) -> None:
    """Nothing is lost or comes twice silently. The records have neither LSNs nor a mark of the first block."""
    messages = read_capture("15-test-decoding-streaming").messages
    end = 1332 if first_block_is_there else 2220
    whole = without_positions(wf.Capture(messages, "test-decoding").committed().read_all())
    first = wf.Capture(messages[:end], "test-decoding")
    handed_out = without_positions(first.committed().read_all())
    begin = min(first.open()["message"].to_pylist()) if first_block_is_there else end
    second = wf.Capture(messages[begin:], "test-decoding", after=first.position)
    try:
        more = without_positions(second.committed().read_all())
    except wf.OrderError:
        return
    assert len(handed_out) + len(more) == len(whole)
