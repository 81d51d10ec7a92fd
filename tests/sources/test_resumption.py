"""A capture that goes on after a position, where its messages reach back further than to what was open there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import wireformat as wf
from wireformat.sources.resumption import Resumption

TIME = "2026-11-23 10:00:00+00"
TABLE = {"table_schema": "s", "table_name": "t", "relation_id": 1}
ROW = wf.TupleData(("id",), ("1",), ("integer",))
CHANGE = wf.Insert(**TABLE, new=ROW)


def plain(xid: int, lsn: int) -> list[wf.Event]:
    return [
        wf.Begin(xid=xid, commit_lsn=lsn, commit_time=TIME),
        CHANGE,
        wf.Commit(commit_lsn=lsn, end_lsn=lsn + 1, commit_time=TIME),
    ]


def prepared(xid: int, lsn: int, gid: str) -> list[wf.Event]:
    facts = {"xid": xid, "lsn": lsn, "end_lsn": lsn + 1, "gid": gid, "prepare_time": TIME}
    return [wf.Begin(**facts), CHANGE, wf.Prepare(**facts)]


def commit_prepared(xid: int, lsn: int, gid: str) -> wf.Event:
    return wf.CommitPrepared(xid=xid, commit_lsn=lsn, end_lsn=lsn + 1, commit_time=TIME, gid=gid)


def rollback_prepared(xid: int, lsn: int, gid: str) -> wf.Event:
    return wf.RollbackPrepared(xid=xid, lsn=lsn, end_lsn=lsn + 1, prepare_time=TIME, commit_time=TIME, gid=gid)


def block(xid: int, is_first: bool = True) -> list[wf.Event]:
    change = wf.Insert(**TABLE, new=ROW, xid=xid)
    return [wf.StreamStart(xid=xid, first_segment=is_first), change, wf.StreamStop()]


def stream_commit(xid: int, lsn: int) -> wf.Event:
    return wf.StreamCommit(xid=xid, commit_lsn=lsn, end_lsn=lsn + 1, commit_time=TIME)


def stream_prepare(xid: int, lsn: int, gid: str) -> wf.Event:
    return wf.StreamPrepare(xid=xid, lsn=lsn, end_lsn=lsn + 1, prepare_time=TIME, gid=gid)


def messages_of(sessions: Iterable[list[wf.Event]]) -> list[bytes]:
    """The messages of connections, each of which describes the table anew."""
    return [message for events in sessions for message in wf.encode(events, "pgoutput")]


def xids_of(capture: wf.Capture) -> list[int]:
    """The xids of the committed rows."""
    return [xid for xid in capture.committed().read_all()["xid"].to_pylist() if xid is not None]


def going_on(first: list[bytes], later: list[bytes]) -> list[int]:
    """The xids of the rows of a capture that reads `later` after the position at the end of `first`."""
    capture = wf.Capture(first, "pgoutput")
    list(capture.committed())
    return xids_of(wf.Capture(later, "pgoutput", after=capture.position.to_json()))


def test_a_transaction_that_was_rolled_back_may_come_again_before_the_open_one() -> None:
    events = [*prepared(5, 10, "g"), rollback_prepared(5, 20, "g"), *plain(6, 30)]
    messages = messages_of([events])
    assert going_on(messages[:-1], messages) == [6]


def test_a_transaction_that_was_prepared_may_come_again_before_one_that_is_being_prepared() -> None:
    events = [*prepared(5, 10, "g"), rollback_prepared(5, 20, "g"), *prepared(6, 30, "g"), commit_prepared(6, 40, "g")]
    messages = messages_of([events])
    assert going_on(messages[:-2], messages) == [6]


def test_a_transaction_that_is_being_prepared_again_is_found_below_the_position() -> None:
    first = [*prepared(5, 10, "g"), *plain(6, 20)]
    second = [*prepared(5, 10, "g"), *plain(6, 20), *plain(7, 30), commit_prepared(5, 40, "g")]
    messages = messages_of([first, second])
    cut = len(messages_of([first])) + 2  # within the transaction that the second connection sends again
    assert going_on(messages[:cut], messages) == [7, 5]


def test_a_transaction_that_was_handed_out_and_is_open_again_need_not_come_first() -> None:
    """What `open` says is the first message that is needed lies in the earlier connection, which goes on with a later
    transaction."""
    first = [*plain(6, 100), *prepared(7, 200, "g"), *plain(8, 300)[:2]]
    second = [*plain(6, 100), *prepared(7, 200, "g"), *plain(8, 300), commit_prepared(7, 400, "g")]
    messages = messages_of([first, second])
    for cut in range(1, len(messages)):
        capture = wf.Capture(messages[:cut], "pgoutput")
        found = xids_of(capture)
        oldest = min(capture.open()["message"].to_pylist(), default=cut)
        assert found + xids_of(wf.Capture(messages[oldest:], "pgoutput", after=capture.position)) == [6, 8, 7], cut


def test_the_end_of_an_earlier_transaction_with_the_same_gid_may_come_again() -> None:
    events = [*prepared(4, 5, "g"), *block(5), commit_prepared(4, 10, "g"), *prepared(6, 20, "g")]
    rest = [commit_prepared(6, 30, "g"), stream_commit(5, 40)]
    messages = messages_of([[*events, *rest]])
    oldest = messages_of([prepared(4, 5, "g")])  # the first messages, which are not needed any more
    assert going_on(messages[:-2], messages[len(oldest) :]) == [6, 5]


def of_two_connections() -> tuple[list[bytes], int, int]:
    """Messages; the first one of what was open, and the number of those before the position."""
    first = [*block(5), *prepared(6, 10, "g"), *block(5, is_first=False)]
    second = [*block(5), *prepared(6, 10, "g"), *block(5, is_first=False), *plain(7, 20)]
    rest: list[wf.Event] = [commit_prepared(6, 25, "g"), stream_commit(5, 30)]
    messages = messages_of([first, [*second, *rest]])
    return messages, len(messages_of([block(5)])), len(messages_of([first, block(5)]))


def test_a_later_block_may_come_before_the_first_one_is_sent_again() -> None:
    messages, oldest, cut = of_two_connections()
    assert going_on(messages[:cut], messages[oldest:]) == [7, 6, 5, 5]


@pytest.mark.parametrize("end", [stream_commit(5, 30), stream_prepare(5, 30, "h")])
def test_the_first_block_of_a_transaction_that_was_open_must_come(end: wf.Event) -> None:
    messages = messages_of([[*plain(4, 5), *block(5), *block(5, is_first=False), end]])
    oldest, cut = len(messages_of([plain(4, 5)])), len(messages_of([[*plain(4, 5), *block(5)]]))
    capture = wf.Capture(messages[:cut], "pgoutput")
    list(capture.committed())
    position = capture.position
    assert going_on(messages[:cut], messages[oldest:]) == ([5, 5] if isinstance(end, wf.StreamCommit) else [])
    with pytest.raises(wf.OrderError, match=r"the blocks of this transaction before its end(.|\n)*xid 5"):
        wf.Capture(messages[cut:], "pgoutput", after=position).committed().read_all()

    middle = wf.Capture(messages[cut:-1], "pgoutput", after=position)
    list(middle.committed())
    assert [one.xid for one in middle.position.open] == [5], "it is still needed"
    with pytest.raises(wf.OrderError, match="the blocks of this transaction before its end"):
        wf.Capture(messages[-1:], "pgoutput", after=middle.position).committed().read_all()


def of_a_second_attempt() -> tuple[list[bytes], int, int]:
    """Messages, in which 6 was prepared and rolled back, and is sent again; what is needed then begins after its block.

    Returns also the first message that is needed, and the number of those before the position.
    """
    before = block(6)
    first = [*block(7), stream_prepare(6, 10, "g"), stream_prepare(7, 20, "h"), rollback_prepared(6, 30, "g")]
    again = [*block(6), *block(8), stream_prepare(6, 10, "g"), rollback_prepared(6, 30, "g")]
    rest: list[wf.Event] = [commit_prepared(7, 40, "h"), stream_commit(8, 50)]
    messages = messages_of([[*before, *first], [*again, *rest]])
    return messages, len(messages_of([before])), len(messages_of([[*before, *first], block(6)]))


def test_an_earlier_attempt_of_an_open_transaction_may_end_without_its_blocks() -> None:
    messages, oldest, cut = of_a_second_attempt()
    assert going_on(messages[:cut], messages[oldest:]) == [7, 8]


def test_the_second_attempt_must_come() -> None:
    """A message that was skipped may have been its first block."""
    messages, oldest, cut = of_a_second_attempt()
    capture = wf.Capture(messages[:cut], "pgoutput")
    list(capture.committed())
    again = cut - len(messages_of([block(6)]))
    lacking = messages[oldest:again]
    with pytest.raises(wf.OrderError, match=r"the blocks of this transaction before its end(.|\n)*xid 6"):
        wf.Capture(lacking, "pgoutput", after=capture.position).committed().read_all()
    # at once if the transaction that was prepared is committed
    committed = [*lacking, *wf.encode([commit_prepared(6, 60, "g")], "pgoutput"), *messages[again:]]
    with pytest.raises(wf.OrderError, match="the blocks of this transaction before its end"):
        wf.Capture(committed, "pgoutput", after=capture.position).committed().read_all()


def test_a_streamed_transaction_that_was_prepared_and_rolled_back_may_end_again() -> None:
    first = [*block(5), *prepared(6, 10, "g"), stream_prepare(5, 20, "h"), rollback_prepared(5, 30, "h")]
    messages = messages_of([[*first, *plain(7, 40), commit_prepared(6, 50, "g")]])
    oldest, cut = len(messages_of([block(5)])), len(messages_of([first]))
    assert going_on(messages[:cut], messages[oldest:]) == [7, 6]


def test_what_was_handed_out_does_not_come_again_where_an_earlier_transaction_is_sent_again_at_the_end() -> None:
    first = [*plain(5, 10), *plain(6, 20)]
    messages = messages_of([first, [*first, *plain(7, 30)]])
    capture = wf.Capture(messages[:4], "pgoutput")
    list(capture.committed())
    cut = len(messages_of([first])) + 2  # within the transaction that the second connection sends again
    more = wf.Capture(messages[:cut], "pgoutput", after=capture.position)
    assert more.committed().read_all()["xid"].to_pylist() == [6]
    rest = wf.Capture(messages, "pgoutput", after=more.position)
    assert rest.committed().read_all()["xid"].to_pylist() == [7]


def position_of(messages: list[bytes], after: wf.CapturePosition | None = None) -> wf.CapturePosition:
    """The position at the end of a capture."""
    capture = wf.Capture(messages, "pgoutput", after=after)
    list(capture.committed())
    return capture.position


@pytest.mark.parametrize(
    "transaction",
    [
        prepared(5, 10, "g"),
        [*block(5), stream_prepare(5, 10, "g")],
        [*block(5), *block(5, is_first=False), stream_prepare(5, 10, "g")],
    ],
    ids=["plain", "streamed", "blocks"],
)
def test_a_prepared_transaction_that_was_open_must_come_from_its_beginning(transaction: list[wf.Event]) -> None:
    messages = messages_of([[*plain(4, 5), *transaction, *plain(6, 20), commit_prepared(5, 40, "g")]])
    position = position_of(messages[:-1])
    prepare = len(messages_of([[*plain(4, 5), *transaction]])) - 1
    later = len(messages_of([[*plain(4, 5), *block(5)]])) if len(transaction) > 4 else prepare
    assert set(xids_of(wf.Capture(messages, "pgoutput", after=position))) == {5}
    for start in {later, prepare}:
        with pytest.raises(wf.OrderError, match=r"the beginning of the prepared transaction xid 5 gid g"):
            wf.Capture(messages[start:], "pgoutput", after=position).committed().read_all()
        if len(transaction) > 3:  # a STREAM_PREPARE may be of an earlier attempt, so it is not an error
            middle = position_of(messages[start:-1], after=position)
            assert [(one.gid, one.changes) for one in middle.open] == [("g", position.open[0].changes)]
            with pytest.raises(wf.OrderError, match=r"the beginning of the prepared transaction xid 5 gid g"):
                wf.Capture(messages[-1:], "pgoutput", after=middle).committed().read_all()


def test_the_end_of_an_earlier_transaction_with_the_same_gid_is_not_the_one_that_must_come() -> None:
    messages = messages_of([[*prepared(4, 5, "g"), rollback_prepared(4, 10, "g"), *prepared(6, 20, "g")]])
    position = position_of(messages)
    for lacking in (messages[:-1], messages[:5]):  # within the later one, and before it
        more = position_of(lacking, after=position)
        assert ("g", 6, 1) in [(one.gid, one.xid, one.changes) for one in more.open]


def test_an_empty_prepared_transaction_needs_no_beginning() -> None:
    """PostgreSQL 18 sends none."""
    messages = messages_of([[*prepared(5, 10, "g")[2:], *plain(6, 20), commit_prepared(5, 40, "g")]])
    assert going_on(messages[:-1], messages) == []


def test_a_transaction_that_was_open_may_come_again_as_a_streamed_one() -> None:
    first = messages_of([plain(5, 500)[:2]])
    second = messages_of([[*block(5), stream_commit(5, 500)]])
    assert xids_of(wf.Capture([*first, *second], "pgoutput")) == [5]
    assert going_on(first, second) == [5]


def test_transactions_that_are_not_awaited_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A streamed transaction that was rolled back while there was no connection never comes again."""
    awaited = [*block(5), *prepared(6, 10, "g")]
    later = [event for number in range(100) for event in plain(number + 7, number + 20)]
    position = position_of(messages_of([awaited]))
    looked: list[tuple[str, int]] = []
    look = Resumption._look
    monkeypatch.setattr(
        Resumption, "_look", lambda self, row: (looked.append((row["kind"], row["xid"])), look(self, row))
    )
    more = position_of(messages_of([[*later, *awaited]]), after=position)
    assert looked == [("STREAM_START", 5), ("BEGIN", 6), ("PREPARE", 6)]
    assert {one.xid for one in more.open} == {5, 6}


