"""Rows of many tables in groups: what waits keeps no values of rows that have gone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.noted.changes import CommittedRows, rows_by_table
from wireformat.arrow.noted.selection import NotedSelection
from wireformat.sources import groups
from wireformat.sources.groups import Groups

from ..lake.histories import messages_of, transactions


def read_rows(capture: wf.Capture) -> Iterator[CommittedRows]:
    """Yields the committed rows of a capture, as lakes read them."""
    for rows, _ in capture._committed(capture._options):
        if rows is not None:
            yield rows


def held_bytes(rows: NotedSelection) -> int:
    """What the arrays of rows keep in memory, also of other rows."""
    columns = sum(buffer.size for column in rows.columns.values() for buffer in column.buffers() if buffer is not None)
    arrays = [array if array.base is None else array.base for array in (rows.layout_codes, rows.starts)]
    return len(rows.values.source) + rows.values.pairs.nbytes + columns + sum(array.nbytes for array in arrays)


def rows_without_values(count: int) -> pa.ChunkedArray:
    """Returns test_decoding's messages of a row with a long text among many rows without values."""
    deletes = ["table public.b: DELETE: (no-tuple-data)"] * count
    long_text = "y" * 50 * count
    lines = ["BEGIN 7", f"table public.a: INSERT: id[integer]:1 t[text]:'{long_text}'", *deletes, "COMMIT 7"]
    return pa.array([line.encode() for line in lines], pa.binary())


def test_rows_without_values_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUP_ROWS", 1000)
    made = Groups(1 << 30)
    for rows in read_rows(wf.Capture(rows_without_values(1000), "test-decoding")):
        for table, own in rows_by_table(rows, ()):
            made.take(table, own)
    ((_, gone),) = made.full()
    made.let_go()
    ((_, (waiting,)),) = made.rest()
    assert sum(map(len, gone)) == 1000
    assert isinstance(waiting, NotedSelection)
    assert len(waiting) == 1
    assert held_bytes(waiting) <= 2 * waiting.nbytes


@pytest.mark.parametrize("engine", ["scan", "declaration"])
def test_what_waits_keeps_no_values_of_tables_that_are_not_needed(engine: str) -> None:
    """Where records of other tables are not stepped over."""
    capture = wf.Capture(rows_without_values(10), "test-decoding", engine=engine)
    found = [found for rows in read_rows(capture) for found in rows_by_table(rows, (), lambda table: table[1] == "b")]
    ((table, waiting),) = found
    assert table == ("public", "b")
    assert isinstance(waiting, NotedSelection)
    assert len(waiting.values.source) < 500  # that is the size of the text in the other table


def test_each_part_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[NotedSelection] = []
    alone = NotedSelection.alone
    monkeypatch.setattr(NotedSelection, "alone", lambda rows: (looked.append(rows), alone(rows))[1])
    capture = wf.Capture(messages_of([*transactions(300)]), "gaussdb-binary")
    most = max(capture.tables()["changes"].to_pylist())
    monkeypatch.setattr(groups, "GROUP_ROWS", most)
    (batch,) = capture.committed()
    made, parts = Groups(1 << 30), 0
    for _ in range(8):
        for table, rows in rows_by_table(batch, ()):
            assert isinstance(rows, NotedSelection)
            made.take(table, rows if len(rows) == most else rows.chosen(np.arange(1)))
            parts += 1
        assert [*made.full()]
        made.let_go()
    assert 0 < len(looked) <= parts


def test_what_has_gone_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = wf.Capture(messages_of([*transactions(300)]), "gaussdb-binary")
    (batch,) = capture.committed()
    made = Groups(1 << 30)
    gone: list[weakref.ref[NotedSelection]] = []
    for table, rows in rows_by_table(batch, ()):
        assert isinstance(rows, NotedSelection)
        made.take(table, rows)
        gone.append(weakref.ref(rows))
    del rows
    left = made.rest()
    for number, (_, parts) in enumerate(left):
        del parts
        gc.collect()
        assert [one() is None for one in gone] == [place < number for place in range(len(gone))]


def test_what_waits_keeps_no_values_of_rows_that_have_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = wf.Capture(messages_of([*transactions(300)]), "gaussdb-binary")
    monkeypatch.setattr(groups, "GROUP_ROWS", max(capture.tables()["changes"].to_pylist()))
    made = Groups(1 << 30)
    for batch in capture.committed():
        for table, rows in rows_by_table(batch, ()):
            made.take(table, rows)
    ((_, gone),) = made.full()
    made.let_go()
    waiting = [rows for _, parts in made.rest() for rows in parts]
    assert gone
    assert waiting
    for rows in waiting:
        assert isinstance(rows, NotedSelection)
        assert rows.alone() is rows
        assert held_bytes(rows) <= 2 * rows.nbytes
