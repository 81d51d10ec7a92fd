"""Rows of many tables in groups: what waits keeps no values of rows that have gone."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.noted.changes import CommittedRows, rows_by_table
from wireformat.arrow.noted.selection import NotedSelection
from wireformat.options.table_names import TableName
from wireformat.sources import groups
from wireformat.sources.groups import JOINED_PARTS, Groups, first_rows, groups_of_tables, size_of

from ..lake.histories import messages_of, transactions


def read_rows(capture: wf.Capture) -> Iterator[CommittedRows]:
    """Yields the committed rows of a capture, as lakes read them."""
    for rows, _ in capture._committed(capture._options):
        if rows is not None:
            yield rows


def held_bytes(rows: NotedSelection) -> int:
    """What the arrays of rows keep in memory, also of other rows."""
    columns = sum(buffer.size for column in rows.columns.values() for buffer in column.buffers() if buffer is not None)
    arrays = [array if array.base is None else array.base for array in (rows.layout_codes, rows.starts, rows.facts)]
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


def parts_of_one_row(tables: int, rows: int) -> list[tuple[TableName, NotedSelection]]:
    """Returns so many rows of each of the tables a0, a1, …, each row a part of its own, with the id 0, 1, …"""
    inserts = (f"table public.a{table}: INSERT: id[integer]:{row}" for row in range(rows) for table in range(tables))
    lines = [line for insert in inserts for line in ("BEGIN 7", insert, "COMMIT 7")]
    messages = pa.array([line.encode() for line in lines], pa.binary())
    parts = []
    for number in range(rows):
        piece = messages.slice(3 * tables * number, 3 * tables)
        for found in read_rows(wf.Capture(piece, "test-decoding")):
            for table, own in rows_by_table(found, ()):
                assert isinstance(own, NotedSelection)
                parts.append((table, own))
    return parts


def test_small_parts_of_a_table_become_one() -> None:
    made = Groups(1 << 30)
    for table, rows in parts_of_one_row(3, 100):
        made.take(table, rows)
    left = [*made.rest()]
    assert [table for table, _ in left] == [("public", f"a{number}") for number in range(3)]
    for _, parts in left:
        assert len(parts) <= JOINED_PARTS
        noted = [rows for rows in parts if isinstance(rows, NotedSelection)]
        ids = [value for rows in noted for value in rows.values.chosen(rows.starts[0]).strings().to_pylist()]
        assert ids == [str(row) for row in range(100)]


def test_parts_are_joined_before_groups_go_early() -> None:
    parts = parts_of_one_row(20, JOINED_PARTS - 1)
    size = sum(rows.nbytes for _, rows in parts)
    made = Groups(size // 2)
    for table, rows in parts:
        made.take(table, rows)
        assert [*made.full()] == []
    assert [sum(map(len, rows)) for _, rows in made.rest()] == [JOINED_PARTS - 1] * 20


def test_parts_are_joined_before_the_messages_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of tables is made early, which takes another reading, only if joined parts are too large, too."""
    parts = parts_of_one_row(20, JOINED_PARTS - 1)
    size = sum(rows.nbytes for _, rows in parts)
    monkeypatch.setattr(groups, "rows_by_table", lambda part, *_: [part])

    def taken_when_listed(memory: int) -> int:
        taken: list[Any] = []
        listed: list[int] = []

        def each() -> Iterator[Any]:
            for part in parts:
                taken.append(part)
                yield part

        found = groups_of_tables(
            each(), (), lambda _: True, memory, lambda: bool(listed), lambda: listed.append(len(taken))
        )
        assert sum(len(rows) for _, group in found for rows in group) == len(parts)
        return listed[0]

    assert taken_when_listed(size // 2) == len(parts)
    assert taken_when_listed(size // 100) < len(parts)


def test_waiting_rows_keep_little_of_what_was_joined() -> None:
    """A row of a rare table shares its values with those of tables that have rows in each piece."""
    memory, hot = 8 << 20, [f"table public.hot{number}: INSERT: v[text]:'{'x' * 10_000}'" for number in range(20)]
    made = Groups(memory)
    for piece in range(32):
        lines = ["BEGIN 7", *hot, f"table public.rare{piece}: INSERT: v[text]:'a'", "COMMIT 7"]
        for found in read_rows(wf.Capture([line.encode() for line in lines], "test-decoding")):
            for table, rows in rows_by_table(found, ()):
                made.take(table, rows)
                assert [*made.full()] == []
            made.let_go()
    waiting = [rows for _, group in made.rest() for rows in group]
    sources = {id(rows.values.source): len(rows.values.source) for rows in waiting if isinstance(rows, NotedSelection)}
    assert 32 * 20 * 10_000 < sum(sources.values()) < memory


def test_what_small_parts_take_is_counted() -> None:
    parts_of_one_row(1000, 1)
    tracemalloc.start()
    parts = parts_of_one_row(1000, 1)
    size, _ = tracemalloc.get_traced_memory()  # of Python and numpy; Arrow's own objects are not in it
    tracemalloc.stop()
    assert len(parts) == 1000
    assert size < sum(size_of(rows) for _, rows in parts) < 4 * size


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


def test_the_first_rows_of_several_parts() -> None:
    """Of what was read again, as many as there were: a file may have grown."""
    parts = [pa.record_batch({"a": [1, 2, 3]}), pa.record_batch({"a": [4, 5, 6]}), pa.record_batch({"a": [7]})]
    for count in range(8):
        found = first_rows([*parts], count)
        assert [value for part in found for value in part["a"].to_pylist()] == [*range(1, count + 1)]
        assert all(map(len, found))
