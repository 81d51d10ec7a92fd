"""Arrow data as a source: how arrays are joined before they are decoded."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from wireformat.arrow.scan.message_batches import COUNTED_BYTES
from wireformat.limits import MESSAGE_BATCH_BYTES
from wireformat.sources.arrow_data import arrow_source

MOST_MESSAGES = MESSAGE_BATCH_BYTES // COUNTED_BYTES
THIRD = MOST_MESSAGES // 3


@pytest.mark.parametrize(
    ("size", "lengths", "together"),
    [
        (10, [THIRD] * 7, [3 * THIRD, 3 * THIRD, THIRD]),
        (MESSAGE_BATCH_BYTES // 30, [10] * 7, [20, 20, 20, 10]),
        (MESSAGE_BATCH_BYTES, [1] * 3, [1] * 3),
        (1, [MOST_MESSAGES + 1, 1, 1], [MOST_MESSAGES + 1, 2]),
    ],
)
def test_arrays_are_put_together(size: int, lengths: list[int], together: list[int]) -> None:
    """Up to a number of bytes, and of messages: what a scan notes of small ones is many times as large."""
    array = pa.array([b"x" * size] * max(lengths), pa.binary())
    batches = (pa.record_batch({"payload": array.slice(0, length)}) for length in lengths)
    source = arrow_source(pa.RecordBatchReader.from_batches(pa.schema({"payload": pa.binary()}), batches), None)
    assert source is not None
    assert [len(one.messages) for one in source.read()] == together


def test_messages_before_an_error_are_read() -> None:
    """An error of a reader comes after the messages of the batches before it."""
    schema = pa.schema({"payload": pa.binary()})

    def broken() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            yield pa.record_batch([[b"%d" % number]], schema=schema)
        raise ConnectionError("the server has gone")

    source = arrow_source(pa.RecordBatchReader.from_batches(schema, broken()), None)
    assert source is not None
    found = source.read()
    assert next(found).messages.to_pylist() == [b"0", b"1", b"2"]
    with pytest.raises(ConnectionError):
        next(found)


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
