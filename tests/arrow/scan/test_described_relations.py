"""Relation messages that the scan recognises by their bytes, among rows that it leaves to the declaration."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan import message_batches
from wireformat.arrow.scan.kernels import pgoutput_relations
from wireformat.arrow.scan.kernels.pgoutput_relations import ASKED_BEFORE, KNOWN_PER_ASK, SLOTS
from wireformat.arrow.scan.kernels.pgoutput_walk import (
    PROBES,
)
from wireformat.arrow.scan.relations import relation_table

from ... import handmade_pgoutput as hand
from ...engines import agree
from ...handmade import u32, u64
from .small_limits import shrink

TABLES = range(3)
VARIANTS = [
    hand.relation(hand.column(name, 23, is_key=index == 0), oid=70_000 + table, table=b"t%d" % table)
    for table in TABLES
    for index, name in enumerate((b"old", b"new", 'q"é'.encode()))
]
ROWS = [
    hand.change(b"I", hand.image(b"N", cell), oid=70_000 + table)
    for table in TABLES
    for cell in (hand.text(b"1"), hand.binary(bytes(4)), hand.text(b"\xff"))
]
BLOCKS = [hand.start(8), hand.STOP, hand.stream_commit(8), hand.stream_abort(8, 8)]
PREPARED = u64(5) + u64(6) + hand.TIME + u32(8)
PARALLEL = u64(9) + hand.TIME
FAR = u64((1 << 63) - 1)
ENDS = [
    *BLOCKS,
    *(hand.start(9), hand.stream_commit(9), hand.stream_abort(9, 9), hand.stream_abort(8, 9)),
    *(hand.stream_abort(8, 8) + PARALLEL, hand.stream_abort(8, 9) + PARALLEL),
    *(b"p\0" + PREPARED + name + b"\0" for name in (b"", b"gid", "é".encode())),
    *(hand.OTHERS["begin"][0], hand.OTHERS["begin prepare"][0], hand.OTHERS["commit"][0], hand.keepalive(5, 0, 0)),
    *(hand.ROWS["message"][0], hand.ROWS["message that is no text"][0]),
    *(hand.streamed(hand.ROWS["message"][0]), hand.ROWS["type"][0], b"T" + u32(2) + b"\3" + 2 * u32(70_000)),
    b"T" + u32(8) + u32(2) + b"\3" + u32(70_000) + u32(70_001),
]
"""What opens and ends blocks and their transactions, and what else may be between them."""

ODD = [
    *(message[:-1] for message in ENDS),
    *(message + b"x" for message in ENDS),
    *(
        hand.start(8)[:-1] + b"\2",
        b"p\0" + PREPARED + b"\xff\0",
        b"p\0" + PREPARED + b"a\0b\0",
        b"p\1" + PREPARED + b"a\0",
    ),
    *(hand.stream_commit(8)[:5] + b"\1" + hand.stream_commit(8)[6:], hand.stream_commit(8)[:-8] + FAR),
    *(hand.stream_abort(8, 8) + u64(9) + FAR, b"p\0" + u64(5) + u64(6) + FAR + u32(8) + b"a\0"),
    *(
        hand.envelope(hand.start(8), 79),
        hand.envelope(hand.STOP, 80),
        hand.envelope(hand.stream_abort(8, 8) + PARALLEL, 81),
    ),
]
"""The same with something odd; and those with an LSN of their own."""
OTHERS = [VARIANTS[0][:-1], VARIANTS[0] + b"x", b"R", hand.envelope(VARIANTS[1], 77), hand.envelope(ROWS[0], 78)]
STREAMED = [hand.streamed(message) for message in (*VARIANTS, *ROWS)]


@pytest.mark.parametrize("most_text", [100, 1 << 24])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    messages=st.lists(st.sampled_from([*VARIANTS, *VARIANTS, *ROWS, *ROWS, *BLOCKS, *OTHERS, *STREAMED]), max_size=60),
    tables=st.sampled_from([None, ["public.t1"]]),
    kinds=st.sampled_from([None, ["INSERT"], ["RELATION"]]),
)
def test_any_order(
    monkeypatch: pytest.MonkeyPatch,
    most_text: int,
    messages: list[bytes],
    tables: list[str] | None,
    kinds: list[str] | None,
) -> None:
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=400)
    monkeypatch.setattr(relation_table, "MOST_TEXT", most_text)
    agree(messages, format="pgoutput", mode="PERMISSIVE", tables=tables, kinds=kinds)


@pytest.mark.parametrize("slots", [1, 1 << 8])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), odd=st.sampled_from([[], ODD]), encoding=st.sampled_from(["utf-8", "latin-1"]))
def test_blocks_in_any_order(
    monkeypatch: pytest.MonkeyPatch, slots: int, data: st.DataObject, odd: list[bytes], encoding: str
) -> None:
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=400)
    monkeypatch.setattr(pgoutput_relations, "SLOTS", slots)
    usual = [*VARIANTS, *ROWS, *STREAMED, *STREAMED, *ENDS, *BLOCKS, *BLOCKS]
    messages = data.draw(st.lists(st.sampled_from([*usual, *odd]), max_size=60))
    agree(messages, format="pgoutput", mode="PERMISSIVE", encoding=encoding)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_well_formed_blocks(monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=data.draw(st.sampled_from([1, 400, 4000])))
    messages = [*VARIANTS[:2], VARIANTS[3]]
    for xid, inside, stop in data.draw(
        st.lists(
            st.tuples(st.sampled_from([8, 9]), st.lists(st.sampled_from(STREAMED)), st.integers(0, 7)), max_size=12
        )
    ):
        messages += [hand.start(xid), *inside, hand.STOP, *ROWS[:3]]
        whole, part = hand.stream_abort(xid, xid), hand.stream_abort(xid, 7)
        messages += [[], [hand.stream_commit(xid)], [whole], [part + PARALLEL], [part], [], [], []][stop]
        messages += ROWS[::4]
    agree(messages, format="pgoutput", mode="PERMISSIVE")


@pytest.mark.parametrize("slots", [1, 1 << 8])
@pytest.mark.parametrize(("most_per_message", "asked_before"), [(0, 0), (1 << 10, 0), (1 << 10, 1)])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    messages=st.lists(st.sampled_from([*VARIANTS, *ROWS, *STREAMED, *ENDS, *BLOCKS]), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
)
def test_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
    slots: int,
    most_per_message: int,
    asked_before: int,
    messages: list[bytes],
    cuts: list[int],
) -> None:
    monkeypatch.setattr(pgoutput_relations, "SLOTS", slots)
    monkeypatch.setattr(pgoutput_relations, "MOST_PER_MESSAGE", most_per_message)
    monkeypatch.setattr(pgoutput_relations, "ASKED_BEFORE", asked_before)
    monkeypatch.setattr(pgoutput_relations, "KNOWN_PER_ASK", 1 << 10)
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    bounds = [0, *sorted(min(cut, len(messages)) for cut in cuts), len(messages)]
    pieces = pa.chunked_array([messages[start:stop] for start, stop in pairwise(bounds)], pa.binary())
    given = [*VARIANTS[::3], *messages]
    expected = wf.arrow.changes(given, "pgoutput", mode="PERMISSIVE")
    found = wf.Capture(pa.chunked_array([VARIANTS[::3], *pieces.chunks]), "pgoutput", mode="PERMISSIVE").changes()
    assert found.read_all().equals(expected)


def test_many_known_relations_are_not_looked_up_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    oids = range(70_000, 70_000 + 4 * SLOTS)
    rows = [hand.change(b"I", hand.image(b"N", hand.text(b"x")), oid=oid) for oid in oids]
    begin, commit = hand.OTHERS["begin"][0], hand.OTHERS["commit"][0]
    described = [hand.relation(hand.column(b"c%d" % oid), oid=oid, table=b"t%d" % oid) for oid in oids]
    capture = wf.Capture([begin, *described, *rows, commit], "pgoutput")
    assert sum(map(len, capture.changes())) == len(described) + len(rows) + 2
    sum(map(len, capture.committed()))
    calls: list[int] = []
    find = pgoutput_relations.find_relation_codes
    monkeypatch.setattr(
        pgoutput_relations, "find_relation_codes", lambda *given: (calls.append(given[3]), find(*given))[1]
    )
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    again = wf.Capture(pa.chunked_array([rows] * 4, pa.binary()), "pgoutput", after=capture.position)
    assert sum(map(len, again.changes())) == 4 * len(rows)
    assert len(calls) <= len(rows) + 4 * (len(rows) // KNOWN_PER_ASK + 2)


def test_known_relations_are_not_kept_for_a_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a message that Python must read, what was kept is asked for again."""
    oids = range(70_000, 70_000 + 4 * SLOTS)
    rows = [hand.change(b"I", hand.image(b"N", hand.text(b"x")), oid=oid) for oid in oids]
    described = [hand.relation(hand.column(b"c%d" % oid), oid=oid, table=b"t%d" % oid) for oid in oids]
    odd = b"p\0" + PREPARED + "é".encode() + b"\0"
    pieces = [described, [message for first in range(0, len(rows), 8) for message in (*rows[first : first + 8], odd)]]
    kept: list[int] = []
    keep_all = pgoutput_relations.keep_all
    monkeypatch.setattr(
        pgoutput_relations, "keep_all", lambda *given: (kept.append(len(given[2])), keep_all(*given))[1]
    )
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    capture = wf.Capture(pa.chunked_array(pieces, pa.binary()), "pgoutput", mode="PERMISSIVE")
    names = [name for batch in capture.changes() for name in batch["table_name"].to_pylist()]
    assert [name for name in names[len(described) :] if name] == [f"t{oid}" for oid in oids]
    assert 0 < sum(kept) <= KNOWN_PER_ASK * len(rows)


