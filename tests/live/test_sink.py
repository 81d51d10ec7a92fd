"""The lake that `follow` writes, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.lake.options import LakeOptions
from wireformat.live.sink import Sink
from wireformat.stream.capture_position import SlotPosition

from ..lake.histories import messages_of
from ..lake.reading import read
from ..lake.test_later_writes import INSERTED, transaction, update


def test_a_batch_knows_the_columns_of_those_before(tmp_path: Path) -> None:
    """GaussDB omits a value that was not sent, and no change of the second batch has the column."""
    others: dict[str, Any] = dict.fromkeys(
        ("tables", "partition_by", "schemas", "rejects", "filesystem", "storage_options")
    )
    options = LakeOptions.check(format="delta", state="latest", keys=["id"], mode="FAILFAST", **others)
    sink = Sink(tmp_path, options, {}, None)
    for number, change in enumerate((INSERTED, update("1", id="2", name="b")), 1):
        batch = messages_of([transaction(number, change)])
        sink.write(batch, "gaussdb-binary", sink.position(), SlotPosition("1", "slot", 100 * number + 51))
    (row,) = read(tmp_path, ("public", "t")).to_pylist()
    assert (row["id"], row["body"], row["_unchanged"]) == (2, "TEXT", None)
    assert wf.lake.position(tmp_path) == sink.position()


def test_a_lake_that_is_gone(tmp_path: Path) -> None:
    """As where its disk is not mounted: no other run has written to it."""
    others: dict[str, Any] = dict.fromkeys(
        ("tables", "partition_by", "keys", "schemas", "rejects", "filesystem", "storage_options")
    )
    sink = Sink(
        tmp_path / "lake", LakeOptions.check(format="parquet", state="changes", mode="FAILFAST", **others), {}, None
    )
    first, second = (SlotPosition("1", "slot", lsn) for lsn in (100, 200))
    sink.check_alone(None, first)
    after, _ = sink.write(messages_of([transaction(1, INSERTED)]), "gaussdb-binary", None, first)
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    with pytest.raises(wf.LakeError, match=r"where this run continues, got none: put it back"):
        sink.write(messages_of([transaction(2, INSERTED)]), "gaussdb-binary", after, second)
    assert not (tmp_path / "lake").exists()
