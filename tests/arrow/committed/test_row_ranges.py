"""Ranges of rows, and the rows in them that are chosen."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.committed.row_ranges import chosen_indices

ROWS = 60
BOUNDS = st.lists(st.integers(0, ROWS), max_size=12).map(lambda bounds: sorted(bounds[: len(bounds) // 2 * 2]))
ASCENDING = BOUNDS.map(lambda bounds: [*zip(bounds[::2], bounds[1::2], strict=True)])
"""Ranges that do not overlap, some without rows, some beside each other."""


@given(
    ASCENDING.flatmap(lambda ranges: st.permutations(ranges) | st.just(ranges)), st.binary(min_size=ROWS, max_size=ROWS)
)
def test_chosen_rows(ranges: list[tuple[int, int]], chosen: bytes) -> None:
    """Of few rows and of many, in the order of the rows or in another one."""
    is_chosen = np.frombuffer(chosen, np.uint8) % 3 > 0
    starts, stops = np.array(ranges, np.int64).reshape(-1, 2).T
    indices, range_of = chosen_indices(starts, stops, is_chosen)
    expected = [(row, at) for at, (start, stop) in enumerate(ranges) for row in range(start, stop) if is_chosen[row]]
    assert [*zip(indices.tolist(), range_of.tolist(), strict=True)] == expected
