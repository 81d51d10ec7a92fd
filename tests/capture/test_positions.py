"""What a position says of open transactions and of tables, and what may follow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from .. import handmade_pgoutput as hand
from .streams import AB, TIME, XID, block, committed, insert, position_after, relation, rows_of, streamed_commit


def test_a_transaction_that_is_left_out_is_named() -> None:
    begin = wf.Begin(xid=5, commit_lsn=10**6, commit_time="2026-11-22 10:00:00+00")
    first = wf.Capture([hand.DESCRIBED, *wf.encode([begin], "pgoutput")], "pgoutput")
    first.committed().read_all()
    other = list(wf.encode([replace(begin, xid=99, commit_lsn=10**9)], "pgoutput"))
    with pytest.raises(wf.OrderError, match=r"the beginning of the plain transaction xid \d+, which was open"):
        wf.Capture(other, "pgoutput", after=first.position).committed().read_all()


def test_a_position_of_another_format_is_refused() -> None:
    capture = wf.Capture([], "gaussdb-json")
    capture.committed().read_all()
    with pytest.raises(wf.OptionError, match="expected a position of pgoutput, got one of gaussdb-json"):
        wf.Capture([], "pgoutput", after=capture.position)


@pytest.mark.parametrize(
    "ended",
    [
        [wf.StreamAbort(xid=XID, subxid=XID)],
        committed(90, relation("id", keys=("id",), identity="default")),
    ],
    ids=["rolled back", "sent as a plain transaction"],
)
def test_a_streamed_transaction_that_ended_is_not_open(ended: list[wf.Event]) -> None:
    ended = [replace(event, xid=XID) if isinstance(event, wf.Begin) else event for event in ended]
    first = wf.Capture(wf.encode(block(XID, *rows_of(XID)), "pgoutput"), "pgoutput")
    first.committed().read_all()
    assert [one.xid for one in first.position.open] == [XID]
    second = wf.Capture(list(wf.encode(ended, "pgoutput")), "pgoutput", after=first.position)
    second.committed().read_all()
    assert second.position.open == ()


def test_what_was_open_in_an_older_input_is_not_open_again() -> None:
    first, second = committed(10, *rows_of(None)), committed(20, *rows_of(None))
    for monday in ([*first, *second[:-1]], second[:-1], [*first, *block(XID, *rows_of(XID))]):
        ended = [*monday, second[-1]] if monday[-1] is second[-2] else [*monday, *streamed_commit(20)]
        tuesday = position_after(ended, position_after(monday))
        assert tuesday.open == ()
        again = position_after(monday, tuesday)
        assert again == tuesday
        assert position_after(committed(30, *rows_of(None)), again).delivered.lsn == 30


def test_what_is_open_after_the_position_is_open_in_an_input_that_overlaps() -> None:
    first = committed(10, *rows_of(None))
    for later in (block(XID, *rows_of(XID)), committed(20, *rows_of(None))[:-1]):
        for overlapping in ([*first, *later], later):
            found = position_after(overlapping, position_after(first))
            assert [one.changes for one in found.open] == [1]
            assert position_after(first, found).open == found.open


def test_an_older_input_does_not_bring_back_what_its_tables_were() -> None:
    earlier, later = (relation("id", name, keys=("id",), identity="default") for name in ("name", "title"))
    monday = committed(10, earlier, insert("id", "name", values=("1", "a")))
    tuesday = committed(20, later, insert("id", "title", values=("2", "b")))
    position = position_after(monday, position_after(tuesday, position_after(monday)))
    assert position.relations == (later,)
    wednesday = list(wf.encode([earlier, *committed(30, insert("id", "name", values=("3", "c")))], "pgoutput"))[1:]
    found = wf.Capture(wednesday, "pgoutput", after=position).latest("public.t", keys=["id"])
    assert found.select(["id", "title"]).to_pylist() == [{"id": "3", "title": "c"}]


def test_a_capture_after_a_position_knows_the_keys_and_typmods_of_its_relations() -> None:
    described = relation(*AB, keys=("a",), identity="default")
    first = wf.Capture(
        list(wf.encode(committed(16, described, insert(*AB, values=("1", "x"))), "pgoutput")), "pgoutput"
    )
    first.committed().read_all()
    second = list(wf.encode([described, *committed(32, insert(*AB, values=("2", "x")))], "pgoutput"))[1:]
    assert wf.Capture(second, "pgoutput", after=first.position).tables()["key_columns"].to_pylist() == [["a"]]


def test_the_rest_begins_at_the_first_message_of_what_is_open_among_other_streamed_transactions() -> None:
    """The other one has ended, but its later blocks are among the messages that are still needed."""
    events = [
        *block(XID, *rows_of(XID)),
        *block(6, *rows_of(6)),
        *block(XID, insert("id", values=("2",), xid=XID), is_first=False),
        wf.StreamCommit(xid=XID, commit_lsn=500, end_lsn=508, commit_time=TIME),
    ]
    messages = list(wf.encode(events, "pgoutput"))
    rest = list(
        wf.encode([*block(6), wf.StreamCommit(xid=6, commit_lsn=600, end_lsn=608, commit_time=TIME)], "pgoutput")
    )
    rest[0] = hand.start(6, is_first=False)
    first = wf.Capture(messages, "pgoutput")
    first.committed().read_all()
    needed = min(first.open()["message"].to_pylist())
    second = wf.Capture([*messages[needed:], *rest], "pgoutput", after=first.position)
    assert second.committed().read_all()["xid"].to_pylist() == [6]


def test_a_plain_transaction_that_is_left_out_before_a_streamed_one_is_named() -> None:
    begin = wf.Begin(xid=XID, commit_lsn=500, commit_time=TIME)
    first = wf.Capture(list(wf.encode([begin, *rows_of(None)], "pgoutput")), "pgoutput")
    first.committed().read_all()
    later = [*block(6, *rows_of(6)), wf.StreamCommit(xid=6, commit_lsn=600, end_lsn=608, commit_time=TIME)]
    second = wf.Capture(list(wf.encode(later, "pgoutput")), "pgoutput", after=first.position)
    with pytest.raises(wf.OrderError, match="the plain transaction xid 5"):
        second.committed().read_all()


@pytest.mark.parametrize(
    "verb",
    [
        lambda capture: capture.committed().read_all(),
        lambda capture: capture.changes().read_all(),
        lambda capture: capture.changes(columns=["kind"], tables=["public.t"]).read_all(),
        lambda capture: capture.messages().read_all(),
        lambda capture: capture.tables(),
        lambda capture: capture.typed("public.t"),
        lambda capture: capture.typed("public.t", schema={"id": "text"}).read_all(),
        lambda capture: [*capture.typed_all()],
        lambda capture: capture.latest("public.t"),
        lambda capture: capture.latest("public.t", keys=["id"], schema={"id": "text"}),
        lambda capture: capture.open(),
    ],
)
def test_a_block_that_is_left_out_is_named_where_its_rows_look_damaged(verb: Callable[[wf.Capture], Any]) -> None:
    """A row in a block begins with an xid, which is not expected without the beginning of the block."""
    messages = list(wf.encode([*block(XID, *rows_of(XID), insert("id", values=("2",), xid=XID))], "pgoutput"))
    first = wf.Capture(messages[:3], "pgoutput")
    first.committed().read_all()
    with pytest.raises(wf.DecodeError, match="open at the position: block transaction xid 5; begin the input at"):
        verb(wf.Capture(messages[3:], "pgoutput", after=first.position))


def test_damage_after_the_beginning_of_what_was_open_does_not_name_it() -> None:
    messages = list(wf.encode([*block(XID, *rows_of(XID), insert("id", values=("2",), xid=XID))], "pgoutput"))
    first = wf.Capture(messages[:3], "pgoutput")
    first.committed().read_all()
    capture = wf.Capture([*messages, messages[2][:-1]], "pgoutput", after=first.position)
    for read in (capture.changes().read_all, capture.tables):
        with pytest.raises(wf.DecodeError) as found:
            read()
        assert "open at the position" not in str(found.value)


@pytest.mark.parametrize("engine", ["scan", "declaration"])
def test_a_position_knows_the_relations_of_transactions_that_were_skipped(engine: str) -> None:
    described, row = rows_of(None)
    messages = list(wf.encode([*committed(10, described), *committed(20, row)], "pgoutput"))
    options: dict[str, Any] = {"skip_empty_xacts": True, "engine": engine}
    first = wf.Capture(messages[:3], "pgoutput", **options)
    assert len(first.committed().read_all()) == 0
    assert len(wf.Capture(messages[3:], "pgoutput", **options, after=first.position).committed().read_all()) == 1


@pytest.mark.parametrize("engine", ["scan", "declaration"])
@pytest.mark.parametrize("has_later_block", [False, True])
def test_a_position_knows_what_a_streamed_transaction_described_that_has_ended(
    engine: str, has_later_block: bool
) -> None:
    """It was described differently long ago; the messages that are still needed begin after the new description."""
    old, new = (relation(*columns, keys=("a",), identity="default") for columns in (("a",), AB))
    changed = replace(new, xid=XID)
    other = replace(rows_of(6)[0], relation_id=2, table_name="other")
    row = insert(*AB, values=("1", "x"), xid=XID)
    later = block(XID, row, is_first=False) if has_later_block else []
    events = [old, *block(XID, changed, row), *block(6, other), *later, *streamed_commit(100)]
    rest = list(wf.encode([*committed(200, new, insert(*AB, values=("2", "y")))], "pgoutput"))
    del rest[1]  # the server describes a table once
    messages = list(wf.encode(events, "pgoutput"))
    first = wf.Capture(messages, "pgoutput", engine=engine)
    first.committed().read_all()
    needed = min(first.open()["message"].to_pylist())
    assert needed == 5
    second = wf.Capture([*messages[needed:], *rest], "pgoutput", after=first.position, engine=engine)
    assert [dict(row) for row in second.committed().read_all()["new"].to_pylist()] == [{"a": "2", "b": "y"}]


def test_a_position_is_the_same_after_it_was_saved() -> None:
    """What a streamed transaction described is known outside of it when it has ended."""
    for events in (block(XID, *rows_of(XID)), [*block(XID, *rows_of(XID)), *streamed_commit(100)]):
        position = position_after(events)
        assert position.relations or position.open
        assert CapturePosition.from_json(position.to_json()) == position


@pytest.mark.parametrize("format", ["gaussdb-binary", "gaussdb-json", "gaussdb-text"])
def test_a_position_in_csn_order_goes_on_where_the_lsns_do_not_rise(format: str) -> None:
    def messages(csn: int, lsn: int) -> list[bytes]:
        new = wf.TupleData(("id",), ("1",), ("integer",))
        row = wf.Insert(lsn=lsn - 1, table_schema="s", table_name="t", new=new)
        events = [wf.Begin(lsn=lsn - 2, csn=csn, first_lsn=lsn - 2), row, wf.Commit(lsn=lsn, xid=csn)]
        return list(wf.encode(events, format, options={"sending-batch": 1}))

    def read(csn: int, lsn: int, after: CapturePosition | None) -> tuple[int, CapturePosition]:
        capture = wf.Capture(messages(csn, lsn), format, after=after)
        return capture.committed().read_all().num_rows, capture.position

    _, first = read(5, 100, None)
    count, second = read(6, 97, first)
    assert (count, second.delivered.lsn, second.delivered.csn) == (1, 100, 6)
    assert read(6, 97, second)[0] == 0


@pytest.mark.parametrize("end", ["prepared", "committed"])
def test_what_was_delivered_at_its_prepare_is_not_delivered_at_its_end_with_the_other_option(end: str) -> None:
    facts = {"xid": 5, "lsn": 150, "end_lsn": 151, "gid": "g", "prepare_time": TIME}
    commit = wf.CommitPrepared(xid=5, commit_lsn=200, end_lsn=201, commit_time=TIME, gid="g")
    messages = [*wf.encode([wf.Begin(**facts), *rows_of(None), wf.Prepare(**facts), commit], "pgoutput")]
    cut = len(messages) - 1 if end == "prepared" else len(messages)
    first = wf.Capture(messages[:cut], "pgoutput", two_phase="prepare")
    assert first.committed().read_all().num_rows == 1
    position = first.position
    for _ in range(2):
        again = wf.Capture(messages, "pgoutput", after=position)
        assert (again.committed().read_all().num_rows, again.unknown_prepared) == (0, ())
        position = again.position
    assert (position.delivered.lsn, position.open) == (200, ())
