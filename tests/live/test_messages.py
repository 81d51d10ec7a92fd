"""Messages that arrive become arrays of a good size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wireformat.live.messages import JOINED_BYTES, joined

SMALL = [b"%d" % number for number in range(10)]
LARGE = b"x" * (JOINED_BYTES * 2 // 3)


def arrays(*groups: list[bytes], type: pa.DataType | None = None) -> list[pa.Array]:
    return [pa.array(group, type or pa.binary()) for group in groups]


@pytest.mark.parametrize(
    ("groups", "sizes"),
    [
        ([], []),
        ([SMALL], [10]),
        ([SMALL] * 3, [30]),
        ([[LARGE], SMALL, SMALL, [LARGE], SMALL], [21, 11]),
        ([SMALL, [LARGE] * 2, SMALL], [10, 2, 10]),
    ],
)
def test_small_arrays_are_joined(groups: list[list[bytes]], sizes: list[int]) -> None:
    """The messages stay as they are, in their order."""
    found = joined(arrays(*groups))
    assert found.to_pylist() == [message for group in groups for message in group]
    assert [len(chunk) for chunk in found.chunks] == sizes


def test_a_slice_is_joined_as_it_is() -> None:
    (array,) = arrays(SMALL)
    assert joined([array[:3], array[7:]]).to_pylist() == SMALL[:3] + SMALL[7:]


def test_one_large_array_makes_all_large() -> None:
    found = joined([*arrays(SMALL), *arrays(SMALL, type=pa.large_binary())])
    assert found.type == pa.large_binary()
    assert found.to_pylist() == SMALL * 2
