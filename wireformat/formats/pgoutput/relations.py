"""What later messages of pgoutput need of earlier ones: the relations, and which streamed block is open.

The lists of a relation are JSON texts in `detail` of the row changes and in saved positions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from ...events import (
    ROW_CHANGES,
    Begin,
    Commit,
    CommitPrepared,
    Event,
    Message,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    aborts_whole,
)
from ...lsn import lsn_value

NOTHING, ASKS, TELLS, OPENS, CLOSES, ENDS, MAY_END = range(7)
"""What a message does with relations and blocks.

ASKS      it needs a relation
TELLS     it describes one
OPENS     it opens a block
CLOSES    it closes a block, or ends a streamed transaction
ENDS      it cannot be in a block: one that is open ends before it
MAY_END   a Message, which ends a block unless it has a transaction id
"""

_ROLES: dict[type[Event], int] = {
    **dict.fromkeys((*ROW_CHANGES.values(), Truncate), ASKS),
    Relation: TELLS,
    StreamStart: OPENS,
    **dict.fromkeys((StreamStop, StreamCommit, StreamAbort, StreamPrepare), CLOSES),
    **dict.fromkeys((Begin, Commit, Prepare, CommitPrepared, RollbackPrepared), ENDS),
    Message: MAY_END,
}

OUTSIDE = tuple(kind for kind, role in _ROLES.items() if role in (CLOSES, ENDS) and kind is not StreamStop)
"""What a server never sends in a streamed block: if one is open, the connection broke, and another one begins."""


def role_of(kind: type[Event]) -> int:
    """The role of the messages of a kind of event."""
    return _ROLES.get(kind, NOTHING)


class Columns(NamedTuple):
    """What a Relation message says after the names of its table; see Relation."""

    replica_identity: str
    columns: tuple[str, ...]
    type_oids: tuple[int, ...]
    typmods: tuple[int, ...]
    key_columns: tuple[str, ...]


class RelationMessage(NamedTuple):
    """What a Relation message says. Of thousands of tables few are needed as events, which take longer to make."""

    relation_id: int
    table_schema: str
    table_name: str
    rest: Columns

    def event(self, xid: int | None = None) -> Relation:
        """The event, without an LSN."""
        return Relation(
            lsn=None,
            relation_id=self.relation_id,
            table_schema=self.table_schema,
            table_name=self.table_name,
            replica_identity=self.rest.replica_identity,
            columns=self.rest.columns,
            type_oids=self.rest.type_oids,
            typmods=self.rest.typmods,
            key_columns=self.rest.key_columns,
            xid=xid,
        )


DescribedAs = Relation | RelationMessage | bytes
"""A relation as it was described. Bytes are a Relation message that compiled code has found to be good: it is read
where someone asks."""

ReadMessage = Callable[[bytes], RelationMessage]
"""Reads such a message."""


def message_of(relation: Relation | RelationMessage) -> RelationMessage:
    """What the message of a relation says."""
    if isinstance(relation, RelationMessage):
        return relation
    rest = Columns(
        relation.replica_identity, relation.columns, relation.type_oids, relation.typmods, relation.key_columns
    )
    return RelationMessage(relation.relation_id, relation.table_schema, relation.table_name, rest)


class Lost(NamedTuple):
    """A Relation message of which only this number could be read: the table's columns are unknown from here on."""

    relation_id: int


class Outside(NamedTuple):
    """A message of one of the kinds OUTSIDE that cannot be read: no block is open after it."""


RelationEvent = Event | Lost | Outside
"""What a message may change of relations and blocks: an event, or what is known of one that cannot be read."""


