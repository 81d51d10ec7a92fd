"""Live sources: the events of a message before the next one is asked for, by wf.decode and by Decoder.decode."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.engine.scan_engine import SCANNED_ALONE_BYTES

from .. import handmade, text_samples
from .. import handmade_pgoutput as hand
from ..engines import ENGINES, read

LONG = b"x" * SCANNED_ALONE_BYTES

STREAMS: dict[str, list[bytes]] = {
    "gaussdb-binary": [
        handmade.message(handmade.BEGIN, handmade.INSERT),
        handmade.message(*[handmade.INSERT] * 20, handmade.COMMIT),
        handmade.HEARTBEAT + b"F",
    ],
    **text_samples.SAMPLES,
    "pgoutput": [
        hand.OTHERS["begin"][0],
        hand.DESCRIBED,
        hand.change(b"I", hand.image(b"N", hand.text(b"1"), hand.NULL)),
        hand.change(b"I", hand.image(b"N", hand.text(b"2"), hand.text(LONG))),
        hand.start(800),
        hand.streamed(hand.relation(hand.column(b"other"))),
        hand.streamed(hand.change(b"I", hand.image(b"N", hand.text(LONG)))),
        hand.STOP,
        hand.change(b"I", hand.image(b"N", hand.text(b"3"), hand.text(LONG))),
        hand.stream_commit(800),
        hand.change(b"I", hand.image(b"N", hand.text(b"4"))),
    ],
}
"""Short messages and longer ones: those that the declaration reads, and those that the scan reads."""

BAD = b"\x00\x00\x00\x01"
"""No message of any format."""

each_engine = pytest.mark.parametrize("engine", ENGINES)
each_format = pytest.mark.parametrize("format", STREAMS)


class Slot:
    """Gives messages one by one, and counts them."""

    def __init__(self, messages: Iterable[bytes | None]) -> None:
        self._messages = list(messages)
        self.given = 0

    def __iter__(self) -> Iterator[bytes | None]:
        for message in self._messages:
            self.given += 1
            yield message


def test_some_messages_are_longer_than_others() -> None:
    sizes = [len(message) for messages in STREAMS.values() for message in messages]
    assert min(sizes) < SCANNED_ALONE_BYTES < max(sizes)
    assert any(len(message) > SCANNED_ALONE_BYTES for message in STREAMS["pgoutput"])


@each_engine
@each_format
def test_the_events_of_a_message_come_before_the_next_is_asked_for(format: str, engine: str) -> None:
    slot = Slot(STREAMS[format])
    events = wf.decode(slot, format, engine=engine)
    found: list[wf.Event] = []
    for asked, message in enumerate(STREAMS[format], 1):
        count = len(read(STREAMS[format][:asked], engine, format=format)) - len(found)
        found += [next(events) for _ in range(count)]
        assert slot.given == asked, message
    assert next(events, None) is None
    assert found == read(STREAMS[format], engine, format=format)


@each_engine
def test_what_has_a_length_is_read_together(engine: str) -> None:
    """A slot has none. All of these give the same events."""
    messages = STREAMS["gaussdb-binary"]
    makes: list[Callable[[list[bytes]], Any]] = [
        list, tuple, deque, iter, Slot, pa.array,
        lambda found: np.array(found, object), lambda found: dict.fromkeys(found).keys(),
        lambda found: pa.chunked_array([found]), lambda found: map(bytes, found),
    ]  # fmt: skip
    for make in makes:
        assert list(wf.decode(make(messages), "gaussdb-binary", engine=engine)) == read(messages), make


@each_engine
def test_a_live_source_counts_nulls(engine: str) -> None:
    first, second, third = STREAMS["gaussdb-binary"]
    events = wf.decode(Slot([first, None, second, third, BAD]), "gaussdb-binary", engine=engine)
    with pytest.raises(wf.DecodeError) as raised:
        list(events)
    assert raised.value.message == 4


@each_engine
def test_committed_changes_come_with_their_commit(engine: str) -> None:
    lines = [b"BEGIN 5", b"table s.t: INSERT: id[integer]:1", b"COMMIT 5"]
    slot = Slot([*lines, *lines])
    changes = wf.transactions(wf.decode(slot, "test-decoding", engine=engine))
    assert next(changes).event.kind == "INSERT"
    assert slot.given == 3


def test_a_live_source_is_written_as_it_comes() -> None:
    slot = Slot(STREAMS["test-decoding"])
    messages = wf.encode(wf.decode(slot, "test-decoding"), "test-decoding")
    assert next(messages) == STREAMS["test-decoding"][0]
    assert slot.given == 1


@each_engine
@each_format
def test_a_decoder_takes_whole_messages_of_every_format(format: str, engine: str) -> None:
    decoder = wf.Decoder(format, engine=engine)
    found = [decoder.decode(message) for message in STREAMS[format]]
    assert [event for events in found for event in events] == read(STREAMS[format], format=format)
    assert all(found)
    decoder.close()
    assert decoder.events() == []


@each_engine
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_decoder_takes_any_bytes_like_object(kind: type, engine: str) -> None:
    message = STREAMS["gaussdb-binary"][0]
    assert wf.Decoder("gaussdb-binary", engine=engine).decode(kind(message)) == read([message])
    assert wf.Decoder("gaussdb-binary", engine=engine).decode(None) == []
    with pytest.raises(TypeError, match="expected bytes-like objects, got str"):
        wf.Decoder("gaussdb-binary", engine=engine).decode(message.decode("latin-1"))


@each_engine
@each_format
def test_an_error_names_the_message_and_the_decoder_goes_on(format: str, engine: str) -> None:
    decoder = wf.Decoder(format, engine=engine)
    good = STREAMS[format][0]
    events = decoder.decode(good)
    with pytest.raises(wf.DecodeError) as raised:
        decoder.decode(b"")
    assert (raised.value.message, raised.value.message_offset, raised.value.stream_offset) == (1, 0, None)
    assert decoder.decode(good) == events


@each_engine
def test_what_was_read_before_an_error_can_be_taken(engine: str) -> None:
    for count in (2, 20):
        message = handmade.message(*[handmade.COMMIT] * count, handmade.commit(b"?"))
        assert (len(message) > SCANNED_ALONE_BYTES) == (count == 20)
        decoder = wf.Decoder("gaussdb-binary", engine=engine)
        with pytest.raises(wf.BadTag) as raised:
            decoder.decode(message)
        assert raised.value.record == count
        assert [event.kind for event in decoder.events()] == ["COMMIT"] * count
        assert decoder.events() == []


@each_engine
@pytest.mark.parametrize(("mode", "kinds"), [("PERMISSIVE", ["CORRUPT"]), ("DROPMALFORMED", [])])
def test_modes(mode: str, kinds: list[str], engine: str) -> None:
    decoder = wf.Decoder("gaussdb-binary", mode=mode, engine=engine)
    assert [event.kind for event in decoder.decode(BAD)] == kinds
    assert decoder.dropped == (mode == "DROPMALFORMED")


@each_engine
def test_options_of_a_decoder_of_whole_messages(engine: str) -> None:
    lines = [b"BEGIN 5", b"COMMIT 5", b"BEGIN 6", "table s.\"表\": INSERT: a[text]:'é'".encode("gb18030"), b"COMMIT 6"]
    decoder = wf.Decoder("test-decoding", engine=engine, encoding="gb18030", skip_empty_xacts=True, tables=["*.表"])
    assert [[event.kind for event in decoder.decode(line)] for line in lines] == [
        [], [], [], ["BEGIN", "INSERT"], ["COMMIT"],
    ]  # fmt: skip
    strict = wf.Decoder("test-decoding", engine=engine, strict=True)
    strict.decode(b"BEGIN 5")
    with pytest.raises(wf.OrderError) as raised:
        strict.decode(b"BEGIN 6")
    assert raised.value.message == 1


@each_engine
def test_a_decoder_takes_whole_messages_or_pieces(engine: str) -> None:
    whole = wf.Decoder("gaussdb-binary", engine=engine)
    message = STREAMS["gaussdb-binary"][0]
    whole.decode(message)
    with pytest.raises(wf.OptionError, match=r"Decoder\.feed: .* use another Decoder"):
        whole.feed(message)
    pieces = wf.Decoder("gaussdb-binary", engine=engine)
    pieces.feed(message[:5])
    with pytest.raises(wf.OptionError, match=r"Decoder\.decode: .* use another Decoder"):
        pieces.decode(message)
    pieces.feed(message[5:])
    assert pieces.events() == read([message])


@each_engine
def test_a_decoder_that_cannot_be_fed_still_decodes(engine: str) -> None:
    decoder = wf.Decoder("pgoutput", engine=engine)
    with pytest.raises(wf.OptionError, match="give whole messages to decode"):
        decoder.feed(STREAMS["pgoutput"][0])
    assert [event.kind for event in decoder.decode(STREAMS["pgoutput"][0])] == ["BEGIN"]
