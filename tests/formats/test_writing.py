"""What the writer's options do, and what cannot be written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf
from wireformat.formats.adapt import adapted

from ..engines import FORMAT, read
from ..handmade import HEARTBEAT, begin, cell, change, commit, message, new, record, time, user, xid

BEGIN = wf.Begin(lsn=16, csn=1, first_lsn=2, xid=3, commit_time="t", origin=4, username="u")
COMMIT = wf.Commit(lsn=17, xid=3, commit_time="t", origin=4, username="u")
INSERT = wf.Insert(lsn=16, table_schema="s", table_name="t", new=wf.TupleData(("a",), ("1",), ("integer",)))
INSERT_BODY = change(b"I", b"s", b"t", new(cell(b"a", 23, b"1")))
FRAMED = wf.Heartbeat(lsn=16, wal_end=1, wal_flushed=2, time=-3)
BARE = wf.Heartbeat(wal_end=1, wal_flushed=2, time=-3)


def encode(*events: wf.Event, batch_bytes: int = 1 << 20, **options: Any) -> list[bytes]:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return list(wf.encode(events, FORMAT, options=named, batch_bytes=batch_bytes))


def test_defaults_are_the_servers() -> None:
    """One record a message; the xid is written, time, origin and user are not."""
    assert encode(BEGIN, INSERT, COMMIT) == [
        message(begin(1, 2, xid(3))),
        message(INSERT_BODY),
        record(commit(xid(3)), 17) + b"F",
    ]


@pytest.mark.parametrize(
    ("option", "fact"),
    [("include_timestamp", time(b"t")), ("include_originid", b"O\0\0\0\4"), ("include_user", user(b"u"))],
)
def test_each_option_adds_its_field(option: str, fact: bytes) -> None:
    assert encode(BEGIN, include_xids=False, **{option: True}) == [message(begin(1, 2, fact))]
    assert encode(COMMIT, include_xids=False, **{option: True}) == [record(commit(fact), 17) + b"F"]


def test_a_field_that_the_event_does_not_have_is_not_written() -> None:
    event = wf.Begin(lsn=16, csn=1, first_lsn=2)
    assert encode(event, include_timestamp=True, include_originid=True, include_user=True) == [message(begin(1, 2))]


def test_a_batch_is_closed_by_timeout_at_the_end() -> None:
    (only,) = encode(BEGIN, INSERT, COMMIT, sending_batch=1)
    parts = [record(begin(1, 2, xid(3)), 16), record(INSERT_BODY, 16), record(commit(xid(3)), 17)]
    assert only == b"P".join(parts) + b"P\0\0\0\0"


def test_a_batch_is_closed_by_size() -> None:
    one = len(record(INSERT_BODY))
    assert encode(INSERT, sending_batch=1, batch_bytes=25 + one - 1) == [message(INSERT_BODY)]
    assert encode(INSERT, sending_batch=1, batch_bytes=25 + one) == [message(INSERT_BODY, end=b"P\0\0\0\0")]


def test_the_real_limit_is_a_mebibyte() -> None:
    many = [row(new=image(value="x" * 10_000))] * 300
    *by_size, last = encode(*many, sending_batch=1)
    assert len(by_size) == 2
    assert last.endswith(b"P\0\0\0\0")
    for data in by_size:
        assert 1 << 20 < 25 + len(data) - 1 <= (1 << 20) + 10_100


def test_nothing_gives_no_message() -> None:
    assert encode() == []
    assert encode(sending_batch=1) == []


def test_a_bare_heartbeat_is_a_message_of_its_own() -> None:
    bare = b"h" + bytes(7) + b"\1" + bytes(7) + b"\2" + b"\xff" * 7 + b"\xfd" + b"F"
    assert encode(BARE) == [bare]
    assert encode(INSERT, BARE, sending_batch=1) == [message(INSERT_BODY, end=b"P\0\0\0\0"), bare]


def test_empty_transactions_are_skipped() -> None:
    assert encode(BEGIN, COMMIT, skip_empty_xacts=True) == []
    full = encode(BEGIN, INSERT, COMMIT)
    assert encode(BEGIN, COMMIT, BEGIN, INSERT, COMMIT, skip_empty_xacts=True) == full
    assert encode(BEGIN, FRAMED, COMMIT, BARE, skip_empty_xacts=True) == encode(FRAMED, BARE)
    assert encode(BEGIN, COMMIT) == encode(BEGIN) + encode(COMMIT)


def test_a_framed_heartbeat_is_a_record() -> None:
    event = wf.Heartbeat(lsn=16, wal_end=0xCFE5C80, wal_flushed=0xCFE5C00, time=1_700_000_000_000)
    assert encode(event) == [message(HEARTBEAT)]


def row(**changes: Any) -> wf.Insert:
    return wf.Insert(**{"lsn": 1, "table_schema": "s", "table_name": "t", **changes})


def image(name: Any = "a", value: Any = "1", type_: Any = "integer") -> wf.TupleData:
    return wf.TupleData((name,), (value,), (type_,))


CANNOT_SAY = {
    "no lsn": (row(lsn=None), "lsn"),
    "negative lsn": (row(lsn=-1), "lsn"),
    "lsn of 65 bits": (row(lsn=1 << 64), "lsn"),
    "no csn": (wf.Begin(lsn=1, first_lsn=1), "csn"),
    "csn of 65 bits": (wf.Begin(lsn=1, csn=1 << 64, first_lsn=1), "csn"),
    "no first_lsn": (wf.Begin(lsn=1, csn=1), "first_lsn"),
    "time of a prepare": (wf.Begin(lsn=1, csn=1, first_lsn=1, prepare_time="t"), "prepare_time"),
    "negative xid": (wf.Commit(lsn=1, xid=-1), "xid"),
    "origin of 33 bits": (wf.Commit(lsn=1, origin=1 << 31), "origin"),
    "time that is a number": (wf.Commit(lsn=1, commit_time=5), "commit_time"),
    "surrogate in a user name": (wf.Commit(lsn=1, username="\ud800"), "username"),
    "heartbeat of 64 bits and a sign": (wf.Heartbeat(wal_end=1, wal_flushed=1, time=1 << 63), "time"),
    "schema of 64 KiB": (row(table_schema="x" * 65536), "table_schema"),
    "table that is None": (row(table_name=None), "table_name"),
    "column name of 64 KiB": (row(new=image(name="x" * 65536)), r"new\.cells\[0\]\.name"),
    "column name of 64 KiB with its quotes": (row(new=image(name="X" * 65534)), r"new\.cells\[0\]\.name"),
    "value that is a number": (row(new=image(value=1)), r"new\.cells\[0\]\.value"),
    "surrogate in a value": (row(old=image(value="\udfff")), r"old\.cells\[0\]\.value"),
    "type without a number": (row(new=image(type_="my_type")), "my_type"),
    "type number of 33 bits": (row(new=image(type_="oid:4294967296")), "oid"),
    "values without types": (row(new=wf.TupleData(("a",), ("1",))), "same length"),
    "65536 columns": (row(new=wf.TupleData(("a",) * 65536, ("",) * 65536, ("text",) * 65536)), "new"),
    "what could not be read": (wf.Corrupt(lsn=1, error="e", raw=b"x"), "CORRUPT"),
    "an unknown record without a kind": (wf.Unknown(lsn=1, raw=b""), "UNKNOWN"),
    "an unknown record of a known kind": (wf.Unknown(lsn=1, raw=b"C"), "UNKNOWN"),
}


@pytest.mark.parametrize("name", CANNOT_SAY)
def test_what_the_format_cannot_say(name: str) -> None:
    event, words = CANNOT_SAY[name]
    with pytest.raises(wf.EncodeError, match=words):
        encode(event, include_timestamp=True, include_originid=True, include_user=True)


def test_a_character_that_the_encoding_lacks() -> None:
    with pytest.raises(wf.EncodeError, match=r"new\.cells\[0\]\.value.*latin|iso"):
        list(wf.encode([row(new=image(value="表"))], FORMAT, encoding="latin-1"))


def test_the_text_of_an_encode_error_has_no_value() -> None:
    with pytest.raises(wf.EncodeError) as raised:
        list(wf.encode([row(new=image(value="secret\ud800"))], FORMAT))
    assert "secret" not in str(raised.value)


def test_a_record_longer_than_any_server_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.formats.message_writer.RECORD_BYTES", 100)
    with pytest.raises(wf.LimitExceeded, match=r"RECORD_BYTES is 100, the record has \d+ bytes"):
        encode(row(new=image(value="x" * 100)))


def test_an_error_leaves_the_messages_before_it() -> None:
    written = wf.encode([INSERT, row(lsn=None)], FORMAT)
    assert next(written) == message(INSERT_BODY)
    with pytest.raises(wf.EncodeError):
        next(written)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"format": "gaussdb-binari"}, "gaussdb-binary"),
        ({"format": FORMAT, "options": {"sending_batch": 1}}, "sending-batch"),
        ({"format": FORMAT, "encoding": "utf-16"}, "encoding"),
    ],
)
def test_options_are_checked_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.OptionError, match=words):
        wf.encode([], **arguments)


def test_written_messages_are_read_back() -> None:
    assert read(encode(BEGIN, INSERT, BARE, FRAMED, sending_batch=1, include_timestamp=True)) == [
        wf.Begin(lsn=16, csn=1, first_lsn=2, xid=3, commit_time="t"),
        INSERT,
        BARE,
        FRAMED,
    ]


@pytest.mark.parametrize("format", sorted({*wf.FORMATS} - {"pgoutput"}))
@pytest.mark.parametrize("sending_batch", [0, 1])
def test_a_refused_row_does_not_lose_the_begin_that_waits(format: str, sending_batch: int) -> None:
    options: dict[str, Any] = {"skip-empty-xacts": True}
    if format.startswith("gaussdb-"):
        options["sending-batch"] = sending_batch
    rows = [replace(INSERT, new=wf.TupleData(("a",), (value,), ("text",))) for value in ("\U0001f600", "1")]
    begin, commit = replace(BEGIN, commit_time=None), replace(COMMIT, commit_time=None)
    events = [adapted(event, format)[0] for event in (begin, *rows, commit)]
    writer = wf.FORMATS[format].writer(options, encoding="gbk", batch_bytes=0)
    messages = writer.write(events[0])
    with pytest.raises(wf.EncodeError):
        writer.write(events[1])
    for event in events[2:]:
        messages += writer.write(event)
    messages += writer.flush()
    assert [event.kind for event in read(messages, format=format)] == ["BEGIN", "INSERT", "COMMIT"]
