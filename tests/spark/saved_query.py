"""A streaming query that stopped in the middle, as files: `python -m tests.spark.saved_query FOLDER` writes them.

The files under `saved` were written so, and stay as they are: later releases must go on with them.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..arrow.saved_state import HISTORIES
from ..histories import table
from . import killed_query
from .many_streams import one_table

KEPT = Path(__file__).parent / "saved"
BEFORE, AFTER = "before.parquet", "after.parquet"
CHECKPOINT = "checkpoint"

NOWHERE = "/checkpoint-was-here"
"""Stands in kept files for the folder in which the query ran: Spark notes absolute paths."""

BEGUN = 1_700_000_000

SETTINGS = {"spark.sql.shuffle.partitions": 1}


def streams() -> tuple[pa.Table, pa.Table]:
    """Rows before and after the restart: a stream is in the middle of a transaction, another one in a block."""
    found = []
    for part in range(2):
        tables = {}
        for name, (_, before, after) in HISTORIES.items():
            rows = table([*before, *after])
            first = len(table(before))
            tables[name] = rows.slice(first) if part else rows.slice(0, first)
        found.append(one_table(tables))
    return found[0], found[1]


def keep(folder: Path) -> None:
    """Run a query over the rows before the restart, and tidy what it leaves."""
    before, after = streams()
    (folder / "rows").mkdir(parents=True)
    pq.write_table(before, folder / "rows" / BEFORE)
    os.utime(folder / "rows" / BEFORE, (BEGUN, BEGUN))
    killed_query.main(folder, SETTINGS)
    (folder / "rows" / BEFORE).rename(folder / BEFORE)
    pq.write_table(after, folder / AFTER)
    shutil.rmtree(folder / "rows")
    shutil.rmtree(folder / "found")
    for path in folder.rglob("*.crc"):
        path.unlink()  # Hadoop's checksums, which would not fit what is replaced
    _replace(folder, str(folder.resolve()), NOWHERE)


def restore(kept: Path, folder: Path) -> None:
    """A checkpoint in FOLDER as the query left it, and the rows that come next in FOLDER/rows."""
    shutil.copytree(kept / CHECKPOINT, folder / CHECKPOINT)
    _replace(folder, NOWHERE, str(folder.resolve()))
    (folder / "rows").mkdir()
    shutil.copy(kept / AFTER, folder / "rows")
    os.utime(folder / "rows" / AFTER, (BEGUN + 1, BEGUN + 1))


def _replace(folder: Path, old: str, new: str) -> None:
    for path in (folder / CHECKPOINT).rglob("*"):
        if path.is_file() and old.encode() in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
