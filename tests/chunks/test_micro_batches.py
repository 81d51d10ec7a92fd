"""A stream that comes in micro-batches gives what it gives in one piece: all captures, cut at random."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.chunks import micro_batches
from wireformat.chunks.saved import PIECE_KIND, STREAM_KIND, read_piece, read_stream
from wireformat.stream.saved import dump, seal, unseal

from ..examples import at_most
from ..golden_cases import CASES, Case, find_case
from ..mutations import changed_bytes, truncations
from ..servers.captures import read_capture
from .reading import divided, in_order
from .saved_stream import FILTERS, KEPT, MESSAGES, STATE, STOPS, WAITING
from .stream_in_micro_batches import StoppedStream, committed
from .test_chunks import CAPTURES, CUTS, _format_of, once, outcome, rows_of

SIZES = st.sampled_from([1 << 13, micro_batches.PIECE_BYTES])


def whole(messages: Sequence[bytes], format: str, **options: Any) -> Any:
    """Returns what the whole stream gives, or the class of its error."""

    def ask() -> Any:
        capture = wf.Capture(messages, format, **options)
        rows = in_order(rows_of(capture.committed().read_all()))
        return rows, capture.position.delivered, {*capture.unknown_prepared}

    return outcome(ask)


def check(
    expected: Any, messages: Sequence[bytes], format: str, cuts: Sequence[int], size: int, **options: Any
) -> None:
    def in_micro_batches() -> Any:
        stream = StoppedStream(format, **options)
        batches = [batch for part in divided(messages, cuts) for batch in stream.take(part, committed)]
        none = wf.Capture([], format).committed().schema.empty_table()
        found = rows_of(pa.concat_tables([none, *(pa.Table.from_batches([batch]) for batch in batches)]))
        assert stream.state is not None
        position = read_stream(stream.state, stream.settings).left.start.position
        return in_order(found), position, {*stream.unknown_prepared}

    with patch.object(micro_batches, "PIECE_BYTES", size):
        assert outcome(in_micro_batches) == expected


@once
def whole_of_server(name: str) -> Any:
    return whole(read_capture(name).messages, _format_of(name))


@pytest.mark.parametrize("name", CAPTURES)
@at_most(4)
@given(cuts=CUTS, size=SIZES)
def test_captures_of_servers(name: str, cuts: list[int], size: int) -> None:
    check(whole_of_server(name), read_capture(name).messages, _format_of(name), cuts, size)


@once
def whole_of_gaussdb(name: str) -> Any:
    case = find_case(name)
    return whole(case.messages, case.format, **case.reading)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@at_most(4)
@given(cuts=CUTS, size=SIZES)
def test_captures_of_gaussdb(case: Case, cuts: list[int], size: int) -> None:
    check(whole_of_gaussdb(case.name), case.messages, case.format, cuts, size, **case.reading)


def options_of(version: str) -> dict[str, Any]:
    return {} if version == "version-1" else FILTERS


def kept(version: str, format: str) -> tuple[StoppedStream, list[bytes], list[bytes]]:
    """Returns a stream that stopped, the messages that it has taken, and those that follow."""
    folder = KEPT / version / format
    stream = StoppedStream(format, **options_of(version))
    stream.state = (folder / STATE).read_bytes()
    for path in folder.glob("piece-*"):
        stream.pieces[int(path.stem.split("-")[1])] = path.read_bytes()
    rows = pa.ipc.open_stream((folder / MESSAGES).read_bytes()).read_all().to_pylist()
    before, after = ([row["message"] for row in rows if row["is_read"] is is_read] for is_read in (True, False))
    stream.offset = len(before)
    return stream, before, after


@pytest.mark.parametrize("version", sorted(path.name for path in KEPT.glob("version-*")))
@pytest.mark.parametrize("format", STOPS)
def test_a_kept_state_goes_on(version: str, format: str) -> None:
    """Rows that are in the state come out with those that follow; nothing comes again."""
    stream, before, after = kept(version, format)
    assert stream.pieces
    found = pa.Table.from_batches(stream.take(after, committed))
    first, whole = (
        rows_of(wf.Capture(messages, format, **options_of(version)).committed().read_all())
        for messages in (before, [*before, *after])
    )
    assert len(found) > 5
    assert in_order(pa.concat_tables([first, rows_of(found)])) == in_order(whole)


def test_records_that_wait_are_kept() -> None:
    """A BEGIN, on which the next micro-batch decides."""
    stream, before, after = kept("version-2", WAITING)
    waiting = read_stream(stream.state or b"", stream.settings).left
    assert waiting.records.held_rows["kind"].to_pylist() == ["BEGIN"]
    assert waiting.positions == ((len(before) - 1,),)
    found = pa.Table.from_batches(stream.take(after, committed))
    whole = wf.Capture([*before, *after], WAITING, **FILTERS).committed().read_all()
    assert rows_of(found) == rows_of(whole)
    assert len(found) > 5


@pytest.mark.parametrize("version", ["version-1", "version-2"])
def test_damage_is_found(version: str) -> None:
    stream, *_ = kept(version, "pgoutput")
    state, settings = stream.state or b"", stream.settings
    whole = read_stream(state, settings)
    for other in [*truncations(state)][::5] + [*changed_bytes(state)][::31]:
        try:
            found = read_stream(other, settings)
        except wf.StateError:
            continue
        assert (found.left.start, found.held) == (whole.left.start, whole.held)
    piece = min(stream.pieces.values(), key=len)
    for other in [*truncations(piece)][::23] + [*changed_bytes(piece)][::97]:
        try:
            _, messages = read_piece(other)
        except wf.StateError:
            continue
        assert messages.equals(read_piece(piece)[1])
    stream.pieces.clear()
    with pytest.raises(wf.StateError, match=r"expected piece .* of open transactions, got none"):
        stream.take(kept(version, "pgoutput")[2], committed)


def changed(state: bytes, **fields: Any) -> bytes:
    """Returns a state with other fields and the right checksum."""
    version, payload = unseal(STREAM_KIND, (1, 2), state)
    return seal(STREAM_KIND, version, dump({**json.loads(bytes(payload)), **fields}))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"last": []}, "a value for each column of order_by in last"),
        ({"held": {"transaction": [9], "piece": [0], "key": [1]}}, "transactions of `open` in `held`"),
        ({"held": {"transaction": [0], "piece": [99], "key": ["a"]}}, "pieces before next_piece in `held`"),
        ({"next_piece": -1}, "expected a count in next_piece, got a number out of range"),
        ({"more": 1}, "got 1 unknown"),
    ],
)
def test_fields_that_cannot_be(fields: dict[str, Any], words: str) -> None:
    stream, *_ = kept("version-1", "pgoutput")
    with pytest.raises(wf.StateError, match=words):
        read_stream(changed(stream.state or b"", **fields), stream.settings)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"held_at": [1, 2]}, "a value for each column of order_by and row of `held` in held_at"),
        ({"held_detail": {"row": [7], "name": ["a"], "value": ["b"]}}, "rows of `held` in held_detail"),
        ({"state": "asleep"}, "expected one of start, between transactions, .* in left.records.state"),
    ],
)
def test_fields_of_records_that_cannot_be(fields: dict[str, Any], words: str) -> None:
    stream, *_ = kept("version-2", WAITING)
    _, payload = unseal(STREAM_KIND, (2,), stream.state or b"")
    left = json.loads(bytes(payload))["left"]
    state = changed(stream.state or b"", left={**left, "records": {**left["records"], **fields}})
    with pytest.raises(wf.StateError, match=words):
        read_stream(state, stream.settings)


def test_other_versions_and_other_settings_are_refused() -> None:
    stream, *_ = kept("version-1", "pgoutput")
    settings = stream.settings
    with pytest.raises(wf.StateError, match=r"expected version 1 or 2 of wireformat.raw_stream, .* got version 3"):
        read_stream(seal(STREAM_KIND, 3, b""), settings)
    _, payload = unseal(PIECE_KIND, (1,), min(stream.pieces.values()))
    no_messages = seal(PIECE_KIND, 1, bytes(payload).partition(b"\n")[0] + b"\nother bytes")
    with pytest.raises(wf.StateError, match=r"wireformat\.raw_piece: expected an Arrow IPC stream of one batch"):
        read_piece(no_messages)
    for option, value in (("order_by", ("lsn",)), ("drop_resent", False)):
        with pytest.raises(wf.OptionError, match=f"option {option}: expected the one with which the query was begun"):
            read_stream(stream.state or b"", replace(settings, **{option: value}))
    begun = r"expected a query of committed\(\), messages\(\) or typed\(\), as it was begun, got one of changes\(\)"
    with pytest.raises(wf.OptionError, match=f"{begun}: go on with the first one, or start over"):
        read_stream(stream.state or b"", replace(settings, question="records"))
