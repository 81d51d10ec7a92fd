"""A made-up server: it makes the events of a stream, and knows its tables, their types and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

from ..errors import OptionError
from ..events import (
    UNCHANGED,
    Begin,
    Commit,
    CommitPrepared,
    Delete,
    Event,
    Insert,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    TupleData,
    Update,
)
from ..options.checks import one_of, shown
from ..pgtypes import type_oid
from ..times import time_text

Values = dict[str, "str | None"]
Key = tuple["str | None", ...]


class Column(NamedTuple):
    """A column: its name, its SQL type, and whether it belongs to the primary key."""

    name: str
    type: str = "text"
    key: bool = False


class Table(NamedTuple):
    """A table at the beginning, where it has no rows. replica_identity is "default" (the key) or "full"."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    replica_identity: str = "default"


def text_value(chance: Random) -> str:
    """Returns a short text, some of which are hard to write."""
    return chance.choice(("amber", "it's late", "große Kiste", "绿茶", 'the "old" one', "", "a,b", "back\\slash"))


def _moment(chance: Random) -> str:
    return str(datetime(2026, 3, 2) + timedelta(seconds=chance.randrange(10**7)))  # noqa: DTZ001 - a time without a zone


MAKE: dict[str, Callable[[Random], str]] = {
    "smallint": lambda chance: str(chance.randrange(-(2**15), 2**15)),
    "integer": lambda chance: str(chance.randrange(-(2**31), 2**31)),
    "bigint": lambda chance: str(chance.randrange(-(2**63), 2**63)),
    "numeric": lambda chance: f"{chance.randrange(10**9) / 100:.2f}",
    "boolean": lambda chance: chance.choice("tf"),
    "date": lambda chance: _moment(chance)[:10],
    "timestamp without time zone": _moment,
    "character varying": text_value,
    "text": lambda chance: f"{text_value(chance)} {chance.randrange(10**6)}",
}
"""A value of each type that columns may have, as the type's output function prints it."""

LONG = 200
"""Characters of a long text, which an UPDATE does not send where it does not change."""

_KEY_TYPES = ("integer", "bigint", "numeric", "character varying", "text")

COLUMNS = (
    Column("id", "bigint", key=True),
    Column("customer", "integer"),
    Column("status", "character varying"),
    Column("total", "numeric"),
    Column("gift", "boolean"),
    Column("placed", "timestamp without time zone"),
    Column("due", "date"),
    Column("note", "text"),
)


def _is_table(found: Any) -> bool:
    """Whether this is a table, and all names and types in it are texts."""
    if not isinstance(found, Table) or not isinstance(found.columns, (tuple, list)):
        return False
    columns: tuple[Any, ...] = tuple(found.columns)
    names = [one[:2] if isinstance(one, Column) else (None,) for one in columns]
    return all(isinstance(text, str) for texts in (found[:2], *names) for text in texts)


def check_table(table: Table) -> None:
    """Raises OptionError for a table that a stream cannot have."""
    if not _is_table(table):
        raise OptionError(f"option tables: expected wireformat.testing.Table of texts and Columns, got {shown(table)}")
    where = f"option tables: {table.schema}.{table.name}"
    one_of(f"replica_identity of {table.schema}.{table.name}", table.replica_identity, ("default", "full"))
    for column in table.columns:
        if column.type not in MAKE or (column.key and column.type not in _KEY_TYPES):
            known = ", ".join(_KEY_TYPES if column.key else MAKE)
            raise OptionError(
                f"{where}: column {column.name}: expected one of the types {known}; got {shown(column.type)}"
            )
    if len({column.name for column in table.columns}) < len(table.columns):
        raise OptionError(f"{where}: two columns have the same name")
    if not any(column.key for column in table.columns):
        raise OptionError(f"{where}: expected a column with key=True")


class StreamRecipe(NamedTuple):
    """What a stream is made from: the arguments of `stream`, and what its format can say.

    abilities    what occurs beside plain transactions: truncate, prepared, streamed, relations, unsent
    is_adapted   whether the events are adapted to the format
    order        the family of orders of its records; see FormatRow.order
    """

    tables: tuple[Table, ...]
    transactions: int
    seed: int
    changes: int
    schema_changes: bool
    abilities: frozenset[str]
    is_adapted: bool
    order: str


