"""The client's line of each kind of event; the reference captures in test_show.py have the rest."""

from __future__ import annotations

from typing import Any

import pytest

import wireformat as wf
from wireformat.cli.show import LINES, client_line

FACTS: dict[str, Any] = {"xid": 7, "commit_time": "2026-11-21 01:02:03+08", "origin": -1, "username": "ana"}
PRINTED_FACTS = "xid: 7 commit_time: 2026-11-21 01:02:03+08 origin_id: -1 username: ana"
IMAGE = wf.TupleData(("a", "Order", 'q"'), ("1", None, ""), ("integer", "text", "oid:16385"))
PRINTED_IMAGE = '{a[typid = 23]: "1", "Order"[typid = 25]: "NULL", "q"""[typid = 16385]: ""}'


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (wf.Begin(lsn=1, csn=2, first_lsn=1 << 32), "current_lsn: 0/1 BEGIN CSN: 2 first_lsn: 1/0"),
        (
            wf.Begin(lsn=1, csn=2, first_lsn=3, **FACTS),
            f"current_lsn: 0/1 BEGIN CSN: 2 first_lsn: 0/3 {PRINTED_FACTS}",
        ),
        (wf.Commit(lsn=1), "current_lsn: 0/1 COMMIT "),
        (wf.Commit(lsn=1, commit_time="infinity"), "current_lsn: 0/1 COMMIT  commit_time: infinity"),
        (
            wf.Commit(lsn=1, **FACTS),
            f"current_lsn: 0/1 COMMIT {PRINTED_FACTS}",
        ),
        (
            wf.Insert(lsn=1, table_schema="s s", table_name="T", new=IMAGE),
            f"current_lsn: 0/1 INSERT INTO s s.T new_tuple: {PRINTED_IMAGE}",
        ),
        (
            wf.Update(lsn=1, table_schema="s", table_name="t", new=wf.TupleData(), old=IMAGE),
            f"current_lsn: 0/1 UPDATE s.t new_tuple: {{}} old_value: {PRINTED_IMAGE}",
        ),
        (wf.Delete(lsn=1, table_schema="s", table_name="t"), "current_lsn: 0/1 DELETE FROM s.t"),
        (wf.Heartbeat(wal_end=1, wal_flushed=2, time=-3), "HEARTBEAT wal_end: 1 wal_flushed: 2 time: -3"),
        (
            wf.Heartbeat(lsn=9, wal_end=0, wal_flushed=0, time=0),
            "current_lsn: 0/9 HEARTBEAT wal_end: 0 wal_flushed: 0 time: 0",
        ),
        (
            wf.Begin(lsn=1, xid=7, gid="it's", end_lsn=2, prepare_time="2026-11-21 01:02:03+00"),
            "current_lsn: 0/1 BEGIN xid: 7 end_lsn: 0/2 gid: 'it''s' prepare_time: 2026-11-21 01:02:03+00",
        ),
        (
            wf.Commit(commit_lsn=1, end_lsn=2, commit_time="2026-11-21 01:02:03+00"),
            "COMMIT  commit_time: 2026-11-21 01:02:03+00 commit_lsn: 0/1 end_lsn: 0/2",
        ),
        (
            wf.CommitPrepared(xid=7, gid="g", commit_time="2026-11-21 01:02:03+00", commit_lsn=1, end_lsn=2),
            "COMMIT PREPARED 'g', txid 7 (at 2026-11-21 01:02:03+00) commit_lsn: 0/1 end_lsn: 0/2",
        ),
        (wf.StreamStart(xid=7, first_segment=True), "opening a streamed block for transaction TXN 7, its first"),
        (wf.StreamStop(), "closing a streamed block for transaction"),
        (wf.StreamAbort(xid=7, subxid=8), "aborting streamed (sub)transaction TXN 7 subxid: 8"),
        (wf.StreamPrepare(gid="g", xid=7), "preparing streamed transaction 'g', txid 7"),
        (
            wf.Message(lsn=1, transactional=True, prefix="p", content=b"\0\xff"),
            r"current_lsn: 0/1 message: transactional: 1 prefix: p content:\x00ff",
        ),
        (
            wf.Relation(
                relation_id=9,
                table_schema="s",
                table_name="t",
                replica_identity="default",
                columns=("a", "B"),
                type_oids=(23, 25),
                typmods=(-1, 8),
                key_columns=("a",),
            ),
            (
                "RELATION s.t relation_id: 9 replica_identity: default "
                'columns: a, "B" type_oids: 23, 25 typmods: -1, 8 key_columns: a'
            ),
        ),
        (
            wf.Update(
                table_schema="s",
                table_name="t",
                new=wf.TupleData(("a", "b"), (wf.UNCHANGED, "\\x00"), ("text", "point")),
                old=wf.TupleData(("a",), (None,), ("text",)),
                xid=7,
                old_kind="key",
                binary=("b",),
            ),
            (
                r'UPDATE s.t new_tuple: {a[typid = 25]: unchanged-toast-datum, b[typid = 600]: "\x00"} '
                'old_value: {a[typid = 25]: "NULL"} xid: 7 old_is: key binary: b'
            ),
        ),
        (wf.Heartbeat(wal_end=1, time=2, reply=True), "HEARTBEAT wal_end: 1 time: 2 reply: 1"),
        (wf.Unknown(lsn=1, raw=b"Z\x00\xff"), r"current_lsn: 0/1 UNKNOWN raw: \x5a00ff"),
        (wf.Corrupt(error="bad tag: …", raw=b"\x0a"), r"CORRUPT error: bad tag: … raw: \x0a"),
    ],
    ids=lambda value: value.kind if isinstance(value, wf.Event) else "",
)
def test_the_line_of_each_event(event: wf.Event, line: str) -> None:
    assert client_line(event) == line


def test_every_event_has_a_line() -> None:
    names = [getattr(wf, name) for name in wf.__all__]
    events = {kind for kind in names if isinstance(kind, type) and issubclass(kind, wf.Event)}
    assert events - {wf.Event, wf.RowChange} == set(LINES)
