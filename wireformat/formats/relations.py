"""What a pgoutput stream has said so far that later messages need: how rows look, and which streamed block is open."""

from __future__ import annotations

from ..events import Event, Relation, StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop


class Relations:
    """The newest Relation of each table, and in streamed transactions that are open the ones sent in their blocks.

    block   xid of the streamed transaction whose block is open: messages then carry a transaction id of their own

    The server takes a table as described in a streamed transaction only there, until that transaction ends. Source:
    PostgreSQL manual, "Logical Streaming Replication Protocol".
    """

    def __init__(self) -> None:
        self.block: int | None = None
        self._newest = _Known()
        self._streamed: dict[int, _Known] = {}

    def find(self, relation_id: int) -> Relation | None:
        """The relation of this number, as the next message means it."""
        found = None if self.block is None else self._own().by_number.get(relation_id)
        return found or self._newest.by_number.get(relation_id)

    def named(self, schema: str, table: str) -> Relation | None:
        """The relation of this name that was described last, as the next message means it."""
        found = None if self.block is None else self._own().by_name.get((schema, table))
        return found or self._newest.by_name.get((schema, table))

    def take(self, event: Event) -> None:
        """Learn from an event; those that say nothing about relations change nothing."""
        if isinstance(event, Relation):
            (self._newest if self.block is None else self._own()).add(event)
        elif isinstance(event, StreamStart):
            self.block = event.xid
        elif isinstance(event, StreamStop):
            self.block = None
        elif isinstance(event, (StreamCommit, StreamPrepare)) and event.xid is not None:
            for relation in self._streamed.pop(event.xid, _Known()).by_number.values():
                self._newest.add(relation)
        elif isinstance(event, StreamAbort) and event.subxid == event.xid and event.xid is not None:
            self._streamed.pop(event.xid, None)

    def copy(self) -> Relations:
        """Another one that knows the same and learns by itself."""
        other = Relations()
        other.block = self.block
        other._newest = self._newest.copy()
        other._streamed = {xid: known.copy() for xid, known in self._streamed.items()}
        return other

    def _own(self) -> _Known:
        """The relations that were sent in blocks of the open block's transaction."""
        return self._streamed.setdefault(self.block or 0, _Known())


class _Known:
    """Relations by number and by name."""

    def __init__(self) -> None:
        self.by_number: dict[int, Relation] = {}
        self.by_name: dict[tuple[str, str], Relation] = {}

    def add(self, relation: Relation) -> None:
        self.by_number[relation.relation_id] = relation
        self.by_name[relation.table_schema, relation.table_name] = relation

    def copy(self) -> _Known:
        other = _Known()
        other.by_number, other.by_name = dict(self.by_number), dict(self.by_name)
        return other
