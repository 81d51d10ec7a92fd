"""Values at indices, of columns in chunks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow import arrays

from .test_codes import chunked


@given(st.lists(st.none() | st.text(max_size=4), max_size=20), st.data())
def test_values_of_chunks(values: list[str | None], data: st.DataObject) -> None:
    """In chunks of few rows, and of few bytes where they hold several values."""
    column = chunked(values, pa.string(), data.draw(st.lists(st.integers(0, 20), max_size=5)))
    indices = data.draw(st.lists(st.integers(-1, len(values) - 1), max_size=20, unique=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "TAKEN_ROWS", data.draw(st.integers(1, 8)))
        patch.setattr(arrays, "TAKEN_BYTES", 20)
        found = arrays.take_values(column, np.array(indices, np.int64))
    assert found.to_pylist() == [None if index < 0 else values[index] for index in indices]
    assert found.type == pa.string()
    chunks = [chunk for chunk in found.chunks if len(chunk) > 1]
    source_chunks = {id(chunk): chunk.nbytes for chunk in column.chunks}
    assert all(chunk.nbytes <= max(20, *source_chunks.values()) for chunk in chunks)
