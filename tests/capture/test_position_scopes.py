"""What the blocks of a streamed transaction describe is meant there alone until it ends, also after a position."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition, SlotPosition

from ..streamed_histories import FORMAT, TIME, columns_of_rows, histories, insert, oldest_needed, relation

ENGINES = ["scan", "declaration"]
AT_PREPARE: dict[str, Any] = {"lsn": 200, "end_lsn": 208, "prepare_time": TIME, "xid": 5, "gid": "g"}

ENDS: dict[str, tuple[list[wf.Event], str]] = {
    "commit": ([wf.StreamCommit(xid=5, commit_lsn=200, end_lsn=208, commit_time=TIME)], "a"),
    "abort": ([wf.StreamAbort(xid=5, subxid=5)], "b"),
    "abort of a part": (
        [
            wf.StreamAbort(xid=5, subxid=55),
            wf.StreamCommit(xid=5, commit_lsn=200, end_lsn=208, commit_time=TIME),
        ],
        "a",
    ),
    "commit prepared": (
        [
            wf.StreamPrepare(**AT_PREPARE),
            wf.CommitPrepared(xid=5, gid="g", commit_lsn=220, end_lsn=228, commit_time=TIME),
        ],
        "a",
    ),
    "rollback prepared": (
        [
            wf.StreamPrepare(**AT_PREPARE),
            wf.RollbackPrepared(xid=5, gid="g", lsn=208, end_lsn=228, prepare_time=TIME, commit_time=TIME),
        ],
        "a",
    ),
    "later blocks": (
        [
            wf.StreamStart(xid=5, first_segment=False),
            insert(1, "a", "5", 5),
            relation(1, "c", 55),
            insert(1, "c", "6", 55),
            wf.StreamStop(),
            wf.StreamCommit(xid=5, commit_lsn=200, end_lsn=208, commit_time=TIME),
        ],
        "c",
    ),
}
"""How transaction 5 ends, and the column that its table has then."""


def plain(xid: int, lsn: int, *events: wf.Event) -> list[wf.Event]:
    begin = wf.Begin(xid=xid, commit_lsn=lsn, commit_time=TIME)
    return [begin, *events, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]


def parts(end: str) -> tuple[list[bytes], int, int]:
    """Returns messages, the oldest one that is needed at a position, and the first one after the position.

    A block of 5 describes the table, then a block of 6 follows, which stays open.
    """
    ends, column = ENDS[end]
    before = [
        wf.StreamStart(xid=5, first_segment=True),
        relation(1, "a", 5),
        insert(1, "a", "1", 5),
        wf.StreamStop(),
    ]
    needed = [
        wf.StreamStart(xid=6, first_segment=True),
        wf.StreamStop(),
        *plain(7, 100, relation(1, "b"), insert(1, "b", "2")),
        *ends,
        *plain(8, 300, insert(1, column, "3")),
    ]
    after = [
        *plain(9, 400, insert(1, column, "4")),
        wf.StreamCommit(xid=6, commit_lsn=500, end_lsn=508, commit_time=TIME),
    ]
    messages = [*map(bytes, wf.encode([*before, *needed, *after], FORMAT))]
    return messages, len(before), len(before) + len(needed)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("end", ENDS)
def test_rows_after_the_end_of_a_transaction_that_had_begun_before_the_oldest_needed_message(
    end: str, engine: str
) -> None:
    messages, needed, cut = parts(end)
    whole = columns_of_rows(wf.Capture(messages, FORMAT, engine=engine).committed().read_all())
    first = wf.Capture(messages[:cut], FORMAT, engine=engine)
    handed_out = columns_of_rows(first.committed().read_all())
    assert oldest_needed(messages, 0, cut, None) == needed
    position = first.position.to_json()
    second = wf.Capture(messages[needed:], FORMAT, engine=engine, after=position)
    assert handed_out + columns_of_rows(second.committed().read_all()) == whole
    assert json.loads(position)["version"] == 5
    assert json.loads(second.position.to_json())["version"] == 1  # no streamed transaction is alive any more


def rolled_back() -> tuple[list[bytes], int, int]:
    """Returns messages, the first one of a later block of a transaction that is rolled back, and one after its end."""
    before = [
        *plain(7, 100, relation(1, "b"), insert(1, "b", "1")),
        wf.StreamStart(xid=5, first_segment=True),
        relation(2, "a", 5),
        insert(2, "a", "2", 5),
        wf.StreamStop(),
        *plain(8, 200, insert(1, "b", "3")),
    ]
    later = [
        wf.StreamStart(xid=5, first_segment=False),
        insert(2, "a", "4", 5),
        wf.StreamStop(),
        wf.StreamAbort(xid=5, subxid=5),
        *plain(9, 300, insert(1, "b", "5")),
    ]
    messages = [*map(bytes, wf.encode([*before, *later, *plain(10, 400, insert(1, "b", "6"))], FORMAT))]
    return messages, len(before), len(before) + len(later)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_input_that_begins_among_the_blocks_of_a_transaction_that_was_rolled_back(engine: str) -> None:
    messages, later, cut = rolled_back()
    first = wf.Capture(messages[:cut], FORMAT, engine=engine)
    assert len(first.committed().read_all()) == 3
    second = wf.Capture(messages[later:], FORMAT, engine=engine, after=first.position)
    assert columns_of_rows(second.committed().read_all()) == [("b", "6")]


@pytest.mark.parametrize("engine", ENGINES)
@given(messages=histories(), data=st.data())
def test_pieces_of_a_history(engine: str, messages: list[bytes], data: st.DataObject) -> None:
    """Each piece begins with the oldest message that is needed; together they have the rows of the whole."""
    whole = columns_of_rows(wf.Capture(messages, FORMAT, engine=engine).committed().read_all())
    cuts = data.draw(st.lists(st.integers(0, len(messages)), min_size=1, max_size=4), "cuts")
    found, begin = [], 0
    after: CapturePosition | None = None
    for end in [*sorted(cuts), len(messages)]:
        capture = wf.Capture(messages[begin:end], FORMAT, engine=engine, after=after)
        found += columns_of_rows(capture.committed().read_all())
        begin, after = oldest_needed(messages, begin, end, after), capture.position
        assert after is not None
        assert CapturePosition.from_json(after.to_json()) == after
    assert found == whole


@pytest.mark.parametrize("slot", [None, SlotPosition("1", "s", 9), SlotPosition("1", "s", 9, 2)])
def test_a_position_without_streamed_transactions_is_written_as_before(slot: SlotPosition | None) -> None:
    described = wf.Capture([*wf.encode(plain(7, 100, relation(1, "b")), FORMAT)], FORMAT)
    described.committed().read_all()
    assert len(described.position.relations) == 1
    fields = json.loads(described.position._replace(slot=slot).to_json())
    assert fields["version"] == (1 if slot is None else slot.version)
    assert "xid" not in fields["relations"]
