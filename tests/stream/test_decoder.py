"""wf.Decoder: bytes cut anywhere, the end of the stream, and what becomes of bytes after broken framing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from .. import strategies
from ..engines import ENGINES, FORMAT, MODES, read
from ..handmade import BEGIN, COMMIT, DELETE, HEARTBEAT, INSERT, SAMPLES, UPDATE, commit, message, time
from ..mutations import changed_bytes

each_engine = pytest.mark.parametrize("engine", ENGINES)

FIRST, SECOND, THIRD = message(BEGIN, INSERT), HEARTBEAT + b"F", message(UPDATE, DELETE, COMMIT, end=b"P\0\0\0\0")
STREAM = FIRST + SECOND + THIRD
BROKEN = message(INSERT)[:-1] + b"?"
"""A good record, then a wrong separator."""

BAD_BODY = message(commit(b"?"))
LATER = message(COMMIT)


def fed(decoder: wf.Decoder, *pieces: bytes) -> list[wf.Event]:
    events: list[wf.Event] = []
    for piece in pieces:
        decoder.feed(piece)
        events += decoder.events()
    decoder.close()
    return events + decoder.events()


def make(engine: str, mode: str = "FAILFAST", **options: object) -> wf.Decoder:
    return wf.Decoder(FORMAT, engine=engine, mode=mode, **options)


@each_engine
def test_two_pieces_cut_at_every_byte(engine: str) -> None:
    events = read([FIRST, SECOND, THIRD])
    for cut in range(len(STREAM) + 1):
        assert fed(make(engine), STREAM[:cut], STREAM[cut:]) == events, f"cut at {cut}"


@each_engine
def test_a_message_comes_with_its_last_byte(engine: str) -> None:
    decoder = make(engine)
    decoder.feed(STREAM[: len(FIRST) - 1])
    assert decoder.events() == []
    decoder.feed(STREAM[len(FIRST) - 1 : len(FIRST)])
    assert decoder.events() == read([FIRST])
    assert decoder.events() == []


@each_engine
def test_empty_pieces_change_nothing(engine: str) -> None:
    assert fed(make(engine), b"", FIRST, b"", b"") == read([FIRST])
    assert fed(make(engine)) == []


@each_engine
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_object_is_taken(engine: str, kind: type) -> None:
    data = bytearray(FIRST)
    decoder = make(engine)
    decoder.feed(kind(data[:20]))
    decoder.feed(kind(data[20:]))
    data[:] = bytes(len(data))
    assert decoder.events() == read([FIRST])


@each_engine
def test_close_with_part_of_a_message_raises(engine: str) -> None:
    decoder = make(engine)
    decoder.feed(FIRST + THIRD[:30])
    with pytest.raises(wf.BadLength) as raised:
        decoder.close()
    error = raised.value
    assert (error.message, error.record, error.message_offset) == (1, 0, 0)
    assert error.stream_offset == len(FIRST)
    assert f"stream byte {len(FIRST)}" in str(error)
    assert decoder.events() == read([FIRST])


@each_engine
def test_close_with_part_of_a_message_keeps_its_bytes(engine: str) -> None:
    first_record = THIRD.index(b"P", 12 + len(UPDATE)) + 1
    for cut in range(1, len(THIRD)):
        *good, corrupt = fed(make(engine, "PERMISSIVE"), THIRD[:cut])
        assert good == read([THIRD])[: len(good)]
        assert isinstance(corrupt, wf.Corrupt)
        if cut < first_record - 1:
            assert corrupt.raw == THIRD[:cut]


@each_engine
def test_close_with_part_of_a_message_counts_it(engine: str) -> None:
    decoder = make(engine, "DROPMALFORMED")
    assert fed(decoder, FIRST, THIRD[:30]) == read([FIRST])
    assert decoder.dropped == 1


@each_engine
def test_a_bad_body_is_no_broken_framing(engine: str) -> None:
    """Its length is known, so the records and messages after it are read."""
    kept = fed(make(engine, "PERMISSIVE"), FIRST + BAD_BODY + THIRD)
    assert [event.kind for event in kept] == ["BEGIN", "INSERT", "CORRUPT", "UPDATE", "DELETE", "COMMIT"]
    decoder = make(engine, "DROPMALFORMED")
    assert fed(decoder, FIRST + BAD_BODY + THIRD) == read([FIRST, THIRD])
    assert decoder.dropped == 1


@each_engine
def test_after_broken_framing_failfast_raises_for_every_later_piece(engine: str) -> None:
    decoder = make(engine)
    with pytest.raises(wf.BadTag) as raised:
        decoder.feed(FIRST + BROKEN)
    assert (raised.value.message, raised.value.stream_offset) == (1, len(FIRST) + len(BROKEN) - 1)
    assert decoder.events() == read([FIRST, message(INSERT)])
    for place in range(2):
        with pytest.raises(wf.DecodeError, match="broken framing") as later:
            decoder.feed(LATER)
        assert later.value.stream_offset == len(FIRST) + len(BROKEN) + place * len(LATER)
    assert decoder.events() == []
    decoder.feed(b"")
    decoder.close()
    assert decoder.events() == []


@each_engine
def test_after_broken_framing_permissive_keeps_every_later_byte(engine: str) -> None:
    events = fed(make(engine, "PERMISSIVE"), FIRST + BROKEN + b"xy", LATER, b"", b"z")
    assert events[:3] == read([FIRST, message(INSERT)])
    corrupt = events[3:]
    assert all(isinstance(event, wf.Corrupt) for event in corrupt)
    assert [event.raw for event in corrupt if isinstance(event, wf.Corrupt)] == [b"?xy", LATER, b"z"]


@each_engine
@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_raw_is_bytes_whatever_was_fed(engine: str, kind: type) -> None:
    piece = bytearray(b"later")
    decoder = make(engine, "PERMISSIVE")
    decoder.feed(kind(bytearray(BROKEN)))
    decoder.feed(kind(piece))
    piece[:] = b"reuse"
    *_, last = decoder.events()
    assert isinstance(last, wf.Corrupt)
    assert type(last.raw) is bytes
    assert last.raw == b"later"


@each_engine
def test_after_broken_framing_dropmalformed_counts_every_piece(engine: str) -> None:
    decoder = make(engine, "DROPMALFORMED")
    assert fed(decoder, FIRST + BROKEN, LATER, b"z") == read([FIRST, message(INSERT)])
    assert decoder.dropped == 3


@each_engine
def test_events_before_an_error_are_given_once(engine: str) -> None:
    decoder = make(engine)
    with pytest.raises(wf.BadTag):
        decoder.feed(message(INSERT, COMMIT, commit(b"?")))
    assert [event.kind for event in decoder.events()] == ["INSERT", "COMMIT"]
    assert decoder.events() == []
    decoder.feed(LATER)
    assert [event.kind for event in decoder.events()] == ["COMMIT"]


@each_engine
def test_what_follows_an_error_in_a_piece_is_read_with_the_next_one(engine: str) -> None:
    """It was once lost, so that what was read depended on how the bytes were cut."""
    decoder = make(engine)
    messages = [FIRST, BAD_BODY, SECOND, BAD_BODY, BAD_BODY, THIRD, BROKEN]
    with pytest.raises(wf.BadTag):
        decoder.feed(b"".join(messages))
    assert decoder.events() == read([FIRST])
    for call, index, events in (
        (lambda: decoder.feed(b""), 3, read([SECOND])),
        (lambda: decoder.feed(LATER), 4, []),
        (decoder.close, 6, read([THIRD, message(INSERT)])),
        (decoder.close, 7, []),
    ):
        with pytest.raises(wf.DecodeError) as raised:
            call()
        assert (raised.value.message, decoder.events()) == (index, events)
        assert raised.value.stream_offset is not None
        assert raised.value.stream_offset // len(b"".join(messages[:index])) == 1
    decoder.close()
    assert decoder.events() == []


@each_engine
def test_what_follows_a_record_out_of_order_is_not_lost(engine: str) -> None:
    decoder = make(engine, "PERMISSIVE", strict=True)
    with pytest.raises(wf.OrderError):
        decoder.feed(LATER + FIRST + message(commit()))
    decoder.close()
    assert decoder.events() == read([FIRST, message(commit())])


@each_engine
def test_what_has_no_framing_after_an_error_is_not_lost(engine: str) -> None:
    decoder = wf.Decoder("test-decoding", engine=engine)
    with pytest.raises(wf.DecodeError):
        decoder.feed(b"BEGIN 1\nBEGIN x\nCOMMIT 1\nno record")
    with pytest.raises(wf.BadTag, match="expected a record of PostgreSQL's test_decoding"):
        decoder.close()
    assert [event.kind for event in decoder.events()] == ["BEGIN", "COMMIT"]


@each_engine
def test_places_count_from_the_beginning_of_the_stream(engine: str) -> None:
    decoder = make(engine)
    for data in (FIRST, SECOND, THIRD):
        decoder.feed(data)
    bad = message(INSERT, commit(b"?"))
    with pytest.raises(wf.BadTag) as raised:
        decoder.feed(bad)
    error = raised.value
    assert (error.message, error.record, error.message_offset) == (3, 1, len(bad) - 2)
    assert error.stream_offset == len(STREAM) + len(bad) - 2


@each_engine
def test_filters_and_encodings(engine: str) -> None:
    assert [event.kind for event in fed(make(engine, kinds=["DELETE"]), STREAM)] == ["DELETE"]
    assert [event.kind for event in fed(make(engine, tables=["s.*"], kinds=["UPDATE", "DELETE"]), STREAM)] == ["UPDATE"]
    (event,) = fed(make(engine, encoding="gbk"), message(commit(time("表".encode("gbk")))))
    assert event == wf.Commit(lsn=0x10, commit_time="表")


@given(st.sampled_from(MODES[1:]), st.data())
def test_engines_agree_on_mutated_streams(mode: str, data: st.DataObject) -> None:
    samples = list(SAMPLES.values())
    stream = b"".join(data.draw(st.lists(st.sampled_from(samples), min_size=1, max_size=4)))
    mutated = data.draw(strategies.mutated([stream]))
    pieces = data.draw(strategies.cuts(mutated))
    decoders = [make(engine, mode) for engine in ENGINES]
    left, right = (fed(decoder, *pieces) for decoder in decoders)
    assert left == right
    assert decoders[0].dropped == decoders[1].dropped
    if mode == "DROPMALFORMED":
        kept = fed(make("scan", "PERMISSIVE"), *pieces)
        assert left == [event for event in kept if not isinstance(event, wf.Corrupt)]
        assert decoders[0].dropped == len(kept) - len(left)


def test_the_first_error_does_not_depend_on_the_cut() -> None:
    """Fed whole or byte by byte, a bad stream fails with the same words after the same events."""
    for data in list(changed_bytes(FIRST + THIRD))[::97]:
        answers = []
        for pieces in ([data], [data[place : place + 1] for place in range(len(data))]):
            decoder = make("scan")
            events: list[wf.Event] = []
            found = None
            try:
                for piece in pieces:
                    decoder.feed(piece)
                decoder.close()
            except wf.DecodeError as error:
                found = (type(error), error.message, error.record, error.path, error.stream_offset)
            answers.append((found, events + decoder.events()))
        assert answers[0] == answers[1]


def test_it_says_what_it_is() -> None:
    decoder = wf.Decoder("mppdb-json")
    decoder.decode(b"BEGIN 1")
    assert repr(decoder) == "<wireformat.Decoder of mppdb-json, 1 message decoded>"
