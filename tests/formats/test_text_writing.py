"""What the writers' options do in the text formats, how batches are closed, and what cannot be written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf

from ..accounting import EVERYTHING
from ..engines import read

TIME = "2026-11-21 01:02:03+08"
BEGIN = wf.Begin(lsn=16, csn=1, first_lsn=2, xid=3, commit_time=TIME, origin=4)
COMMIT = wf.Commit(lsn=18, xid=3, commit_time=TIME)
IMAGE = wf.TupleData(("a",), ("1",), ("integer",))
INSERT = wf.Insert(lsn=17, table_schema="s", table_name="t", new=IMAGE)
TEXT = b"table s t INSERT: a[integer]:1"


def encode(*events: wf.Event, format: str = "gaussdb-text", batch_bytes: int = 1 << 20, **options: Any) -> list[bytes]:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return list(wf.encode(events, format, options=named, batch_bytes=batch_bytes))


def record(text: bytes, lsn: int) -> bytes:
    return (8 + len(text)).to_bytes(4, "big") + lsn.to_bytes(8, "big") + text


def test_defaults_are_the_servers() -> None:
    begin = b"BEGIN CSN: 1 first_lsn: 0/2 xid: 3"
    assert encode(BEGIN, INSERT, COMMIT) == [begin, TEXT, b"commit xid: 3"]
    serial = [wf.Begin(xid=3), replace(COMMIT, csn=7)]
    assert encode(*serial, format="mppdb-json") == [b"BEGIN 3", f"COMMIT 3 (at {TIME}) CSN 7".encode()]


OPTIONS = {
    "include_xids": b"BEGIN CSN: 1 first_lsn: 0/2 xid: 3",
    "include_timestamp": b"BEGIN CSN: 1 first_lsn: 0/2 commit_time: 2026-11-21 01:02:03+08",
    "include_originid": b"BEGIN CSN: 1 first_lsn: 0/2 origin_id: 4",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_adds_its_part(option: str) -> None:
    assert encode(BEGIN, **{"include_xids": False, option: True}) == [OPTIONS[option]]


def test_a_batch_ends_in_zeros() -> None:
    (only,) = encode(INSERT, COMMIT, sending_batch=1)
    assert only == record(TEXT, 17) + record(b"commit xid: 3", 18) + bytes(4)


def test_a_batch_is_closed_by_size() -> None:
    """The 25 bytes of the replication header count, the zeros at the end do not."""
    size = len(record(TEXT, 17))
    assert len(encode(INSERT, INSERT, sending_batch=1, batch_bytes=25 + size - 1)) == 2
    assert len(encode(INSERT, INSERT, sending_batch=1, batch_bytes=25 + size)) == 1
    assert len(encode(INSERT, INSERT, INSERT, sending_batch=1, batch_bytes=25 + 2 * size - 1)) == 2


def test_empty_transactions_are_skipped() -> None:
    for format in ("gaussdb-text", "gaussdb-json"):
        assert encode(BEGIN, COMMIT, format=format, skip_empty_xacts=True) == []
        full = encode(BEGIN, INSERT, COMMIT, format=format)
        assert encode(BEGIN, COMMIT, BEGIN, INSERT, COMMIT, format=format, skip_empty_xacts=True) == full
    serial = wf.Begin(xid=3), wf.Commit(xid=3, csn=1)
    truncate = wf.Truncate(tables=(("s", "t"),))
    assert encode(*serial, format="sql-decoding", skip_empty_xacts=True, include_xids=False) == []
    assert len(encode(serial[0], truncate, serial[1], format="mppdb-json", skip_empty_xacts=True)) == 3


def kinds_without_empty(*events: wf.Event) -> list[str]:
    """The kinds that are left of these events by PostgreSQL's plugin."""
    messages = encode(*events, format="test-decoding", skip_empty_xacts=True)
    return [event.kind for event in read(messages, format="test-decoding")]


