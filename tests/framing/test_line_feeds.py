"""Files of PostgreSQL's client: records with a line feed behind each, cut anywhere; what is not decided is an error."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.framing.buffer import MessageBuffer
from wireformat.framing.line_feeds import HEADS, SEPARATOR, find_end
from wireformat.limits import PREFIX_BYTES

from .. import strategies, text_strategies
from ..accounting import EVERYTHING
from ..codec_checks import check_pieces
from ..engines import read
from ..mutations import changed_bytes, inserted_and_deleted
from ..text_samples import SAMPLES

FORMAT = "test-decoding"
HEAD = b"message: transactional: 1 prefix: "


def buffered(*pieces: bytes) -> tuple[list[bytes], MessageBuffer]:
    """The messages of these pieces, what is left at the end too, and the buffer."""
    buffer = MessageBuffer(find_end, SEPARATOR)
    found = [message for piece in pieces for message in buffer.feed(piece)]
    return found + buffer.close(), buffer


def file(messages: list[bytes]) -> bytes:
    return b"".join(message + SEPARATOR for message in messages)


def in_a_file(event: wf.Event) -> bool:
    return not isinstance(event, wf.Unknown)


@given(st.lists(text_strategies.events(FORMAT).filter(in_a_file), max_size=6), st.data())
def test_records_come_out_of_a_file_cut_anywhere(events: list[wf.Event], data: st.DataObject) -> None:
    messages = list(wf.encode(events, FORMAT, options=EVERYTHING[FORMAT]))
    pieces = data.draw(strategies.cuts(file(messages)))
    found, buffer = buffered(*pieces)
    assert (found, buffer.lost) == (messages, None)
    check_pieces(pieces, read(messages, format=FORMAT), format=FORMAT)


@pytest.mark.parametrize(
    "message",
    [
        b'table "a\nBEGIN 1"."b\'": INSERT: "x""\n"[text]:\'it\'\'s\nCOMMIT 1\n\' y["\n\'"]:null',
        b"table a.b: UPDATE: old-key: new-tuple:",
        b"COMMIT PREPARED 'a\n'', txid 9\n', txid 5",
        b"PREPARE TRANSACTION E'\\\\\n'''",
        HEAD + b"p, sz: 9 content:BEGIN 1\n\n",
        HEAD + b"two\nlines, sz: 0 content:",
        HEAD + b"a, sz: 3 content:, sz: 1 content:\n",
        b"message: transactional: 0 prefix: p, sz: 21 content:a, sz: 1 content:\nbcd",
        b"streaming message: transactional: 1 prefix: a\nb, sz: 12x, sz: 3",
        b"streaming change for transaction",
    ],
)
def test_line_feeds_inside_of_a_record(message: bytes) -> None:
    (event,) = read([message], format=FORMAT)
    data = file([message, b"BEGIN 7", message])
    expected = [event, wf.Begin(xid=7), event]
    check_pieces([data], expected, format=FORMAT)
    check_pieces([data[place : place + 1] for place in range(len(data))], expected, format=FORMAT)


UNDECIDED = {
    "no record": (b"hello\n", "expected a record of PostgreSQL's test_decoding, got other bytes"),
    "an empty line": (b"\n", "expected a record of PostgreSQL's test_decoding"),
    "a record of an unknown kind": (b"sequence public.s: transactional:1\n", "expected a record of PostgreSQL's"),
    "a size that does not fit": (
        HEAD + b"p, sz: 4 content:hello\nBEGIN 5\n" + HEAD + b"p, sz: 2 content:ab\n",
        "expected ', sz: ', a number and ' content:', then as many bytes and a line feed, got another record, or none",
    ),
    "a message without a size": (HEAD + b"p\nBEGIN 5\n" + bytes(100), "got another record, or none"),
    "a streamed message without a size": (
        b"streaming message: transactional: 1 prefix: p\nclosing a streamed block for transaction\n",
        "expected ', sz: ', a number and a line feed after the prefix",
    ),
    "two places that lead to two ends": (
        HEAD + b"p, sz: 30 content:x, sz: 3 content:abc\nCOMMIT 77\n" + b"BEGIN 8\n",
        "expected one place where the prefix can end, got two, and nothing tells which",
    ),
    "two places, the second of which leads further": (
        HEAD + b"p, sz: 18 content:x, sz: 30 content:\nBEGIN 7\nCOMMIT 7\n",
        "expected one place where the prefix can end",
    ),
    "a long prefix": (HEAD + b"p" * PREFIX_BYTES + b", sz: 3 content:abc\n", "got another record, or none"),
}


def feed(decoder: Any, data: bytes, width: int) -> None:
    for place in range(0, len(data), width):
        decoder.feed(data[place : place + width])
    decoder.close()


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_cannot_be_decided_is_an_error(name: str) -> None:
    bad, words = UNDECIDED[name]
    data = b"BEGIN 5\n" + bad
    for width in (3, 100, len(data)):
        decoder = wf.Decoder(FORMAT)
        with pytest.raises(wf.DecodeError, match=re.escape(words)) as raised:
            feed(decoder, data, width)
        assert decoder.events() == [wf.Begin(xid=5)]
        assert raised.value.stream_offset == 8
        lenient = wf.Decoder(FORMAT, mode="PERMISSIVE")
        feed(lenient, data, width)
        begin, *lost = lenient.events()
        assert begin == wf.Begin(xid=5)
        assert b"".join(event.raw for event in lost if isinstance(event, wf.Corrupt)) == bad


def test_two_places_that_lead_to_the_same_end() -> None:
    """Where the record ends is clear, so only this one is an error."""
    message = HEAD + b"p, sz: 22 content:x, sz: 5 content:hello"
    decoder = wf.Decoder(FORMAT, mode="PERMISSIVE")
    decoder.feed(file([message, b"BEGIN 5"]))
    bad, begin = decoder.events()
    assert isinstance(bad, wf.Corrupt)
    assert bad.raw == message
    assert "got 2 of them" in bad.error
    assert begin == wf.Begin(xid=5)


def test_after_a_bad_record_comes_the_next() -> None:
    decoder = wf.Decoder(FORMAT, mode="PERMISSIVE")
    decoder.feed(file([b"BEGIN 5", b"table a.b: INSERT: a[integer]:x", b"COMMIT 5"]))
    assert [event.kind for event in decoder.events()] == ["BEGIN", "CORRUPT", "COMMIT"]
    with pytest.raises(wf.BadValue) as raised:
        wf.Decoder(FORMAT).feed(file([b"BEGIN 5", b"table a.b: INSERT: a[integer]:x"]))
    assert raised.value.stream_offset == 8 + raised.value.message_offset


@pytest.mark.parametrize("sample", SAMPLES[FORMAT])
def test_a_file_that_ends_in_a_record(sample: bytes) -> None:
    """Without its line feed a record may look complete, as BEGIN 12 of BEGIN 123 does."""
    for stop in range(1, len(sample) + 1):
        decoder = wf.Decoder(FORMAT)
        decoder.feed(b"BEGIN 5\n" + sample[:stop])
        assert decoder.events() == [wf.Begin(xid=5)]
        with pytest.raises(wf.DecodeError, match="a record and b'\\\\n' after it, got the end of the stream") as raised:
            decoder.close()
        assert raised.value.stream_offset == 8
        lenient = wf.Decoder(FORMAT, mode="PERMISSIVE")
        lenient.feed(sample[:stop])
        lenient.close()
        (lost,) = lenient.events()
        assert isinstance(lost, wf.Corrupt)
        assert lost.raw == sample[:stop]


def test_every_byte_is_in_one_place() -> None:
    data = file(SAMPLES[FORMAT])
    for mutant in [*changed_bytes(data), *inserted_and_deleted(data)][::7]:
        found, buffer = buffered(mutant)
        rest = [found.pop()] if buffer.lost is not None else []
        assert b"".join([*(message + SEPARATOR for message in found), *rest]) == mutant
        halves, other = buffered(mutant[: len(mutant) // 2], mutant[len(mutant) // 2 :])
        assert halves[: len(found)] == found
        assert (other.lost is None) == (buffer.lost is None)


PIECES = [
    *(head for head in HEADS if len(head) < 25),
    b"streaming message: transactional: 1 prefix: ",
    b"0 prefix: ",
    b", sz: 0 content:",
    b", sz: 3 content:",
    b", sz: 20 content:",
    b", sz: 7",
    b"abc",
    b"'",
    b'"',
    b"\n",
    b"\n",
    b" ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join), st.data())
def test_the_cuts_decide_nothing(file: bytes, data: st.DataObject) -> None:
    found, buffer = buffered(file)
    again, other = buffered(*data.draw(strategies.cuts(file)))
    if buffer.lost is None:
        assert (again, other.lost) == (found, None)
        return
    *good, rest = found
    assert again[: len(good)] == good
    assert b"".join(again[len(good) :]) == rest
    assert str(other.lost) == str(buffer.lost)


def test_another_format_is_named() -> None:
    with pytest.raises(wf.DecodeError, match="it looks like opengauss-test-decoding or sql-decoding"):
        wf.Decoder(FORMAT).feed(b"message: prefix p, relid 3, cmdtype: Simple, sz: 3 content: {}\n")


def test_heads_hold_no_line_feed_and_no_size() -> None:
    """The search for the end of a prefix rests on it."""
    assert not any(b"\n" in head or b", sz: " in head for head in HEADS)


def test_long_records_take_no_time() -> None:
    """Fed in small pieces too: no byte is looked at once a piece."""
    many = 1 << 20
    good = [
        b"table a.b: INSERT: v[text]:'" + b"''" * many + b"\n'",
        b"table a.b: INSERT: v[text]:'" + b"\n" * many + b"'",
        b'table "' + b"'\n" * many + b'".b: INSERT:',
        HEAD + b"p, sz: 1 content:xx" * 3000 + b", sz: 5 content:hello",
        HEAD + b"p, sz: %d content:" % many + b"\n" * many,
    ]
    start = time.process_time()
    for message in good:
        data = file([message])
        found, buffer = buffered(*(data[place : place + 10_000] for place in range(0, len(data), 10_000)))
        assert (found, buffer.lost) == ([message], None)
    assert time.process_time() - start < 20


class CountedBytes(bytearray):
    """Counts the bytes in which something was searched for."""

    searched = 0

    def find(self, what: Any, start: Any = 0, stop: Any = None) -> int:
        found = super().find(what, start)
        self.searched += (len(self) if found < 0 else found) - start
        return found


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("quoted", [b"x" * 20_000, b"\n" * 20_000, b"'' it''s " * 2_000])
def test_a_quoted_value_is_searched_once(quoted: bytes, piece: int) -> None:
    data, searched, seen = CountedBytes(), 0, 0
    message = file([b"table a.b: INSERT: v[text]:'" + quoted + b"'"])
    for place in range(0, len(message), piece):
        data += message[place : place + piece]
        found, searched = find_end(data, 0, searched, seen)
        assert found == (len(data) == len(message))
        seen = len(data)
    assert searched == len(message)
    assert data.searched <= 2 * len(message)
