"""A table without a key whose columns come and go, and the stream of its changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

import wireformat as wf
from wireformat.pgtypes import type_name

FULL: dict[str, Any] = {"table_schema": "public", "table_name": "t", "relation_id": 16400}
TEXT = (25, -1)


class FullTable:
    """A table with REPLICA IDENTITY FULL on a server, and what the server sends of its changes."""

    def __init__(self) -> None:
        self.identity = "full"
        self.columns = ["a", "b"]
        self.types: dict[str, tuple[int, int]] = {}
        """OID and modifier of the columns that are no text."""
        self.rows: list[dict[str, str | None]] = []
        self.defaults: dict[str, str | None] = {}
        self.events: list[list[wf.Event]] = []

    def transaction(self, *changes: wf.Event) -> None:
        lsn = 100 * (len(self.events) + 1)
        begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time="2026-01-01 00:00:00+00")
        commit = wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=begin.commit_time)
        self.events.append([begin, self.relation, *changes, commit])

    @property
    def relation(self) -> wf.Relation:
        columns = tuple(self.columns)
        return wf.Relation(
            **FULL,
            replica_identity=self.identity,
            columns=columns,
            key_columns=columns[: {"full": None, "nothing": 0}.get(self.identity, 1)],
            type_oids=tuple(self.types.get(name, TEXT)[0] for name in columns),
            typmods=tuple(self.types.get(name, TEXT)[1] for name in columns),
        )

    def image(self, row: dict[str, str | None]) -> wf.TupleData:
        types = tuple(type_name(oid) for oid in self.relation.type_oids)
        return wf.TupleData(tuple(self.columns), tuple(map(row.get, self.columns)), types)

    def insert(self, *values: str) -> None:
        row = dict.fromkeys(self.columns, None) | dict(zip(self.columns, values, strict=False))
        self.rows.append(row)
        self.transaction(wf.Insert(**FULL, new=self.image(row)))

    def delete(self, index: int) -> None:
        row = self.rows.pop(index)
        self.transaction(wf.Delete(**FULL, old=self.image(row), old_kind="full"))

    def update(self, index: int, value: str) -> None:
        old = self.image(self.rows[index])
        self.rows[index] = {**self.rows[index], self.columns[-1]: value}
        self.transaction(wf.Update(**FULL, old=old, old_kind="full", new=self.image(self.rows[index])))

    def add_column(self, name: str, default: str | None) -> None:
        self.columns.append(name)
        self.defaults[name] = default
        for row in self.rows:
            row[name] = default

    def drop_column(self, name: str) -> None:
        self.columns.remove(name)

    def add_again(self, name: str, default: str | None) -> None:
        """Drops a column and adds it. If it is the last one, nothing shows it, unless the table changes in between."""
        self.insert("before")
        is_last = name == self.columns[-1]
        self.drop_column(name)
        if is_last:
            self.insert("between")
        self.add_column(name, default)
        self.insert("after")

    @property
    def messages(self) -> list[bytes]:
        return [*wf.encode([event for events in self.events for event in events], "pgoutput")]

    def wanted(self) -> list[str]:
        return sorted(repr([row[name] for name in self.columns]) for row in self.rows)

    def shown(self, table: pa.Table) -> list[str]:
        """The rows, with the defaults that the server does not send."""
        rows = table.to_pylist()
        for row in rows:
            row.update({name: self.defaults[name] for name in row["_unchanged"] or () if name in self.columns})
        return sorted(repr([row.get(name) for name in self.columns]) for row in rows)


def table_after(steps: Iterable[tuple[str, int, str]]) -> FullTable:
    """Returns a table after steps, each with a number and a value that decide what it does."""
    table = FullTable()
    table.insert("x", "x")
    for number, (step, index, value) in enumerate(steps):
        if step == "insert":
            table.insert(value, "x", "y")
        elif step == "add":
            table.add_column(f"c{number}", None if value == "x" else value)
        elif step == "drop" and len(table.columns) > 1:
            table.drop_column(table.columns[index % len(table.columns)])
        elif step == "again" and len(table.columns) > 1:
            table.add_again(table.columns[index % len(table.columns)], None if value == "x" else value)
        elif step == "delete" and table.rows:
            table.delete(index % len(table.rows))
        elif step == "update" and table.rows:
            table.update(index % len(table.rows), value)
    table.insert("end")
    return table