class _TableState:
    """A table during the stream.

    rows           by key, with the columns that there are now
    locked         keys of rows that an open transaction has changed, and their transactions
    freed          keys of rows that were deleted
    truncated_by   the open transaction that has emptied the table, and lets no other one change it
    """

    def __init__(self, table: Table, relation_id: int) -> None:
        self.table, self.relation_id = table, relation_id
        self.columns = list(table.columns)
        self.keys = [column.name for column in table.columns if column.key]
        self.rows: dict[Key, Values] = {}
        self.order: list[Key] = []
        self.places: dict[Key, int] = {}
        self.locked: dict[Key, int] = {}
        self.freed: list[Key] = []
        self.truncated_by: _MadeTransaction | None = None
        self.made = 0
        self.version = 0

    def key_of(self, row: Values) -> Key:
        return tuple(row[name] for name in self.keys)

    def put(self, key: Key, row: Values | None) -> None:
        """Makes this the row of a key; None takes it away."""
        if row is None:
            self.freed.append(key)
            del self.rows[key]
            place, last = self.places.pop(key), self.order.pop()
            if last != key:
                self.order[place], self.places[last] = last, place
            return
        if key not in self.rows:
            self.places[key] = len(self.order)
            self.order.append(key)
        self.rows[key] = row


@dataclass(eq=False)
class _MadeTransaction:
    """An open transaction: its xid, how it is sent, prepared and ended, what undoes it, what it has told of tables."""

    xid: int
    blocks: int
    gid: str | None
    ends_well: bool
    undo: list[tuple[_TableState, Key, Values | None]] = field(default_factory=list)
    locks: list[tuple[_TableState, Key]] = field(default_factory=list)
    truncated: list[_TableState] = field(default_factory=list)
    told: dict[int, int] = field(default_factory=dict)
    prepared: dict[str, Any] = field(default_factory=dict)
    sent: int = 0


