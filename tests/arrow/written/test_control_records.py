"""BEGIN and COMMIT rows that are written a column at a time, and those that are left to Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from .test_encode import COMPILED, INSERT, OPTIONS, check, outcome, rows_without_python, table

TIME = "2026-03-02 08:00:00.022708+08"
BEGINS = {
    "gaussdb-binary": wf.Begin(lsn=5, csn=(1 << 64) - 1, first_lsn=0xABC00000DEF, commit_time=TIME, username="ü"),
    "pgoutput": wf.Begin(xid=7, commit_lsn=(1 << 64) - 1, commit_time=TIME),
}
COMMITS = {
    "gaussdb-binary": wf.Commit(lsn=6, xid=1 << 40, commit_time=TIME),
    "pgoutput": wf.Commit(commit_lsn=3, end_lsn=(1 << 64) - 2, commit_time="0044-03-15 12:00:00.5+00 BC"),
}


@pytest.mark.parametrize("format", COMPILED)
def test_transactions_are_written_a_column_at_a_time(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all options; batches are closed at the right record. Times before Christ are left to Python."""
    begin, commit = BEGINS[format], COMMITS[format]
    other = replace(commit, commit_time="infinity" if format == "gaussdb-binary" else TIME)
    some = [begin, INSERT, other, begin, INSERT, INSERT, commit]
    kinds = rows_without_python(monkeypatch)
    for options in OPTIONS[format]:
        events = some * 100
        check(table(events), events, format, options=options, batch_bytes=1000)
    assert "BEGIN" not in kinds
    assert kinds.count("COMMIT") == (0 if format == "gaussdb-binary" else 100)


@pytest.mark.parametrize("format", COMPILED)
@pytest.mark.parametrize(
    "changed",
    [
        {"lsn": None},
        {"xid": None},
        {"xid": -1},
        {"csn": 5},
        {"csn": None},
        {"commit_lsn": 5},
        {"commit_lsn": None},
        {"commit_time": None},
        {"detail": None},
        {"detail": []},
        {"detail": [("commit_time", TIME), ("first_lsn", "1/2"), ("commit_time", "2000-01-01 00:00:00+00")]},
        {"detail": [("commit_time", None), ("end_lsn", "1/2")]},
        {"detail": [("commit_time", TIME), ("end_lsn", "1/23456789A")]},
        {"detail": [("commit_time", "yesterday"), ("end_lsn", "1/2"), ("first_lsn", "1/2")]},
        {"detail": [("commit_time", TIME), ("origin", "5"), ("first_lsn", "1/2"), ("end_lsn", "1/2")]},
        {"detail": [("commit_time", TIME), ("gid", "x"), ("first_lsn", "1/2"), ("end_lsn", "1/2")]},
        {"detail": [("commit_time", TIME), ("content", "x"), ("first_lsn", "1/2"), ("end_lsn", "1/2")]},
        {"detail": [("username", "x"), ("first_lsn", "1/2"), ("end_lsn", "1/2")]},
    ],
    ids=str,
)
def test_transactions_with_something_unusual(format: str, changed: dict[str, Any]) -> None:
    """One row of many is not plain: the same bytes, or the same words."""
    events: list[wf.Event] = [BEGINS[format], COMMITS[format]] * 70
    rows = table(events).to_pylist()
    for options in OPTIONS[format]:
        for odd in (80, 81):
            some = pa.Table.from_pylist(
                [{**row, **changed} if index == odd else row for index, row in enumerate(rows)], wf.arrow.CHANGES
            )
            for adapt in (False, True):
                direct, by_events = (
                    outcome(wf.arrow.encode, some, format, options=options, engine=engine, adapt=adapt)
                    for engine in ("scan", "declaration")
                )
                assert direct == by_events
