"""Row changes as an input: small record batches of a table are joined, and the rows stay what they are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow import row_changes
from wireformat.arrow.arrays import batch_size
from wireformat.arrow.row_changes import JOINED_BYTES, joined_batches, record_batches
from wireformat.arrow.schemas import CHANGES
from wireformat.options.table_names import written

from ..golden_cases import find_case


def batches_of(*lengths: int, text: str = "x") -> list[pa.RecordBatch]:
    return [pa.record_batch({"a": pa.array([text] * length, pa.string())}) for length in lengths]


@pytest.mark.parametrize(
    ("limits", "lengths", "joined"),
    [
        ({"JOINED_ROWS": 10}, [4, 4, 4, 1], [8, 5]),
        ({"JOINED_ROWS": 10}, [20, 1, 0, 9, 1], [20, 10, 1]),
        ({"JOINED_BYTES": 1, "_TINY_BYTES": 0}, [1, 1], [1, 1]),
        ({}, [1] * 1000, [1000]),
        ({}, [], []),
        ({}, [0], [0]),
    ],
)
def test_small_batches_are_joined(
    limits: dict[str, int], lengths: list[int], joined: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(row_changes, name, value)
    assert [*map(len, joined_batches(batches_of(*lengths)))] == joined


@pytest.mark.parametrize("are_slices", [False, True])
def test_few_sizes_are_measured(are_slices: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To measure a batch takes longer than to join one of a row."""
    batches = batches_of(*[1] * 4000)
    if are_slices:
        batches = pa.Table.from_batches(batches_of(4000)).to_batches(max_chunksize=1)
    measured = []

    def counted(batch: pa.RecordBatch) -> int:
        measured.append(batch)
        return batch_size(batch)

    monkeypatch.setattr(row_changes, "batch_size", counted)
    (found,) = joined_batches(batches)
    assert found.num_rows == 4000
    assert len(measured) <= 200


def test_slices_count_with_their_rows_alone() -> None:
    (large,) = batches_of(1000, text="x" * (1 << 14))
    assert large.slice(0, 1).get_total_buffer_size() > JOINED_BYTES * 0.9 > batch_size(large.slice(0, 1))
    (found,) = joined_batches([large.slice(row, 1) for row in range(500)])
    assert found.num_rows == 500


def test_columns_that_share_memory_count_each() -> None:
    """As many as a row-change table has."""
    shared = pa.array(["x" * 1000])
    batch = pa.record_batch({field.name: shared for field in CHANGES})
    assert batch.get_total_buffer_size() < 2000 < batch_size(batch)
    found = [*joined_batches([batch] * 4000)]
    assert sum(map(len, found)) == 4000
    assert max(map(batch_size, found)) <= JOINED_BYTES


def test_slices_of_larger_batches_are_each_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To join two at a time would take longer."""
    joins = []
    monkeypatch.setattr(row_changes, "one_batch", lambda batches: joins.append(len(batches)) or concatenated(batches))
    concatenated = pa.concat_batches
    (large,) = batches_of(1000, text="x" * 300)
    assert [len(found) for found in joined_batches([large.slice(row, 1) for row in range(1000)])] == [1000]
    assert sorted(joins) == [1] * 1000 + [1000]


def test_batches_of_other_schemas_are_not_joined() -> None:
    other = pa.record_batch({"b": [1]})
    found = [*joined_batches([*batches_of(1, 1), other, other, *batches_of(2)])]
    assert [(batch.schema.names, len(batch)) for batch in found] == [(["a"], 2), (["b"], 2), (["a"], 2)]


def test_a_large_batch_is_not_copied() -> None:
    (batch,) = batches_of(1000)
    (found,) = joined_batches([batch])
    assert found is batch


def test_batches_come_one_by_one_and_tables_are_joined() -> None:
    """Who makes batches one after the other may wait for the rows of each."""
    batches = batches_of(1, 2, 3)
    assert [*map(len, record_batches(batches))] == [1, 2, 3]
    assert [*map(len, record_batches(pa.Table.from_batches(batches)))] == [6]


@pytest.mark.parametrize("name", ["b_num63_single", "t_num63_single"])
def test_chunks_of_a_table_make_no_difference(name: str) -> None:
    case = find_case(name)
    whole = wf.arrow.changes(case.messages, case.format).combine_chunks()
    small = pa.Table.from_batches(whole.to_batches(max_chunksize=7))
    assert len(small["kind"].chunks) > 10

    def answers(table: Any) -> list[Any]:
        listed = wf.arrow.tables(table)
        first = written((listed["table_schema"][0].as_py(), listed["table_name"][0].as_py()))
        committed = wf.arrow.transactions(table)
        messages = wf.arrow.encode(table, case.format, adapt=True).to_pylist()
        return [listed, committed.combine_chunks(), wf.arrow.typed(table, first).combine_chunks(), messages]

    assert answers(small) == answers(whole)
    one_by_one = wf.arrow.encode(small.to_batches(), case.format, adapt=True).to_pylist()
    assert one_by_one == answers(whole)[-1]
