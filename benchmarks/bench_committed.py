"""wf.arrow.Transactions over transactions of several shapes, on one core: large, small, and open over many batches."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import wireformat as wf

from .contestants import Contestant
from .generate import BINARY
from .measure import Result

BATCH_ROWS = 1 << 14
LSN_STEP = 64


class Shape(NamedTuple):
    """What the transactions of a history are like.

    changes     row changes in each
    begin, stop, end   kinds of the records: before the row changes, behind them, and what commits them
    block       row changes between begin and stop; all of them if 0
    held        all of them end behind the last row change of all: so all are open at the same time
    share       of the row changes of the capture
    """

    changes: int
    begin: str
    stop: str | None
    end: str
    block: int = 0
    held: bool = False
    share: float = 0.1


STREAMED = ("STREAM_START", "STREAM_STOP", "STREAM_COMMIT")
TWO_PHASE = ("BEGIN", "PREPARE", "COMMIT_PREPARED")

SHAPES = {
    "plain, 12 changes": Shape(12, "BEGIN", None, "COMMIT", share=1),
    "streamed, 20,000 changes in blocks of 1,000": Shape(20_000, *STREAMED, block=1000, share=1),
    "streamed, 2 changes": Shape(2, *STREAMED),
    "two-phase, 2 changes": Shape(2, *TWO_PHASE),
    "streamed, 2 changes, all open together": Shape(2, *STREAMED, held=True),
    "two-phase, 2 changes, all open together": Shape(2, *TWO_PHASE, held=True),
}


def history(payloads: pa.ChunkedArray, shape: Shape) -> list[pa.RecordBatch]:
    """Row changes with the cells of the messages, in batches of BATCH_ROWS."""
    cells = wf.arrow.changes(payloads, BINARY, kinds=["INSERT", "UPDATE", "DELETE"]).combine_chunks()
    records: list[tuple[str | None, int, bool]] = []
    ends: list[tuple[str | None, int, bool]] = []
    for transaction, first in enumerate(range(0, len(cells), shape.changes)):
        count = min(shape.changes, len(cells) - first)
        for start in range(0, count, shape.block or count):
            size = min(shape.block or count, count - start)
            records += [(shape.begin, transaction, not start), *[(None, transaction, False)] * size]
            if shape.stop is not None:
                records.append((shape.stop, transaction, False))
        (ends if shape.held else records).append((shape.end, transaction, False))
    found, transactions, firsts = zip(*records, *ends, strict=True)
    kinds = pa.array(found, pa.string())
    is_change = kinds.is_null().to_numpy(zero_copy_only=False)
    rows = cells.take(pa.array(np.cumsum(is_change) - 1, mask=~is_change))
    numbers = np.arange(len(kinds))
    columns: dict[str, Any] = {
        "message": numbers,
        "kind": pa.chunked_array([kinds]).fill_null("INSERT"),
        "lsn": numbers * LSN_STEP,
        "xid": pa.array([1 + transaction for transaction in transactions], pa.int64()),
        **{
            name: pa.nulls(len(kinds), wf.arrow.CHANGES.field(name).type)
            for name in ("csn", "commit_lsn", "commit_time")
        },
        "detail": pa.array(
            [_detail(shape, *record) for record in zip(found, transactions, firsts, strict=True)],
            wf.arrow.CHANGES.field("detail").type,
        ),
    }
    table = pa.table([columns.get(name, rows[name]) for name in wf.arrow.CHANGES.names], schema=wf.arrow.CHANGES)
    return table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)


def _detail(shape: Shape, kind: str | None, transaction: int, first: bool) -> list[tuple[str, str]] | None:
    if kind is None:
        return None
    if kind == "STREAM_START":
        return [("first_segment", str(first).lower())]
    return [("gid", f"transaction {transaction}")] if shape.stop == "PREPARE" else None


def committed(batches: list[pa.RecordBatch]) -> int:
    """How many rows are delivered."""
    with wf.arrow.Transactions() as transactions:
        return sum(out.num_rows for batch in batches for out in transactions.take(batch))


def transactions_per_second(result: Result) -> float:
    """Of the shape of this name."""
    return result.changes_per_second / SHAPES[result.name].changes


CONTESTANTS = tuple(
    Contestant(
        name,
        committed,
        columns=len(wf.arrow.CHANGES) + 3,
        takes=partial(history, shape=shape),
        delivers="changes",
        share=shape.share,
    )
    for name, shape in SHAPES.items()
)
