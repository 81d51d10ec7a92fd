"""A stream that is cut into chunks gives what the whole gives: all captures, cut at random."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.chunks.capture import ChunkCapture
from wireformat.chunks.summary import RowFacts, summarized
from wireformat.options.table_names import written
from wireformat.stream.chunk_plan import ChunkPlan

from ..examples import at_most
from ..golden_cases import CASES, Case, find_case
from ..servers.captures import capture_names, read_capture
from .reading import ChunkedReading, divided, in_order

CUTS = st.lists(st.integers(0, 10_000), min_size=1, max_size=4)
CAPTURES = [*capture_names("pgoutput"), *capture_names("test-decoding")]


def rows_of(table: pa.Table) -> pa.Table:
    """Returns rows without the number of their message, which counts from the beginning of what was read."""
    return table.select([name for name in table.column_names if name != "message"])


def outcome(ask: Any) -> Any:
    """Returns what a question gives, or the class of its error."""
    try:
        return ask()
    except wf.WireformatError as error:
        return type(error)


def whole(messages: Sequence[bytes], format: str, **options: Any) -> Any:
    """Returns what the whole stream gives: committed rows in their order, open rows, and where it ends; or an error."""

    def ask() -> Any:
        capture = wf.Capture(messages, format, **options)
        committed = in_order(rows_of(capture.committed().read_all()))
        return committed, rows_of(capture.open()), capture.position.delivered

    return outcome(ask)


def check(expected: Any, messages: Sequence[bytes], format: str, cuts: Sequence[int], **options: Any) -> None:
    def chunked() -> Any:
        reading = ChunkedReading(divided(messages, cuts), format, **options)
        committed, open = rows_of(reading.committed()), rows_of(reading.open())
        if reading.planned.error is not None:
            raise reading.planned.error
        return committed, open, reading.planned.machine.position

    assert outcome(chunked) == expected


# The whole is read once for all the ways to cut it.
once = lru_cache(maxsize=1)


@once
def whole_of_server(name: str) -> Any:
    return whole(read_capture(name).messages, _format_of(name))


def _format_of(name: str) -> str:
    return "pgoutput" if "pgoutput" in name else "test-decoding"


@pytest.mark.parametrize("name", CAPTURES)
@at_most(8)
@given(cuts=CUTS)
def test_captures_of_servers(name: str, cuts: list[int]) -> None:
    check(whole_of_server(name), read_capture(name).messages, _format_of(name), cuts)


@once
def whole_of_gaussdb(name: str) -> Any:
    case = find_case(name)
    return whole(case.messages, case.format, **case.reading)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@at_most(8)
@given(cuts=CUTS)
def test_captures_of_gaussdb(case: Case, cuts: list[int]) -> None:
    check(whole_of_gaussdb(case.name), case.messages, case.format, cuts, **case.reading)


def test_after_an_unreadable_control_record_nothing_is_delivered() -> None:
    """Its chunk raises the error, and no later chunk delivers anything."""
    messages = [*wf.encode(wf.testing.stream(2, 12, seed=3, format="pgoutput"), "pgoutput")]
    commits = [number for number, message in enumerate(messages) if message[:1] == b"C"]
    bad = commits[len(commits) // 2]
    messages[bad] = messages[bad][:-1]
    cuts = [commits[1] + 1, bad + 1]
    reading = ChunkedReading(divided(messages, cuts), "pgoutput", mode="PERMISSIVE")
    assert isinstance(reading.planned.error, wf.OrderError)
    assert [plan.start is None for plan in reading.planned.plans] == [False, False, True]
    assert isinstance(reading.summaries[1].items[-1], wf.OrderError)
    broken, first = reading.captures()
    with pytest.raises(wf.OrderError):
        broken.committed().read_all()
    assert len(first.committed().read_all()) > 0


def test_a_chunk_without_a_start_delivers_nothing() -> None:
    messages = [*wf.encode(wf.testing.stream(2, 12, seed=3, format="pgoutput"), "pgoutput")]
    schema = wf.Capture(messages, "pgoutput").tables()

    def capture() -> ChunkCapture:
        return ChunkCapture(messages, "pgoutput", plan=ChunkPlan(None, messages=len(messages)))

    assert len(capture().committed().read_all()) == len(capture().open()) == len(capture().messages().read_all()) == 0
    assert len(capture().typed("shop.orders_0", schema=schema).read_all()) == 0
    assert len(capture().changes().read_all()) > 0


@pytest.mark.parametrize("missing", [1, -1])
def test_another_number_of_messages_than_was_looked_through(missing: int) -> None:
    messages = [*wf.encode(wf.testing.stream(2, 12, seed=3, format="pgoutput"), "pgoutput")]
    capture = ChunkCapture(messages, "pgoutput", plan=ChunkPlan(messages=len(messages) + missing))
    for ask in (capture.committed, capture.changes):
        with pytest.raises(wf.BadRows, match=f"expected {len(messages) + missing} messages .* got {len(messages)} "):
            ask().read_all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_facts_of_rows_of_gaussdb(case: Case) -> None:
    """No typed change lacks a value, and none is a TRUNCATE, where the facts say so."""
    check_row_facts(case.messages, case.format, **case.reading)


@pytest.mark.parametrize("name", CAPTURES)
def test_facts_of_rows_of_servers(name: str) -> None:
    check_row_facts(read_capture(name).messages, _format_of(name))


def check_row_facts(messages: Sequence[bytes], format: str, **options: Any) -> None:
    capture = wf.Capture(messages, format, mode="PERMISSIVE", **options)
    facts = summarized(ChunkCapture(messages, format, mode="PERMISSIVE", **options)).row_facts
    try:
        committed, listed = capture.committed().read_all(), capture.tables()
    except wf.WireformatError:
        return  # a stream that breaks
    for table in facts:
        try:
            rows = wf.arrow.typed(committed, written(table), schema=listed, mode="PERMISSIVE")
        except wf.WireformatError:
            continue  # columns without types
        columns = [field.name for field in rows.schema.field("_old").type]
        if facts[table].are_whole(columns):
            assert "truncate" not in rows["_change_type"].to_pylist()
            assert rows["_unchanged"].null_count == len(rows)
            if "_relation_id" in rows.column_names:
                assert len(rows["_relation_id"].drop_null().unique()) < 2


def test_facts_of_rows() -> None:
    """Most tables of a made-up stream have whole rows; each of the other facts is there too."""
    messages = [*wf.encode(wf.testing.stream(8, 60, seed=3, format="pgoutput"), "pgoutput")]
    facts = summarized(ChunkCapture(messages, "pgoutput")).row_facts.values()
    assert any(one.sent for one in facts)
    assert all(one.relation_ids for one in facts)
    joined = RowFacts().and_those(RowFacts(frozenset("ab"))).and_those(RowFacts(frozenset("bc"), True, frozenset([1])))
    assert joined == RowFacts(frozenset("b"), True, frozenset([1]))
    assert RowFacts(frozenset("ab"), False, frozenset([1])).are_whole("a")
    assert not RowFacts(frozenset("ab"), False, frozenset([1])).are_whole("ac")
    assert not RowFacts(frozenset("ab"), True, frozenset([1])).are_whole("a")
    assert not RowFacts(frozenset("ab"), False, frozenset([1, 2])).are_whole("a")
