"""Messages of pgoutput put together byte by byte, without the package, and the events that they say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import wireformat as wf

from .handmade import u16, u32, u64

TIME_TEXT = "2026-11-21 01:02:03.5+00"
EARLY_TEXT, EARLY = "1999-12-31 23:59:59.999999+00", b"\xff" * 8
MICROS = 1_000_000 * int(datetime(2026, 11, 21, 1, 2, 3, tzinfo=timezone.utc).timestamp()) + 500_000
TIME = u64(MICROS - 1_000_000 * int(datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp()))
NULL, UNCHANGED = b"n", b"u"
NO_MODIFIER = b"\xff" * 4

OID, OTHER_OID = 16385, 16390


def text(value: bytes) -> bytes:
    """A cell in text form."""
    return b"t" + u32(len(value)) + value


def binary(value: bytes) -> bytes:
    """A cell in the binary form of its type."""
    return b"b" + u32(len(value)) + value


def image(tag: bytes, *cells: bytes) -> bytes:
    """A row image behind the byte that says which."""
    return tag + u16(len(cells)) + b"".join(cells)


def column(name: bytes, oid: int = 25, *, is_key: bool = False, typmod: bytes = NO_MODIFIER) -> bytes:
    return bytes([is_key]) + name + b"\0" + u32(oid) + typmod


def relation(
    *columns: bytes,
    oid: int = OID,
    schema: bytes = b"public",
    table: bytes = b"t",
    identity: bytes = b"d",
    xid: bytes = b"",
) -> bytes:
    named = schema + b"\0" + table + b"\0" + identity
    return b"R" + xid + u32(oid) + named + u16(len(columns)) + b"".join(columns)


def change(kind: bytes, *images: bytes, oid: int = OID, xid: bytes = b"") -> bytes:
    return kind + xid + u32(oid) + b"".join(images)


def start(xid: int, *, is_first: bool = True) -> bytes:
    return b"S" + u32(xid) + bytes([is_first])


def stream_abort(xid: int, subxid: int) -> bytes:
    return b"A" + u32(xid) + u32(subxid)


def stream_commit(xid: int) -> bytes:
    return b"c" + u32(xid) + b"\0" + u64(5) + u64(6) + TIME


def keepalive(wal_end: int, micros_of_2000: int, reply: int) -> bytes:
    return b"k" + u64(wal_end) + u64(micros_of_2000 % (1 << 64)) + bytes([reply])


def envelope(message: bytes, lsn: int) -> bytes:
    """XLogData of the replication connection."""
    return b"w" + u64(lsn) + u64(lsn + 9) + EARLY + message


STOP = b"E"
COLUMNS = (column(b"id", 23, is_key=True), column(b"v"))
DESCRIBED = relation(*COLUMNS)
RELATION = wf.Relation(
    relation_id=OID,
    table_schema="public",
    table_name="t",
    replica_identity="default",
    columns=("id", "v"),
    type_oids=(23, 25),
    typmods=(-1, -1),
    key_columns=("id",),
)
BLOCK_XID = u32(801)
"""The xid of a subtransaction, in a block of transaction 800."""


def row(*values: Any) -> wf.TupleData:
    """A row of RELATION, or of its key."""
    return wf.TupleData(("id", "v")[: len(values)], values, ("integer", "text")[: len(values)])


def _committed(**more: Any) -> dict[str, Any]:
    return {"commit_lsn": 5, "end_lsn": 6, "commit_time": TIME_TEXT, **more}


_TABLE = {"table_schema": "public", "table_name": "t"}
_PREPARED = u64(5) + u64(6) + TIME + u32(700) + b"it's\0"
_PREPARED_FACTS: dict[str, Any] = {"lsn": 5, "end_lsn": 6, "prepare_time": TIME_TEXT, "xid": 700, "gid": "it's"}

ROWS: dict[str, tuple[bytes, wf.Event]] = {
    "insert": (change(b"I", image(b"N", text(b"1"), NULL)), wf.Insert(**_TABLE, new=row("1", None))),
    "update": (
        change(b"U", image(b"N", text(b"1"), UNCHANGED)),
        wf.Update(**_TABLE, new=row("1", wf.UNCHANGED)),
    ),
    "update of a key": (
        change(b"U", image(b"K", text(b"1"), NULL), image(b"N", text(b"2"), text(b""))),
        wf.Update(**_TABLE, new=row("2", ""), old=row("1"), old_kind="key"),
    ),
    "update of all": (
        change(b"U", image(b"O", text(b"1"), NULL), image(b"N", text(b"1"), text("é表\0".encode()))),
        wf.Update(**_TABLE, new=row("1", "é表\0"), old=row("1", None), old_kind="full"),
    ),
    "delete by key": (
        change(b"D", image(b"K", NULL, NULL)),
        wf.Delete(**_TABLE, old=row(None), old_kind="key"),
    ),
    "delete by a key with more in it": (
        change(b"D", image(b"K", text(b"1"), text(b"x"))),
        wf.Delete(**_TABLE, old=row("1", "x"), old_kind="key"),
    ),
    "delete by all": (
        change(b"D", image(b"O", text(b"1"), text(b"x"))),
        wf.Delete(**_TABLE, old=row("1", "x"), old_kind="full"),
    ),
    "truncate": (
        b"T" + u32(2) + b"\3" + u32(OID) + u32(OID),
        wf.Truncate(tables=(("public", "t"),) * 2, cascade=True, restart_identity=True),
    ),
    "truncate of nothing": (b"T" + u32(0) + b"\0", wf.Truncate(tables=())),
    "message": (
        b"M\1" + u64(77) + b"p\0" + u32(3) + "é\0".encode(),
        wf.Message(lsn=77, transactional=True, prefix="p", content="é\0"),
    ),
    "message that is no text": (
        b"M\0" + u64(77) + b"\0" + u32(2) + b"\xff\xfe",
        wf.Message(lsn=77, transactional=False, prefix="", content=b"\xff\xfe"),
    ),
    "relation": (DESCRIBED, RELATION),
    "relation of the system": (
        relation(
            column(b"a", 4_294_967_295, typmod=u32(1_028)), oid=1, schema=b"", table="T é".encode(), identity=b"i"
        ),
        wf.Relation(
            relation_id=1,
            table_schema="pg_catalog",
            table_name="T é",
            replica_identity="index",
            columns=("a",),
            type_oids=(4_294_967_295,),
            typmods=(1_028,),
            key_columns=(),
        ),
    ),
    "relation without columns": (
        relation(oid=2, identity=b"n"),
        wf.Relation(
            relation_id=2,
            **_TABLE,
            replica_identity="nothing",
            columns=(),
            type_oids=(),
            typmods=(),
            key_columns=(),
        ),
    ),
    "type": (b"Y" + u32(16400) + b"s\0mood\0", wf.Type(type_oid=16400, namespace="s", name="mood")),
    "type of the system": (b"Y" + u32(9) + b"\0x\0", wf.Type(type_oid=9, namespace="pg_catalog", name="x")),
}
"""Those that carry a transaction id in a streamed block, and that need DESCRIBED before them."""

OTHERS: dict[str, tuple[bytes, wf.Event]] = {
    "begin": (
        b"B" + u64(5) + TIME + u32(0xFFFFFFFF),
        wf.Begin(commit_lsn=5, commit_time=TIME_TEXT, xid=0xFFFFFFFF),
    ),
    "begin before 2000": (
        b"B" + u64((1 << 64) - 1) + EARLY + u32(0),
        wf.Begin(commit_lsn=(1 << 64) - 1, commit_time=EARLY_TEXT, xid=0),
    ),
    "commit": (b"C\0" + u64(5) + u64(6) + TIME, wf.Commit(**_committed())),
    "origin": (b"O" + u64(9) + b"pg_1\0", wf.Origin(lsn=9, origin="pg_1")),
    "begin prepare": (b"b" + _PREPARED, wf.Begin(**_PREPARED_FACTS)),
    "prepare": (b"P\0" + _PREPARED, wf.Prepare(**_PREPARED_FACTS)),
    "commit prepared": (
        b"K\0" + u64(5) + u64(6) + TIME + u32(700) + b"g\0",
        wf.CommitPrepared(**_committed(xid=700, gid="g")),
    ),
    "rollback prepared": (
        b"r\0" + u64(5) + u64(6) + EARLY + TIME + u32(700) + b"g\0",
        wf.RollbackPrepared(lsn=5, end_lsn=6, prepare_time=EARLY_TEXT, commit_time=TIME_TEXT, xid=700, gid="g"),
    ),
    "keepalive": (b"k" + u64(5) + TIME + b"\1", wf.Heartbeat(wal_end=5, time=MICROS, reply=True)),
}
"""Those that mean the same everywhere."""

STREAMED: dict[str, tuple[bytes, wf.Event]] = {
    "stream start": (start(800), wf.StreamStart(xid=800, first_segment=True)),
    "stream stop": (STOP, wf.StreamStop()),
    "stream commit": (stream_commit(800), wf.StreamCommit(**_committed(xid=800))),
    "stream abort": (stream_abort(800, 801), wf.StreamAbort(xid=800, subxid=801)),
    "stream abort, parallel": (
        stream_abort(800, 800) + u64(9) + TIME,
        wf.StreamAbort(xid=800, subxid=800, lsn=9, commit_time=TIME_TEXT),
    ),
    "stream prepare": (b"p\0" + _PREPARED, wf.StreamPrepare(**_PREPARED_FACTS)),
}
"""Streamed blocks and their ends."""

OPENGAUSS: dict[str, tuple[bytes, wf.Event]] = {
    "begin of 24 bytes": (
        b"B" + u64(5) + TIME + u64(1 << 40),
        wf.Begin(commit_lsn=5, commit_time=TIME_TEXT, xid=1 << 40),
    ),
    "begin of 32 bytes": (
        b"B" + u64(5) + TIME + u64(1 << 40) + u64(1 << 63),
        wf.Begin(commit_lsn=5, commit_time=TIME_TEXT, xid=1 << 40, csn=1 << 63),
    ),
    "ddl": (
        b"L\0" + u64(9) + b"p\0" + u64(4) + "{é}".encode(),
        wf.Ddl(lsn=9, prefix="p", content="{é}"),
    ),
    "connection information": (b"Shost=a\0", wf.Unknown(raw=b"Shost=a\0")),
    "message of PostgreSQL": (b"M\1" + u64(77), wf.Unknown(raw=b"M\1" + u64(77))),
}

ALL = {**ROWS, **OTHERS, **STREAMED}


def streamed(message: bytes) -> bytes:
    """The message as it is in a block."""
    return message[:1] + BLOCK_XID + message[1:]


def whole_stream(messages: Sequence[bytes]) -> list[bytes]:
    """Messages behind the one that describes their table."""
    return [DESCRIBED, *messages]
