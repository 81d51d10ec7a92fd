"""Transactions of pgoutput, as a walsender sends them, and what is in slices of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

import wireformat as wf

from .walsender import Message

RELATION = wf.Relation(
    relation_id=16400,
    table_schema="public",
    table_name="t",
    replica_identity="default",
    columns=("id", "name"),
    type_oids=(23, 25),
    typmods=(-1, -1),
    key_columns=("id",),
)


def transaction(end: int, ids: Iterable[int], *, describes: bool = False) -> list[Message]:
    """A transaction that ends at an LSN and inserts rows; whether the server describes the table in it."""
    commit = {"commit_lsn": end - 5, "commit_time": "2026-01-01 00:00:00+00"}
    head = encoded([wf.Begin(xid=end, **commit)])  # type: ignore[arg-type]
    tail = encoded([wf.Commit(end_lsn=end, **commit)])  # type: ignore[arg-type]
    relation = encoded([RELATION]) if describes else []
    rows = [
        b"I" + (16400).to_bytes(4, "big") + b"N\0\2" + b"".join(b"t" + len(one).to_bytes(4, "big") + one for one in row)
        for row in ((b"%d" % id, b"name") for id in ids)
    ]
    return [(end - 5, message) for message in (*head, *relation, *rows, *tail)]


def encoded(events: list[wf.Event]) -> list[bytes]:
    return [bytes(message) for message in wf.encode(events, "pgoutput")]


def ids_of(slices: Iterable[pa.Array]) -> list[list[int]]:
    """The ids of the rows of each slice, which is read by itself."""
    found = []
    for messages in slices:
        rows = wf.Capture(messages, "pgoutput", threads=1).typed("public.t", schema={"id": "integer", "name": "text"})
        found.append(rows.read_all()["id"].to_pylist())
    return found


def all_ids(slices: Iterable[pa.Array]) -> list[int]:
    """The ids of the rows of all slices."""
    return [id for ids in ids_of(slices) for id in ids]
