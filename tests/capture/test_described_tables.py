"""Captures that go on where a server had described its tables, and does not describe them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from ..chunks.reading import ChunkedReading, divided
from ..describing_server import HISTORIES, DescribingServer, History

T, OTHER = 16401, 16402
ALTERED: History = [(0, "row", T), (0, "commit", T), (0, "alter", T), (0, "commit", T)]
"""A column that no message has told of yet."""
LATER: History = [(2, "row", T), (2, "commit", T), (2, "row", T), (2, "commit", T)]

EXAMPLES: dict[str, History] = {
    "described by a subtransaction, known after the commit": [
        *ALTERED,
        *[(0, "savepoint", T), (0, "row", T), (0, "flush", T)],
        *[(1, "row", OTHER), (1, "flush", OTHER)],
        *[(0, "commit", T), *LATER],
    ],
    "described in two streamed transactions, of which the first is committed": [
        *ALTERED,
        *[(0, "row", T), (0, "flush", T), (1, "row", T), (1, "flush", T)],
        *[(2, "row", OTHER), (2, "flush", OTHER)],
        *[(1, "abort", T), (0, "commit", T), (0, "row", T), (0, "commit", T), (0, "row", T), (0, "commit", T)],
    ],
    "described in a transaction that is rolled back, which has more rows": [
        *ALTERED,
        *[(0, "row", T), (0, "flush", T)],
        *[(1, "row", OTHER), (1, "flush", OTHER)],
        *[(0, "row", T), (0, "flush", T), (0, "abort", T)],
        *LATER,
    ],
}


@pytest.mark.parametrize("engine", ["scan", "declaration"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_wherever_the_first_capture_ends(name: str, engine: str) -> None:
    server = DescribingServer(EXAMPLES[name])
    for cut in range(len(server.messages) + 1):
        assert rows_of_captures(server, [cut], engine=engine) == server.committed


@given(HISTORIES, st.lists(st.integers(0, 100), max_size=3))
@example(EXAMPLES["described by a subtransaction, known after the commit"], [14])
def test_any_history(history: History, cuts: list[int]) -> None:
    server = DescribingServer(history)
    assert rows_of_captures(server, cuts) == server.committed


@given(HISTORIES, st.integers(0, 100), st.lists(st.integers(0, 100), max_size=3))
@example(EXAMPLES["described by a subtransaction, known after the commit"], 14, [2, 4])
@example(EXAMPLES["described in a transaction that is rolled back, which has more rows"], 14, [3])
def test_a_second_capture_in_chunks(history: History, cut: int, cuts: list[int]) -> None:
    server = DescribingServer(history)
    cut = min(cut, len(server.messages))
    first = wf.Capture(server.messages[:cut], "pgoutput")
    rows = rows_of(first.committed().read_all())
    rest = server.messages[server.begins(cut) :]
    chunks = ChunkedReading(divided(rest, cuts), "pgoutput", after=saved(first.position))
    assert rows + rows_of(chunks.committed()) == server.committed


def test_columns_of_a_part_that_is_rolled_back_after_the_position() -> None:
    """The table never gets the column that it had in the savepoint."""
    undone: History = [
        *[(0, "row", T), (0, "savepoint", T), (0, "alter", T), (0, "row", T), (0, "flush", T)],
        *[(1, "row", OTHER), (1, "flush", OTHER)],
        *[(0, "rollback to", T), (0, "row", T), (0, "commit", T), *LATER],
    ]
    server = DescribingServer(undone)
    for cut in range(1, len(server.messages)):
        first = wf.Capture(server.messages[:cut], "pgoutput")
        first.committed().read_all()
        second = wf.Capture(server.messages[server.begins(cut) :], "pgoutput", after=saved(first.position))
        if f"public.t{T}" in {f"{row['table_schema']}.{row['table_name']}" for row in second.tables().to_pylist()}:
            names = [name for name in second.typed(f"public.t{T}").schema.names if not name.startswith("_")]
            assert names == ["a"], cut


def rows_of_captures(server: DescribingServer, cuts: Sequence[int], **options: Any) -> list[Any]:
    """The committed rows of captures, each of which begins with what the one before it left open."""
    found, start, after = [], 0, None
    for cut in [*sorted(min(cut, len(server.messages)) for cut in cuts), len(server.messages)]:
        capture = wf.Capture(server.messages[start:cut], "pgoutput", after=after, **options)
        found += rows_of(capture.committed().read_all())
        after, start = saved(capture.position), server.begins(cut)
    return found


def rows_of(committed: pa.Table) -> list[Any]:
    return [(row["table_name"], tuple(row["new"])) for row in committed.select(["table_name", "new"]).to_pylist()]


def saved(position: CapturePosition) -> CapturePosition:
    found = CapturePosition.from_json(position.to_json())
    assert found == position
    return found
