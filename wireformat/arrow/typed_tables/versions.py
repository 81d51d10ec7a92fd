"""The versions of a table: its columns and their types between two changes of its definition."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np

from ...formats.pgoutput.relations import RELATION_LISTS, relation_lists
from ...formats.registry import find_row
from ...options.table_names import TableName
from ...pgtypes import type_name
from ...pgtypes.sql_types import SqlType, with_typmod
from ..arrays import Array
from ..codes import grouped
from ..row_changes import TABLE_DELETE, TABLE_INSERT, TABLE_RELATION
from .images import Names
from .rows import ChangeRows

_MOST_FOUND = 10_000
"""For how many kinds of rows a table remembers the version. More are found anew, which takes longer."""

_ROWS_AT_ONCE = 1 << 10
"""Number of rows compared at once to find where their layout changes: for most tables, few comparisons are needed."""


@dataclass(frozen=True)
class ColumnFacts:
    """What one record tells about the columns of its table. Records that tell the same share them: they never change.

    types        column to type, or to None if the record names none
    is_complete  whether these are all columns, in their order
    typmods      column to type modifier; None if the record has none
    keys         columns of the replica identity; None if the record does not name them
    is_untyped   whether the record has values without types
    """

    types: Mapping[str, str | None]
    is_complete: bool = False
    typmods: Mapping[str, int] | None = None
    keys: Names | None = None
    is_untyped: bool = False

    @cached_property
    def json(self) -> str:
        """The facts as JSON."""
        fields = [list(self.types.items()), bool(self.is_complete), self.typmods, self.keys, bool(self.is_untyped)]
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ColumnFacts:
        """Returns the facts from JSON."""
        types, is_complete, typmods, keys, is_untyped = json.loads(text)
        return cls(dict(types), is_complete, typmods, None if keys is None else tuple(keys), is_untyped)


@dataclass
class Version:
    """The columns of a table between two changes of its definition. Its fields are those of ColumnFacts.

    keys       of the last record that names them
    all_keys   of all records that name them
    format     of the rows that name the types; None if it is not known
    before     the types of the columns in the version before. A record may say only that a value was not sent, and not
               its type: it is then what it was
    """

    types: dict[str, str | None]
    is_complete: bool
    typmods: dict[str, int] | None = None
    keys: Names | None = None
    is_untyped: bool = False
    format: str | None = None
    all_keys: frozenset[Names] = frozenset()
    before: dict[str, str] = field(default_factory=dict)

    def type_of(self, name: str) -> str | None:
        """Returns the column's type; None if it is not known."""
        return self.types.get(name) or (self.before.get(name) if name in self.types else None)

    def sql_type(self, name: str) -> SqlType | None:
        """Returns the column's type, with its modifiers if they are known."""
        type = self.type_of(name)
        server = None if self.format is None else find_row(self.format).types
        return None if type is None else with_typmod(type, (self.typmods or {}).get(name), server)

    @property
    def described(self) -> frozenset[tuple[str, str | None, int]]:
        """The columns as in Described; none if no RELATION described them."""
        typmods = self.typmods or {}
        return frozenset((name, self.types[name], typmod) for name, typmod in typmods.items())

    def fits(self, facts: ColumnFacts) -> bool:
        """Whether a record with these facts may belong to this version, without a new column."""
        if facts.is_complete and not (self.is_complete and len(facts.types) == len(self.types)):
            return False
        return facts.types.keys() <= self.types.keys() and self._agrees(facts)

    def fits_with_more_columns(self, facts: ColumnFacts) -> bool:
        """Whether a record with these facts may belong to this version, and name columns that were not known before."""
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

    def knows(self, facts: ColumnFacts) -> bool:
        """Whether a record with these facts, which is no RELATION, fits this version and teaches it nothing."""
        if self.is_complete < facts.is_complete or self.is_untyped < facts.is_untyped:
            return False
        if facts.is_complete and len(facts.types) != len(self.types):
            return False
        mine, named = self.types.items(), facts.types.items()
        return named <= mine or all(
            (name, type) in mine or (type is None and name in self.types) for name, type in named
        )

    def learn(self, facts: ColumnFacts) -> None:
        """Adds the facts of a record of this version."""
        types = {name: type or self.types.get(name) for name, type in facts.types.items()}
        is_first = facts.is_complete and not self.is_complete  # later ones may name the same columns in another order
        self.types = types if is_first else {**self.types, **types}
        self.is_complete |= facts.is_complete
        self.is_untyped |= facts.is_untyped
        self.typmods = self.typmods if facts.typmods is None else dict(facts.typmods)
        if facts.keys is not None:
            self.keys = facts.keys
            self.all_keys |= {facts.keys}