BLOCK = wf.StreamStart(xid=5), wf.StreamStop(xid=5)
FULL_BLOCK = BLOCK[0], wf.StreamChange(xid=5), BLOCK[1]
FULL_BLOCK_KINDS = ["STREAM_START", "STREAM_CHANGE", "STREAM_STOP"]
GID = wf.Prepare(gid="g", xid=5)
LOOSE, OF_TRANSACTION = (wf.Message(transactional=flag, prefix="p", content="") for flag in (False, True))
ENDS_OF_STREAM = [wf.StreamCommit(xid=5), wf.StreamAbort(xid=5), wf.StreamPrepare(xid=5, gid="g")]


@pytest.mark.parametrize("end", ENDS_OF_STREAM, ids=lambda end: end.kind)
def test_empty_blocks_are_skipped(end: wf.Event) -> None:
    """And the end of a streamed transaction of which nothing was written."""
    assert kinds_without_empty(*BLOCK, *BLOCK, end) == []
    assert kinds_without_empty(*BLOCK, *FULL_BLOCK, *BLOCK, end, end) == [*FULL_BLOCK_KINDS, end.kind, end.kind]
    assert kinds_without_empty(*FULL_BLOCK, wf.StreamAbort(xid=6), end) == [*FULL_BLOCK_KINDS, "STREAM_ABORT", end.kind]
    assert kinds_without_empty(*BLOCK, wf.StreamStart(xid=6), wf.StreamStop(xid=6), *FULL_BLOCK, end)[-1] == end.kind


def test_what_happens_in_a_block() -> None:
    for event in (wf.Truncate(tables=(), xid=5), wf.Message(transactional=True, prefix="p", size=3)):
        assert kinds_without_empty(BLOCK[0], event, BLOCK[1]) == ["STREAM_START", event.kind, "STREAM_STOP"]


def test_empty_transactions_of_postgres() -> None:
    begin, commit = wf.Begin(xid=5), wf.Commit(xid=5)
    assert kinds_without_empty(begin, commit, begin, GID, wf.CommitPrepared(gid="g")) == ["COMMIT_PREPARED"]
    assert kinds_without_empty(begin, LOOSE, commit) == ["MESSAGE"]
    assert kinds_without_empty(begin, OF_TRANSACTION, commit) == ["BEGIN", "MESSAGE", "COMMIT"]


def test_defaults_are_those_of_postgres() -> None:
    commit = wf.Commit(xid=5, commit_time=TIME)
    assert encode(commit, format="test-decoding") == [b"COMMIT 5"]
    assert encode(commit, format="test-decoding", include_timestamp=True) == [f"COMMIT 5 (at {TIME})".encode()]
    assert encode(commit, format="test-decoding", include_xids="off") == [b"COMMIT"]


def test_names_and_types_are_quoted_as_postgres_does() -> None:
    """Its keywords are others than openGauss's, and a tinyint or clob is a user's type."""
    new = wf.TupleData(("json", "csn", "date"), ("1", "2", "3"), ("tinyint", "clob", "integer"))
    event = wf.Insert(table_schema="lateral", table_name="verify", new=new)
    (line,) = encode(event, format="test-decoding")
    assert line == b"""table "lateral".verify: INSERT: "json"[tinyint]:'1' csn[clob]:'2' date[integer]:3"""
    assert read([line], format="test-decoding") == [event]


@pytest.mark.parametrize(
    ("format", "option"),
    [
        ("test-decoding", "include-originid"),
        ("test-decoding", "stream-changes"),
        ("mppdb-json", "sending-batch"),
        ("sql-decoding", "include-originid"),
        ("opengauss-test-decoding", "include-user"),
    ],
)
def test_options_that_a_serial_plugin_does_not_have(format: str, option: str) -> None:
    with pytest.raises(wf.OptionError, match=f"unknown option '{option}'"):
        wf.encode([], format, options={option: 1})