def test_known_relations_that_are_kept_within_a_truncate_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first table is asked for; with the second one, all are kept."""
    oids = range(70_000, 70_000 + ASKED_BEFORE + 1)
    described = [hand.relation(hand.column(b"c%d" % oid), oid=oid, table=b"t%d" % oid) for oid in oids]
    rows = [hand.change(b"I", hand.image(b"N", hand.text(b"x")), oid=oid) for oid in oids]
    truncated = b"T" + u32(2) + b"\0" + b"".join(map(u32, oids[-2:]))
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)
    pieces = [described, [*rows[:-2], truncated, *rows]]
    expected = wf.arrow.changes([message for piece in pieces for message in piece], "pgoutput")
    assert expected["table_name"].to_pylist()[-1] == f"t{oids[-1]}"
    assert wf.Capture(pa.chunked_array(pieces, pa.binary()), "pgoutput").changes().read_all().equals(expected)


def test_the_declaration_reads_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [*VARIANTS, *ROWS[:2], *VARIANTS] * 3
    expected = agree(messages, format="pgoutput").table
    monkeypatch.setattr(Scanner, "_read", None)
    assert wf.arrow.changes(messages, "pgoutput").equals(expected)


def test_more_relations_with_numbers_of_the_same_slot_than_slots_are_tried() -> None:
    oids = [5 + 4 * SLOTS * index for index in range(2 * PROBES)]
    described = [hand.relation(hand.column(b"c%d" % oid), oid=oid) for oid in oids]
    rows = [hand.change(b"I", hand.image(b"N", hand.text(b"x")), oid=oid) for oid in oids]
    agree([*described, *rows, *rows, *described, *rows[::-1]], format="pgoutput")


def test_many_relations_whose_messages_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=100_000)
    described = [hand.relation(*[hand.column(b"c%d" % oid)] * 500, oid=oid) for oid in range(30)]
    rows = [hand.change(b"I", hand.image(b"N", *[hand.NULL] * 500), oid=oid) for oid in range(30)]
    answer = agree([message for pair in zip(described, rows, strict=True) for message in pair] * 2, format="pgoutput")
    assert len(answer.events) == 120
