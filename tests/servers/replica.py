"""A plain replica: applies committed changes to tables in memory, by the rules of the protocols and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import wireformat as wf

from .tables import Row

Table = tuple[str, str]
"""Schema and name."""
Change = wf.RowChange | wf.Truncate


@dataclass
class Replica:
    """Tables, and the transactions that have not ended.

    keys   columns of each table's replica identity, where the stream does not say them; RELATION events add to it
    """

    keys: dict[Table, tuple[str, ...]] = field(default_factory=dict)
    rows: dict[Table, list[Row]] = field(default_factory=dict)
    binary_columns: set[tuple[Table, str]] = field(default_factory=set)
    """Columns that had values in a binary form that the package does not read."""

    _open: list[Change] | None = None
    """Changes since BEGIN."""
    _block: int | None = None
    """The transaction whose streamed block is open."""
    _streamed: dict[int, list[Change]] = field(default_factory=dict)
    """Changes in streamed blocks, by transaction."""
    _prepared: dict[str, list[Change]] = field(default_factory=dict)

    def apply(self, events: Iterable[wf.Event]) -> None:
        """Take events in order; nothing counts before its transaction is committed."""
        for event in events:
            self._take(event)

    def is_at_rest(self) -> bool:
        """Whether every transaction that began has ended."""
        return self._open is None and self._block is None and not self._streamed and not self._prepared

    def _take(self, event: wf.Event) -> None:
        match event:
            case wf.Begin():
                assert self._open is None, "BEGIN in a transaction"
                assert self._block is None, "BEGIN in a streamed block"
                self._open = []
            case wf.Commit():
                self._commit(self._end())
            case wf.Prepare(gid=str(gid)):
                self._prepared[gid] = self._end()
            case wf.CommitPrepared(gid=gid):
                self._commit(self._prepared.pop(gid))
            case wf.RollbackPrepared(gid=gid):
                self._prepared.pop(gid)
            case wf.StreamStart(xid=int(xid)):
                assert self._block is None, "a streamed block in another one"
                assert bool(event.first_segment) == (xid not in self._streamed)
                self._block = xid
                self._streamed.setdefault(xid, [])
            case wf.StreamStop():
                assert self._block is not None, "the end of a streamed block that did not begin"
                self._block = None
            case wf.StreamAbort(xid=int(xid), subxid=subxid):
                if subxid in (None, xid):
                    del self._streamed[xid]
                else:
                    self._streamed[xid] = [change for change in self._streamed[xid] if change.xid != subxid]
            case wf.StreamCommit(xid=int(xid)):
                self._commit(self._streamed.pop(xid))
            case wf.StreamPrepare(xid=int(xid), gid=gid):
                self._prepared[gid] = self._streamed.pop(xid)
            case wf.Relation():
                self.keys[event.table_schema, event.table_name] = event.key_columns
            case wf.RowChange() | wf.Truncate():
                changes = self._open if self._block is None else self._streamed[self._block]
                assert changes is not None, f"{event.kind} outside of a transaction"
                changes.append(event)
            case wf.Corrupt() | wf.Unknown():
                raise AssertionError(f"a server sends nothing like this: {event}")

    def _end(self) -> list[Change]:
        assert self._open is not None, "an end without BEGIN"
        changes, self._open = self._open, None
        return changes

    def _commit(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, wf.Truncate):
                for table in change.tables:
                    self.rows.pop(table, None)
            else:
                self._change(change)

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
        places = [
            place for place, row in enumerate(rows) if all(row.get(name) == value for name, value in looked_for.items())
        ]
        assert places, f"{change.kind} of {table}: no such row"
        exact = [
            place for place in places if not any(v is not None for n, v in rows[place].items() if n not in looked_for)
        ]
        return (exact or places)[0]


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