class Relations:
    """The newest Relation of each table, and in streamed transactions that are open the ones sent in their blocks.

    names   whether `named` is asked for
    block   xid of the streamed transaction whose block is open: messages then carry a transaction id of their own

    The server takes a table as described in a streamed transaction only there, until that transaction ends, or until it
    describes the table outside: it forgets what it has sent where a part of the transaction is rolled back, or another
    one changes the table. Where a connection breaks inside a block, the next one begins with a message that cannot be
    in a block. All streamed transactions and what was described in them are then forgotten: the server sends both
    again. Source: PostgreSQL manual, "Logical Streaming Replication Protocol"; servers 15, 16 and 18.
    """

    def __init__(self, *, names: bool = False) -> None:
        self.block: int | None = None
        self._names = names
        self._newest = _Known(names)
        self._streamed: dict[int, _Known] = {}

    def find(self, relation_id: int) -> Relation | None:
        """The relation of this number, as the next message means it."""
        return self._known_of(relation_id).event(relation_id)

    def described(self, relation_id: int) -> DescribedAs | None:
        """The same as `find`, as it was described."""
        return self._known_of(relation_id).by_number.get(relation_id)

    @property
    def outside(self) -> Mapping[int, DescribedAs | None]:
        """The relations that are known outside of streamed transactions by their numbers, as they were described.

        None for a lost one.
        """
        return self._newest.by_number

    @property
    def scopes(self) -> dict[int | None, dict[int, Relation | None]]:
        """The relations by their numbers, None where one is lost: under None those outside of streamed transactions.

        Those of streamed transactions are under their xids.
        """
        found: dict[int | None, dict[int, Relation | None]] = {None: self._newest.events()}
        found.update((xid, known.events()) for xid, known in self._streamed.items())
        return found

    @classmethod
    def of_scopes(cls, block: int | None, scopes: Mapping[int | None, Mapping[int, Relation | None]]) -> Relations:
        """Returns relations with these scopes."""
        found = cls()
        found.block = block
        for xid, by_number in scopes.items():
            found._known(xid).add(by_number)
        return found

    @classmethod
    def of_known(cls, known: Iterable[Relation]) -> Relations:
        """Returns relations that know what `known` of others returned."""
        scopes: dict[int | None, dict[int, Relation | None]] = {}
        for relation in known:
            scopes.setdefault(relation.xid, {})[relation.relation_id] = relation
        return cls.of_scopes(None, scopes)

    def known(self) -> tuple[Relation, ...]:
        """Returns the relations, each with the xid of the streamed transaction in which it is known, and no LSN.

        First come those outside of streamed transactions, in the order in which their tables were first described: an
        earlier table may have had the same name. Those of a transaction are in the order of their numbers.
        """
        found: list[tuple[int | None, Relation | None]] = [(None, one) for one in self._newest.events().values()]
        for xid in sorted(self._streamed):
            events = self._streamed[xid].events()
            found += [(xid, events[number]) for number in sorted(events)]
        return tuple(replace(one, lsn=None, xid=xid) for xid, one in found if one is not None)

    def named(self, schema: str, table: str) -> Relation | None:
        """The relation of this name that was described last, as the next message means it."""
        name = (schema, table)
        own = self._streamed.get(self.block) if self.block is not None else None
        known = own if own is not None and name in own.by_name else self._newest
        found = self.find(known.by_name[name]) if name in known.by_name else None
        is_renamed = found is not None and (found.table_schema, found.table_name) != name
        return None if is_renamed else found

    def take(self, event: RelationEvent) -> None:
        """Learns from a message. Most messages say nothing about relations."""
        if isinstance(event, (Relation, Lost)):
            self._known(self.block).add({event.relation_id: event if isinstance(event, Relation) else None})
            if self.block is None:
                self._drop_in_blocks([event.relation_id])
        elif isinstance(event, StreamStop):
            self.block = None
        elif isinstance(event, StreamStart):
            self._end_block()
            self.block = event.xid
        elif isinstance(event, (*OUTSIDE, Outside)) or (isinstance(event, Message) and event.xid is None):
            self._end_block()
            if isinstance(event, (StreamCommit, StreamPrepare)) and event.xid is not None:
                self.end(event.xid, True)
            elif isinstance(event, StreamAbort) and event.xid is not None and aborts_whole(event.xid, event.subxid):
                self.end(event.xid, False)

    def end(self, xid: int, is_kept: bool) -> None:
        """Ends a streamed transaction: what was described in its blocks is meant everywhere, or is dropped."""
        own = self._streamed.pop(xid, None)
        if own is not None and is_kept:
            self._newest.add(own.by_number)
            if own.read is not no_bytes:
                self._newest.read = own.read

    def describe(
        self, found: Iterable[tuple[int, RelationMessage | bytes]], read: ReadMessage, block: int | None
    ) -> None:
        """Learns relations of a block, or None, which are not asked for by their names; `read` reads those that are
        bytes."""
        known, described = self._known(block), dict(found)
        known.read = read
        known.by_number.update(described)
        if block is None:
            self._drop_in_blocks(described)

    def described_in_blocks(self) -> Iterator[tuple[int, int, DescribedAs | None]]:
        """Yields the relations of streamed transactions that are open, each after its transaction's xid and its own
        number; None for a lost one."""
        for xid, known in self._streamed.items():
            for relation_id, relation in known.by_number.items():
                yield xid, relation_id, relation

    def _known_of(self, relation_id: int) -> _Known:
        """Those among which the next message means the relation of this number."""
        own = self._streamed.get(self.block) if self.block is not None else None
        return own if own is not None and relation_id in own.by_number else self._newest

    def _known(self, block: int | None) -> _Known:
        """Those that are described in this block; None: outside of blocks."""
        if block is None:
            return self._newest
        return self._streamed.setdefault(block, _Known(self._names))

    def _drop_in_blocks(self, relation_ids: Iterable[int]) -> None:
        """Drops what streamed transactions have described of relations before these were described outside."""
        for xid, own in [*self._streamed.items()]:
            for relation_id in relation_ids:
                own.by_number.pop(relation_id, None)
            if not own.by_number:
                del self._streamed[xid]

    def _end_block(self) -> None:
        """Before a message that cannot be in a block."""
        if self.block is not None:
            self.block = None
            self._streamed.clear()

    def copy(self) -> Relations:
        """Returns a copy, which learns independently."""
        other = Relations(names=self._names)
        other.block = self.block
        other._newest = self._newest.copy()
        other._streamed = {xid: known.copy() for xid, known in self._streamed.items()}
        return other


