"""States of `wf.arrow.Transactions` with their rows as files: `python -m tests.arrow.saved_state FOLDER` writes some.

The files under `saved` were written so, and stay as they are: later releases must read them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import wireformat as wf

from ..histories import table

KEPT = Path(__file__).parent / "saved"
STATE, BEFORE, AFTER = "transactions.state", "before.arrow", "after.arrow"

ROW = wf.TupleData(("id",), ("1",), ("integer",))
TIME = "2026-11-22 02:03:04.000005+00"


def change(table: str, **other: Any) -> wf.Event:
    return wf.Insert(table_schema="public", table_name=table, new=ROW, **other)


STREAMED: list[wf.Event] = [
    wf.StreamStart(xid=7, first_segment=True),
    wf.Origin(origin="näher"),
    change("streamed", xid=7),
    change("undone", xid=8),
    wf.StreamStop(),
    wf.StreamAbort(xid=7, subxid=8),
]
PREPARED: list[wf.Event] = [
    wf.Begin(lsn=30, first_lsn=30, commit_lsn=36, xid=9, gid="first"),
    change("prepared", lsn=31),
    wf.Prepare(lsn=36, xid=9, gid="first", prepare_time=TIME),
    wf.StreamStart(xid=10, first_segment=True),
    change("streamed and prepared", xid=10),
    wf.StreamStop(),
    wf.StreamPrepare(lsn=40, xid=10, gid="second", prepare_time=TIME),
]
ENDS: list[wf.Event] = [
    wf.StreamCommit(lsn=60, commit_lsn=60, xid=7, commit_time=TIME),
    wf.CommitPrepared(lsn=70, commit_lsn=70, xid=9, gid="first", commit_time=TIME),
    wf.RollbackPrepared(lsn=80, xid=10, gid="second"),
]

HISTORIES: dict[str, tuple[dict[str, Any], list[wf.Event], list[wf.Event]]] = {
    "transaction": (
        {"two_phase": "commit"},
        [
            *[wf.Begin(lsn=10, csn=3, commit_lsn=12, xid=5), change("done", lsn=11), wf.Commit(lsn=13, commit_lsn=12)],
            *STREAMED,
            *PREPARED,
            wf.Begin(lsn=50, csn=4, commit_lsn=53, xid=11, commit_time=TIME, username="someone"),
            change("plain", lsn=51),
        ],
        [change("more", lsn=52), wf.Commit(lsn=53, commit_lsn=53, xid=11), *ENDS],
    ),
    "block": (
        {"two_phase": "prepare", "drop_resent": False},
        [*STREAMED, *PREPARED, wf.StreamStart(xid=7, first_segment=False), change("block", xid=7)],
        [change("undone", xid=8), wf.StreamStop(), *ENDS],
    ),
}
"""Name to options, the events before the state was written, and those after it."""


class Files:
    """A `RowStore` in a folder, which outlives the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, batch: pa.RecordBatch) -> str:
        handle = f"rows-{max((int(handle[5:]) for handle in self.handles), default=-1) + 1}"
        write(self.folder / f"{handle}.arrow", pa.Table.from_batches([batch]))
        return handle

    def get(self, handle: Any) -> pa.RecordBatch:
        if handle not in self.handles:
            raise KeyError(handle)
        (batch,) = read(self.folder / f"{handle}.arrow").to_batches()
        return batch

    def drop(self, handle: Any) -> None:
        if handle not in self.handles:
            raise KeyError(handle)
        (self.folder / f"{handle}.arrow").unlink()

    @property
    def handles(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("rows-*.arrow"))


def write(path: Path, rows: pa.Table) -> None:
    with pa.ipc.new_stream(str(path), rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)


def read(path: Path) -> pa.Table:
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        return reader.read_all()


def keep(folder: Path) -> None:
    """Write state and rows of each history, a folder each."""
    for name, (options, before, after) in HISTORIES.items():
        own = folder / name
        own.mkdir(parents=True)
        write(own / BEFORE, table(before))
        write(own / AFTER, table(after))
        transactions = wf.arrow.Transactions(**options, store=Files(own))
        for batch in table(before).to_batches():
            for _ in transactions.take(batch):
                pass
        (own / STATE).write_bytes(transactions.state)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
