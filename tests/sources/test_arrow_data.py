"""Arrow data as a source: how arrays are joined before they are decoded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wireformat.arrow.scan.message_batches import JOINED_BYTES, JOINED_MESSAGES
from wireformat.sources.arrow_data import arrow_source

THIRD = JOINED_MESSAGES // 3


@pytest.mark.parametrize(
    ("size", "lengths", "joined"),
    [
        (10, [THIRD] * 7, [3 * THIRD, 3 * THIRD, THIRD]),
        (JOINED_BYTES // 30, [10] * 7, [20, 20, 20, 10]),
        (JOINED_BYTES, [1] * 3, [1] * 3),
        (1, [JOINED_MESSAGES + 1, 1, 1], [JOINED_MESSAGES + 1, 2]),
    ],
)
def test_small_arrays_are_joined(size: int, lengths: list[int], joined: list[int]) -> None:
    """Up to a number of bytes, and of messages: what a scan notes of small ones is many times as large."""
    arrays = [pa.array([b"x" * size] * length, pa.binary()) for length in lengths]
    source = arrow_source(pa.chunked_array(arrays), None)
    assert source is not None
    assert [len(one.messages) for one in source.read()] == joined


def test_joined_messages_are_the_same() -> None:
    """In their order."""
    arrays = [pa.array([b"%d" % number], pa.binary()) for number in range(100)]
    source = arrow_source(pa.chunked_array(arrays), None)
    assert source is not None
    (found,) = source.read()
    assert found.messages.to_pylist() == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("first", [0, 1])
def test_a_struct_that_is_null_has_no_message(first: int) -> None:
    """What its message holds is not read, as in Arrow and Polars."""
    messages = pa.array([b"zero", b"one", None, b"three"], pa.binary())
    others = pa.array(range(4))
    rows = pa.StructArray.from_arrays([messages, others], ["payload", "n"], mask=pa.array([False, True, False, False]))
    source = arrow_source(rows.slice(first), None)
    assert source is not None
    (found,) = source.read()
    assert found.messages.to_pylist() == [b"zero", None, None, b"three"][first:]
