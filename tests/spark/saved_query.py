"""A streaming query that stopped in the middle, as files: `python -m tests.spark.saved_query FOLDER` writes them.

The files under `saved` were written so, and stay as they are: later releases must go on with them.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq

from ..chunks.saved_stream import STOPS, stopped
from . import killed_capture
from .raw_streams import rows_of

KEPT = Path(__file__).parent / "saved"
BEFORE, AFTER = "before.parquet", "after.parquet"
CHECKPOINT = "checkpoint"

NOWHERE = "/checkpoint-was-here"
"""Stands in kept files for the folder in which the query ran: Spark notes absolute paths."""

BEGUN = 1_700_000_000

SETTINGS = {"spark.sql.shuffle.partitions": 1}


def keep(folder: Path) -> None:
    """Runs a query over the messages before the restart, and tidies what it leaves."""
    messages, count = stopped("pgoutput", STOPS["pgoutput"])
    rows = rows_of("one", messages, range(len(messages)))
    (folder / "rows").mkdir(parents=True)
    pq.write_table(rows.slice(0, count), folder / "rows" / BEFORE)
    os.utime(folder / "rows" / BEFORE, (BEGUN, BEGUN))
    killed_capture.main(folder, SETTINGS)
    (folder / "rows" / BEFORE).rename(folder / BEFORE)
    pq.write_table(rows.slice(count), folder / AFTER)
    shutil.rmtree(folder / "rows")
    shutil.rmtree(folder / "found")
    for path in folder.rglob("*.crc"):
        path.unlink()  # Hadoop's checksums, which would not fit what is replaced
    _replace(folder, str(folder.resolve()), NOWHERE)


def restore(kept: Path, folder: Path) -> None:
    """Puts a checkpoint into FOLDER as the query left it, and the messages that come next into FOLDER/rows."""
    shutil.copytree(kept / CHECKPOINT, folder / CHECKPOINT)
    _replace(folder, NOWHERE, str(folder.resolve()))
    (folder / "rows").mkdir()
    shutil.copy(kept / AFTER, folder / "rows")
    os.utime(folder / "rows" / AFTER, (BEGUN + 1, BEGUN + 1))


def messages_of(kept: Path) -> tuple[list[bytes], list[bytes]]:
    """Returns the messages before and after the restart."""
    before, after = (pq.read_table(kept / name)["value"].to_pylist() for name in (BEFORE, AFTER))
    return before, after


def _replace(folder: Path, old: str, new: str) -> None:
    for path in (folder / CHECKPOINT).rglob("*"):
        if path.is_file() and old.encode() in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
