"""Codes of rows: the same as numpy's sorts give."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.codes import MOST_BITS, MOST_FOR_RADIX_SORT, combined_codes, grouped, in_groups

CODES = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 1 << 40)), max_size=40)


@given(CODES)
def test_grouped(given: list[int]) -> None:
    codes = np.array(given, np.int64)
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    found, of_rows = grouped(codes)
    assert (found.tolist(), of_rows.tolist()) == (firsts.tolist(), inverse.tolist())


@given(st.lists(st.integers(0, 9), max_size=40), st.sampled_from([10, MOST_FOR_RADIX_SORT + 1]))
def test_in_groups(given: list[int], count: int) -> None:
    codes = np.array(given, np.int64)
    order, bounds = in_groups(codes, count)
    assert len(bounds) == count + 1
    for code in range(10):
        assert order[bounds[code] : bounds[code + 1]].tolist() == np.flatnonzero(codes == code).tolist()


@given(
    st.lists(st.tuples(*[st.sampled_from([0, 1, 3, 2**20, 2**40, 2**62])] * 3), min_size=1, max_size=20),
    st.integers(5, MOST_BITS),
)
def test_combined(rows: list[tuple[int, ...]], most_bits: int) -> None:
    codes = combined_codes([np.array(column, np.int64) for column in zip(*rows, strict=True)], most_bits).tolist()
    assert min(codes) >= 0
    assert max(codes) < 1 << most_bits
    assert len({*zip(rows, codes, strict=True)}) == len({*rows}) == len({*codes})
