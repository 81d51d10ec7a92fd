"""A server of pgoutput that describes a table only where a real one does: if it has not since it forgot that it did.

Source: pgoutput.c of PostgreSQL 15 to 18, maybe_send_schema, cleanup_rel_sync_cache and rel_sync_cache_relation_cb.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import wireformat as wf

TIME = "2026-01-01 00:00:00+00"
ACTIONS = ["row", "row", "alter", "savepoint", "rollback to", "flush", "commit", "abort"]

History = list[tuple[int, str, int]]
"""What happens one after the other: which of the sessions does what, and to which table."""

Row = tuple[tuple[str, str], ...]
"""The names of columns and their values; the first one is the key, and unique."""

HISTORIES: st.SearchStrategy[History] = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(ACTIONS), st.sampled_from([16401, 16402])), max_size=40
)


@dataclass
class _Table:
    """What the server remembers of a table.

    is_described   outside of streamed transactions
    described_in   in these streamed transactions
    """

    number: int
    columns: tuple[str, ...] = ("a",)
    is_described: bool = False
    described_in: set[int] = field(default_factory=set)

    @property
    def names(self) -> dict[str, Any]:
        return {"table_schema": "public", "table_name": f"t{self.number}"}

    def forget(self) -> None:
        self.is_described = False
        self.described_in.clear()


@dataclass
class _Transaction:
    """One that is open.

    subxids    those of its savepoints that were not rolled back, after its own
    done       what it did, with the subxid: a row, or None for an ALTER; before index `sent`, it was streamed
    locks      the tables that it has altered, each with its subxid and the columns before
    """

    xid: int
    subxids: list[int]
    done: list[tuple[int, _Table, Row | None]] = field(default_factory=list)
    locks: list[tuple[int, _Table, tuple[str, ...]]] = field(default_factory=list)
    sent: int = 0
    is_streamed: bool = False
    altered: list[_Table] = field(default_factory=list)


class DescribingServer:
    """Makes the messages of a history, and the rows that its transactions commit.

    first   of each transaction that was sent: the index of its first message
    ends    of those that have ended: the index after their last one
    """

    def __init__(self, history: History) -> None:
        self.events: list[wf.Event] = []
        self.committed: list[tuple[str, Row]] = []
        self.first: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self._tables = {number: _Table(number) for number in (16401, 16402)}
        self._open: dict[int, _Transaction] = {}
        self._xid = 1000
        self._lsn = 0
        for session, action, number in history:
            self._act(session, action, self._tables[number])
        for session in [*self._open]:
            self._end(session, is_committed=True)
        self.messages = [*wf.encode(self.events, "pgoutput")]

    def begins(self, end: int) -> int:
        """Where a server begins to send again after `end` messages: with the oldest transaction that is open there."""
        open = [first for xid, first in self.first.items() if first < end < self.ends.get(xid, end + 1)]
        return min(open, default=end)

    def _next_xid(self) -> int:
        self._xid += 1
        return self._xid

    def _act(self, session: int, action: str, table: _Table) -> None:
        one = self._open.get(session)
        if one is None:
            xid = self._next_xid()
            one = self._open[session] = _Transaction(xid, [xid])
        others = [other for other in self._open.values() if other is not one]
        is_altered = any(held is table for other in others for _, held, _ in other.locks)
        is_used = is_altered or any(used is table for other in others for _, used, _ in other.done)
        if action == "row" and not is_altered:
            values = (str(self._next_xid()), *("v" for _ in table.columns[1:]))
            one.done.append((one.subxids[-1], table, tuple(zip(table.columns, values, strict=True))))
        elif action == "alter" and not is_used:
            one.locks.append((one.subxids[-1], table, table.columns))
            one.done.append((one.subxids[-1], table, None))
            table.columns = (*table.columns, f"c{self._next_xid()}")
        elif action == "savepoint":
            one.subxids.append(self._next_xid())
        elif action == "rollback to" and len(one.subxids) > 1:
            self._undo(one, one.subxids.pop())
        elif action == "flush":
            self._flush(one)
        elif action in ("commit", "abort"):
            self._end(session, is_committed=action == "commit")

    def _undo(self, one: _Transaction, subxid: int) -> None:
        was_sent = any(of == subxid for of, _, _ in one.done[: one.sent])
        one.sent = sum(of != subxid for of, _, _ in one.done[: one.sent])
        one.done = [each for each in one.done if each[0] != subxid]
        for _, table, columns in reversed([lock for lock in one.locks if lock[0] == subxid]):
            table.columns = columns
        one.locks = [lock for lock in one.locks if lock[0] != subxid]
        if was_sent:
            self._send(wf.StreamAbort(xid=one.xid, subxid=subxid))
            self._ended(one, is_committed=False)

    def _end(self, session: int, *, is_committed: bool) -> None:
        one = self._open.pop(session)
        self._lsn += 8
        facts: dict[str, Any] = {"commit_lsn": self._lsn, "end_lsn": self._lsn + 4, "commit_time": TIME}
        if not is_committed:
            for _, table, columns in reversed(one.locks):
                table.columns = columns
        else:
            self.committed += [(f"t{table.number}", row) for _, table, row in one.done if row is not None]
        if one.is_streamed:
            if is_committed:
                self._flush(one)
            end = wf.StreamCommit(xid=one.xid, **facts) if is_committed else wf.StreamAbort(xid=one.xid, subxid=one.xid)
            self._send(end)
            self._ended(one, is_committed=is_committed)
            self.ends[one.xid] = len(self.events)
        elif is_committed and any(row is not None for _, _, row in one.done):
            self.first[one.xid] = len(self.events)
            self._send(wf.Begin(xid=one.xid, commit_lsn=self._lsn, commit_time=TIME))
            self._send(*self._changes(one, None))
            self._send(wf.Commit(**facts))
            self.ends[one.xid] = len(self.events)
        for table in [*one.altered, *(table for _, table, row in one.done if row is None)]:
            table.forget()

    def _flush(self, one: _Transaction) -> None:
        """Streams what the transaction has done since the last time."""
        if all(row is None for _, _, row in one.done[one.sent :]):
            return
        self.first.setdefault(one.xid, len(self.events))
        self._send(wf.StreamStart(xid=one.xid, first_segment=not one.is_streamed))
        self._send(*self._changes(one, one.xid))
        self._send(wf.StreamStop())
        one.is_streamed = True

    def _changes(self, one: _Transaction, block: int | None) -> Iterator[wf.Event]:
        for subxid, table, row in one.done[one.sent :]:
            if row is None:
                one.altered.append(table)
                table.forget()
                continue
            xid = None if block is None else subxid
            columns, values = zip(*row, strict=True)
            if not (table.is_described if block is None else block in table.described_in):
                yield wf.Relation(
                    **table.names,
                    relation_id=table.number,
                    replica_identity="default",
                    columns=columns,
                    key_columns=("a",),
                    type_oids=(25,) * len(columns),
                    typmods=(-1,) * len(columns),
                    xid=xid,
                )
                if block is None:
                    table.is_described = True
                else:
                    table.described_in.add(block)
            image = wf.TupleData(columns, values, ("text",) * len(columns))
            yield wf.Insert(**table.names, relation_id=table.number, new=image, xid=xid)
        one.sent = len(one.done)
        for table in one.altered:  # its view of the catalogs is not that of others
            table.forget()

    def _ended(self, one: _Transaction, *, is_committed: bool) -> None:
        for table in self._tables.values():
            if one.xid in table.described_in:
                table.described_in.remove(one.xid)
                table.is_described |= is_committed
        for table in one.altered:
            table.forget()

    def _send(self, *events: wf.Event) -> None:
        self.events += events
