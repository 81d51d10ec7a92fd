"""`Descriptions`: which relations of pgoutput were described only in streamed transactions that were not committed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ...events import (
    Begin,
    Commit,
    Relation,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    aborts_whole,
)
from ...pgtypes import type_name
from .relations import RelationEvent


class Described(NamedTuple):
    """A table with its columns in any order, each with its type and type modifier."""

    schema: str
    table: str
    columns: frozenset[tuple[str, str, int]]


class Descriptions:
    """What a stream describes, told apart by whether it came only in streamed transactions that were not committed.

    is_behind   whether it must still be given the events of something new

    A server describes a table again for others after such a transaction, and after a subtransaction that was rolled
    back. It does not after a transaction that was prepared, also if that is rolled back later: rows of others may have
    the columns that were described there. Source: PostgreSQL 15, 16 and 18.
    """

    def __init__(self) -> None:
        self.is_behind = False
        self._delivered: set[Described] = set()
        self._undelivered: set[Described] = set()
        self._waiting: dict[int, dict[int | None, set[Described]]] = {}
        """By the xid of a streamed transaction that has not ended, and by that of its subtransaction."""
        self._block: int | None = None
        """The transaction whose block is open."""

    @property
    def are_settled(self) -> bool:
        """Whether all that was described was delivered, so that to describe it again changes nothing."""
        return not (self.is_behind or self._undelivered or self._waiting)

    def are_delivered(self, relation: Relation) -> bool:
        """Whether the columns of a relation were described in a committed transaction."""
        return _columns_of(relation) in self._delivered

    def take(self, event: RelationEvent) -> None:
        """Learns from the next event, in the order of the stream."""
        match event:
            case Relation():
                self._describe(event)
            case StreamStart(xid=int(xid)):
                if event.first_segment:
                    self._waiting.pop(xid, None)
                self._block = xid
            case StreamCommit(xid=int(xid)) | StreamPrepare(xid=int(xid)):
                self._add(set().union(*self._waiting.pop(xid, {}).values()))
                self._block = None
            case StreamAbort(xid=int(xid)):
                if aborts_whole(xid, event.subxid):
                    self._waiting.pop(xid, None)
                else:
                    for part in (event.subxid, None):  # or maybe this one; see describing_events
                        self._waiting.get(xid, {}).pop(part, None)
                self._block = None
            case StreamStop() | Begin() | Commit():
                self._block = None

    def _describe(self, relation: Relation) -> None:
        described = _columns_of(relation)
        if self._block is None:
            self._add({described})
        elif described not in self._delivered:
            self._undelivered.add(described)
            self._waiting.setdefault(self._block, {}).setdefault(relation.xid, set()).add(described)

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
