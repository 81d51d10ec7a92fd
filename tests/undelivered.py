"""A table whose columns are altered in transactions of all kinds, some of which are rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import wireformat as wf

NAMES: dict[str, Any] = {"table_schema": "public", "table_name": "t"}
RELATION = 16400
TIME = "2026-01-01 00:00:00+00"


def described(columns: Sequence[str], xid: int | None = None) -> list[wf.Event]:
    """A Relation message with columns of text, and a row."""
    relation = wf.Relation(
        **NAMES,
        relation_id=RELATION,
        replica_identity="default",
        columns=tuple(columns),
        key_columns=(columns[0],),
        type_oids=(25,) * len(columns),
        typmods=(-1,) * len(columns),
        xid=xid,
    )
    values = tuple("v" for _ in columns)
    image = wf.TupleData(tuple(columns), values, ("text",) * len(columns))
    return [relation, wf.Insert(**NAMES, relation_id=RELATION, new=image, xid=xid)]


class Part(NamedTuple):
    """What a subtransaction does.

    column      the one that the table has in it besides the first
    is_undone   whether it is rolled back alone
    """

    column: str
    is_undone: bool = False


class Transaction(NamedTuple):
    """A transaction that alters the table.

    kind    plain, streamed, prepared, or both
    end     commit, abort, or open
    parts   its subtransactions
    """

    kind: str
    end: str
    parts: tuple[Part, ...]


class Step(NamedTuple):
    """Messages that come together.

    columns   those that the table has from then on, whatever comes later: of rows that they deliver or prepare
    """

    events: list[wf.Event]
    columns: frozenset[str] = frozenset()


def steps_of(transaction: Transaction, number: int) -> list[Step]:
    """The steps of a transaction, which others may come between."""
    xid, gid = 100 * (number + 7), f"g{number}"
    kept = frozenset(part.column for part in transaction.parts if not part.is_undone)
    facts: dict[str, Any] = {"xid": xid, "commit_lsn": 0, "commit_time": TIME}
    commit: dict[str, Any] = {"commit_lsn": 0, "end_lsn": 0, "commit_time": TIME}
    prepare: dict[str, Any] = {"xid": xid, "gid": gid, "lsn": 0, "end_lsn": 0, "prepare_time": TIME}
    ends: dict[str, wf.Event] = {
        "commit": wf.CommitPrepared(xid=xid, gid=gid, **commit),
        "abort": wf.RollbackPrepared(**prepare, commit_time=TIME),
    }
    found: list[Step] = []
    if transaction.kind in ("plain", "prepared"):
        rows = [event for part in transaction.parts if not part.is_undone for event in described(["a", part.column])]
        if transaction.kind == "plain":
            return [Step([wf.Begin(**facts), *rows, wf.Commit(**commit)], kept)]
        begin = wf.Begin(**prepare)
        later = [Step([ends[transaction.end]])] if transaction.end in ends else []
        return [Step([begin, *rows, wf.Prepare(**prepare)], kept), *later]
    for index, part in enumerate(transaction.parts):
        own = xid + index
        start = wf.StreamStart(xid=xid, first_segment=index == 0)
        found.append(Step([start, *described(["a", part.column], own), wf.StreamStop()]))
        if part.is_undone and index:
            found.append(Step([wf.StreamAbort(xid=xid, subxid=own)]))
    kept |= {transaction.parts[0].column}
    if transaction.kind == "both":
        found.append(Step([wf.StreamPrepare(**prepare)], kept))
        kept = frozenset()
    else:
        ends = {"commit": wf.StreamCommit(xid=xid, **commit), "abort": wf.StreamAbort(xid=xid, subxid=xid)}
    if transaction.end != "open":
        found.append(Step([ends[transaction.end]], kept if transaction.end == "commit" else frozenset()))
    return found


def in_turns(transactions: Sequence[Transaction], turns: Sequence[int]) -> list[Step]:
    """The steps of all transactions, of which several are under way at once.

    turns   which of those that have not ended goes on
    """
    left = [steps_of(one, number) for number, one in enumerate(transactions)]
    found: list[Step] = []
    for turn in [*turns, *[0] * sum(map(len, left))]:
        under_way = [steps for steps in left if steps]
        if under_way:
            step = under_way[turn % len(under_way)].pop(0)
            found.append(step._replace(events=[_at(100 * (len(found) + 1), event) for event in step.events]))
    return found


def _at(lsn: int, event: wf.Event) -> wf.Event:
    """An event with the LSN of its step where it has one."""
    given = {name: lsn for name in ("lsn", "commit_lsn", "end_lsn") if getattr(event, name, None) is not None}
    return replace(event, **given)


def messages_of(steps: Sequence[Step]) -> list[bytes]:
    return [*wf.encode([event for step in steps for event in step.events], "pgoutput")]


def columns_of(steps: Sequence[Step]) -> set[str]:
    """The columns of the table as far as they were delivered; not the first one, which it always has."""
    return set().union(*(step.columns for step in steps))
