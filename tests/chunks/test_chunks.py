"""A stream that is cut into chunks gives what the whole gives: all captures, cut at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from ..examples import at_most
from ..golden_cases import CASES, Case
from ..servers.captures import capture_names, read_capture
from .reading import ChunkedReading, divided

CUTS = st.lists(st.integers(0, 10_000), min_size=1, max_size=4)
CAPTURES = [*capture_names("pgoutput"), *capture_names("test-decoding")]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    names = [name for name in table.column_names if name != "message"]
    found: list[dict[str, Any]] = table.select(names).to_pylist()
    return found


def outcome(ask: Any) -> Any:
    """Returns what a question gives, or the class of its error."""
    try:
        return ask()
    except wf.WireformatError as error:
        return type(error)


def check(messages: Sequence[bytes], format: str, cuts: Sequence[int], **options: Any) -> None:
    def whole() -> Any:
        capture = wf.Capture(messages, format, **options)
        return rows_of(capture.committed().read_all()), rows_of(capture.open()), capture.position.delivered

    def chunked() -> Any:
        reading = ChunkedReading(divided(messages, cuts), format, **options)
        committed, open = rows_of(reading.committed()), rows_of(reading.open())
        for summary in reading.summaries:
            if summary.items_error is not None:
                raise summary.items_error
        if reading.planned.error is not None:
            raise reading.planned.error
        return committed, open, reading.planned.machine.position

    expected, found = outcome(whole), outcome(chunked)
    if isinstance(expected, tuple) and isinstance(found, tuple):
        expected[0].sort(key=lambda row: (row["sequence"]["commit_lsn"] % 2**64, row["sequence"]["ordinal"]))
    assert found == expected


@pytest.mark.parametrize("name", CAPTURES)
@at_most(8)
@given(cuts=CUTS)
def test_captures_of_servers(name: str, cuts: list[int]) -> None:
    format = "pgoutput" if "pgoutput" in name else "test-decoding"
    check(read_capture(name).messages, format, cuts)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@at_most(8)
@given(cuts=CUTS)
def test_captures_of_gaussdb(case: Case, cuts: list[int]) -> None:
    check(case.messages, case.format, cuts, **case.reading)
