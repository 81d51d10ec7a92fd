"""Rows of layouts that are known are only counted: the list of tables is the same as if each were looked at."""

from __future__ import annotations

from typing import Any

import pytest

import wireformat as wf
from wireformat.arrow.noted.tables import NotedTables
from wireformat.arrow.typed_tables.observations import Observations
from wireformat.arrow.typed_tables.tables import TablesFound
from wireformat.chunks.capture import ChunkCapture

from ...lake.histories import messages_of, transactions
from ..scan.small_limits import shrink

FORMAT = "gaussdb-binary"


def altered() -> list[bytes]:
    """Messages of tables that have one column, then another one too, then the one again, and types that change."""
    parts = [*transactions(40, more="more"), *transactions(20, seed=8), *transactions(10, seed=9, more="other")]
    return messages_of(parts)


@pytest.fixture(params=[(1, 8), (30, 8), (100_000, 8), (1, 80), (1, 100_000)])
def group_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows are looked at together, in message batches of so many rows: the next ones may be counted."""
    group_rows, batch_rows = request.param
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=75 * batch_rows, MESSAGE_BATCH_ROWS=batch_rows)
    monkeypatch.setattr("wireformat.arrow.noted.tables.GROUP_ROWS", group_rows)
    return int(group_rows)


def both(verb: Any, messages: list[bytes]) -> tuple[Any, Any]:
    """What a verb gives with the notes of the scan, and with record batches."""
    noted, batches = (
        verb(wf.Capture(messages, FORMAT, engine=engine, threads=1)) for engine in ("scan", "declaration")
    )
    return noted, batches


@pytest.mark.usefixtures("group_rows")
@pytest.mark.parametrize("messages", [messages_of([*transactions(60)]), altered()], ids=["kept", "altered"])
def test_the_list_of_tables(messages: list[bytes]) -> None:
    noted, batches = both(lambda capture: capture.tables().to_pylist(), messages)
    assert noted == batches


@pytest.mark.usefixtures("group_rows")
@pytest.mark.parametrize("messages", [messages_of([*transactions(60)]), altered()], ids=["kept", "altered"])
def test_typed_rows_of_all_tables(messages: list[bytes]) -> None:
    def rows(capture: wf.Capture) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for table, batch in capture.typed_all():
            found.setdefault(table, []).extend(batch.to_pylist())
        return found

    noted, batches = both(rows, messages)
    assert noted == batches


@pytest.mark.usefixtures("group_rows")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("more", [None, "more"])
def test_what_a_chunk_observes(seed: int, more: str | None) -> None:
    """Tables with one version are counted in one pass, and begin a segment where each fact is first told."""
    parts = [*transactions(20, seed=seed), *transactions(10, seed=seed + 1, more=more or "note")]
    messages = messages_of(parts if more else parts[:20])
    found = []
    for engine in ("scan", "declaration"):
        observations = Observations()
        tables = NotedTables(observations)
        for rows in ChunkCapture(messages, FORMAT, engine=engine, threads=1).noted():
            tables.take(rows)
        tables.finish()
        found.append(sorted(observations.found(), key=lambda one: (one.table, *one.first.values(), one.facts)))
    assert found[0] == found[1]


def test_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tables that keep their columns, the rows of later message batches are not looked at."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=2000, MESSAGE_BATCH_ROWS=50)
    monkeypatch.setattr("wireformat.arrow.noted.tables.GROUP_ROWS", 1)
    counted: list[int] = []
    count = TablesFound.count

    def counting(*arguments: Any) -> None:
        counted.append(arguments[-1])
        count(*arguments)

    monkeypatch.setattr(TablesFound, "count", counting)
    parts = [*transactions(200)]
    changes = sum(len(part) - 2 for part in parts)
    capture = wf.Capture(messages_of(parts), FORMAT, threads=1)
    assert sum(capture.tables()["changes"].to_pylist()) == changes
    assert sum(counted) > changes // 2