def of_gaussdb(number: int) -> list[wf.Event]:
    """A transaction of which BEGIN has no xid."""
    change = wf.Insert(table_schema="s", table_name="t", new=ROW, lsn=10 * number)
    end = wf.Commit(xid=number, lsn=10 * number + 1)
    return [wf.Begin(csn=number, lsn=10 * number, first_lsn=10 * number, commit_time=TIME), change, end]


@pytest.mark.parametrize("format", ["pgoutput", "gaussdb-binary"])
def test_transactions_that_were_delivered_are_not_looked_at_one_by_one(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [of_gaussdb(xid) if format == "gaussdb-binary" else plain(xid, 10 * xid) for xid in range(1, 401)]
    messages = [*wf.encode([event for events in made for event in events], format)]
    looked: list[str] = []
    look = Resumption._look

    def counting(self: Resumption, row: dict[str, Any]) -> None:
        looked.append(row["kind"])
        look(self, row)

    ended = len(messages) - 201 * 3
    first = wf.Capture(messages[: ended + 1], format)
    assert len(first.committed().read_all()) == 199
    assert len(first.position.open) == 1
    monkeypatch.setattr(Resumption, "_look", counting)
    assert xids_of(wf.Capture(messages, format, after=first.position)) == [*range(200, 401)]
    assert looked == ["BEGIN"]


def lines(*xids: int) -> list[bytes]:
    row = b"table s.t: INSERT: id[integer]:1"
    return [line for xid in xids for line in (b"BEGIN %d" % xid, row, b"COMMIT %d" % xid)]


def test_what_to_do_about_rows_that_cannot_be_recognised() -> None:
    """Also in a lake, which has them already."""
    first = wf.Capture(lines(7, 8)[:-1], "test-decoding")
    assert xids_of(first) == [7]
    with pytest.raises(
        wf.OrderError, match="as a whole, without `after` and into a new lake, and cut it where no trans"
    ):
        xids_of(wf.Capture(lines(8), "test-decoding", after=first.position))


def test_an_earlier_transaction_is_not_called_a_later_one_and_the_advice_comes_once() -> None:
    """Where BEGIN has no LSN, it is only another one."""
    ended = [b"COMMIT 7 CSN 5" if line == b"COMMIT 7" else line for line in lines(7, 8)]
    first = wf.Capture(ended[:-1], "opengauss-test-decoding")
    xids_of(first)
    with pytest.raises(wf.OrderError, match="got the BEGIN of another one") as refused:
        xids_of(wf.Capture(ended, "opengauss-test-decoding", after=first.position))
    assert str(refused.value).count("begin the input at") == 1
