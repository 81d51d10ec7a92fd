"""Codes of equal values, and values of columns in chunks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.typed_tables import current_rows
from wireformat.arrow.typed_tables.current_rows import codes_of_values, gathered

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
    pairs = {(same(value), code) for value, code in zip(rows, codes, strict=True)}
    assert len(pairs) == len({value for value, _ in pairs}) == len({code for _, code in pairs})


@given(st.lists(st.none() | st.text(max_size=4), max_size=20), st.data())
def test_values_of_chunks(values: list[str | None], data: st.DataObject) -> None:
    """In chunks of few rows, and of few bytes where they hold several values."""
    column = chunked(values, pa.string(), data.draw(st.lists(st.integers(0, 20), max_size=5)))
    indices = data.draw(st.lists(st.integers(-1, len(values) - 1), max_size=20, unique=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(current_rows, "MOST_ROWS", data.draw(st.integers(1, 8)))
        patch.setattr(current_rows, "MOST_BYTES", 20)
        found = gathered(column, np.array(indices, np.int64))
    assert found.to_pylist() == [None if index < 0 else values[index] for index in indices]
    assert found.type == pa.string()
    chunks = [chunk for chunk in found.chunks if len(chunk) > 1]
    source_chunks = {id(chunk): chunk.nbytes for chunk in column.chunks}
    assert all(chunk.nbytes <= max(20, *source_chunks.values()) for chunk in chunks)
