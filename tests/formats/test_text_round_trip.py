"""Events of the text formats to bytes and back: the identity, or an EncodeError; batched and unbatched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.adapt import adapted

from .. import strategies, text_strategies
from ..accounting import EVERYTHING, account_all
from ..codec_checks import check_pieces
from ..engines import agree, read

FORMATS = list(text_strategies.FACTS)
BATCHED = ["gaussdb-json", "gaussdb-text"]

each_format = pytest.mark.parametrize("format", FORMATS)


def known(events: list[wf.Event], format: str) -> dict[str, Any]:
    """What a reader of gaussdb-text must be told of the tables."""
    if format != "gaussdb-text":
        return {}
    pairs = {(event.table_schema, event.table_name) for event in events if isinstance(event, wf.RowChange)}
    return {"known_tables": ['"{}"."{}"'.format(*(name.replace('"', '""') for name in pair)) for pair in pairs]}


def encode(events: list[wf.Event], format: str, **options: Any) -> list[bytes]:
    return list(wf.encode(events, format, options=EVERYTHING[format], **options))


@each_format
def test_every_event_comes_back(format: str) -> None:
    @given(text_strategies.events(format))
    def check(event: wf.Event) -> None:
        (message,) = encode([event], format)
        assert read([message], "declaration", format=format, **known([event], format)) == [event]
        answer = agree([message], format=format, mode="PERMISSIVE", **known([event], format))
        account_all([message], answer.by_message(), format)

    check()


@pytest.mark.parametrize("format", BATCHED)
def test_every_batch_comes_back(format: str) -> None:
    @given(st.lists(st.tuples(text_strategies.events(format), strategies.U64), max_size=6), st.data())
    def check(pairs: list[tuple[wf.Event, int]], data: st.DataObject) -> None:
        events = [replace(event, lsn=lsn) for event, lsn in pairs]
        options = {**EVERYTHING[format], "sending-batch": 1}
        messages = list(wf.encode(events, format, options=options, batch_bytes=data.draw(st.integers(0, 300))))
        for event in events:  # one table a reading: with many, a name could end where another one does
            reading = known([event], format)
            answer = agree(messages, format=format, mode="PERMISSIVE", **reading)
            account_all(messages, answer.by_message(), format)
            assert event in answer.events
        if not known(events, format):
            check_pieces(data.draw(strategies.cuts(b"".join(messages))), events, format=format)

    check()


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "gb18030", "big5"])
@each_format
def test_other_encodings(format: str, encoding: str) -> None:
    @given(text_strategies.events(format, encoding))
    def check(event: wf.Event) -> None:
        (message,) = encode([event], format, encoding=encoding)
        assert read([message], format=format, encoding=encoding, **known([event], format)) == [event]

    check()


@each_format
def test_anything_comes_back_or_is_refused(format: str) -> None:
    """A writer never writes what would be read as something else."""

    @given(text_strategies.any_events())
    def check(event: wf.Event) -> None:
        try:
            messages = encode([event], format)
        except wf.EncodeError:
            return
        (found,) = read(messages, format=format, **known([event], format))
        assert without_place(found) == without_place(event)

    check()


def without_place(event: wf.Event) -> wf.Event:
    """Without the LSN, which is the carrier's; the writer counts sizes, the reader makes an unknown record's text."""
    if isinstance(event, wf.Ddl):
        event = replace(event, size=None)
    if isinstance(event, wf.Unknown):
        event = replace(event, text=None)
    return replace(event, lsn=None)


@given(strategies.row_changes())
def test_from_binary_to_json_to_text_to_binary(event: wf.RowChange) -> None:
    """Nothing changes that all of them can say."""
    said: wf.Event = event
    route = ["gaussdb-json", "gaussdb-text", "gaussdb-binary"]
    for format in ("gaussdb-binary", *route):
        said, _ = adapted(said, format)
    options = {"include-xids": True, "sending-batch": 1}
    found = said
    for format in route:
        try:
            messages = list(wf.encode([found], format, options=options))
        except wf.EncodeError:  # a type that has no name, a value that is none of its type, a name of no bytes
            return
        (found,) = read(messages, format=format, **known([found], format))
    assert found == said


@given(st.sampled_from(strategies.U64_ENDS), st.sampled_from(strategies.U64_ENDS))
def test_transactions_from_binary_to_json_to_text_to_binary(number: int, lsn: int) -> None:
    events: list[wf.Event] = [
        wf.Begin(lsn=lsn, csn=number, first_lsn=lsn, xid=number, commit_time="2026-11-21 01:02:03+08", origin=-1),
        wf.Commit(lsn=lsn, xid=number, commit_time="infinity"),
    ]
    found = events
    for format in ("gaussdb-json", "gaussdb-text", "gaussdb-binary"):
        options = {**EVERYTHING[format], "sending-batch": 1}
        found = read(list(wf.encode(found, format, options=options)), format=format)
    assert found == events
