"""`Descriptions`: which relations of pgoutput were described only in transactions that have not been committed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ...events import (
    Begin,
    CommitPrepared,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
)
from ...pgtypes import type_name
from ..record_facts import aborts_whole
from .relations import RelationEvent


class Described(NamedTuple):
    """A table with its columns in any order, each with its type and type modifier."""

    schema: str
    table: str
    columns: frozenset[tuple[str, str, int]]


class Descriptions:
    """What a stream describes, told apart by whether the transactions that it came in were committed.

    two_phase   "prepare" takes a prepared transaction for committed
    is_behind   whether it must still be given the events of something new

    Outside of streamed and prepared transactions, a server describes tables only for committed changes.
    """

    def __init__(self, two_phase: str = "commit") -> None:
        self._delivers_at_prepare = two_phase == "prepare"
        self.is_behind = False
        self._delivered: set[Described] = set()
        self._undelivered: set[Described] = set()
        self._waiting: dict[int | str, dict[int | None, set[Described]]] = {}
        """By the xid or gid of a transaction that has not ended, and by the xid of its subtransaction."""
        self._open: int | str | None = None
        """The transaction of the next message, if it is streamed or will be prepared."""

    @property
    def are_settled(self) -> bool:
        """Whether all that was described was delivered, so that to describe it again changes nothing."""
        return not (self.is_behind or self._undelivered or self._waiting)

    def are_delivered(self, relation: Relation) -> bool:
        """Whether the columns of a relation were described in a committed transaction."""
        return _columns_of(relation) in self._delivered

    def take(self, event: RelationEvent) -> None:
        """Learns from the next event, in the order of the stream."""
        if isinstance(event, Relation):
            self._describe(event)
            return
        self._open = None
        match event:
            case StreamStart(xid=int(xid)):
                if event.first_segment:
                    self._waiting.pop(xid, None)
                self._open = xid
            case Begin():
                self._open = event.gid
            case StreamAbort(xid=int(xid)) if aborts_whole(xid, event.subxid):
                self._waiting.pop(xid, None)
            case StreamAbort(xid=int(xid)):
                self._waiting.get(xid, {}).pop(event.subxid, None)
            case StreamCommit(xid=int(xid)):
                self._deliver(xid)
            case StreamPrepare(xid=int(xid)):
                self._waiting[event.gid] = self._waiting.pop(xid, {})
            case CommitPrepared():
                self._deliver(event.gid)
            case RollbackPrepared():
                self._waiting.pop(event.gid, None)
        if self._delivers_at_prepare and isinstance(event, (Prepare, StreamPrepare)):
            self._deliver(event.gid)

    def _describe(self, relation: Relation) -> None:
        described = _columns_of(relation)
        if self._open is None:
            self._add({described})
        elif described not in self._delivered:
            self._undelivered.add(described)
            self._waiting.setdefault(self._open, {}).setdefault(relation.xid, set()).add(described)

    def _deliver(self, transaction: int | str | None) -> None:
        if transaction is not None:
            self._add(set().union(*self._waiting.pop(transaction, {}).values()))

    def _add(self, delivered: set[Described]) -> None:
        self._delivered |= delivered
        self._undelivered -= delivered


def undelivered(streams: Iterable[Descriptions]) -> frozenset[Described]:
    """Returns what some streams describe, and none in a transaction that was committed."""
    streams = [*streams]
    found: set[Described] = set().union(*(one._undelivered for one in streams))
    return frozenset(found.difference(*(one._delivered for one in streams)))


def _columns_of(relation: Relation) -> Described:
    return _described(
        relation.table_schema, relation.table_name, relation.columns, relation.type_oids, relation.typmods
    )


@lru_cache(maxsize=1024)  # many streams describe their tables again and again
def _described(
    schema: str, table: str, columns: tuple[str, ...], type_oids: tuple[int, ...], typmods: tuple[int, ...]
) -> Described:
    return Described(schema, table, frozenset(zip(columns, map(type_name, type_oids), typmods, strict=True)))
