"""The sinks of docs/spark_live.md, without Spark: a batch that comes again changes nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import wireformat as wf

from . import slot_query
from .slot_messages import transaction


class Rows:
    """A DataFrame, as far as the sink asks."""

    def __init__(self, ids: list[int]) -> None:
        messages = [payload for _, payload in transaction(100, ids, describes=True)]
        self._rows = wf.Capture(messages, "pgoutput", threads=1).typed("public.t").read_all()

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self._rows


def test_delta(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    lake = str(tmp_path / "lake")
    write = slot_query.sinks()["to_delta"](lake, "orders")
    for batch, ids in ((0, [1, 2]), (0, [1, 2]), (1, [3]), (0, [1, 2]), (1, [3])):
        write(Rows(ids), batch)
    rows = deltalake.DeltaTable(lake).to_pyarrow_table()
    assert sorted(rows["id"].to_pylist()) == [1, 2, 3]
