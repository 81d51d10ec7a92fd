"""Values that become null, of slices too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wireformat.arrow.arrays import null_where


@pytest.mark.parametrize("type", [pa.string(), pa.large_binary(), pa.int64(), pa.list_(pa.string())])
def test_values_of_a_slice_become_null(type: pa.DataType) -> None:
    values = pa.array(["12345", *map(str, range(8))], pa.string())
    column = pa.array([[text] for text in values.to_pylist()], type) if pa.types.is_list(type) else values.cast(type)
    found = null_where(pa.array([False, True] * 4), column[1:])
    found.validate(full=True)
    assert found.to_pylist() == [None if row % 2 else value for row, value in enumerate(column[1:].to_pylist())]


def test_values_of_texts_whose_first_offset_is_not_zero_become_null() -> None:
    """Other implementations of Arrow slice the buffer of the offsets."""
    texts = pa.array(["12345", "a", "bc"])
    _, offsets, data = texts.buffers()
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets.slice(4), data])
    assert null_where(pa.array([True, False]), column).to_pylist() == [None, "bc"]
