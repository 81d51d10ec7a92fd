"""Filters of whole transactions: both engines, events and rows, whatever the messages and batches are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.scan import message_batches as messages_module

from ... import handmade
from ...engines import ENGINES, FORMAT, agree, read, rows
from ...golden_cases import find_case

OPTIONS = {"include-user": True}


def begin(user: str | None = None) -> wf.Begin:
    return wf.Begin(lsn=1, csn=1, first_lsn=1, username=user)


def row(table: str = "t") -> wf.Insert:
    return wf.Insert(lsn=2, table_schema="s", table_name=table, new=wf.TupleData())


COMMIT = wf.Commit(lsn=3, xid=1)
HEARTBEAT = wf.Heartbeat(lsn=4, wal_end=1, wal_flushed=1, time=1)
UNKNOWN = wf.Unknown(lsn=5, raw=b"?")


def messages(events: Sequence[wf.Event]) -> list[bytes]:
    return list(wf.encode(events, FORMAT, options=OPTIONS))


CASES: dict[str, tuple[dict[str, Any], list[wf.Event], list[wf.Event]]] = {
    "empty ones": (
        {"skip_empty_xacts": True},
        [begin(), COMMIT, begin("a"), row(), COMMIT, begin("b"), COMMIT],
        [begin("a"), row(), COMMIT],
    ),
    "nothing to leave out": (
        {"skip_empty_xacts": True},
        [begin(), row(), row(), COMMIT, begin("a"), UNKNOWN, COMMIT],
        [begin(), row(), row(), COMMIT, begin("a"), UNKNOWN, COMMIT],
    ),
    "what is left by tables decides": (
        {"skip_empty_xacts": True, "tables": ["s.t"]},
        [begin(), row("u"), COMMIT, begin("a"), row("u"), row("t"), COMMIT],
        [begin("a"), row("t"), COMMIT],
    ),
    "what is left by kinds does not": (
        {"skip_empty_xacts": True, "kinds": ["COMMIT"]},
        [begin(), row(), COMMIT, begin(), COMMIT],
        [COMMIT],
    ),
    "a heartbeat overtakes a BEGIN": (
        {"skip_empty_xacts": True},
        [begin("a"), HEARTBEAT, row(), COMMIT, begin("b"), HEARTBEAT, COMMIT],
        [HEARTBEAT, begin("a"), row(), COMMIT, HEARTBEAT],
    ),
    "the end of a transaction whose begin is not there": (
        {"skip_empty_xacts": True, "exclude_users": ["a"]},
        [COMMIT, row(), COMMIT, begin("b"), row(), COMMIT],
        [COMMIT, row(), COMMIT, begin("b"), row(), COMMIT],
    ),
    "a transaction that does not end": (
        {"skip_empty_xacts": True},
        [begin("a"), begin("b"), row()],
        [begin("b"), row()],
    ),
    "users": (
        {"exclude_users": ["a", "c"]},
        [begin("a"), row(), HEARTBEAT, UNKNOWN, COMMIT, begin("b"), row(), COMMIT, begin("c"), COMMIT, begin(), COMMIT],
        [HEARTBEAT, begin("b"), row(), COMMIT, begin(), COMMIT],
    ),
    "users, of row changes": (
        {"exclude_users": ["a"], "kinds": ["INSERT"]},
        [begin("a"), row(), COMMIT, row()],
        [row()],
    ),
    "both": (
        {"exclude_users": ["a"], "skip_empty_xacts": True},
        [begin("a"), row(), COMMIT, begin("b"), COMMIT, begin("b"), row(), COMMIT],
        [begin("b"), row(), COMMIT],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_stays(name: str) -> None:
    options, sent, stay = CASES[name]
    answer = agree(messages(sent), **options)
    assert answer.events == stay
    assert answer.table is not None
    assert answer.table["kind"].to_pylist() == [event.kind for event in stay]


@pytest.mark.parametrize("name", CASES)
def test_messages_that_come_one_by_one(name: str) -> None:
    """A decoder keeps what it knows from call to call."""
    options, sent, stay = CASES[name]
    decoder = wf.Decoder(FORMAT, **options)
    found = []
    for message in messages(sent):
        decoder.feed(message)
        found += decoder.events()
    assert found == stay


EVENT = st.sampled_from([begin(), begin("a"), row(), row("u"), COMMIT, HEARTBEAT, UNKNOWN])


@given(st.lists(EVENT, max_size=30), st.booleans(), st.sampled_from([None, ["a"]]), st.integers(1, 200))
def test_batches_may_be_cut_anywhere(
    events: list[wf.Event], skip: bool, users: list[str] | None, batch_bytes: int
) -> None:
    """Rows are the same however many messages a batch holds, and those of the events."""
    sent = messages(events)
    options: dict[str, Any] = {"skip_empty_xacts": skip, "exclude_users": users, "tables": ["s.t"]}
    whole = wf.arrow.changes(sent, FORMAT, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages_module, "MESSAGE_BATCH_BYTES", batch_bytes)
        for name in ENGINES:
            cut = list(wf.arrow.batches(sent, FORMAT, engine=name, **options))
            assert pa.Table.from_batches(cut, whole.schema).equals(whole)
    assert whole["kind"].to_pylist() == [event.kind for event in read(sent, **options)]


@pytest.mark.parametrize("columns", [["lsn"], ["message", "kind"], ["detail", "new"]])
def test_columns_are_those_asked_for(columns: list[str]) -> None:
    sent = messages([begin("a"), row(), COMMIT, begin("b"), COMMIT])
    options: dict[str, Any] = {"skip_empty_xacts": True, "exclude_users": ["c"]}
    table = wf.arrow.changes(sent, FORMAT, columns=columns, **options)
    assert table.equals(wf.arrow.changes(sent, FORMAT, **options).select(table.column_names))
    assert sorted(table.column_names) == sorted(columns)


def test_what_cannot_be_read_stays_and_is_something() -> None:
    bad = handmade.message(handmade.BEGIN[:12])
    sent = [*messages([begin("b")]), bad, *messages([COMMIT, begin("a")]), bad, *messages([row(), COMMIT])]
    answer = agree(sent, mode="PERMISSIVE", skip_empty_xacts=True, exclude_users=["a"], kinds=["BEGIN"])
    assert [event.kind for event in answer.events] == ["BEGIN", "CORRUPT", "CORRUPT"]
    agree(sent, skip_empty_xacts=True)
    dropped = agree(sent, mode="DROPMALFORMED", exclude_users=["a"])
    assert [event.kind for event in dropped.events] == ["BEGIN", "COMMIT"]


def test_bytes_after_broken_framing_stay() -> None:
    decoder = wf.Decoder(FORMAT, mode="PERMISSIVE", skip_empty_xacts=True)
    for data in (*messages([begin()]), b"\xff" * 9, b"more"):
        decoder.feed(data)
    assert [event.kind for event in decoder.events()] == ["BEGIN", "CORRUPT", "CORRUPT"]


def test_the_capture_with_empty_transactions_becomes_the_one_without() -> None:
    """The server's own skip-empty-xacts leaves nothing for ours to leave out; without it, ours does what it says."""
    done = find_case("b_opt_x1t1o0e1_single")
    assert read(done.messages, skip_empty_xacts=True) == read(done.messages)
    full = find_case("b_opt_x1t1o1e0_single")
    events = read(full.messages)
    ends = [place for place, event in enumerate(events) if event.kind == "COMMIT" and events[place - 1].kind == "BEGIN"]
    left_out = {place for end in ends for place in (end - 1, end)}
    assert left_out
    kept = read(full.messages, skip_empty_xacts=True)
    assert kept == [event for place, event in enumerate(events) if place not in left_out]
    assert len(rows(wf.arrow.changes(full.array, FORMAT, skip_empty_xacts=True))) == len(kept)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exclude_users": "a"}, "option exclude_users: expected a list of strings, got the string 'a'"),
        ({"exclude_users": [1]}, "option exclude_users: expected a list of strings"),
        ({"skip_empty_xacts": "on"}, "option skip_empty_xacts: expected True or False, got 'on'"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.OptionError, match=words):
        wf.ReadOptions.check(**options)