@dataclass
class TableVersions:
    """All versions of one table, in the order in which they first occur.

    A version can occur again, since transactions from before and after a change of the table can be delivered in
    another order. It keeps its index. Where rows leave out values that were not sent, a version that begins with an
    UPDATE or DELETE has the columns of the one before it, too, until an INSERT shows that they are gone.

    current   index of the version of the last row; -1 before the first row
    format    of the rows; None if it is not known
    """

    versions: list[Version] = field(default_factory=list)
    current: int = -1
    format: str | None = None
    _revision: int = 0
    """How many times a version has learned something that decides which rows fit it."""
    _settled: set[Hashable] = field(default_factory=set)
    """Layouts of rows that are of the only version and teach it nothing, at this revision."""
    _found: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """The versions of rows, by the version before them and what they tell, at this revision."""

    def take(self, rows: ChangeRows, indices: Array) -> Array:
        """Returns int64[n]: the index of each row's version. The versions learn from the rows.

        indices   int64[n]: the indices of the rows of this table, in order
        """
        is_relation = rows.kinds[indices] == TABLE_RELATION
        if len(indices) == 1 and is_relation[0]:  # as where a stream describes its tables once more
            self.current = self.find(relation_facts(rows, int(indices[0])))
            return np.array([self.current])
        layouts = rows.layouts[indices]
        relation_codes = rows.relation_codes[indices].tolist() if is_relation.any() else []
        facts_of: dict[int, ColumnFacts] = {}
        last_relation: tuple[int, int, int] | None = None  # one that says the same again tells nothing
        stops = sorted({*grouped(layouts)[0].tolist(), *np.flatnonzero(is_relation).tolist()})
        version_of: dict[tuple[int, int], int] = {}
        own: defaultdict[int, set[int]] = defaultdict(set)  # of each version, the layouts whose rows keep it
        seen: set[int] = set()
        versions = np.empty(len(indices), np.int64)
        changes: list[int] = []  # where the layout changes, as far as that is known
        known_until = 0
        at, revision = 0, self._revision
        while at < len(indices):
            index, layout = int(indices[at]), int(layouts[at])
            key = self.current, layout
            if is_relation[at]:
                code = relation_codes[at]
                if (code, self.current, self._revision) != last_relation:
                    if code not in facts_of:
                        facts_of[code] = relation_facts(rows, index)
                    self.current = self.find(facts_of[code])
                    last_relation = code, self.current, self._revision
            else:
                seen.add(layout)
                self.current = version_of[key] if key in version_of else self._find_image(rows, index)
            if self._revision != revision:  # then a row may fit another version than before
                version_of.clear()
                own.clear()
                revision = self._revision
            if not is_relation[at]:
                version_of[key] = version_of[self.current, layout] = self.current
                own[self.current].add(layout)
            # At a RELATION, or a layout that was not seen before, another version may begin; where rows of some layouts
            # are of other versions, also at any other layout.
            next_stop = bisect_right(stops, at)
            then = stops[next_stop] if next_stop < len(stops) else len(indices)
            if len(own[self.current]) < len(seen):
                if at >= known_until:
                    known_until = min(at + _ROWS_AT_ONCE, len(indices))
                    differ = layouts[at + 1 : known_until] != layouts[at : known_until - 1]
                    changes = [*(at + 1 + np.flatnonzero(differ)).tolist(), known_until]
                then = min(then, changes[bisect_right(changes, at)])
            versions[at:then] = self.current
            at = then
        return versions

    @property
    def described(self) -> int:
        """The number of versions that a RELATION described."""
        return sum(version.typmods is not None for version in self.versions)

    def _find_image(self, rows: ChangeRows, index: int) -> int:
        """Returns the index of the version of a row change."""
        facts = image_facts(rows, index)
        if self.current >= 0 and self.versions[self.current].knows(facts):
            return self.current
        columns = (rows.new.names, rows.old.names, rows.types, rows.unchanged)
        key = (self.current, rows.kinds[index], bool(rows.numbered[index]), *(column[index] for column in columns))
        if key not in self._found:
            found = self.find(facts)
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[key] = found
        return self._found[key]

    def find(self, facts: ColumnFacts) -> int:
        """Returns the index of the version that a record with these facts belongs to, and adds one if none fits."""
        for index in self._newest_first():
            if self.versions[index].fits(facts):
                return self._learned(index, facts)
        if self.current >= 0 and self.versions[self.current].fits_with_more_columns(facts):
            return self._learned(self.current, facts)
        before = self._types_before()
        omitted: dict[str, str | None] = {}
        if not facts.is_complete and self._omits_unsent:
            omitted.update((name, before.get(name)) for name in self.versions[self.current].types)
        self.versions.append(Version(omitted, False, format=self.format, before=before))
        return self._learned(len(self.versions) - 1, facts)

    @property
    def _omits_unsent(self) -> bool:
        """Whether there was a row, and rows leave out values that were not sent, as those of some formats do."""
        return self.current >= 0 and self.format is not None and "unsent values" in find_row(self.format).cannot_say

    def _types_before(self) -> dict[str, str]:
        """Returns the types of the current version's columns, as far as they are known."""
        if self.current < 0:
            return {}
        version = self.versions[self.current]
        return {name: type for name in version.types if (type := version.type_of(name)) is not None}

    def _are_only(self, version: Version) -> bool:
        """Whether there is one version, and typed rows of it have the columns of this one."""
        if len(self.versions) != 1:
            return False
        own = self.versions[0]
        return list(own.types.items()) == list(version.types.items()) and own.typmods == version.typmods

    def settle_all(self, rows: ChangeRows) -> bool:
        """Settles the layouts of rows; returns whether all are: the rows are then of the only version."""
        layouts = rows.known_layouts
        if layouts is None:
            return False
        new = [index for index, layout in enumerate(layouts) if not self.is_settled(layout)]
        if new and len(self.versions) == 1:
            firsts, codes = grouped(rows.layouts)[0], rows.layouts
            occurring = dict(zip(codes[firsts].tolist(), firsts.tolist(), strict=True))
            new = [index for index in new if index in occurring]
            for index in new:
                self.settle(layouts[index], image_facts(rows, occurring[index]))
            new = [index for index in new if not self.is_settled(layouts[index])]
        return not new

    def settle(self, layout: Hashable, facts: ColumnFacts) -> None:
        """Remembers a layout of rows that are of the only version, and teach it nothing.

        facts   of its rows
        """
        if len(self.versions) != 1 or self.current != 0:
            return
        if self.versions[0].knows(facts):
            if len(self._settled) >= _MOST_FOUND:
                self._settled.clear()
            self._settled.add(layout)

    def settle_like(self, other: TableVersions) -> None:
        """Settles the layouts that are settled in other versions, if those are this table's only one."""
        if self.current == 0 and len(other.versions) == 1 and self._are_only(other.versions[0]):
            self._settled |= other._settled

    def is_settled(self, layout: Hashable) -> bool:
        """Whether rows of this layout are of the only version, and teach it nothing."""
        return layout in self._settled

    def _learned(self, index: int, facts: ColumnFacts) -> int:
        """Has a version learn, and returns its index."""
        version = self.versions[index]
        before = version.types, version.is_complete, version.typmods
        version.learn(facts)
        if (version.types, version.is_complete, version.typmods) != before:
            self._revision += 1
            self._found.clear()
            self._settled.clear()
        return index

    def _newest_first(self) -> Iterator[int]:
        if self.current >= 0:
            yield self.current
        yield from (index for index in reversed(range(len(self.versions))) if index != self.current)


