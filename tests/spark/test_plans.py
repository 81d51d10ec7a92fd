"""The plan of a stream on Spark, without Spark: what an error says of a position, and the relations of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from spark_udfs.chunks.plan import plan_stream
from wireformat.stream.capture_position import CapturePosition

from ..capture.streams import TIME, block, committed, insert, relation
from ..chunks.reading import ChunkedReading, divided
from ..describing_server import HISTORIES, DescribingServer, History

FORMAT = "pgoutput"


def test_a_stream_that_begins_too_late_names_what_was_open() -> None:
    """As on one machine."""
    row = insert("a", values=("1",))
    before = committed(50, relation("a", keys=("a",), identity="default"), row)
    begun = [*before, wf.Begin(xid=5, commit_lsn=100, commit_time=TIME), row]
    later = committed(200, row)
    messages = [*wf.encode([*begun, *later], FORMAT)]
    first = wf.Capture(messages[: len(begun)], FORMAT)
    first.committed().read_all()
    rest = messages[len(begun) :]
    with pytest.raises(wf.OrderError) as whole:
        wf.Capture(rest, FORMAT, after=first.position).committed().read_all()
    (summary,) = ChunkedReading([rest], FORMAT, after=first.position).summaries
    with pytest.raises(wf.OrderError) as found:
        plan_stream({0: summary}, first.position, "commit", True).check()
    assert found.value.hint == whole.value.hint
    assert "open at the position: plain transaction xid 5" in str(found.value)


def rows_of_tables(chance: Random, xid: int | None) -> list[wf.Event]:
    found: list[wf.Event] = []
    for _ in range(chance.randint(1, 2)):
        number, columns = chance.randint(1, 3), ("a", "b", "c")[: chance.randint(1, 3)]
        described = relation(*columns, keys=("a",), identity="default", xid=xid)
        row = insert(*columns, values=("1",) * len(columns), xid=xid)
        found.append(replace(described, relation_id=number, table_name=f"t{number}"))
        found.append(replace(row, table_name=f"t{number}"))
    return found


def streamed_again(chance: Random) -> list[wf.Event]:
    """Streamed transactions, some of which are sent again after the connection broke, and plain ones."""
    events: list[wf.Event] = []
    blocks: dict[int, list[wf.Event]] = {}
    for at in range(1, chance.randint(4, 10)):
        kind, lsn = chance.choice(["first", "first", "more", "commit", "abort", "plain", "break"]), 100 * at
        if kind == "first":
            blocks[at] = block(at, *rows_of_tables(chance, at))
            events += blocks[at]
        elif kind == "plain":
            events += committed(lsn, *rows_of_tables(chance, None))
        elif blocks:
            xid = chance.choice([*blocks])
            more = block(xid, *rows_of_tables(chance, xid), is_first=False)
            if kind == "more":
                blocks[xid] += more
                events += more
            elif kind == "break":
                events += [*more[:-1], *(event for one in blocks.values() for event in one)]
            else:
                del blocks[xid]
                commit = wf.StreamCommit(xid=xid, commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)
                events.append(commit if kind == "commit" else wf.StreamAbort(xid=xid, subxid=xid))
    return events


def position_of_chunks(chunks: Sequence[Sequence[bytes]], after: CapturePosition | None) -> CapturePosition:
    reading = ChunkedReading(chunks, FORMAT, after=after)
    plan = plan_stream(dict(enumerate(reading.summaries)), after, "commit", True)
    relations = None
    if plan.oldest_open is not None:
        capture = reading.capture(plan.oldest_open)
        capture.committed(tables=()).read_all()
        relations = capture.position.relations
    return plan.position(FORMAT, reading.relation_changes, relations)


@pytest.mark.parametrize("seed", range(40))
def test_relations_of_a_position_do_not_depend_on_the_chunks(seed: int) -> None:
    """Also what a streamed transaction described that is sent again in a later chunk, or ends there."""
    chance = Random(seed)
    messages = [bytes(message) for message in wf.encode(streamed_again(chance), FORMAT)]
    after = None
    for part in (messages[: len(messages) // 2], messages):
        one = wf.Capture(part, FORMAT, after=after)
        one.committed().read_all()
        cuts = sorted({0, len(part), *(chance.randint(0, len(part)) for _ in range(3))})
        found = position_of_chunks([part[start:stop] for start, stop in pairwise(cuts)], after)
        assert found.relations == one.position.relations
        assert {*found.open} == {*one.position.open}
        after = one.position


@given(HISTORIES, st.lists(st.integers(0, 100), min_size=2, max_size=4))
def test_positions_of_a_server_do_not_depend_on_the_chunks(history: History, cuts: list[int]) -> None:
    server = DescribingServer(history)
    messages, after, start = server.messages, None, 0
    for end in (min(max(cuts), len(messages)), len(messages)):
        one = wf.Capture(messages[start:end], FORMAT, after=after)
        one.committed().read_all()
        found = position_of_chunks(divided(messages[start:end], cuts[1:]), after)
        assert found._replace(open=one.position.open) == one.position
        assert {*found.open} == {*one.position.open}
        after, start = one.position, server.begins(end)