def change(kind: type[wf.RowChange] = wf.Insert, **changes: Any) -> wf.RowChange:
    return kind(**{"lsn": 1, "table_schema": "s", "table_name": "t", "new": IMAGE, **changes})


def image(name: Any = "a", value: Any = "1", type_: Any = "integer") -> wf.TupleData:
    return wf.TupleData((name,), (value,), (type_,))


UNSENT = wf.TupleData(("a", "b"), ("1", wf.UNCHANGED), ("integer", "text"))
CANNOT_SAY: dict[str, tuple[str, wf.Event, str]] = {
    "begin without csn": (
        "gaussdb-json",
        wf.Begin(first_lsn=1),
        "gaussdb-json BEGIN: csn: expected a number of 64 bits",
    ),
    "begin without first_lsn": ("gaussdb-text", wf.Begin(csn=1), "first_lsn: expected an LSN, as 0/CFE5C80"),
    "csn of 65 bits": ("gaussdb-text", wf.Begin(csn=1 << 64, first_lsn=1), "csn: expected a number of 64 bits"),
    "user": ("gaussdb-json", replace(BEGIN, username="u"), "gaussdb-json BEGIN: username: the format cannot say it"),
    "csn of a commit": ("gaussdb-text", replace(COMMIT, csn=1), "gaussdb-text COMMIT: csn: the format cannot say it"),
    "csn of a begin": ("mppdb-json", wf.Begin(csn=1), "mppdb-json BEGIN: csn: the format cannot say it"),
    "xid of a begin": ("sql-decoding", wf.Begin(csn=1, xid=2), "sql-decoding BEGIN: xid: the format cannot say it"),
    "origin of 33 bits": ("mppdb-json", wf.Begin(origin=1 << 31), "origin: expected a signed number of 32 bits"),
    "time that is a number": ("mppdb-json", wf.Commit(commit_time=5), "commit_time: expected text"),
    "a value not sent": (
        "gaussdb-json",
        change(new=UNSENT),
        r"new.cells\[1\].value: JSON has no word for a value that",
    ),
    "a value not sent, in binary": (
        "gaussdb-binary",
        change(new=UNSENT),
        "new: a value that was not sent cannot be said",
    ),
    "csn of a commit, in binary": (
        "gaussdb-binary",
        wf.Commit(lsn=1, csn=1),
        "gaussdb-binary COMMIT: csn: the format cannot say it",
    ),
    "no columns": (
        "mppdb-json",
        change(new=wf.TupleData()),
        "new: JSON does not tell a tuple without columns from none",
    ),
    "an insert with an old tuple": ("gaussdb-text", change(old=IMAGE), "old: it has no place in INSERT"),
    "a delete with a new tuple": ("sql-decoding", change(wf.Delete), "new: it has no place in DELETE"),
    "a type number": (
        "gaussdb-text",
        change(new=image(type_="oid:16385")),
        r"new.cells\[0\].type: expected the SQL name",
    ),
    "clob": ("gaussdb-json", change(new=image(type_="clob")), r"new.cells\[0\].type: the text formats name clob text"),
    "no type": (
        "gaussdb-text",
        change(new=image(type_="")),
        r"new.cells\[0\].type: expected the SQL name of a type, got ''",
    ),
    "a form as type": (
        "gaussdb-json",
        change(new=image(type_="?number")),
        r"new.cells\[0\].type: expected the SQL name",
    ),
    "a type in sql": (
        "sql-decoding",
        change(new=image("$1")),
        r"new.cells\[0\].type: nothing names types here; expected .*\?number",
    ),
    "a name in sql": (
        "sql-decoding",
        change(new=image(type_="?number")),
        r"new: an INSERT names no columns here; expected \$1",
    ),
    "a number that is none": (
        "gaussdb-text",
        change(new=image(value="x")),
        r"new.cells\[0\].value: expected a number, which is how integer",
    ),
    "a boolean that is none": (
        "gaussdb-json",
        change(new=image(value="true", type_="boolean")),
        r"new.cells\[0\].value: expected t or f",
    ),
    "a value that is a number": (
        "gaussdb-text",
        change(new=image(value=1)),
        r"new.cells\[0\].value: expected a str, got int",
    ),
    "a character without bytes": (
        "gaussdb-text",
        change(new=image(value="\ud800", type_="text")),
        r"value: character 0 has no bytes in utf-8",
    ),
    "no name of a schema": ("gaussdb-text", change(table_schema=""), "table_schema: expected a name of 1 to 255 bytes"),
    "a long name": ("gaussdb-text", change(table_name="x" * 256), "table_name: expected a name of 1 to 255 bytes"),
    "a table that is None": ("gaussdb-json", change(table_name=None), "table_name: expected a str, got NoneType"),
    "values without types": (
        "gaussdb-text",
        change(new=wf.TupleData(("a",), ("1",))),
        "new: names, values and types must have the same length",
    ),
    "truncate": ("gaussdb-json", wf.Truncate(tables=(("s", "t"),)), "gaussdb-json TRUNCATE: the format cannot say it"),
    "truncate of nothing": ("mppdb-json", wf.Truncate(tables=()), "tables: expected at least one"),
    "ddl": ("gaussdb-text", wf.Ddl(sql="x"), "gaussdb-text DDL: the format cannot say it"),
    "ddl without content": ("mppdb-json", wf.Ddl(lsn=1, prefix="p"), "content: expected the words or the template"),
    "ddl without lsn": (
        "mppdb-json",
        wf.Ddl(prefix="p", content="c", relid=1, cmdtype="w"),
        "lsn: expected a number of 64 bits",
    ),
    "ddl without statement": (
        "sql-decoding",
        wf.Ddl(prefix="p", content="c", relid=1, cmdtype="w", owner="o"),
        "owner: it follows the statement",
    ),
    "ddl of both": (
        "mppdb-json",
        wf.Ddl(sql="s", content="{}"),
        "sql: without a prefix, expected either the statement",
    ),
    "ddl of what is no template": ("mppdb-json", wf.Ddl(content="x"), "it would be read as something else"),
    "ddl whose prefix has a comma": (
        "sql-decoding",
        wf.Ddl(prefix="p, relid 2", content="c", relid=1, cmdtype="w"),
        "it would be read as something else",
    ),
    "ddl of a plugin without its line": (
        "mppdb-json",
        wf.Ddl(sql="s", relid=1),
        "relid: without a prefix there is no place",
    ),
    "a heartbeat": (
        "gaussdb-json",
        wf.Heartbeat(wal_end=1, wal_flushed=1, time=1),
        "HEARTBEAT: the format cannot say it",
    ),
    "what could not be read": ("gaussdb-text", wf.Corrupt(error="e", raw=b"x"), "CORRUPT: the format cannot say it"),
    "an unknown record of a known kind": ("gaussdb-text", wf.Unknown(raw=b"commit"), "UNKNOWN: it would be read as"),
    "an unknown record that is nothing": (
        "mppdb-json",
        wf.Unknown(raw=b""),
        "UNKNOWN: it would be read as something else",
    ),
    "a prepare without a gid": ("test-decoding", wf.Prepare(xid=5), "gid: expected a name in single quotes"),
    "an xid of 33 bits": ("test-decoding", wf.Begin(xid=1 << 32), "BEGIN: xid: expected a number of 32 bits"),
    "a csn of postgres": ("test-decoding", wf.Commit(csn=5), "COMMIT: csn: the format cannot say it"),
    "a subtransaction and its top one": (
        "test-decoding",
        wf.StreamAbort(xid=5, subxid=6),
        "STREAM_ABORT: subxid: the format cannot say it",
    ),
    "the xid of a truncate": (
        "test-decoding",
        wf.Truncate(tables=(("s", "t"),), xid=5),
        "xid: it has no place where the tables are named",
    ),
    "the flags of a streamed truncate": (
        "test-decoding",
        wf.Truncate(tables=(), cascade=True),
        "TRUNCATE: it would be read as something else",
    ),
    "a message of neither content nor size": (
        "test-decoding",
        wf.Message(transactional=True, prefix="p"),
        "size: expected a number",
    ),
    "a message without content outside of a transaction": (
        "test-decoding",
        wf.Message(transactional=False, prefix="p", size=3),
        "content: only a transactional message can be without one",
    ),
    "a message with content and size": (
        "test-decoding",
        wf.Message(transactional=True, prefix="p", content="abc", size=3),
        "MESSAGE: it would be read as something else",
    ),
    "a message of bytes that are text": (
        "test-decoding",
        wf.Message(transactional=True, prefix="p", content=b"abc"),
        "MESSAGE: it would be read as something else",
    ),
    "a prefix that could end at two places": (
        "test-decoding",
        wf.Message(transactional=True, prefix="a, sz: 22 content:x", content="hello"),
        "MESSAGE: it would be read as something else",
    ),
    "a message in a streamed transaction": (
        "test-decoding",
        wf.Message(transactional=True, prefix="p", content="a", xid=5),
        "MESSAGE: xid: the format cannot say it",
    ),
    "ddl of openGauss": ("test-decoding", wf.Ddl(sql="x"), "test-decoding DDL: the format cannot say it"),
    "a message in a format of openGauss": (
        "opengauss-test-decoding",
        wf.Message(transactional=True, prefix="p", content="a"),
        "MESSAGE: the format cannot say it",
    ),
    "an unknown record that looks batched": (
        "gaussdb-json",
        wf.Unknown(raw=b"\0x"),
        "UNKNOWN: it would be read as something",
    ),
}