def copies_of(known: Mapping[TableName, TableVersions], format: str | None) -> dict[TableName, TableVersions]:
    """Returns copies of the versions of tables, for rows of this format that come next."""
    found = deepcopy({**known})
    for versions in found.values():
        versions.format = format
    return found


def image_facts(rows: ChangeRows, index: int) -> ColumnFacts:
    """Returns the facts of an INSERT, UPDATE, DELETE or TRUNCATE. Only an INSERT is sure to name all columns."""
    layout = int(rows.layouts[index])
    if layout not in rows.facts_of_layouts:
        rows.facts_of_layouts[layout] = _image_facts(rows, index)
    found: ColumnFacts = rows.facts_of_layouts[layout]
    return found


def _image_facts(rows: ChangeRows, index: int) -> ColumnFacts:
    new, old, types, unchanged = (
        column.lists[column.codes[index]] for column in (rows.new.names, rows.old.names, rows.types, rows.unchanged)
    )
    if old and new and not rows.numbered[index] and {*old} < {*new, *(unchanged or ())}:
        old = None  # rows that leave out some columns of their old image tell the same
    return _facts_of_images(int(rows.kinds[index]), bool(rows.numbered[index]), new, old, types, unchanged)


@lru_cache(maxsize=4096)  # rows of the same kinds come in each piece of a stream
def _facts_of_images(
    kind: int, is_numbered: bool, new: Names | None, old: Names | None, types: Names | None, unchanged: Names | None
) -> ColumnFacts:
    sent = old if kind == TABLE_DELETE or new is None else new
    images = [names for names in (old, None if is_numbered else new) if names]
    if sent is None or not images:
        return ColumnFacts({}, is_untyped=bool(new or old) and types is None)
    found: dict[str, str | None] = dict.fromkeys(max(images, key=len))
    found |= dict.fromkeys(chain(*images, unchanged or ()))
    if types is not None:
        found |= dict(zip(sent, types, strict=False))
    return ColumnFacts(found, is_complete=kind == TABLE_INSERT and not unchanged, is_untyped=types is None)


def relation_facts(rows: ChangeRows, index: int) -> ColumnFacts:
    """Returns the facts of a RELATION."""
    detail = rows.detail(index)
    return ColumnFacts({}) if detail is None else _described(*(detail.get(name, "[]") for name in RELATION_LISTS))


@lru_cache(maxsize=1024)  # many streams describe their tables again and again
def _described(*texts: str) -> ColumnFacts:
    """Returns the facts of a RELATION with these lists, in the order of RELATION_LISTS."""
    lists = relation_lists(dict(zip(RELATION_LISTS, texts, strict=True)))
    types = dict(zip(lists["columns"], map(type_name, lists["type_oids"]), strict=True))
    return ColumnFacts(types, True, dict(zip(lists["columns"], lists["typmods"], strict=True)), lists["key_columns"])