def describing_events(known: Iterable[Relation]) -> Iterator[Event]:
    """Yields the events that describe the relations that `Relations.known` returned.

    Those in blocks have no xid of their own: which part of the transaction described them is not known.
    """
    for xid, relations in groupby(known, lambda relation: relation.xid):
        if xid is None:
            yield from relations
        else:
            described = (replace(relation, xid=None) for relation in relations)
            yield from (StreamStart(xid=xid, first_segment=False), *described, StreamStop())


def no_bytes(record: bytes) -> RelationMessage:
    """Reads no message, where none is bytes."""
    raise AssertionError(record)


class _Known:
    """Relations by number, and by name if that is asked for."""

    def __init__(self, names: bool) -> None:
        self.by_number: dict[int, DescribedAs | None] = {}
        """None for a lost relation."""
        self.by_name: dict[tuple[str, str], int] = {}
        self.read: ReadMessage = no_bytes
        """Reads relations that are bytes."""
        self._names = names

    def event(self, relation_id: int) -> Relation | None:
        """The relation of this number. It stays the same event until it is described again."""
        found = self.by_number.get(relation_id)
        if isinstance(found, bytes):
            found = self.read(found)
        if isinstance(found, RelationMessage):
            found = self.by_number[relation_id] = found.event()
        return found

    def events(self) -> dict[int, Relation | None]:
        """All relations by number."""
        return {relation_id: self.event(relation_id) for relation_id in self.by_number}

    def add(self, by_number: Mapping[int, DescribedAs | None]) -> None:
        """Adds relations, and loses those that are None."""
        self.by_number.update(by_number)
        if self._names:
            found = [one for one in by_number.values() if isinstance(one, (Relation, RelationMessage))]
            self.by_name.update([((one.table_schema, one.table_name), one.relation_id) for one in found])

    def copy(self) -> _Known:
        other = _Known(self._names)
        other.by_number, other.by_name, other.read = dict(self.by_number), dict(self.by_name), self.read
        return other


RELATION_LISTS = ("columns", "type_oids", "typmods", "key_columns")
"""The fields of Relation that are lists."""

LISTS = (*RELATION_LISTS, "binary")
"""The keys of `detail` whose texts are lists."""


def list_text(values: Sequence[str | int]) -> str:
    """Returns the text of a list."""
    return json.dumps(values, ensure_ascii=False)


@lru_cache(maxsize=256)  # many tables have the same types, modifiers and keys
def read_list(text: str) -> tuple[Any, ...]:
    """Returns the list of a text."""
    return tuple(json.loads(text))


DETAIL_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("first_lsn", "end_lsn"), lsn_value),
    **dict.fromkeys(("restart_identity", "cascade", "reply", "first_segment", "transactional"), "true".__eq__),
    **dict.fromkeys(LISTS, read_list),
    **dict.fromkeys(("origin", "wal_end", "wal_flushed", "time", "relid", "size", "subxid", "relation_id"), int),
}
"""How events hold what `detail` says, where that is not a text."""


def relation_lists(texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns the lists of a relation by their names; one without a text is empty."""
    return {name: read_list(texts.get(name, "[]")) for name in RELATION_LISTS}
