"""Batches in the worker, without Spark: kept columns repeated, cut by bytes, in every Arrow type that Spark sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wireformat as wf
from spark_udfs.decoding.batches import RESULT_BATCH_BYTES, decode_batches, row_ranges, value_bytes
from spark_udfs.decoding.task import DecodingPlan, Kept
from spark_udfs.schemas import rows_of_message, rows_of_table
from spark_udfs.sql.functions import wal_decode

from ..engines import FORMAT
from .messages import transaction


def batch(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[str(place) for place in range(len(columns))])


def decoded(plan: DecodingPlan, *batches: pa.RecordBatch) -> pa.Table:
    found = list(decode_batches(plan, None, iter(batches)))
    for piece in found:
        piece.validate(full=True)
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_rows_follow_their_messages(kind: pa.DataType) -> None:
    payload = pa.array([None, transaction("a", "b"), b"", transaction()], kind)
    kept = pa.array([1, None, 3, 4], pa.int32())
    plan = DecodingPlan.check(FORMAT, ["record"], keep=[Kept("n")], mode="PERMISSIVE")
    found = decoded(plan, batch(payload, kept), batch(payload.slice(1), kept.slice(1)))
    rows = wf.arrow.changes(payload, FORMAT, mode="PERMISSIVE")
    wanted = {"n": kept.take(rows["message"].combine_chunks()).to_pylist(), "record": rows["record"].to_pylist()}
    assert found.slice(0, len(rows)).to_pydict() == wanted
    assert found.slice(len(rows)).to_pydict() == wanted


def test_no_rows_are_no_batches() -> None:
    assert (
        list(decode_batches(DecodingPlan.check(FORMAT), None, iter([batch(pa.array([None, None], pa.binary()))]))) == []
    )


@pytest.mark.parametrize(
    "kept",
    [
        pa.array(["x" * 1000, None, "y"]),
        pa.array([["x" * 1000], None, []], pa.list_(pa.string())),
        pa.array([{"a": "x" * 1000}, None, {"a": None}], pa.struct([("a", pa.string())])),
        pa.array([[("k", b"x" * 1000)], None, []], pa.map_(pa.string(), pa.binary())),
    ],
)
def test_size_of_kept_values(kept: pa.Array) -> None:
    sizes = value_bytes([kept, pa.array([1, 2, 3])], 3)
    assert sizes[0] == pytest.approx(1000, abs=50)
    assert sizes[1:] == pytest.approx([0, 0], abs=50)


class TestPieces:
    ROWS = pa.RecordBatch.from_pydict({"text": ["x" * size for size in (10, 10, 500, 10, 10, 10, 10, 10)]})
    NOTHING = np.zeros(8, np.int64)

    def cut(self, sizes: Any, limit: int) -> list[tuple[int, int]]:
        return list(row_ranges(pa.array(range(8)), self.ROWS, sizes, limit))

    def test_one_piece_if_it_fits(self) -> None:
        assert self.cut(self.NOTHING, RESULT_BATCH_BYTES) == [(0, 8)]

    def test_a_row_that_is_too_large_stands_alone(self) -> None:
        assert self.cut(self.NOTHING, 100) == [(0, 2), (2, 3), (3, 4), (4, 8)]

    def test_kept_values_count_for_each_row(self) -> None:
        assert self.cut(self.NOTHING + 60, 200) == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 8)]

    @pytest.mark.parametrize("limit", [1, 50, 150, 600, 10_000])
    def test_all_rows_in_order(self, limit: int) -> None:
        found = self.cut(self.NOTHING, limit)
        assert [row for start, stop in found for row in range(start, stop)] == list(range(8))
        for start, stop in found:
            assert stop - start == 1 or self.ROWS.slice(start, stop - start).nbytes <= limit


@pytest.mark.slow
def test_large_kept_values_are_repeated_piece_by_piece() -> None:
    plan = DecodingPlan.check(FORMAT, ["record"], keep=[Kept("big")])
    messages = batch(pa.array([transaction(*"v" * 500)]), pa.array(["x" * 1_000_000]))
    found = list(decode_batches(plan, None, iter([messages])))
    assert sum(piece.num_rows for piece in found) == 502
    assert max(piece.nbytes for piece in found) <= RESULT_BATCH_BYTES


def test_types_are_exactly_those_declared() -> None:
    """Spark compares names and nullability of all that is nested, and casts what differs, or refuses it."""
    from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

    plan = DecodingPlan.check(FORMAT, keep=[Kept("seq")])
    table = decoded(plan, batch(pa.array([transaction("a")]), pa.array([1], pa.int64())))
    assert table.schema.equals(to_arrow_schema(rows_of_table(), timezone="UTC"))
    answer = wal_decode(pa.array([transaction("a")]), pa.array([FORMAT]))
    assert answer.type.equals(to_arrow_type(rows_of_message(), timezone="UTC"))


def test_an_empty_batch_is_an_empty_answer() -> None:
    answer = wal_decode(pa.array([], pa.binary()), pa.array([], pa.string()))
    assert len(answer) == 0
    answer.validate(full=True)
