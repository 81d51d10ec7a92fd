"""Bad texts: what comes after them in a batch or a stream, what is kept as unknown, and what must take no time."""

from __future__ import annotations

import time

import pytest

import wireformat as wf
from wireformat.formats.adapt import adapted
from wireformat.formats.registry import ROWS

from ..engines import ENGINES, agree, read
from ..support import SUPPORTED
from ..text_samples import J, batched, insert

DEEP = b'{"JDDL": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


def test_recursion_is_bounded() -> None:
    (event,) = agree([DEEP], format="mppdb-json", mode="PERMISSIVE").events
    assert isinstance(event, wf.Corrupt)
    assert "expected a template in JSON, got more levels than can be read" in event.error


def test_after_a_bad_record_of_a_batch_comes_the_next() -> None:
    data = batched(J, b"{", b"zzz", J[:-1], b"commit xid: 5")
    events = agree([data], format="gaussdb-json", mode="PERMISSIVE").events
    assert [event.kind for event in events] == ["INSERT", "CORRUPT", "UNKNOWN", "CORRUPT", "COMMIT"]
    assert [event.lsn for event in events] == [16, 17, 18, 19, 20]
    assert events[2] == wf.Unknown(lsn=18, raw=b"zzz", text="zzz")


def test_what_no_form_matches_is_kept() -> None:
    """A heartbeat in a text style: no sample is published."""
    heartbeat = b"h" + bytes(24)
    for data in (heartbeat + bytes(4), batched(heartbeat), b"heartbeat \xff"):
        (event,) = agree([data], format="gaussdb-text").events
        assert isinstance(event, wf.Unknown)
        assert event.raw in data
    table = wf.arrow.changes([b"beat"], "gaussdb-text")
    assert (table["raw"].to_pylist(), table["detail"].to_pylist()) == ([b"beat"], [[("text", "beat")]])
    assert wf.arrow.changes([b"beat\xff"], "gaussdb-text")["detail"].to_pylist() == [None]


@pytest.mark.parametrize("format", ["gaussdb-json", "gaussdb-text"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_decoder_cannot_take_texts_that_are_not_batched(format: str, engine: str) -> None:
    decoder = wf.Decoder(format, engine=engine)
    decoder.feed(batched(SUPPORTED[format].good))
    with pytest.raises(wf.DecodeError, match="expected batches, which say where they end, got a text without framing"):
        decoder.feed(SUPPORTED[format].good)
    (event,) = decoder.events()
    assert event.kind == "INSERT"
    lenient = wf.Decoder(format, engine=engine, mode="PERMISSIVE")
    lenient.feed(batched(SUPPORTED[format].good) + SUPPORTED[format].good)
    lenient.feed(b"more")
    first, rest, more = lenient.events()
    assert (first.kind, rest.raw, more.raw) == ("INSERT", SUPPORTED[format].good, b"more")
    assert "a text without framing" in rest.error


@pytest.mark.slow
@pytest.mark.parametrize("format", ROWS)
def test_errors_about_records_of_other_formats_hold_no_values(format: str) -> None:
    row = wf.Insert(lsn=1, table_schema="s", table_name="t", new=wf.TupleData(("a",), ("§" * 30,), ("text",)))
    for other in ROWS.keys() - {format}:
        event, _ = adapted(row, other)
        for options in ({}, {"sending-batch": 1} if other.startswith("gaussdb") else {}):
            (*_, message) = wf.encode([event], other, options=options)
            for error in read([message], "declaration", format=format, mode="PERMISSIVE"):
                if isinstance(error, wf.Corrupt):
                    assert "a7" not in error.error.rpartition("bytes there")[2], (other, error.error)


def test_many_marks_and_quotes_take_no_time() -> None:
    """Places that are tried are bounded, and none is scanned twice."""
    many = 200_000
    hostile = {
        "gaussdb-text": [
            b"table " + b"a INSERT:" * many,
            insert(b" a[text]:'" + b"''" * many),
            insert(b' "' + b'""' * many),
            insert(b" a[" + b"[]" * many),
            b"table " + b" " * many,
        ],
        "gaussdb-json": [
            J.replace(b"'x'", b"'" + b"\\\\" * many),
            J.replace(b"'x'", b"\\" * (2 * many + 1)),
            b"{" * many,
        ],
        "sql-decoding": [b"insert into s.t values (" + b"1, " * many, b'{"JDDL": ' + b'{"a":' * many],
        "test-decoding": [
            b"COMMIT PREPARED '" + b"''" * many,
            b"COMMIT PREPARED E'" + b"\\\\" * many,
            b"message: transactional: 1 prefix: " + b", sz: 1 content:" * many,
            b"streaming message: transactional: 1 prefix: " + b", sz: 1" * many + b",",
        ],
        "mppdb-json": [b"prefix: " + b", lsn: " * many, b"table " + b"s.t, " * many],
    }
    start = time.process_time()
    for format, messages in hostile.items():
        answer = read(messages, "declaration", format=format, mode="PERMISSIVE")
        assert [event.kind for event in answer] == ["CORRUPT"] * len(messages)
    assert time.process_time() - start < 20
