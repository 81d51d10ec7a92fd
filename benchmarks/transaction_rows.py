"""Row changes of a long history, as Parquet: plain transactions of all sizes between the blocks of streamed ones.

The cells are those of the capture of `generate`; what orders them is made a block at a time, in numpy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import wireformat as wf

from .generate import BINARY, SEED, Capture

BLOCK_CHANGES = 250_000
"""Row changes in a file; no transaction goes beyond its end."""

PLAIN_CHANGES = 12
"""Of a plain transaction, on average; half of them have fewer than nine."""

STREAMED_SHARE = 0.25
"""Of the row changes, in four transactions a file."""

SEGMENT_CHANGES = 1000
LSN_STEP = 64
FIRST_LSN = 1 << 36
COMMIT_MICROS = 1_772_438_400_000_000
"""2026-03-02 08:00 in UTC."""

POSITION = "offset"
SCHEMA = pa.schema([pa.field(POSITION, pa.int64()), *[field for field in wf.arrow.CHANGES if field.name != "message"]])

STREAMED_ENDS = ("STREAM_COMMIT", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_COMMIT")
"""Of the four."""


class Unit(NamedTuple):
    """Records that follow each other: what begins them, row changes, what ends them."""

    begin: str | None
    changes: int
    end: str
    xid: int
    first: bool = False


class History(NamedTuple):
    """A folder of Parquet files with `offset`, which orders the rows, and the row-change table.

    changes     row changes in it
    delivered   how many of them are in transactions that are committed
    size        bytes of the files
    """

    folder: Path
    changes: int
    delivered: int
    size: int


def ready_history(folder: Path, capture: Capture, changes: int) -> History:
    """The history of so many row changes, in the folder; it is made if it is not there yet."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    path = folder / f"history-{changes}-{capture.version}-{version}"
    blocks = -(-changes // BLOCK_CHANGES)
    units = block_units(np.random.default_rng(SEED), min(changes, BLOCK_CHANGES))
    if not (path / "_SUCCESS").exists():
        path.mkdir(parents=True, exist_ok=True)
        block = block_rows(units, capture)
        for number in range(blocks):
            pq.write_table(moved(block, number, len(units)), path / f"{number:03}.parquet", compression="lz4")
        (path / "_SUCCESS").touch()
    rolled_back = {unit.xid for unit in units if unit.end == "STREAM_ABORT"}
    delivered = sum(unit.changes for unit in units if unit.xid not in rolled_back)
    return History(
        path,
        blocks * sum(unit.changes for unit in units),
        blocks * delivered,
        sum(file.stat().st_size for file in path.glob("*.parquet")),
    )


def block_units(chance: np.random.Generator, changes: int) -> list[Unit]:
    """Plain transactions, the blocks of streamed ones evenly between them, and the ends of those."""
    segments = [*pieces_of(int(changes * STREAMED_SHARE), lambda: SEGMENT_CHANGES)]
    plain = [*pieces_of(changes - sum(segments), lambda: int(chance.geometric(1 / PLAIN_CHANGES)))]
    xids = [1 + number % len(STREAMED_ENDS) for number in range(len(segments))]
    streamed = [
        (place, Unit("STREAM_START", size, "STREAM_STOP", xid, first=number == xids.index(xid)))
        for number, (place, size, xid) in enumerate(
            zip(np.linspace(0, len(plain), len(segments)), segments, xids, strict=True)
        )
    ]
    begun = [(place, Unit("BEGIN", size, "COMMIT", 5 + place)) for place, size in enumerate(plain)]
    ends = [Unit(None, 0, STREAMED_ENDS[xid - 1], xid) for xid in sorted(set(xids))]
    return [*(unit for _, unit in sorted([*begun, *streamed], key=lambda pair: pair[0])), *ends]


def pieces_of(total: int, size: Callable[[], int]) -> Iterator[int]:
    """Cut a number into such pieces."""
    while total:
        piece = min(total, size())
        total -= piece
        yield piece


def block_rows(units: list[Unit], capture: Capture) -> pa.Table:
    """The rows of these units."""
    kinds, xids, firsts = [], [], []
    for unit in units:
        streamed = unit.begin != "BEGIN"
        if unit.begin:
            kinds.append(unit.begin)
            xids.append(unit.xid)
            firsts.append(str(unit.first).lower() if streamed else None)
        kinds += [None] * unit.changes
        xids += [unit.xid if streamed else None] * unit.changes
        firsts += [None] * unit.changes
        kinds.append(unit.end)
        xids.append(unit.xid)
        firsts.append(None)
    count = len(kinds)
    kind = pa.array(kinds, pa.string())
    changed = kind.is_null().to_numpy(zero_copy_only=False)
    cells = wf.arrow.changes(capture.load(BINARY)["payload"], BINARY, kinds=["INSERT", "UPDATE", "DELETE"])
    places = np.where(changed, np.cumsum(changed) % cells.num_rows, 0)
    rows = cells.take(pa.array(places, mask=~changed))
    numbers = np.arange(count)
    names = kind.fill_null("").to_numpy(zero_copy_only=False)
    is_begin, is_end = names == "BEGIN", np.isin(names, ("COMMIT", "STREAM_COMMIT"))
    ends = numbers.copy()
    ends[is_begin] = numbers[names == "COMMIT"]  # where the transaction that begins here is committed
    says_end = is_begin | is_end
    lsns = FIRST_LSN + numbers * LSN_STEP
    columns: dict[str, Any] = {
        POSITION: numbers,
        "record": np.zeros(count, np.int32),
        "kind": pc.coalesce(kind, rows["kind"].combine_chunks()),
        "lsn": pa.array(lsns, mask=~changed),
        "xid": pa.array(xids, pa.int64()),
        "commit_lsn": pa.array(lsns[ends], mask=~says_end),
        "commit_time": pa.array(COMMIT_MICROS + ends, mask=~says_end).cast(SCHEMA.field("commit_time").type),
        "detail": pa.array([first and [("first_segment", first)] for first in firsts], SCHEMA.field("detail").type),
    }
    return pa.table(
        [columns.get(name, rows[name] if name in cells.column_names else None) for name in SCHEMA.names], schema=SCHEMA
    )


def moved(block: pa.Table, number: int, xids: int) -> pa.Table:
    """The same rows so many blocks later."""
    steps = {
        POSITION: block.num_rows,
        "lsn": block.num_rows * LSN_STEP,
        "commit_lsn": block.num_rows * LSN_STEP,
        "xid": xids,
    }
    for name, step in steps.items():
        place = block.column_names.index(name)
        block = block.set_column(place, SCHEMA.field(name), pc.add(block[name], number * step))
    return block
