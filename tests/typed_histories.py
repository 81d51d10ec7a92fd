"""Typed changes of a made-up table, and a plain replica that applies them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

Values = dict[str, Any]

COLUMNS = pa.schema(
    [
        pa.field("part", pa.int32()),
        pa.field("id", pa.int64()),
        pa.field("step_0", pa.string()),
        pa.field("Long a.b", pa.string()),
        pa.field("raw", pa.list_(pa.int32())),
    ]
)
"""A key of two columns; the last two may not be sent where they do not change."""
KEYS = ("part", "id")
LONG = ("Long a.b", "raw")
SEQUENCE = pa.struct(
    [pa.field("commit_lsn", pa.int64(), nullable=False), pa.field("ordinal", pa.int64(), nullable=False)]
)
TYPED = pa.schema(
    [
        *COLUMNS,
        pa.field("_change_type", pa.string()),
        pa.field("_sequence", SEQUENCE),
        pa.field("_xid", pa.int64()),
        pa.field("_commit_time", pa.timestamp("us", "UTC")),
        pa.field("_old", pa.struct(list(COLUMNS))),
        pa.field("_unchanged", pa.list_(pa.string())),
    ]
)


@dataclass
class Row:
    """One change.

    old         as it was sent: None, the columns of the key, or the whole row
    unchanged   columns that were not sent
    """

    change: str
    new: Values
    old: Values | None = None
    unchanged: tuple[str, ...] = ()
    sequence: tuple[int, int] = (0, 0)

    def typed(self) -> dict[str, Any]:
        """As a row of a typed table."""
        shown = self.old if self.change == "delete" else self.new
        return {
            **{name: (shown or {}).get(name) for name in COLUMNS.names},
            "_change_type": self.change,
            "_sequence": {"commit_lsn": self.sequence[0], "ordinal": self.sequence[1]},
            "_xid": self.sequence[0],
            "_old": self.old and {name: self.old.get(name) for name in COLUMNS.names},
            "_unchanged": list(self.unchanged) or None,
        }


@dataclass
class Replica:
    """The table in memory, by part. A row that was there before the history lacks columns that no change has sent."""

    parts: dict[int, list[Values]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Values]:
        return [row for rows in self.parts.values() for row in rows]

    def apply(self, change: Row) -> None:
        if change.change == "truncate":
            self.parts.clear()
            return
        rows = self.parts.setdefault((change.old or change.new)["part"], [])
        before = {} if change.change == "insert" else self._taken(rows, change)
        if change.change != "delete":
            sent = {name: value for name, value in change.new.items() if name not in change.unchanged}
            filled = {name: change.old[name] for name in change.unchanged if change.old and name in change.old}
            after = {**before, **sent, **filled}
            if change.change == "insert":
                rows[:] = [row for row in rows if any(row[key] != after[key] for key in KEYS)]
            rows.append(after)

    def _taken(self, rows: list[Values], change: Row) -> Values:
        looked_for = change.old or {key: change.new[key] for key in KEYS}
        whole = [row for row in rows if row == looked_for]
        same_key = [row for row in rows if all(row[key] == looked_for[key] for key in KEYS)]
        for row in [*whole, *same_key][:1]:
            rows.remove(row)
            return row
        return {}


class History:
    """A server with some rows of the table: makes transactions, and knows what it holds.

    full    old rows are sent whole (REPLICA IDENTITY FULL); else their key, and that only where it changes
    """

    def __init__(self, part: int, chance: Random, *, full: bool) -> None:
        self.part, self.chance, self.full = part, chance, full
        self.rows: list[Values] = []
        self._made = 0

    def transaction(self) -> Iterator[Row]:
        """A few changes."""
        for _ in range(self.chance.randrange(1, 5)):
            yield from self.chance.choice(
                [
                    *(self._insert, self._insert, self._set, self._set, self._move, self._move, self._delete),
                    *(self._swap, self._shift, self._there_and_back, self._swap_at_once),
                ]
            )()

    def _value(self, name: str) -> Any:
        self._made += 1
        if name == "raw":
            return [self.part, None, self._made]
        return None if name == "step_0" and self._made % 5 == 0 else f"{name} {self.part} {self._made}"

    def _insert(self) -> Iterator[Row]:
        free = [id for id in range(8) if all(row["id"] != id for row in self.rows)]
        if free:
            row = {
                "part": self.part,
                "id": self.chance.choice(free),
                **{name: self._value(name) for name in ("step_0", *LONG)},
            }
            if self.chance.random() < 0.2:
                row["raw"] = None
            self.rows.append(row)
            yield Row("insert", dict(row))

    def _update(self, row: Values, **changed: Any) -> Row:
        """Change a row: long values that stay are not sent, unless they are NULL, which is never stored out of line."""
        old = dict(row)
        row.update(changed)
        unchanged = tuple(name for name in LONG if name not in changed and old[name] is not None)
        new = {name: value for name, value in row.items() if name not in unchanged}
        moved = old["id"] != row["id"]
        image = old if self.full else {key: old[key] for key in KEYS} if moved else None
        return Row("update", new, image, unchanged)

    def _set(self) -> Iterator[Row]:
        if self.rows:
            names = self.chance.sample(("step_0", *LONG), self.chance.randrange(3))
            yield self._update(self.chance.choice(self.rows), **{name: self._value(name) for name in names})

    def _move(self) -> Iterator[Row]:
        free = [id for id in range(8) if all(row["id"] != id for row in self.rows)]
        if self.rows and free:
            names = self.chance.sample(LONG, self.chance.choice((0, 0, 0, 1, 2)))
            changed = {name: self._value(name) for name in names}
            yield self._update(self.chance.choice(self.rows), id=self.chance.choice(free), **changed)

    def _delete(self) -> Iterator[Row]:
        if self.rows:
            row = self.rows.pop(self.chance.randrange(len(self.rows)))
            yield Row("delete", {}, dict(row) if self.full else {key: row[key] for key in KEYS})

    def _swap(self) -> Iterator[Row]:
        """Two keys, by way of a third."""
        if len(self.rows) > 1:
            one, other = self.chance.sample(self.rows, 2)
            ids = one["id"], other["id"]
            yield self._update(one, id=-1)
            yield self._update(other, id=ids[0])
            yield self._update(one, id=ids[1])

    def _swap_at_once(self) -> Iterator[Row]:
        """Two keys, in one statement; the key is then no replica identity, so that only FULL allows it."""
        if self.full and len(self.rows) > 1:
            one, other = self.chance.sample(self.rows, 2)
            ids = one["id"], other["id"]
            yield self._update(one, id=ids[1])
            yield self._update(other, id=ids[0])

    def _shift(self) -> Iterator[Row]:
        """All keys, by as much."""
        by = self.chance.choice((100, 1, -100))
        for row in sorted(self.rows, key=lambda row: row["id"], reverse=by > 0):
            yield self._update(row, id=row["id"] + by)

    def _there_and_back(self) -> Iterator[Row]:
        if self.rows:
            row = self.chance.choice(self.rows)
            id = row["id"]
            yield self._update(row, id=-2)
            yield self._update(row, id=id)


def history(parts: int, transactions: int, seed: int, truncate: float = 0.0) -> tuple[list[Row], list[Values]]:
    """Changes of one table in order of commit, and its rows afterwards; every part is a history of its own."""
    chance = Random(seed)
    histories = [History(part, chance, full=part % 3 == 0) for part in range(parts)]
    rows: list[Row] = []
    for number in range(transactions):
        changes = [row for one in chance.sample(histories, parts // 4 or 1) for row in one.transaction()]
        if chance.random() < truncate:
            place = chance.randrange(len(changes) + 1)
            changes[place:] = [Row("truncate", {})]
            for one in histories:
                one.rows = []
        for ordinal, row in enumerate(changes):
            row.sequence = (100 * number + 100, 2 * ordinal)
        rows += changes
    return rows, [row for one in histories for row in one.rows]


def typed_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([row.typed() for row in rows], TYPED)


def with_own_relation_id(typed: pa.Table) -> pa.Table:
    """The same changes of a table that has a column `_relation_id`, and a format that sends no OIDs."""
    names = {"step_0": "_relation_id"}
    old = typed["_old"].combine_chunks()
    fields = [field.with_name(names.get(field.name, field.name)) for field in old.type]
    renamed = pa.StructArray.from_arrays(old.flatten(), fields=fields, mask=old.is_null())
    typed = typed.set_column(typed.column_names.index("_old"), "_old", renamed)
    return typed.rename_columns([names.get(name, name) for name in typed.column_names])
