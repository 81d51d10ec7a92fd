"""Relation messages that the scan recognises by their bytes, among rows that it leaves to the declaration."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan.kernels import relation_table
from wireformat.arrow.scan.kernels.pgoutput_relations import PROBES, SLOTS

from ... import handmade_pgoutput as hand
from ...engines import agree
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
