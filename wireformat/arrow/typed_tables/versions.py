"""The versions of a table: which columns its rows have, from where to where."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...formats.registry import find_row
from ...pgtypes import type_name
from ...pgtypes.sql_types import SqlType, with_typmod
from ..arrays import Array
from .images import Names
from .rows import DELETE, INSERT, RELATION, ChangeRows


@dataclass(frozen=True)
class ColumnFacts:
    """What one record says about the columns of its table.

    types        column to type, None where it is not said
    is_complete  whether these are all columns, in their order
    typmods      column to type modifier, where they are said
    keys         columns of the replica identity, where they are said
    is_untyped   whether there are values without types
    """

    types: Mapping[str, str | None]
    is_complete: bool = False
    typmods: Mapping[str, int] | None = None
    keys: Names | None = None
    is_untyped: bool = False


@dataclass
class Version:
    """The columns of a table for some time; the fields are those of ColumnFacts, as they became known.

    format   of the rows that name the types; None where it is not known
    """

    types: dict[str, str | None]
    is_complete: bool
    typmods: dict[str, int] | None = None
    keys: Names | None = None
    is_untyped: bool = False
    format: str | None = None

    def sql_type(self, name: str) -> SqlType | None:
        """The column's type with its modifiers, as far as they are known."""
        known = self.types.get(name)
        server = None if self.format is None else find_row(self.format).types
        return None if known is None else with_typmod(known, (self.typmods or {}).get(name), server)

    def holds(self, facts: ColumnFacts) -> bool:
        """Whether a record that says this may be of this version as it is."""
        if not facts.types.keys() <= self.types.keys() or not self._agrees(facts):
            return False
        return not facts.is_complete or (self.is_complete and len(facts.types) == len(self.types))

    def may_grow(self, facts: ColumnFacts) -> bool:
        """Whether this version may be one that the record knows more columns of."""
        return (
            not self.is_complete
            and self._agrees(facts)
            and (not facts.is_complete or self.types.keys() <= facts.types.keys())
        )

    def _agrees(self, facts: ColumnFacts) -> bool:
        if facts.typmods is not None and self.typmods is not None and facts.typmods != self.typmods:
            return False
        pairs = ((self.types.get(name), type) for name, type in facts.types.items())
        return all(own is None or type is None or own == type for own, type in pairs)

    def learn(self, facts: ColumnFacts) -> None:
        """Take over what the record says."""
        known = {name: type or self.types.get(name) for name, type in facts.types.items()}
        self.types = known if facts.is_complete else {**self.types, **known}
        self.is_complete |= facts.is_complete
        self.is_untyped |= facts.is_untyped
        self.typmods = self.typmods if facts.typmods is None else dict(facts.typmods)
        self.keys = self.keys if facts.keys is None else facts.keys


@dataclass
class TableVersions:
    """All versions of one table that were met, in the order in which they were.

    A version that comes again, as when transactions of before and after a change are delivered in another order, is the
    same one.

    format   of the rows; None where it is not known
    """

    versions: list[Version] = field(default_factory=list)
    current: int = -1
    format: str | None = None

    def take(self, rows: ChangeRows, places: Array) -> Array:
        """The version of each row: int64[n].

        places   int64[n], those of the rows that are of this table, in order
        """
        layouts = rows.layouts[places]
        starts = rows.kinds[places] == RELATION
        starts[1:] |= layouts[1:] != layouts[:-1]
        starts[:1] = True
        begins = np.flatnonzero(starts)
        begun = places[begins]
        known: dict[tuple[int, int], int] = {}
        found = []
        runs = zip(begun.tolist(), layouts[begins].tolist(), (rows.kinds[begun] == RELATION).tolist(), strict=True)
        for place, layout, is_relation in runs:
            key = self.current, layout
            if is_relation:
                self.current = self.find(relation_facts(rows, place))
            elif key in known:
                self.current = known[key]
            else:
                self.current = known[key] = self.find(image_facts(rows, place))
            found.append(self.current)
        return np.repeat(np.array(found, np.int64), np.diff(begins, append=len(places)))

    def find(self, facts: ColumnFacts) -> int:
        """The number of the version that a record of these facts is of; it may be a new one."""
        for number in self._newest_first():
            if self.versions[number].holds(facts):
                self.versions[number].learn(facts)
                return number
        if self.current >= 0 and self.versions[self.current].may_grow(facts):
            self.versions[self.current].learn(facts)
            return self.current
        self.versions.append(Version({}, False, format=self.format))
        self.versions[-1].learn(facts)
        return len(self.versions) - 1

    def _newest_first(self) -> Iterator[int]:
        if self.current >= 0:
            yield self.current
        yield from (number for number in reversed(range(len(self.versions))) if number != self.current)


def image_facts(rows: ChangeRows, place: int) -> ColumnFacts:
    """Of an INSERT, UPDATE, DELETE or TRUNCATE. Only an INSERT has all columns: an UPDATE may leave out unsent ones."""
    new, old, types, unchanged = (
        shapes.lists[shapes.ids[place]] for shapes in (rows.new.shapes, rows.old.shapes, rows.types, rows.unchanged)
    )
    sent = old if rows.kinds[place] == DELETE or new is None else new
    images = [names for names in (old, None if rows.numbered[place] else new) if names]
    if sent is None or not images:
        return ColumnFacts({}, is_untyped=bool(new or old) and types is None)
    found: dict[str, str | None] = dict.fromkeys(max(images, key=len))
    found |= dict.fromkeys(name for names in (*images, unchanged or ()) for name in names)
    if types is not None:
        found |= dict(zip(sent, types, strict=False))
    return ColumnFacts(found, is_complete=rows.kinds[place] == INSERT and not unchanged, is_untyped=types is None)


def relation_facts(rows: ChangeRows, place: int) -> ColumnFacts:
    """Of a RELATION."""
    batch, row = rows.at(place)
    if "detail" not in batch.schema.names:
        return ColumnFacts({})
    detail = dict(batch["detail"][row].as_py() or ())
    columns, oids, typmods, keys = (
        json.loads(detail.get(key, "[]")) for key in ("columns", "type_oids", "typmods", "key_columns")
    )
    types = dict(zip(columns, map(type_name, oids), strict=True))
    return ColumnFacts(types, True, dict(zip(columns, typmods, strict=True)), tuple(keys))