class Server:
    """Makes the events, and knows the rows of the tables."""

    def __init__(self, plan: StreamRecipe) -> None:
        self.plan = plan
        self.chance = Random(plan.seed)
        self.states = [_TableState(table, 16384 + index) for index, table in enumerate(plan.tables)]
        self.told: dict[int, int] = {}
        self.open: list[_MadeTransaction] = []
        self.lsn = 1 << 24
        self.xid = 700
        self.csn = 500
        self.time = datetime(2026, 3, 2, 8, tzinfo=timezone.utc)

    def rows(self) -> dict[tuple[str, str], list[Values]]:
        """The rows of each table."""
        return {
            (state.table.schema, state.table.name): [dict(state.rows[key]) for key in sorted(state.rows, key=str)]
            for state in self.states
        }

    def events(self) -> Iterator[Event]:
        """Yields the whole stream. Transactions that are open at its end are ended."""
        left = self.plan.transactions
        while left or self.open:
            if self.open and (not left or self.chance.random() < 0.4):
                yield from self._go_on(self.chance.choice(self.open))
            else:
                left -= 1
                if self.plan.schema_changes and self.chance.random() < 0.03:
                    while self.open:  # it waits for them, as ALTER TABLE does
                        yield from self._go_on(self.chance.choice(self.open))
                    self._alter(self.chance.choice(self.states))
                yield from self._begin()

    def _begin(self) -> Iterator[Event]:
        chance, abilities = self.chance, self.plan.abilities
        self.xid += 10
        is_streamed = "streamed" in abilities and chance.random() < 0.25
        is_prepared = "prepared" in abilities and chance.random() < 0.2
        one = _MadeTransaction(
            xid=self.xid,
            blocks=chance.randrange(1, 4) if is_streamed else 0,
            gid=f"gid {self.xid}" if is_prepared else None,
            ends_well=chance.random() < 0.8,
        )
        if is_streamed:
            self.open.append(one)
        elif is_prepared:
            yield from self._prepared(one)
            self.open.append(one)
        else:
            told = dict(self.told)
            changes = list(self._changed(one, None))
            if one.ends_well:
                yield from self._whole(one, changes)
            else:
                self._undo(one, 0)
                self.told = told  # nothing of it was sent
            self._unlock(one)

    def _go_on(self, one: _MadeTransaction) -> Iterator[Event]:
        """A block of a streamed transaction, or its end; the end of a prepared one."""
        if one.sent < one.blocks:
            yield from self._block(one)
            return
        if one.blocks and one.gid is not None and one.sent == one.blocks:
            one.sent += 1
            yield StreamPrepare(gid=one.gid, **self._prepare_facts(one))
            return
        self.open.remove(one)
        if not one.ends_well:
            self._undo(one, 0)
        elif one.blocks:
            self.told |= one.told
        self._unlock(one)
        if one.gid is not None:
            yield self._end_of_prepared(one)
        elif one.ends_well:
            yield StreamCommit(xid=one.xid, **self._commit_facts())
        else:
            yield StreamAbort(xid=one.xid, subxid=one.xid)

    def _block(self, one: _MadeTransaction) -> Iterator[Event]:
        yield StreamStart(xid=one.xid, first_segment=one.sent == 0)
        one.sent += 1
        yield from self._changed(one, one.xid)
        before = len(one.undo)
        subxid = one.xid + one.sent if self.chance.random() < 0.3 else None
        if subxid is not None:
            yield from self._changed(one, subxid)
        yield StreamStop()
        if subxid is not None and self.chance.random() < 0.5:
            self._undo(one, before)
            one.told.clear()  # a server forgets which tables it has described in the transaction
            yield StreamAbort(xid=one.xid, subxid=subxid)

    def _whole(self, one: _MadeTransaction, changes: list[Event]) -> Iterator[Event]:
        """A transaction in one piece."""
        order = self.plan.order
        facts = self._commit_facts()
        lsn, time = facts["commit_lsn"], facts["commit_time"]
        self.csn += 1
        if order == "pgoutput":
            yield Begin(xid=one.xid, commit_lsn=lsn, commit_time=time)
            yield from changes
            yield Commit(**facts)
        elif order == "parallel":
            lsn = (changes[0].lsn or lsn) - 8
            yield Begin(lsn=lsn, csn=self.csn, first_lsn=lsn, xid=one.xid)
            yield from changes
            yield Commit(lsn=facts["end_lsn"], xid=one.xid)
        else:
            yield Begin(xid=one.xid, csn=self.csn if self.plan.is_adapted else None)
            yield from changes
            yield Commit(xid=one.xid, csn=self.csn if order == "serial" else None, commit_time=time)

    def _prepared(self, one: _MadeTransaction) -> Iterator[Event]:
        assert one.gid is not None
        facts = self._prepare_facts(one)
        changes = list(self._changed(one, None))
        yield Begin(gid=one.gid, **facts) if self.plan.order == "pgoutput" else Begin(xid=one.xid)
        yield from changes
        yield Prepare(gid=one.gid, **facts)

    def _end_of_prepared(self, one: _MadeTransaction) -> Event:
        assert one.gid is not None
        facts = self._commit_facts()
        if self.plan.order != "pgoutput":
            facts = {"commit_time": facts["commit_time"]}
        elif not one.ends_well:
            facts["lsn"], facts["prepare_time"] = one.prepared["end_lsn"], one.prepared["prepare_time"]
            del facts["commit_lsn"]
        kind = CommitPrepared if one.ends_well else RollbackPrepared
        return kind(gid=one.gid, xid=one.xid, **facts)

    def _commit_facts(self) -> dict[str, Any]:
        lsn = self._next_lsn()
        return {"commit_lsn": lsn, "end_lsn": self._next_lsn(), "commit_time": self._next_time()}

    def _prepare_facts(self, one: _MadeTransaction) -> dict[str, Any]:
        if self.plan.order != "pgoutput":
            return {"xid": one.xid, "prepare_time": self._next_time()}
        lsn = self._next_lsn()
        one.prepared = {"lsn": lsn, "end_lsn": self._next_lsn(), "prepare_time": self._next_time()}
        return {"xid": one.xid, **one.prepared}

    def _next_lsn(self) -> int:
        self.lsn += 8 * self.chance.randrange(2, 30)
        return self.lsn

    def _next_time(self) -> str:
        self.time += timedelta(microseconds=self.chance.randrange(1, 10**6))
        return str(time_text(round(self.time.timestamp() * 10**6)))

    def _changed(self, one: _MadeTransaction, xid: int | None) -> Iterator[Event]:
        """Some changes, with the relations that they need."""
        for _ in range(self.chance.randrange(1, self.plan.changes + 1)):
            state = self.chance.choice(self.states)
            if state.truncated_by not in (None, one):
                continue
            event = self._change(one, state)
            told = self.told if xid is None else one.told
            if "relations" in self.plan.abilities and told.get(state.relation_id) != state.version:
                told[state.relation_id] = state.version
                yield replace(self._relation(state), xid=xid)
            lsn = self._next_lsn() if self.plan.order == "parallel" else None
            yield replace(event, lsn=lsn, xid=xid)  # type: ignore[call-arg]

    def _change(self, one: _MadeTransaction, state: _TableState) -> Event:
        chance = self.chance
        facts: dict[str, Any] = {"table_schema": state.table.schema, "table_name": state.table.name}
        says_kind = self.plan.order == "pgoutput"
        if says_kind:
            facts["relation_id"] = state.relation_id
        key = self._free_row(one, state)
        what = chance.random()
        if key is None or what < 0.5:
            row = self._new_row(one, state)
            self._set(one, state, state.key_of(row), row)
            return Insert(new=self._image(state, row), **facts)
        if what > 0.99 and "truncate" in self.plan.abilities and set(state.locked.values()) <= {one.xid}:
            state.truncated_by = one
            one.truncated.append(state)
            for each in [*state.order]:
                self._set(one, state, each, None)
            return Truncate(tables=((state.table.schema, state.table.name),))
        before = state.rows[key]
        is_full = state.table.replica_identity == "full"
        shown = None if not says_kind else "full" if is_full else "key"
        names = [*before] if is_full else state.keys
        if self.plan.order == "text":
            names = [name for name in names if before[name] is not None]  # test_decoding leaves NULLs out
        old = self._image(state, before, names)
        if what > 0.85:
            self._set(one, state, key, None)
            return Delete(old=old, old_kind=shown, **facts)
        after = dict(before)
        others = [column for column in state.columns if not column.key]
        for column in chance.sample(others, chance.randrange(len(others) + 1)):
            after[column.name] = self._value(column)
        moves = what > 0.8
        if moves:
            after |= {name: value for name, value in self._new_row(one, state).items() if name in state.keys}
            self._set(one, state, key, None)
        self._set(one, state, state.key_of(after), after)
        unsent = [
            column.name
            for column in others
            if "unsent" in self.plan.abilities
            and before[column.name] == after[column.name]
            and len(before[column.name] or "") >= LONG
        ]
        new = self._image(state, after, unsent=unsent)
        if not (is_full or moves):
            return Update(new=new, **facts)
        return Update(new=new, old=old, old_kind=shown, **facts)

    def _free_row(self, one: _MadeTransaction, state: _TableState) -> Key | None:
        """The key of a row that no other open transaction has changed."""
        for _ in range(5 if state.order else 0):
            key = self.chance.choice(state.order)
            if state.locked.get(key, one.xid) == one.xid:
                return key
        return None

    def _set(self, one: _MadeTransaction, state: _TableState, key: Key, row: Values | None) -> None:
        one.undo.append((state, key, state.rows.get(key)))
        if key not in state.locked:
            state.locked[key] = one.xid
            one.locks.append((state, key))
        state.put(key, row)

    def _undo(self, one: _MadeTransaction, least: int) -> None:
        """Undoes what a transaction did, but for its first changes."""
        while len(one.undo) > least:
            state, key, row = one.undo.pop()
            if row is not None or key in state.rows:
                state.put(key, row)

    def _unlock(self, one: _MadeTransaction) -> None:
        for state, key in one.locks:
            del state.locked[key]
        for state in one.truncated:
            state.truncated_by = None

    def _new_row(self, one: _MadeTransaction, state: _TableState) -> Values:
        """A row with a key that no row has had, or one whose row is gone."""
        key = state.freed.pop() if state.freed and self.chance.random() < 0.3 else None
        if key is None or key in state.rows or state.locked.get(key, one.xid) != one.xid:
            state.made += 1
            key = (str(state.made),) * len(state.keys)
        row = {column.name: None if column.key else self._value(column) for column in state.columns}
        return row | dict(zip(state.keys, key, strict=True))

    def _value(self, column: Column) -> str | None:
        what = self.chance.random()
        if what < 0.1:
            return None
        if what > 0.8 and column.type == "text":
            return text_value(self.chance) * LONG + "x" * LONG
        return MAKE[column.type](self.chance)

    def _image(
        self, state: _TableState, row: Values, names: Sequence[str] | None = None, unsent: Sequence[str] = ()
    ) -> TupleData:
        columns = [column for column in state.columns if names is None or column.name in names]
        return TupleData(
            tuple(column.name for column in columns),
            tuple(UNCHANGED if column.name in unsent else row[column.name] for column in columns),
            tuple(column.type for column in columns),
        )

    def _relation(self, state: _TableState) -> Relation:
        is_full = state.table.replica_identity == "full"
        return Relation(
            relation_id=state.relation_id,
            table_schema=state.table.schema,
            table_name=state.table.name,
            replica_identity=state.table.replica_identity,
            columns=tuple(column.name for column in state.columns),
            type_oids=tuple(type_oid(column.type) for column in state.columns),
            typmods=(-1,) * len(state.columns),
            key_columns=tuple(column.name for column in state.columns if column.key or is_full),
        )

    def _alter(self, state: _TableState) -> None:
        """ALTER TABLE, while no transaction is open."""
        state.version += 1
        integers = [index for index, column in enumerate(state.columns) if column.type == "integer"]
        if integers and self.chance.random() < 0.5:
            index = self.chance.choice(integers)
            state.columns[index] = state.columns[index]._replace(type="bigint")
            return
        name = f"added_{state.version}"
        state.columns.append(Column(name, self.chance.choice(("integer", "text", "boolean"))))
        for row in state.rows.values():
            row[name] = None