@pytest.mark.parametrize("name", CANNOT_SAY)
def test_what_a_format_cannot_say(name: str) -> None:
    format, event, words = CANNOT_SAY[name]
    with pytest.raises(wf.EncodeError, match=words):
        list(wf.encode([event], format, options=EVERYTHING[format]))


def test_a_batched_record_needs_an_lsn() -> None:
    for lsn in (None, -1, 1 << 64):
        with pytest.raises(wf.EncodeError, match="expected an lsn of 64 bits"):
            encode(replace(INSERT, lsn=lsn), sending_batch=1)
    assert encode(replace(INSERT, lsn=None)) == [TEXT]


def test_the_text_of_an_encode_error_has_no_value() -> None:
    for type_ in ("integer", "boolean", "bit", "text"):
        with pytest.raises(wf.EncodeError) as raised:
            encode(change(new=image(value="secret\ud800", type_=type_)))
        assert "secret" not in str(raised.value)


def test_a_record_longer_than_any_server_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.formats.message_writer.RECORD_BYTES", 100)
    with pytest.raises(wf.LimitExceeded, match=r"RECORD_BYTES is 100, the record has \d+ bytes"):
        encode(change(new=image(value="x" * 100, type_="text")))


def test_the_size_of_ddl_is_counted_in_the_encoding() -> None:
    event = wf.Ddl(prefix="p", content="表", relid=1, cmdtype="w", size=99)
    (utf8,), (gbk,) = (wf.encode([event], "sql-decoding", encoding=encoding) for encoding in ("utf-8", "gbk"))
    assert b"sz: 4 content: " in utf8
    assert b"sz: 3 content: " in gbk
    recoded = gbk.decode("gbk").encode() + b"\ndecode to : DROP, [owner x]"
    assert read([recoded], format="sql-decoding") == [
        wf.Ddl(prefix="p", content="表", relid=1, cmdtype="w", size=3, sql="DROP", owner="x")
    ]
