"""The likely format of a whole input, and errors that name it: every format's captures, read as every other format."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.formats.guess import LOOKED_AT

from ..golden_cases import CASES
from ..servers.captures import capture_names, read_capture
from .test_corpora import FORMATS as FILES
from .test_corpora import lines

ALIKE = {"opengauss_text"}
"""Lines of one kind only, which two servers print alike."""


def inputs() -> dict[str, tuple[str, list[bytes]]]:
    """The format and the messages of every capture."""
    found = {case.name: (case.format, case.messages) for case in CASES if not case.has_bad_text}
    found |= {name: (FILES[name][0], lines(name)) for name in FILES}
    for format in ("pgoutput", "test-decoding"):
        found |= {name: (format, read_capture(name).messages) for name in capture_names(format)}
    return found


INPUTS = inputs()
SHORTEST = {format: min((m for f, m in INPUTS.values() if f == format), key=len) for format in wf.FORMATS}
"""One capture of each format."""
MIXED = {
    format: [message for f, messages in INPUTS.values() if f == format for message in messages[:40]]
    for format in wf.FORMATS
}
"""Some messages of all captures of each format."""


@pytest.mark.parametrize("name", INPUTS)
def test_captures_are_recognised(name: str) -> None:
    format, messages = INPUTS[name]
    guess = wf.guess_format(messages)
    assert format in guess.candidates
    assert guess.name == (None if name in ALIKE else format), guess.reason


def error_of(messages: Sequence[bytes], format: str) -> str | None:
    """The text of the error, None where the messages can be read in this format."""
    try:
        for _ in wf.decode(messages, format):
            pass
    except wf.DecodeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("second", wf.FORMATS)
@pytest.mark.parametrize("first", wf.FORMATS)
def test_a_format_that_does_not_fit_is_named(first: str, second: str) -> None:
    if first == second:
        return
    texts = [error_of(messages[first], second) for messages in (SHORTEST, MIXED)]
    assert texts[1] is not None
    assert all(text is None or first in text for text in texts), texts


@pytest.mark.parametrize("second", wf.FORMATS)
@pytest.mark.parametrize("first", wf.FORMATS)
def test_the_likely_format_is_named_once(first: str, second: str) -> None:
    for messages in (SHORTEST[first], MIXED[first]):
        text = error_of(messages, second) or ""
        assert len(re.findall("looks? like|begins? like", text)) <= 1, text


def test_a_hint_about_a_record_is_narrowed_by_the_other_messages() -> None:
    given = [b"BEGIN 5", b'{"table_name":"s.t"}', b"COMMIT 5"]
    one, all_of_them = (error_of(messages, "gaussdb-binary") for messages in (given[:1], given))
    assert str(one).endswith("; it looks like mppdb-json or opengauss-test-decoding or sql-decoding or test-decoding")
    assert str(all_of_them).endswith("]; the messages look like mppdb-json")


def test_rows_name_it_too() -> None:
    for columns in (None, ["lsn"]):
        with pytest.raises(wf.DecodeError, match="messages begin like those of gaussdb-binary"):
            wf.arrow.changes(SHORTEST["gaussdb-binary"], "pgoutput", columns=columns)
    with pytest.raises(wf.DecodeError, match="looks like pgoutput"):
        list(wf.arrow.batches(iter(SHORTEST["pgoutput"]), "gaussdb-text"))


UNLISTED = [b"\x7f\x00\x01", b"\x7f\x00\x02"]
"""Records of a kind that no table lists, and that begin like no format."""


def test_a_filter_of_kinds_does_not_hide_it() -> None:
    messages = read_capture("18-pgoutput-1").messages[:9]
    for given in (messages, iter(messages)):
        with pytest.raises(wf.DecodeError, match="pgoutput"):
            list(wf.decode(given, "gaussdb-json", kinds=["INSERT"]))
    binary = SHORTEST["gaussdb-binary"][:1] * 2
    with pytest.raises(wf.DecodeError, match="gaussdb-binary"):
        wf.arrow.changes(binary, "pgoutput", kinds=["INSERT"])
    assert list(wf.decode(messages, "pgoutput", kinds=["STREAM_START"])) == []


def test_null_messages_do_not_count() -> None:
    binary = SHORTEST["gaussdb-binary"][0]
    for given in ([binary, None], iter([binary, None]), pa.array([binary, None])):
        assert [event.kind for event in wf.decode(given, "pgoutput")] == ["UNKNOWN"]
    for scalars in (pa.array([binary, None, binary]), [*pa.array([binary, None, binary])]):
        with pytest.raises(wf.DecodeError, match="gaussdb-binary"):
            list(wf.decode((message for message in scalars), "pgoutput"))


def test_what_is_no_error() -> None:
    """A single message, records of the own format that are new, and every other mode."""
    binary = SHORTEST["gaussdb-binary"]
    assert [event.kind for event in wf.decode(binary[:1], "pgoutput")] == ["UNKNOWN"]
    assert [event.kind for event in wf.decode(UNLISTED, "pgoutput")] == ["UNKNOWN", "UNKNOWN"]
    assert {event.kind for event in wf.decode(lines("postgres_unreleased_sequence"), "test-decoding")} == {"UNKNOWN"}
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        assert {event.kind for event in wf.decode(binary, "pgoutput", mode=mode)} == {"UNKNOWN"}
        assert wf.arrow.changes(binary, "pgoutput", mode=mode).num_rows == len(binary)
    assert {event.kind for event in wf.decode(binary, "pgoutput", kinds=["UNKNOWN"])} == {"UNKNOWN"}


def test_the_events_come_before_the_error() -> None:
    messages = SHORTEST["gaussdb-binary"]
    events = wf.decode(iter(messages), "pgoutput")
    assert [next(events).kind for _ in messages] == ["UNKNOWN"] * len(messages)
    with pytest.raises(wf.DecodeError, match="UNKNOWN records and no other"):
        next(events)
    with pytest.raises(wf.DecodeError, match="4 of 4 messages"):
        list(wf.decode(iter(SHORTEST["gaussdb-binary"][:1] * 4), "pgoutput"))


def test_guesses() -> None:
    nothing = wf.guess_format([])
    assert (nothing.name, nothing.candidates) == (None, ())
    assert wf.guess_format(UNLISTED).reason == "none of 2 messages begins like one of a known format"
    begins = wf.guess_format([b"BEGIN 5", None, b"BEGIN 6"])
    assert begins.name is None
    assert set(begins.candidates) == {"mppdb-json", "opengauss-test-decoding", "sql-decoding", "test-decoding"}
    assert begins.reason.endswith("which these messages do not tell apart")
    assert wf.guess_format(iter([b"BEGIN 5"] * (LOOKED_AT + 5))).messages == LOOKED_AT
    with pytest.raises(TypeError, match="an iterable of messages, got one bytes"):
        wf.guess_format(b"BEGIN 5")
    with pytest.raises(TypeError, match="expected bytes, got str"):
        wf.guess_format(["BEGIN 5"])
    with pytest.raises(AttributeError):
        begins.name = "mppdb-json"  # type: ignore[misc]


@pytest.mark.parametrize("verb", [wf.arrow.transactions, wf.arrow.open_transactions, wf.arrow.tables])
def test_verbs_that_read_all(verb: object) -> None:
    """In all modes of decode: what nobody could read gives no transactions and no tables."""
    assert callable(verb)
    rows = wf.arrow.changes(SHORTEST["gaussdb-binary"], "pgoutput", mode="PERMISSIVE")
    for given in (rows, rows.drop_columns(["message"]), rows.to_batches(max_chunksize=1)):
        with pytest.raises(
            wf.BadRows, match=r"rows of pgoutput that could be read.*begin like those of gaussdb-binary"
        ):
            verb(given)
    with pytest.raises(wf.BadRows, match="all of them UNKNOWN or CORRUPT; decode"):
        verb(rows.select([name for name in rows.schema.names if name != "raw"]))
    assert verb(rows.slice(0, 1)).num_rows == 0
    with pytest.raises(wf.DecodeError, match="UNKNOWN records and no other"):
        list(wf.transactions(wf.decode(SHORTEST["gaussdb-binary"], "pgoutput", mode="PERMISSIVE")))


def test_typed_names_it() -> None:
    rows = wf.arrow.changes(SHORTEST["gaussdb-binary"], "pgoutput", mode="PERMISSIVE")
    for schema in (None, {"id": "integer"}):
        with pytest.raises(wf.BadRows, match="begin like those of gaussdb-binary"):
            wf.arrow.typed(rows, "public.t", schema=schema)


def test_corrupt_rows_name_it() -> None:
    rows = wf.arrow.changes(SHORTEST["pgoutput"], "gaussdb-binary", mode="PERMISSIVE")
    assert set(rows["kind"].to_pylist()) == {"CORRUPT"}
    with pytest.raises(wf.OrderError, match=r"got CORRUPT \[.*; the messages look like pgoutput"):
        wf.arrow.transactions(rows)
    with pytest.raises(wf.BadRows, match="the messages look like pgoutput"):
        wf.arrow.typed(rows, "public.t", schema={"id": "integer"})
