"""Bad texts, spot by spot: the whole text of each error, what is kept of the rest, and that no error shows a value."""

from __future__ import annotations

import json
import pickle
import re
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf

from ..accounting import account, account_all
from ..engines import ENGINES, agree, ask, read
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, splices, truncations
from ..text_samples import SAMPLES, J, batched, insert


def _bad() -> dict[tuple[str, str], tuple[bytes, str]]:
    with (Path(__file__).parent / "bad_texts.jsonl").open(encoding="ascii") as file:
        rows = [json.loads(line) for line in file]
    return {(row["format"], row["name"]): (row["message"].encode("latin-1"), row["error"]) for row in rows}


BAD = _bad()
"""By format and name: the message, and the text of its error but for the number of the message."""

DEEP = b'{"JDDL": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001

GOOD = {
    "gaussdb-binary": bytes.fromhex("00000009 000000000CFE5E68 43 46"),
    "gaussdb-json": J,
    "gaussdb-text": insert(b" a[integer]:1"),
    "mppdb-json": J,
    "opengauss-test-decoding": b"table s.t: INSERT: a[integer]:1",
    "sql-decoding": b"insert into s.t values (1);",
    "test-decoding": b"table s.t: INSERT: a[integer]:1",
}


def without_message(text: str) -> str:
    return re.sub(r"message \d+, ", "", text, count=1)


each_case = pytest.mark.parametrize(("format", "name"), BAD)


@pytest.mark.parametrize("engine", ENGINES)
@each_case
def test_failfast_says_what_is_wrong_and_where(format: str, name: str, engine: str) -> None:
    data, text = BAD[format, name]
    answer = ask([GOOD[format], None, data, GOOD[format]], engine, format=format)
    assert without_message(str(answer.error)) == text
    assert answer.error is not None
    assert answer.error.message == 2
    copy = pickle.loads(pickle.dumps(answer.error))
    assert (type(copy), str(copy)) == (type(answer.error), str(answer.error))


@each_case
def test_permissive_keeps_it_and_goes_on(format: str, name: str) -> None:
    data, text = BAD[format, name]
    good = GOOD[format]
    answer = agree([good, data, good], format=format, mode="PERMISSIVE")
    by_message = answer.by_message()
    account(data, by_message[1], format)
    assert by_message[0] == by_message[2] == read([good], format=format)
    first = next(event for event in by_message[1] if isinstance(event, wf.Corrupt))
    assert without_message(first.error) == text
    agree([good, data, good], format=format, mode="DROPMALFORMED")


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
    decoder.feed(batched(GOOD[format]))
    with pytest.raises(wf.DecodeError, match="expected batches, which say where they end, got a text without framing"):
        decoder.feed(GOOD[format])
    (event,) = decoder.events()
    assert event.kind == "INSERT"
    lenient = wf.Decoder(format, engine=engine, mode="PERMISSIVE")
    lenient.feed(batched(GOOD[format]) + GOOD[format])
    lenient.feed(b"more")
    first, rest, more = lenient.events()
    assert (first.kind, rest.raw, more.raw) == ("INSERT", GOOD[format], b"more")
    assert "a text without framing" in rest.error


@pytest.mark.parametrize("format", ["mppdb-json", "opengauss-test-decoding", "sql-decoding"])
def test_a_decoder_cannot_take_serial_formats(format: str) -> None:
    with pytest.raises(wf.OptionError, match=r"does not say where it ends.* give whole messages to decode"):
        wf.Decoder(format).feed(b"")


@pytest.mark.parametrize("mutations", [truncations, changed_bytes, overwritten_lengths, inserted_and_deleted])
@pytest.mark.parametrize("format", SAMPLES)
def test_mutants(format: str, mutations: Any) -> None:
    """Nothing but a WireformatError, both engines alike, and every byte in one place."""
    messages = list(chain.from_iterable(mutations(sample) for sample in SAMPLES[format]))[
        :: 1 + 4 * (mutations != truncations)
    ]
    answer = agree(messages, format=format, mode="PERMISSIVE")
    account_all(messages, answer.by_message(), format)
    assert any(isinstance(event, wf.Corrupt) for event in answer.events)


@pytest.mark.parametrize("format", SAMPLES)
def test_splices(format: str) -> None:
    others = [sample for samples in SAMPLES.values() for sample in samples]
    messages = [mutant for left in SAMPLES[format] for right in others for mutant in splices(left, right, step=23)]
    for encoding in ("utf-8", "gbk"):
        answer = agree(messages, format=format, mode="PERMISSIVE", encoding=encoding)
        account_all(messages, answer.by_message(), format)


MARKER = "s3cr3t-0f-th3-r0w"


def marked(format: str) -> list[bytes]:
    """Row changes whose values are all the marker."""
    type_ = "?string" if format == "sql-decoding" else "text"
    new = wf.TupleData(("$1", "$2"), (MARKER, MARKER), (type_, type_))
    old = wf.TupleData(("a", "B c"), (MARKER, MARKER), (type_, type_))
    changes = [
        wf.Insert(table_schema="s", table_name="t", new=new),
        wf.Update(table_schema="s", table_name="t", new=new, old=old),
        wf.Delete(table_schema="s", table_name="t", old=old),
    ]
    return list(wf.encode(changes, format))


@pytest.mark.parametrize("format", SAMPLES)
def test_an_error_never_shows_a_value(format: str) -> None:
    """Not even four bytes of it."""
    every = (truncations, changed_bytes, inserted_and_deleted)
    mutants = [mutant for data in marked(format) for mutations in every for mutant in mutations(data)]
    events = read(mutants, format=format, mode="PERMISSIVE")
    texts = [event.error for event in events if isinstance(event, wf.Corrupt)]
    assert len(texts) > 500
    pieces = [MARKER[place : place + 4] for place in range(len(MARKER) - 3)]
    shown = [*pieces, *(piece.encode().hex(" ") for piece in pieces)]
    assert [text for text in texts if any(piece in text for piece in shown)] == []


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
    start = time.monotonic()
    for format, messages in hostile.items():
        answer = read(messages, "declaration", format=format, mode="PERMISSIVE")
        assert [event.kind for event in answer] == ["CORRUPT"] * len(messages)
    assert time.monotonic() - start < 20
