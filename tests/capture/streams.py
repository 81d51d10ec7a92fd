"""Streams of servers, and small ones of pgoutput made by hand, for the tests of `Capture`."""

from __future__ import annotations

import pyarrow as pa

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

from ..servers.captures import read_capture

CUT = next(message for message in read_capture("18-pgoutput-1").messages if message[:1] == b"I")[:-1]
"""A message that ends too early."""

TIME = "2026-11-22 10:00:00+00"
XID = 5
AB, ABC = ("a", "b"), ("a", "b", "c")


def stream(name: str) -> tuple[list[bytes], str]:
    return read_capture(name).messages, "pgoutput" if "pgoutput" in name else "test-decoding"


def without_positions(table: pa.Table) -> pa.Table:
    """The rows without their positions, which count from the beginning of what was read."""
    return table.drop_columns(["message", "record"])


def relation(*columns: str, keys: tuple[str, ...], identity: str, xid: int | None = None) -> wf.Relation:
    return wf.Relation(
        relation_id=1,
        table_schema="public",
        table_name="t",
        replica_identity=identity,
        columns=columns,
        type_oids=(25,) * len(columns),
        typmods=(-1,) * len(columns),
        key_columns=keys,
        xid=xid,
    )


def insert(*columns: str, values: tuple[str, ...], xid: int | None = None) -> wf.Insert:
    row = wf.TupleData(columns, values, ("text",) * len(columns))
    return wf.Insert(table_schema="public", table_name="t", new=row, xid=xid)


def committed(lsn: int, *events: wf.Event) -> list[wf.Event]:
    begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=TIME)
    return [begin, *events, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]


def block(xid: int, *events: wf.Event, is_first: bool = True) -> list[wf.Event]:
    return [wf.StreamStart(xid=xid, first_segment=is_first), *events, wf.StreamStop()]


def rows_of(xid: int | None) -> list[wf.Event]:
    return [relation("id", keys=("id",), identity="default", xid=xid), insert("id", values=("1",), xid=xid)]


def position_after(events: list[wf.Event], after: CapturePosition | None = None) -> CapturePosition:
    capture = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput", after=after)
    capture.committed().read_all()
    return capture.position


def streamed_commit(lsn: int) -> list[wf.Event]:
    return [wf.StreamCommit(xid=XID, commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]
