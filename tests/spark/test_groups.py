"""The groups of a task: the positions of their messages, and the plans that belong to them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from spark_udfs.chunks.groups import OtherPartitions, Range, groups
from wireformat.stream.chunk_plan import ChunkPlan

MESSAGE = bytes(1 << 20)
COUNT = 50


def test_messages_that_were_read_are_not_held(tmp_path: Path) -> None:
    """As Spark sends them: a batch is one piece of memory."""
    schema = pa.schema([("0", pa.int32()), ("1", pa.string()), ("2", pa.int64()), ("3", pa.binary())])
    path = tmp_path / "batches"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for number in range(COUNT):
            writer.write_batch(pa.record_batch([[0], ["stream"], [number], [MESSAGE]], schema=schema))
    before = pa.total_allocated_bytes()
    with pa.OSFile(str(path)) as file:
        read = 0
        for group in groups(pa.ipc.open_stream(file), ["name"], ["offset"]):
            for batch in group.messages.source():
                read += len(batch)
            del batch
            assert pa.total_allocated_bytes() - before < 5 * len(MESSAGE)
            assert group.messages.name(7) == "name=stream, offset=7"
    assert read == COUNT


PLAN = ChunkPlan(messages=1)
Row = tuple[int, str | None, int | None, bytes]


Plans = dict[int, dict[str, ChunkPlan]]


def planned(
    rows: Sequence[Row], plans: Plans | None, partition: int | None = None, *, chunks_in_one: int = 1
) -> list[tuple[int, str]]:
    """Returns chunk and stream of the groups of a task, each of which has a plan.

    chunks_in_one   how many chunks a partition has
    """
    ranges: dict[str, dict[int, Range]] = {}
    for chunk, streams in (plans or {}).items():
        for stream in streams:
            ranges.setdefault(stream, {})[chunk] = Range(chunk, (0,), (99,), chunk // chunks_in_one)
    schema = pa.schema([("0", pa.int32()), ("1", pa.string()), ("2", pa.int64()), ("3", pa.binary())])
    batches = [pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)]
    given = None if plans is None else ranges
    found = groups(batches, ["name"], ["offset"], plans, given, is_planned=True, partition=partition)
    return [(group.chunk, *group.stream) for group in found]


@pytest.mark.parametrize("travels", [True, False])
def test_each_group_has_its_plan(travels: bool) -> None:
    messages: list[Row] = [(1, "a", 0, b""), (1, "b", 0, b""), (2, "a", 1, b"")]
    plans = {1: {'["a"]': PLAN, '["b"]': PLAN}, 2: {'["a"]': PLAN}}
    found = [(1, "a"), (1, "b"), (2, "a")]

    def given(rows: Sequence[Row]) -> list[tuple[int, str]]:
        """A plan comes before the messages of its chunk, or another way."""
        own: list[Row] = [(chunk, None, None, pickle.dumps(plan)) for chunk, plan in plans.items() if travels]
        return planned(sorted([*own, *rows], key=lambda row: (row[0], row[1] or "")), None if travels else plans)

    assert given(messages) == found
    for missing in (1, 2) if travels else (1,):
        with pytest.raises(OtherPartitions):
            given([row for index, row in enumerate(messages) if index != missing])
    for more in ((1, "c", 0, b""), (3, "a", 7, b"")):
        with pytest.raises(OtherPartitions):
            given([*messages, more])


def test_a_task_without_rows_has_a_number() -> None:
    plans = {1: {'["a"]': PLAN}}
    assert planned([(1, "a", 0, b"")], plans, partition=1) == [(1, "a")]
    assert planned([(1, "a", 0, b"")], {**plans, 0: {'["a"]': PLAN}}, partition=0) == [(1, "a")]
    assert planned([], plans, partition=2) == []
    with pytest.raises(OtherPartitions):
        planned([], plans, partition=1)


def test_a_task_knows_all_chunks_of_its_partition() -> None:
    plans = {chunk: {'["a"]': PLAN} for chunk in range(4)}
    rows: list[Row] = [(chunk, "a", chunk, b"") for chunk in range(4)]
    for given in (rows[:2], rows[1::-1], rows[2:]):
        partition = given[0][0] // 2
        assert planned(given, plans, partition, chunks_in_one=2) == [(row[0], "a") for row in given]
        for task in (partition, None, 1 - partition):  # Spark may give it another number
            for lost in range(2):
                with pytest.raises(OtherPartitions):
                    planned(given[:lost] + given[lost + 1 :], plans, task, chunks_in_one=2)
    joined = planned(rows, plans, 0, chunks_in_one=2)
    assert joined == [(chunk, "a") for chunk in range(4)]
    for lost in range(4):
        with pytest.raises(OtherPartitions):
            planned(rows[:lost] + rows[lost + 1 :], plans, 0, chunks_in_one=2)
    with pytest.raises(OtherPartitions):
        planned([], plans, 1, chunks_in_one=2)
    assert planned([], plans, 7, chunks_in_one=2) == []


def test_order_columns_of_any_name() -> None:
    """Also of the name that the messages have."""
    schema = pa.schema([("0", pa.int32()), ("1", pa.int64()), ("2", pa.binary())])
    rows = [[1, 1], [None, 5], [pickle.dumps({"[]": PLAN}), b"x"]]
    batches = [pa.record_batch([pa.array(*pair) for pair in zip(rows, schema.types, strict=True)], schema=schema)]
    (group,) = groups(batches, [], ["message"], is_planned=True)
    assert group.plan == PLAN
