"""Codes of rows: the same as numpy's sorts give."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.codes import (
    MOST_BITS,
    MOST_FOR_RADIX_SORT,
    codes_of_values,
    combined_codes,
    grouped,
    in_groups,
)
from wireformat.arrow.schemas import TEXT_MAP

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


FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
TEXTS = st.sampled_from(["", "a", "ab", "b"])
BIG = st.sampled_from([-(2**63), -1, 0, 1, 2**31, 2**63 - 1])
COLUMNS: list[tuple[pa.DataType, Any]] = [
    (pa.int16(), st.integers(-3, 3)),
    (pa.int64(), BIG),
    (pa.string(), TEXTS),
    (pa.binary(), st.sampled_from([b"", b"\0", b"\0\0"])),
    (pa.float64(), FLOATS),
    (pa.bool_(), st.booleans()),
    (pa.list_(pa.int64()), st.lists(st.none() | BIG, max_size=2)),
    (pa.list_(pa.float32()), st.lists(FLOATS, max_size=2)),
    (pa.list_(pa.list_(pa.string())), st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=2), max_size=2)),
]


def chunked(values: list[Any], type: pa.DataType, borders: list[int]) -> pa.ChunkedArray:
    """In chunks that are slices of a longer array."""
    ends = [0, *sorted(border % (len(values) + 1) for border in borders), len(values)]
    longer = pa.array([values[0] if values else None, *values, None], type)
    return pa.chunked_array([longer.slice(first + 1, end - first) for first, end in pairwise(ends)], type)


def same(value: Any) -> Any:
    """What equal values have in common."""
    if isinstance(value, list):
        return tuple(map(same, value))
    return repr(value + 0.0) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("type", "values"), COLUMNS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
@given(st.data())
def test_equal_values_have_the_same_code(type: pa.DataType, values: Any, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.none() | values, max_size=12) | st.lists(values, max_size=12))
    codes = codes_of_values(chunked(rows, type, data.draw(st.lists(st.integers(0, 12), max_size=3)))).tolist()
    assert len(codes) == len(rows)
    assert min(codes, default=0) >= 0
    if pa.types.is_map(type):
        rows = [value or [] for value in rows]
    pairs = {(same(value), code) for value, code in zip(rows, codes, strict=True)}
    assert len(pairs) == len({value for value, _ in pairs}) == len({code for _, code in pairs})


def test_few_maps_with_texts_that_are_not_utf_8() -> None:
    """Arrow does not check its texts: they have codes, as many maps have."""
    texts = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.arange(4, dtype=np.int32)), pa.py_buffer(b"\xff\xfea")]
    )
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["k"] * 3), texts)
    few = codes_of_values(pa.chunked_array([maps, maps]))
    assert (few[:3] == few[3:]).all()
    assert len({*few.tolist()}) == 3


@given(st.lists(st.none() | st.dictionaries(st.sampled_from("ab"), st.none() | st.sampled_from("xy")), max_size=8))
def test_few_maps_as_many(maps: list[dict[str, str | None] | None]) -> None:
    few = pa.chunked_array([pa.array([None if one is None else [*one.items()] for one in maps], TEXT_MAP)])
    many = codes_of_values(pa.chunked_array([*few.chunks] * 100)) if maps else np.empty(0)
    found = codes_of_values(few)
    assert [[a == b for b in found] for a in found] == [[a == b for b in many[: len(maps)]] for a in many[: len(maps)]]
