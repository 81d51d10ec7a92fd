"""Histories of pgoutput in which streamed transactions describe tables with other columns than they have elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import wireformat as wf
from wireformat.stream.capture_position import CapturePosition

FORMAT = "pgoutput"
TIME = "2026-11-22 10:00:00+00"
TABLES = (1, 2)


def relation(table: int, column: str, xid: int | None = None) -> wf.Relation:
    return wf.Relation(
        relation_id=table,
        table_schema="public",
        table_name=f"t{table}",
        replica_identity="default",
        columns=(column,),
        type_oids=(25,),
        typmods=(-1,),
        key_columns=(),
        xid=xid,
    )


def insert(table: int, column: str, value: str, xid: int | None = None) -> wf.Insert:
    return wf.Insert(
        table_schema="public", table_name=f"t{table}", new=wf.TupleData((column,), (value,), ("text",)), xid=xid
    )


@dataclass
class History:
    """A stream as a server may send it, event by event. Each row has a value of its own.

    known   the column of each table, outside of streamed transactions
    own     of the streamed transactions that are open: the columns that their blocks described, by xid
    """

    events: list[wf.Event] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)
    own: dict[int, dict[int, str]] = field(default_factory=dict)
    prepared: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    """Streamed transactions that the server sends again, since a connection broke."""
    lsn: int = 0
    rows: int = 0
    xids: int = 700

    def take(self, step: str, draw: Callable[[Any], Any]) -> None:
        """Adds the messages of a step."""
        if step in ("plain", "plain prepared"):
            self._plain(step == "plain prepared", draw)
        elif step in ("block", "broken block"):
            self._block(draw)
            if step == "broken block":
                self.lost += self.own
                self.own.clear()
                self._plain(False, draw)
            else:
                self.events.append(wf.StreamStop())
        elif step == "end of prepared" and self.prepared:
            self._end_prepared(self.prepared.pop(draw(st.integers(0, len(self.prepared) - 1))), draw(st.booleans()))
        elif step in ("commit", "abort", "abort of a part", "prepare") and self.own:
            self._end(step, draw(st.sampled_from(sorted(self.own))))

    def _next_lsn(self) -> int:
        self.lsn += 16
        return self.lsn

    def _inside(self, here: dict[int, str], own: dict[int, str], draw: Callable[[Any], Any], xid: int | None) -> None:
        """Descriptions and rows of a transaction or a block; `here` are the columns as its messages mean them."""
        for table in draw(st.lists(st.sampled_from(TABLES), max_size=2)):
            of_row = xid if xid is None else draw(st.sampled_from([xid, xid + 100]))
            column = draw(st.sampled_from([None, "a", "b", "c"]))
            if column is not None:
                here[table] = own[table] = column
                self.events.append(relation(table, column, of_row))
            if table in here:
                self.rows += 1
                self.events.append(insert(table, here[table], str(self.rows), of_row))

    def _plain(self, is_prepared: bool, draw: Callable[[Any], Any]) -> None:
        self.xids += 1
        xid, lsn = self.xids, self._next_lsn()
        if is_prepared:
            facts: dict[str, Any] = {"lsn": lsn, "end_lsn": lsn + 8, "prepare_time": TIME, "xid": xid, "gid": f"g{xid}"}
            self.events.append(wf.Begin(**facts))
            self._inside(self.known, self.known, draw, None)
            self.events.append(wf.Prepare(**facts))
            self.prepared.append(xid)
        else:
            self.events.append(wf.Begin(xid=xid, commit_lsn=lsn, commit_time=TIME))
            self._inside(self.known, self.known, draw, None)
            self.events.append(wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME))

    def _block(self, draw: Callable[[Any], Any]) -> None:
        xid = draw(st.sampled_from([None, *self.own, *self.lost]))
        if xid is None:
            self.xids += 1
            xid = self.xids
        self.events.append(wf.StreamStart(xid=xid, first_segment=xid not in self.own))
        if xid in self.lost:
            self.lost.remove(xid)
        own = self.own.setdefault(xid, {})
        self._inside({**self.known, **own}, own, draw, xid)

    def _end(self, step: str, xid: int) -> None:
        if step == "abort of a part":
            self.events.append(wf.StreamAbort(xid=xid, subxid=xid + 100))
            return
        own, lsn = self.own.pop(xid), self._next_lsn()
        if step == "abort":
            self.events.append(wf.StreamAbort(xid=xid, subxid=xid))
            return
        self.known.update(own)
        if step == "commit":
            self.events.append(wf.StreamCommit(xid=xid, commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME))
        else:
            facts: dict[str, Any] = {"lsn": lsn, "end_lsn": lsn + 8, "prepare_time": TIME}
            self.events.append(wf.StreamPrepare(xid=xid, gid=f"g{xid}", **facts))
            self.prepared.append(xid)

    def _end_prepared(self, xid: int, is_kept: bool) -> None:
        lsn = self._next_lsn()
        if is_kept:
            facts: dict[str, Any] = {"commit_lsn": lsn, "end_lsn": lsn + 8, "commit_time": TIME}
            self.events.append(wf.CommitPrepared(xid=xid, gid=f"g{xid}", **facts))
        else:
            facts = {"lsn": lsn - 8, "end_lsn": lsn + 8, "prepare_time": TIME, "commit_time": TIME}
            self.events.append(wf.RollbackPrepared(xid=xid, gid=f"g{xid}", **facts))


STEPS = (
    *("plain", "plain", "plain prepared", "block", "block", "block", "broken block"),
    *("commit", "commit", "abort", "abort of a part", "prepare", "end of prepared"),
)


@st.composite
def histories(draw: Callable[[Any], Any], most: int = 16) -> list[bytes]:
    """Messages of a history."""
    history = History()
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=4, max_size=most)):
        history.take(step, draw)
    return [*map(bytes, wf.encode(history.events, FORMAT))]


def oldest_needed(messages: Sequence[bytes], begin: int, end: int, after: CapturePosition | None) -> int:
    """Returns the index of the oldest message that is needed after a piece, or where the next one begins."""
    open = wf.Capture(messages[begin:end], FORMAT, after=after).open()["message"].to_pylist()
    return begin + min(open) if open else end


def columns_of_rows(rows: Any) -> list[tuple[str, str]]:
    """Returns the only column of each row, with its value."""
    return [pair for new in rows["new"].to_pylist() for pair in new]
