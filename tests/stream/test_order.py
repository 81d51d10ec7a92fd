"""The order of records: the table, against regular expressions that say the same in another way."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat import limits
from wireformat.events import RecordFacts
from wireformat.formats.registry import ROWS, find_row
from wireformat.formats.row import ORDERS
from wireformat.stream import order as order_module
from wireformat.stream.order import ALL, NEEDS, STATES, TABLE, Order

from ..engines import ENGINES, FORMAT, agree, ask, read
from ..golden_cases import CASES, Case, answer_of
from ..handmade import BEGIN, DELETE, HEARTBEAT, INSERT, UPDATE, commit, message
from ..servers.captures import capture_names, read_capture

PAGE = Path(__file__).parents[2] / "docs" / "order.md"

LETTERS: dict[str, RecordFacts] = {
    "B": RecordFacts("BEGIN", 1),
    "b": RecordFacts("BEGIN", 1, "g"),
    "I": RecordFacts("INSERT"),
    "U": RecordFacts("UPDATE", 5),
    "L": RecordFacts("DELETE"),
    "T": RecordFacts("TRUNCATE"),
    "D": RecordFacts("DDL"),
    "M": RecordFacts("MESSAGE", transactional=True),
    "m": RecordFacts("MESSAGE", transactional=False),
    "C": RecordFacts("COMMIT", 1),
    "A": RecordFacts("ABORT"),
    "P": RecordFacts("PREPARE", 1, "g"),
    "K": RecordFacts("COMMIT_PREPARED", 1, "g"),
    "R": RecordFacts("ROLLBACK_PREPARED", 1, "g"),
    "S": RecordFacts("STREAM_START", 1),
    "E": RecordFacts("STREAM_STOP"),
    "c": RecordFacts("STREAM_CHANGE", 1),
    "a": RecordFacts("STREAM_ABORT", 1, None, 1),
    "s": RecordFacts("STREAM_ABORT", 1, None, 2),
    "y": RecordFacts("STREAM_COMMIT", 1),
    "z": RecordFacts("STREAM_PREPARE", 1, "g"),
    "r": RecordFacts("RELATION"),
    "t": RecordFacts("TYPE"),
    "O": RecordFacts("ORIGIN"),
    "h": RecordFacts("HEARTBEAT"),
    "u": RecordFacts("UNKNOWN"),
    "x": RecordFacts("CORRUPT"),
}


def _postgresql(transaction: str, open: str, block: str, open_block: str, loose: str, alone: str = "(?!)") -> str:
    outside = f"(?:{transaction}|{loose})"
    streamed = f"{block}(?:{outside}|{block})*"
    return f"(?:{outside}|{alone}|{streamed}[ayz])*(?:{streamed})?(?:{open}|{open_block})?"


_PARALLEL = "(?:[Bb][IUL]*C)*(?:[Bb][IUL]*)?"
_SERIAL = "(?:[Bb][IULTD]*C)*(?:[Bb][IULTD]*)?|[IULTDCAP]*"
LANGUAGES = {
    "parallel": _PARALLEL,
    "serial": _SERIAL,
    "text": _postgresql("[Bb][IULTMm]*[CP]", "[Bb][IULTMm]*", "S[cTMm]*E", "S[cTMm]*", "[MmPKRs]", "a"),
    "pgoutput": _postgresql(
        "(?:BO?[IULTMmrtD]*C|bO?[IULTMmrtD]*P)", "[Bb]O?[IULTMmrtD]*", "SO?[IULTMmrt]*E", "SO?[IULTMmrt]*", "[mPKRs]"
    ),
}
"""Streams of one transaction id, by letter, without what may come anywhere."""


def may_come(format: str, letters: str) -> bool:
    return re.fullmatch(LANGUAGES[find_row(format).order], re.sub("[hux]", "", letters)) is not None


def refused(format: str, records: list[RecordFacts]) -> int | None:
    """The place of the first record that the table does not allow."""
    order = Order(format)
    for place, record in enumerate(records):
        try:
            if not order.passes(record.kind):
                order.take(record, message=place, number=0, lsn=None)
        except wf.OrderError as error:
            return error.message
    return None


@pytest.mark.parametrize("format", ROWS)
def test_every_record_in_every_state(format: str) -> None:
    """All streams of five records at the most, each cut where it goes wrong."""
    visited = set()
    streams = [""]
    for _ in range(5):
        longer = []
        for stream in streams:
            order = Order(format)
            for letter in stream:
                order.take(LETTERS[letter], message=0, number=0, lsn=None)
            for letter, record in LETTERS.items():
                visited.add((order._state, record.kind))
                passes = copy.copy(order).passes(record.kind)
                tried = copy.copy(order)
                tried.streamed = dict(order.streamed)
                try:
                    tried.take(record, message=0, number=0, lsn=None)
                    is_allowed = True
                except wf.OrderError:
                    is_allowed = False
                assert is_allowed == may_come(format, stream + letter), stream + letter
                assert is_allowed or not passes
                if passes:
                    assert (tried._state, tried.open, tried.streamed) == (order._state, order.open, order.streamed)
                if is_allowed and letter not in "huxULD":
                    longer.append(stream + letter)
        streams = longer if len(longer) < 3000 else longer[:: len(longer) // 3000 + 1]
    used = {
        state
        for step in TABLE
        if find_row(format).order in step.families
        for state in step.states
        if step.states != STATES
    }
    assert visited == {(state, record.kind) for state in used for record in LETTERS.values()}


@given(st.sampled_from([*ROWS]), st.data())
def test_any_stream(format: str, data: st.DataObject) -> None:
    likely = {"pgoutput": "BbIrOCPKSEaysmh", "test-decoding": "BICPKSEcTMaysh"}.get(format, "BICTDh")
    letters = data.draw(
        st.text(st.sampled_from(likely), max_size=14) | st.text(st.sampled_from([*LETTERS]), max_size=8)
    )
    place = refused(format, [LETTERS[letter] for letter in letters])
    whole = next((end for end in range(len(letters)) if not may_come(format, letters[: end + 1])), None)
    assert place == whole


MARKS = ["BEGIN", "COMMIT", "PREPARE", "COMMIT_PREPARED", "ROLLBACK_PREPARED"]
MARKS += [f"STREAM_{word}" for word in ("START", "STOP", "ABORT", "COMMIT", "PREPARE")]


@st.composite
def postgresql_streams(draw: Any, format: str) -> list[RecordFacts]:
    """A valid stream: plain, prepared and streamed transactions with several ids, some still open at the end."""
    is_text = format == "test-decoding"
    stream: list[RecordFacts] = []
    alive: dict[int, int] = {}
    for xid in range(1, draw(st.integers(1, 9))):
        action = draw(st.sampled_from(["plain", "prepared", "block", "block", "end", "sub", "loose"]))
        row = RecordFacts("INSERT")
        if action == "plain":
            stream += [
                RecordFacts("BEGIN", xid),
                *[row] * draw(st.integers(0, 2)),
                RecordFacts("COMMIT", None if not is_text else xid),
            ]
        elif action == "prepared":
            gid = f"g{xid}"
            stream += [RecordFacts("BEGIN", xid, None if is_text else gid), row, RecordFacts("PREPARE", xid, gid)]
            stream += draw(
                st.sampled_from(
                    [[], [RecordFacts("COMMIT_PREPARED", xid, gid)], [RecordFacts("ROLLBACK_PREPARED", xid, gid)]]
                )
            )
        elif action == "block":
            top = draw(st.sampled_from([xid, *alive]))
            first = None if is_text else top not in alive
            alive[top] = alive.get(top, 0) + 1
            content = RecordFacts("STREAM_CHANGE", top) if is_text else RecordFacts("INSERT", 10 * top)
            stop = RecordFacts("STREAM_STOP", top if is_text else None)
            stream += [RecordFacts("STREAM_START", top, None, None, first), *[content] * draw(st.integers(0, 2)), stop]
        elif action == "loose":
            stream.append(
                draw(st.sampled_from([RecordFacts("MESSAGE", transactional=False), RecordFacts("HEARTBEAT")]))
            )
        elif alive:
            top = draw(st.sampled_from(sorted(alive)))
            if action == "sub":
                facts = (10 * top, None, None) if is_text else (top, None, 10 * top)
                stream.append(RecordFacts("STREAM_ABORT", *facts))
            else:
                del alive[top]
                whole = RecordFacts("STREAM_ABORT", top, None, None if is_text else top)
                ends = [RecordFacts("STREAM_COMMIT", top), RecordFacts("STREAM_PREPARE", top, f"g{top}"), whole]
                stream.append(draw(st.sampled_from(ends)))
    return stream


def is_valid(format: str, stream: list[RecordFacts]) -> bool:
    """Another way to say it: brackets by a regular expression with back references, then each transaction by itself."""
    letters = {facts.kind: letter for letter, facts in reversed(LETTERS.items())}
    text = "".join(
        f"{letters[facts.kind].upper() if facts.kind == 'BEGIN' else letters[facts.kind]}{facts.xid or 0}"
        f"{'g' + facts.gid if facts.gid else ''},"
        for facts in stream
        if facts.kind != "HEARTBEAT"
    )
    text = re.sub(r"(^|,)[ms]\d*,", r"\1m0,", text).replace("M0,", "m0,")
    inner = r"(?:I\d+,|m0,)*"
    if format == "pgoutput":
        one = rf"(?:B(?P<p>\d+),{inner}C(?:(?P=p)|0),|B(?P<q>\d+)g(?P<g>g\d+),{inner}P(?P=q)g(?P=g),|S\d+,{inner}E0,)"
        tail = rf"(?:[BS]\d+(?:gg\d+)?,{inner})?"
    else:
        one = rf"(?:B(?P<p>\d+),{inner}[CP](?P=p)(?:gg\d+)?,|S(?P<q>\d+),(?:c(?P=q),|m0,)*E(?P=q),)"
        tail = rf"(?:B\d+,{inner}|S(?P<v>\d+),(?:c(?P=v),|m0,)*)?"
    loose = r"(?:m0,|[PKR]\d+gg\d+,|[asyz]\d+(?:gg\d+)?,)"
    if re.fullmatch(f"(?:{one}|{loose})*{tail}", text) is None:
        return False
    for place, facts in enumerate(stream):
        if not facts.kind.startswith("STREAM_") or facts.kind in ("STREAM_STOP", "STREAM_CHANGE"):
            continue
        if facts.kind == "STREAM_ABORT" and (format == "test-decoding" or facts.subxid not in (None, facts.xid)):
            continue  # PostgreSQL 18 says it of subtransactions that had no block
        if not started(stream[:place], None) and facts.kind != "STREAM_START":
            return False
        is_known = started(stream[:place], facts.xid)
        if facts.kind == "STREAM_START":
            if facts.first_segment is not None and facts.first_segment == is_known:
                return False
        elif not is_known:
            return False
    return True


def started(stream: list[RecordFacts], xid: int | None) -> bool:
    """Whether this transaction, or any, has blocks and has not ended."""
    if xid is None:
        return any(started(stream, facts.xid) for facts in stream if facts.kind == "STREAM_START" and facts.xid)
    is_started = False
    for facts in stream:
        if facts.xid == xid and facts.kind.startswith("STREAM_"):
            is_end = facts.kind in ("STREAM_COMMIT", "STREAM_PREPARE")
            is_end |= facts.kind == "STREAM_ABORT" and facts.subxid in (None, xid)
            is_started = facts.kind == "STREAM_START" or (is_started and not is_end)
    return is_started


@pytest.mark.parametrize("format", ["test-decoding", "pgoutput"])
@given(data=st.data())
def test_a_record_lost_doubled_or_swapped(format: str, data: st.DataObject) -> None:
    stream = data.draw(postgresql_streams(format))
    assert is_valid(format, stream)
    assert refused(format, stream) is None
    for place in range(len(stream)):
        lost = stream[:place] + stream[place + 1 :]
        doubled = stream[: place + 1] + stream[place:]
        swapped = stream[:place] + stream[place : place + 2][::-1] + stream[place + 2 :]
        for changed in (lost, doubled, swapped):
            assert (refused(format, changed) is None) == is_valid(format, changed), changed


@pytest.mark.parametrize("name", ["18-pgoutput-1", "18-pgoutput-3-streaming"])
def test_what_is_lost_of_a_real_stream_is_noticed(name: str) -> None:
    """Each record that opens or ends something, lost or doubled, in a real stream; the other way agrees."""
    stream = [RecordFacts.of(event) for event in wf.decode(read_capture(name).messages, "pgoutput", kinds=MARKS)]
    gids = sorted({facts.gid for facts in stream if facts.gid is not None})
    stream = [facts if facts.gid is None else facts._replace(gid=f"g{gids.index(facts.gid)}") for facts in stream]
    assert refused("pgoutput", stream) is None
    assert len(stream) > 50
    assert is_valid("pgoutput", stream)
    for place in range(0, len(stream), 1 + len(stream) // 60):
        for changed in (stream[:place] + stream[place + 1 :], stream[: place + 1] + stream[place:]):
            assert (refused("pgoutput", changed) is None) == is_valid("pgoutput", changed), place


def test_every_format_is_in_the_table() -> None:
    assert {row.order for row in ROWS.values()} == set(ORDERS) == {name for step in TABLE for name in step.families}


def test_no_record_has_two_steps() -> None:
    for family in ORDERS:
        steps = [step for step in TABLE if family in step.families]
        pairs = [(state, kind) for step in steps for state in step.states for kind in step.kinds]
        assert len(pairs) == len(set(pairs))


def markdown() -> Iterator[str]:
    """The table as lines of Markdown."""
    yield "| formats | where | record | then | only |"
    yield "|---|---|---|---|---|"
    for step in TABLE:
        names = (row.name for row in ROWS.values() if row.order in step.families)
        formats = "all" if step.families == ALL else ", ".join(names)
        states = "anywhere" if step.states == STATES else ", ".join(step.states)
        needs = "; ".join(NEEDS[need].text for need in step.needs)
        yield f"| {formats} | {states} | {', '.join(step.kinds)} | {step.next or 'the same'} | {needs} |"


def test_the_page_has_the_table() -> None:
    assert "\n".join(markdown()) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_captures_are_in_order(case: Case) -> None:
    for engine in ENGINES if case.payload_bytes < 200_000 else ENGINES[:1]:
        loose = answer_of(case, engine)
        strict = ask(case.messages, engine, format=case.format, mode="PERMISSIVE", strict=True, **case.reading)
        assert strict.events == loose.events
        assert strict.table is not None
        assert strict.table.equals(loose.table)


@pytest.mark.parametrize("name", [name for name in capture_names("pgoutput") if not name.endswith("binary")])
def test_captures_of_postgresql_are_in_order(name: str) -> None:
    """Blocks that alternate, transactions and subtransactions aborted, prepared ones, origins, messages."""
    messages = read_capture(name).messages
    count = len(list(wf.decode(messages, "pgoutput", strict=True)))
    assert count > 2000
    if name == "18-pgoutput-4-two-phase":
        table = wf.arrow.changes(messages, "pgoutput", strict=True, columns=["record"])
        assert len(table) >= count


def test_the_order_of_real_streams_is_noticed() -> None:
    """Of a capture without one of its BEGINs or COMMITs, or with one twice."""
    case = next(case for case in CASES if case.name == "b_opt_x1t1o1e0_single")
    ends = [record["msg"] for record in case.truth if record["kind"] in ("BEGIN", "COMMIT")]
    assert len(ends) > 20
    for place in ends[1:-1:5]:
        for changed in ([place] * 0, [place] * 2):
            sent = [*case.messages[:place], *(case.messages[index] for index in changed), *case.messages[place + 1 :]]
            with pytest.raises(wf.OrderError):
                read(sent, strict=True)


COMMIT = commit(b"")
"""One that does not say its xid."""

IN_ORDER = message(BEGIN, INSERT, COMMIT)


@pytest.mark.parametrize("engine", ENGINES)
def test_events_before_the_error_come_first(engine: str) -> None:
    events = wf.decode([IN_ORDER, message(BEGIN, INSERT, BEGIN, COMMIT)], FORMAT, engine=engine, strict=True)
    assert [next(events).kind for _ in range(5)] == ["BEGIN", "INSERT", "COMMIT", "BEGIN", "INSERT"]
    with pytest.raises(wf.OrderError) as raised:
        next(events)
    error = raised.value
    assert (error.message, error.record, error.state, error.format) == (1, 2, "in a transaction", FORMAT)
    assert error.open == "BEGIN xid 78108 since message 1"
    assert error.got == "BEGIN xid 78108"
    assert error.expected.split(" or ") == ["HEARTBEAT", "UNKNOWN", "CORRUPT", "INSERT", "UPDATE", "DELETE", "COMMIT"]
    with pytest.raises(wf.OrderError) as of_rows:
        wf.arrow.changes([IN_ORDER, message(BEGIN, INSERT, BEGIN, COMMIT)], FORMAT, engine=engine, strict=True)
    assert str(of_rows.value) == str(error)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_decoder_keeps_its_place(engine: str) -> None:
    decoder = wf.Decoder(FORMAT, engine=engine, strict=True)
    decoder.feed(message(BEGIN, INSERT))
    decoder.feed(HEARTBEAT + b"F" + message(COMMIT))
    assert [event.kind for event in decoder.events()] == ["BEGIN", "INSERT", "HEARTBEAT", "COMMIT"]
    with pytest.raises(wf.OrderError, match=r"between transactions: .* got UPDATE .*message 3, record 0,"):
        decoder.feed(message(UPDATE))
    decoder.feed(message(BEGIN, DELETE))
    assert [event.kind for event in decoder.events()] == ["BEGIN", "DELETE"]


def test_a_part_of_a_stream() -> None:
    """It may end anywhere, and begin between transactions."""
    agree([message(BEGIN, INSERT)], strict=True)
    agree([], strict=True)
    with pytest.raises(wf.OrderError, match=r"start: expected .* got INSERT"):
        read([message(INSERT, COMMIT)], strict=True)
    rows = [wf.Insert(table_schema="s", table_name="t"), wf.Commit(xid=1)]
    text = list(wf.encode([*rows, wf.Begin(xid=2)], "opengauss-test-decoding"))
    assert len(read(text[:2], format="opengauss-test-decoding", strict=True)) == 2
    with pytest.raises(wf.OrderError, match=r"in an area of the log: .* got BEGIN xid 2"):
        read(text, format="opengauss-test-decoding", strict=True)


def test_filters_do_not_disturb() -> None:
    sent = [message(BEGIN, INSERT, COMMIT), message(BEGIN, COMMIT)]
    kinds = [event.kind for event in agree(sent, strict=True, kinds=["COMMIT"]).events]
    assert kinds == ["COMMIT", "COMMIT"]
    assert agree(sent, strict=True, kinds=["INSERT"], tables=["other.*"]).events == []
    assert len(agree(sent, strict=True, skip_empty_xacts=True, exclude_users=["a"]).events) == 3
    assert wf.arrow.changes(sent, FORMAT, strict=True, columns=["lsn"]).column_names == ["lsn"]
    for batch in wf.arrow.batches(sent, FORMAT, strict=True, columns=["new"]):
        assert batch.schema.names == ["new"]
    with pytest.raises(wf.OrderError):
        read([message(BEGIN, BEGIN)], strict=True, kinds=["INSERT"])


def test_bad_input_changes_nothing() -> None:
    bad = message(commit(b"?"))
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        assert agree([message(BEGIN), bad, message(COMMIT)], mode=mode, strict=True).table is not None
        for engine in ENGINES:
            with pytest.raises(wf.OrderError):
                read([message(BEGIN), bad, message(BEGIN)], engine, mode=mode, strict=True)
    assert ask([message(BEGIN), bad], "scan", strict=True).error is not None


POSTGRESQL_18: dict[str, list[RecordFacts]] = {
    "a subtransaction of one without blocks is undone": [
        *(
            RecordFacts("STREAM_ABORT", 754, None, 755),
            RecordFacts("BEGIN", 756),
            RecordFacts("INSERT"),
            RecordFacts("COMMIT"),
        ),
        *(
            RecordFacts("STREAM_ABORT", 757, None, 758),
            RecordFacts("BEGIN", 757),
            RecordFacts("INSERT"),
            RecordFacts("COMMIT"),
        ),
    ],
    "a transaction is prepared that only locked rows": [
        *(
            RecordFacts("PREPARE", 756, "g"),
            RecordFacts("COMMIT_PREPARED", 756, "g"),
            RecordFacts("BEGIN", 757),
            RecordFacts("COMMIT"),
        ),
        *(RecordFacts("PREPARE", 758, "g"), RecordFacts("ROLLBACK_PREPARED", 758, "g")),
    ],
}


@pytest.mark.parametrize("format", ["test-decoding", "pgoutput"])
@pytest.mark.parametrize("name", POSTGRESQL_18)
def test_what_postgresql_18_sends(name: str, format: str) -> None:
    assert refused(format, POSTGRESQL_18[name]) is None


def test_streams_without_xids() -> None:
    """test-decoding with include-xids off: how many transactions are in progress is not known, only that there are."""
    start, stop, end = RecordFacts("STREAM_START"), RecordFacts("STREAM_STOP"), RecordFacts("STREAM_COMMIT")
    assert refused("test-decoding", [start, stop, end, start, stop, end, end, RecordFacts("STREAM_ABORT")]) is None
    assert refused("test-decoding", [end]) == 0


def test_transactions_in_progress_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_module, "STREAMED_TRANSACTIONS", 2)
    block = [(RecordFacts("STREAM_START", xid), RecordFacts("STREAM_STOP")) for xid in (1, 2, 1, 3)]
    with pytest.raises(wf.LimitExceeded, match=r"limits.STREAMED_TRANSACTIONS is 2, message 6 begins one more"):
        refused("pgoutput", [facts for pair in block for facts in pair])
    assert limits.STREAMED_TRANSACTIONS == 1 << 18
