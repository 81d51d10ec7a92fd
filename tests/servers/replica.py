"""A plain replica: applies committed changes to tables in memory, by the rules of the protocols and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import wireformat as wf

from .tables import Row

Table = tuple[str, str]
"""Schema and name."""
Change = wf.RowChange | wf.Truncate | wf.Relation | wf.Message


def committed(events: Iterable[wf.Event]) -> Iterator[list[Change]]:
    """The changes of each committed transaction, in order of commit, without those of undone subtransactions.

    Fails at what no server sends, and if a transaction has no end.
    """
    transactions = _Transactions()
    for event in events:
        changes = transactions.take(event)
        if changes is not None:
            yield changes
    assert transactions == _Transactions(), "a transaction has no end"


@dataclass
class _Transactions:
    """The transactions that have not ended."""

    open: list[Change] | None = None
    """Changes since BEGIN."""
    block: int | None = None
    """The transaction whose streamed block is open."""
    streamed: dict[int, list[Change]] = field(default_factory=dict)
    """Changes in streamed blocks, by transaction."""
    prepared: dict[str, list[Change]] = field(default_factory=dict)

    def take(self, event: wf.Event) -> list[Change] | None:
        """The changes that are committed by this event."""
        match event:
            case wf.Begin():
                assert self.open is None, "BEGIN in a transaction"
                assert self.block is None, "BEGIN in a streamed block"
                self.open = []
            case wf.Commit():
                return self._end()
            case wf.Prepare(gid=str(gid)):
                self.prepared[gid] = self._end()
            case wf.CommitPrepared(gid=gid):
                return self.prepared.pop(gid)
            case wf.RollbackPrepared(gid=gid):
                del self.prepared[gid]
            case wf.StreamStart(xid=int(xid)):
                assert self.block is None, "a streamed block in another one"
                assert bool(event.first_segment) == (xid not in self.streamed), "first segment"
                self.block = xid
                self.streamed.setdefault(xid, [])
            case wf.StreamStop():
                assert self.block is not None, "the end of a streamed block that did not begin"
                self.block = None
            case wf.StreamAbort(xid=int(xid), subxid=int(subxid)):
                if subxid == xid:
                    del self.streamed[xid]
                else:
                    self.streamed[xid] = [change for change in self.streamed[xid] if change.xid != subxid]
            case wf.StreamCommit(xid=int(xid)):
                return self.streamed.pop(xid)
            case wf.StreamPrepare(xid=int(xid), gid=gid):
                self.prepared[gid] = self.streamed.pop(xid)
            case wf.RowChange() | wf.Truncate() | wf.Relation() | wf.Message(transactional=True):
                changes = self.open if self.block is None else self.streamed[self.block]
                if changes is None and isinstance(event, wf.Message):
                    return [event]  # test_decoding before 17, skip-empty-xacts: no BEGIN where there are only messages
                assert changes is not None, f"{event.kind} outside of a transaction"
                changes.append(event)
            case wf.Corrupt() | wf.Unknown():
                raise AssertionError(f"a server sends nothing like this: {event}")
        return None

    def _end(self) -> list[Change]:
        assert self.open is not None, "an end without BEGIN"
        changes, self.open = self.open, None
        return changes


@dataclass
class Replica:
    """Tables in memory.

    keys             columns of each table's replica identity, where the stream does not say them; RELATION does
    rows             the rows of each table
    binary_columns   those that had values in a binary form that the package does not read
    """

    keys: dict[Table, tuple[str, ...]] = field(default_factory=dict)
    rows: dict[Table, list[Row]] = field(default_factory=dict)
    binary_columns: set[tuple[Table, str]] = field(default_factory=set)

    def apply(self, events: Iterable[wf.Event]) -> None:
        """Take events in order; nothing counts before its transaction is committed."""
        for changes in committed(events):
            for change in changes:
                self.take(change)

    def take(self, event: wf.Event) -> None:
        """One change that counts at once."""
        match event:
            case wf.Truncate():
                for table in event.tables:
                    self.rows.pop(table, None)
            case wf.Relation():
                self.keys[event.table_schema, event.table_name] = event.key_columns
            case wf.RowChange():
                self._change(event)

    def _change(self, change: wf.RowChange) -> None:
        table = change.table_schema, change.table_name
        self.binary_columns |= {(table, column) for column in change.binary}
        rows = self.rows.setdefault(table, [])
        before: Row = {}
        if not isinstance(change, wf.Insert):
            before = rows.pop(self._place(table, rows, change))
        if change.new is not None:
            sent = {name: value for name, value in change.new.as_dict().items() if not isinstance(value, wf.Unchanged)}
            kept = change.new.as_dict().keys() - sent.keys()
            assert kept <= before.keys(), f"{change.kind} of {table}: unchanged values that were never sent"
            rows.append({**before, **sent})

    def _place(self, table: Table, rows: list[Row], change: wf.RowChange) -> int:
        """Where the changed row stands: one with these values; of several, one with nothing but these, or the first."""
        if change.old is not None:
            looked_for = _sent(change.old)
            if change.old_kind == "key":
                looked_for = {name: looked_for[name] for name in self.keys[table]}
        else:
            assert change.new is not None, f"{change.kind} of {table} does not say of which row"
            new = _sent(change.new)
            looked_for = {name: new[name] for name in self.keys[table]}
        first = next(iter(looked_for), "")
        places = [
            place
            for place, row in enumerate(rows)
            if row.get(first) == looked_for.get(first) and all(row.get(name) == looked_for[name] for name in looked_for)
        ]
        assert places, f"{change.kind} of {table}: no such row"
        return next((place for place in places if not _others(rows[place], looked_for)), places[0])


def _others(row: Row, looked_for: Row) -> bool:
    """Whether the row has values in other columns: an old row without its NULLs leaves that open."""
    return any(value is not None and name not in looked_for for name, value in row.items())


def _sent(image: wf.TupleData) -> Row:
    return {name: value for name, value in image.as_dict().items() if not isinstance(value, wf.Unchanged)}


def difference(replica: Replica, expected: Mapping[Table, list[Row]]) -> dict[Table, tuple[list[Row], list[Row]]]:
    """Per table, rows that only the replica has and rows that only the server has; empty where all is equal.

    Columns that the server has dropped do not count, nor those in `binary_columns`.
    """
    found = {}
    for table in sorted(replica.rows.keys() | expected.keys()):
        theirs = expected.get(table, [])
        names = [name for name in (theirs[0] if theirs else ()) if (table, name) not in replica.binary_columns]
        ours = sorted((tuple(row.get(name) for name in names) for row in replica.rows.get(table, [])), key=repr)
        wanted = sorted((tuple(row[name] for name in names) for row in theirs), key=repr)
        if ours != wanted:
            found[table] = (
                [dict(zip(names, row, strict=True)) for row in ours if row not in wanted],
                [dict(zip(names, row, strict=True)) for row in wanted if row not in ours],
            )
    return found
