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
