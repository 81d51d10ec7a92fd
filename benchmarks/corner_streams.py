"""Corners of streamed transactions of pgoutput: short blocks, tables that are described in them, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

import wireformat as wf

from .corner import Corner
from .corner_records import TIME, P, as_array, relation, row_of
from .generate import PGOUTPUT

TABLES = 20

Ends = Callable[[int], list[wf.Event]]
"""The messages that end the transaction with an xid."""


def committed(xid: int) -> list[wf.Event]:
    """With all that it changed."""
    return [wf.StreamCommit(xid=xid, commit_lsn=xid, end_lsn=xid + 1, commit_time=TIME)]


def aborted(xid: int) -> list[wf.Event]:
    """Without what a subtransaction changed."""
    return [wf.StreamAbort(xid=xid, subxid=xid + 1), *committed(xid)]


def prepared(xid: int) -> list[wf.Event]:
    """And committed then."""
    gid = f"gid {xid}"
    return [
        wf.StreamPrepare(xid=xid, lsn=xid, end_lsn=xid + 1, prepare_time=TIME, gid=gid),
        wf.CommitPrepared(xid=xid, commit_lsn=xid + 2, end_lsn=xid + 3, commit_time=TIME, gid=gid),
    ]


def streams(
    of_transaction: int, of_block: int, described: int = 0, end: Ends = committed, messages: bool = False
) -> Corner:
    """Transactions with so many rows, in blocks of so many.

    described   how many tables each transaction describes
    messages    whether a logical message follows each row
    """

    def events(rows: int) -> Iterator[wf.Event]:
        yield from (relation(table) for table in range(TABLES))
        for first in range(0, rows, of_transaction):
            xid, stop = first + 5, min(first + of_transaction, rows)
            for begin in range(first, stop, of_block):
                yield wf.StreamStart(xid=xid, first_segment=begin == first)
                if begin == first:
                    yield from (replace(relation(table), xid=xid) for table in range(described))
                for row in range(begin, min(begin + of_block, stop)):
                    yield row_of(row, row % TABLES, xid=xid)
                    if messages:
                        yield wf.Message(xid=xid, lsn=row, transactional=True, prefix="p", content="some content")
                yield wf.StreamStop()
            yield from end(xid)

    def make(rows: int) -> pa.Array:
        return as_array(wf.encode(events(rows), PGOUTPUT))

    name = f"{PGOUTPUT}: streamed, {of_transaction} rows in blocks of {of_block}"
    name += f", {described} tables described" if described else ""
    name += ", subtransactions aborted" if end is aborted else ", two-phase" if end is prepared else ""
    is_tiny = of_transaction == 1  # most bytes are those of the records around a row
    return Corner(name + (", messages" if messages else ""), PGOUTPUT, make, P, per_row=is_tiny)


STREAMS: tuple[Corner, ...] = (
    streams(1000, 10),
    streams(1000, 1000, TABLES),
    streams(100, 100, TABLES),
    streams(1, 1),
    streams(3, 3),
    streams(10, 10),
    streams(10, 10, 10),
    streams(10, 10, end=aborted),
    streams(10, 10, end=prepared),
    streams(1000, 100, messages=True),
)
