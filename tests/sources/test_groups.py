"""Rows of many tables in groups: what waits keeps no values of rows that have gone."""

from __future__ import annotations

import pytest

import wireformat as wf
from wireformat.arrow.noted.changes import rows_by_table
from wireformat.arrow.noted.selection import NotedSelection
from wireformat.sources import groups
from wireformat.sources.groups import Groups

from ..lake.histories import messages_of, transactions


def test_what_waits_keeps_no_values_of_rows_that_have_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = wf.Capture(messages_of([*transactions(300)]), "gaussdb-binary")
    monkeypatch.setattr(groups, "GROUP_ROWS", max(capture.tables()["changes"].to_pylist()))
    made = Groups(1 << 30)
    for batch in capture.committed():
        for table, rows in rows_by_table(batch, ()):
            made.take(table, rows)
    ((_, gone),) = made.full()
    waiting = [rows for _, parts in made.rest() for rows in parts]
    assert gone
    assert waiting
    for rows in waiting:
        assert isinstance(rows, NotedSelection)
        assert rows.alone() is rows
