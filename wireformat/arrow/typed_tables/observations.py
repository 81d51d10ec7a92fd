"""Observations: what the rows of one chunk tell about the columns of their tables, small enough to join all chunks'."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ...formats.pgoutput.undelivered import Described
from ...options.table_names import TableName
from ..arrays import Array, Int
from ..codes import combined_codes, grouped, groups_of
from ..jit.compiler import compiled
from ..row_changes import TABLE_RELATION
from .rows import ChangeRows
from .tables import NOTHING_KNOWN, list_of, tables_of_batch, undelivered_versions
from .versions import ColumnFacts, TableVersions, copies_of, image_facts, relation_facts

Part = TypeVar("Part")


class Observation(NamedTuple):
    """A fact about the columns of a table, as rows tell it that come between two changes of the table.

    table        schema and name
    facts        as JSON
    first, last  positions of the first and the last row that tells it
    changes      the number of those rows, without RELATION
    """

    table: TableName
    facts: str
    first: dict[str, Any]
    last: dict[str, Any]
    changes: int


_Key = tuple[TableName, int, str]
"""The table, the segment, and the facts of an observation."""


_MOST_EPOCHS = 1000
"""The most epochs of a table in a chunk. Beyond, rows that name a part of the columns may count for another version."""


_MOST_LAYOUTS = 100_000
"""Number of layouts whose facts are remembered. With more, all are looked at anew, which takes longer."""


class Observations:
    """Collects the observations of rows that come in order.

    The version that a row belongs to depends on the rows before it, if it names a part of the columns. So the rows of a
    table are divided into segments. One begins where the version changes, as far as this chunk knows, or what RELATION
    tells, and where a fact is first told after that. When the facts of a segment have been told once, the order of its
    rows makes no difference.
    """

    def __init__(self) -> None:
        self._found: dict[_Key, Observation] = {}
        self._tables: dict[TableName, _TableSegments] = {}
        self._facts: dict[Hashable, str] = {}
        """What rows of a layout tell."""

    def take_batch(self, batch: pa.RecordBatch) -> None:
        """Takes the rows of a record batch."""
        self.take(*tables_of_batch(batch))

    def take(
        self, rows: ChangeRows, tables: Iterable[tuple[TableName, Array]], position_of: Callable[[int], dict[str, Any]]
    ) -> None:
        """Takes rows; see `TablesFound.take`."""
        for table, indices in self._take_steady(rows, [*tables], position_of):
            if len(indices) == 1:  # as where a stream describes its tables once more
                self._take_row(rows, table, indices, position_of(int(indices[0])))
                continue
            firsts, codes = grouped(combined_codes([rows.layouts[indices], rows.relation_codes[indices]]))
            facts = [_facts(rows, int(index)) for index in indices[firsts]]
            segments = self._tables.setdefault(table, _TableSegments()).take(rows, indices, codes, facts)
            groups = combined_codes([segments - segments[0], codes])
            for group in groups_of(groups):
                first, last = int(indices[group[0]]), int(indices[group[-1]])
                changes = 0 if rows.kinds[first] == TABLE_RELATION else len(group)
                key = table, int(segments[group[0]]), facts[codes[group[0]]].json
                self._add(key, position_of(first), position_of(last), changes)

    def _take_row(self, rows: ChangeRows, table: TableName, indices: Array, position: dict[str, Any]) -> None:
        """Takes the only row of a table."""
        facts = _facts(rows, int(indices[0]))
        (segment,) = self._tables.setdefault(table, _TableSegments()).take(
            rows, indices, np.zeros(1, np.int64), [facts]
        )
        changes = int(rows.kinds[indices[0]] != TABLE_RELATION)
        self._add((table, int(segment), facts.json), position, position, changes)

    def _take_steady(
        self, rows: ChangeRows, tables: list[tuple[TableName, Array]], position_of: Callable[[int], dict[str, Any]]
    ) -> list[tuple[TableName, Array]]:
        """Takes the rows of tables that have one version after them, as almost all have. Returns the other tables.

        A segment of such a table begins where a fact is first told: the rows of all of them are counted in one pass.
        Each row must be of one of the tables.
        """
        if rows.known_layouts is None:
            return tables
        firsts, codes = grouped(rows.layouts)
        numbers = np.zeros(len(codes), np.int64)
        for number, (_, indices) in enumerate(tables):
            numbers[indices] = number
        facts_of_tables: list[dict[int, ColumnFacts]] = [{} for _ in tables]
        for code in np.argsort(firsts).tolist():
            facts_of_tables[numbers[firsts[code]]][code] = image_facts(rows, int(firsts[code]))
        others: list[tuple[TableName, Array]] = []
        steady: list[tuple[TableName, _TableSegments, str]] = []
        fact_of_code = np.full(len(firsts), -1)
        is_told: list[bool] = []
        for item, facts_of_codes in zip(tables, facts_of_tables, strict=True):
            segments = self._tables.setdefault(item[0], _TableSegments())
            facts = {fact.json: fact for fact in facts_of_codes.values()}
            new = segments.learn(facts)
            if new is None:
                others.append(item)
                continue
            index_of = {fact: index for index, fact in enumerate(facts, len(steady))}
            for code, fact in facts_of_codes.items():
                fact_of_code[code] = index_of[fact.json]
            steady += [(item[0], segments, fact) for fact in facts]
            is_told += [fact not in new for fact in facts]
        begun, found = np.zeros(len(tables), np.int64), np.empty((len(codes), _RUN_FIELDS), np.int64)
        runs = _count_runs(
            codes, numbers, fact_of_code, np.array(is_told, bool), np.full(len(steady), -1), begun, found
        )
        for index, segment, first, last, count in found[:runs].tolist():
            table, segments, fact_text = steady[index]
            self._add((table, segments.segment + segment, fact_text), position_of(first), position_of(last), count)
        for (table, _), count in zip(tables, begun.tolist(), strict=True):
            self._tables[table].segment += count
        return others

    def _add(self, key: _Key, first: dict[str, Any], last: dict[str, Any], changes: int) -> None:
        known = self._found.get(key)
        ends = [first, last]
        if known is not None:  # also of another layout of these rows, which may begin earlier and end later
            ends = sorted([known.first, known.last, *ends], key=lambda position: (*position.values(),))
            changes += known.changes
        self._found[key] = Observation(key[0], key[-1], ends[0], ends[-1], changes)

    def settle(self, table: TableName, layout: Hashable, facts: ColumnFacts) -> None:
        """See CountedTables."""
        if len(self._facts) >= _MOST_LAYOUTS:
            self._facts.clear()
        self._facts[layout] = facts.json

    def is_settled(self, table: TableName, layout: Hashable) -> bool:
        """See CountedTables."""
        return layout in self._facts and self._tables[table].are_settled((self._facts[layout],))

    def count(
        self, table: TableName, layout: Hashable, first: dict[str, Any], last: dict[str, Any], changes: int
    ) -> None:
        """See CountedTables."""
        self._add((table, self._tables[table].segment, self._facts[layout]), first, last, changes)

    def found(self) -> list[Observation]:
        """Returns the observations: of a table, each once in a segment."""
        return [*self._found.values()]


_RUN_FIELDS = 5
_FACT, _SEGMENT, _FIRST, _LAST, _COUNT = range(_RUN_FIELDS)
"""Fields of a run, the rows of a segment that tell the same fact: fact, segment, first and last row, and number of
rows."""


@compiled
def _count_runs(
    codes: Array, tables: Array, fact_of_code: Array, is_told: Array, run_of_fact: Array, begun: Array, found: Array
) -> Int:
    """Counts rows by segment and fact; returns the number of runs.

    codes, tables   int64[n]: of each row, what tells its fact, and its table
    fact_of_code    int64[m]: an index, of facts of one table; below 0 for rows that are not counted
    is_told         bool[k], changed: whether the fact was told before
    run_of_fact     int64[k], -1, changed: the last run of each fact
    begun           int64[t], zeros, filled: how many segments have begun in each table
    found           int64[n, _RUN_FIELDS], filled: the runs; there are no more than rows
    """
    runs = np.int64(0)
    for row in range(len(codes)):
        fact = fact_of_code[codes[row]]
        if fact < 0:
            continue
        table = tables[row]
        if not is_told[fact]:
            is_told[fact] = True
            begun[table] += 1
        run = run_of_fact[fact]
        if run < 0 or found[run, _SEGMENT] != begun[table]:
            run = run_of_fact[fact] = runs
            runs += 1
            found[run, _FACT], found[run, _SEGMENT], found[run, _FIRST], found[run, _COUNT] = fact, begun[table], row, 0
        found[run, _LAST] = row
        found[run, _COUNT] += 1
    return runs


class _TableSegments:
    """Divides the rows of a table, which come in order, into segments; see Observations.

    segment   the number of the current one
    """

    def __init__(self) -> None:
        self._versions = TableVersions()
        self.segment = 0
        self._epochs = 0
        self._relation: str | None = None
        self._told: dict[str, ColumnFacts] = {}
        """The facts that have been told since the version changed, by their JSON."""
        self._is_settled = False
        """Whether no order of these facts changes the version."""

    def are_settled(self, facts: Sequence[str]) -> bool:
        """Whether rows that tell these facts are of the current segment, and tell nothing new."""
        return self._is_settled and self._told.keys() >= {*facts}

    def learn(self, facts: Mapping[str, ColumnFacts]) -> set[str] | None:
        """Learns facts of row changes, by their JSON, in the order in which they are first told.

        Returns those that are new, each of which begins a segment; or None, and learns nothing, unless the table has
        one version then, and no order of these facts changes it. To be told a fact again then teaches nothing, so each
        is looked at once and not for each row.
        """
        if self._is_settled and self._told.keys() >= facts.keys():
            return set()
        before = self._versions
        if len(before.versions) > 1:
            return None
        # A version that learns gets new mappings, so what `before` has stays as it is.
        after = TableVersions([replace(version) for version in before.versions], before.current, before.format)
        for one in facts.values():
            after.current = after.find(one)
        told = {**self._told, **facts}
        if len(after.versions) > 1 or not all(map(after.versions[0].fits, told.values())):
            return None
        new = facts.keys() - self._told.keys()
        if before.current < 0:
            self._epochs += 1  # that of the first version
        self._versions, self._told, self._is_settled = after, told, True
        return new

    def take(self, rows: ChangeRows, indices: Array, codes: Array, facts: Sequence[ColumnFacts]) -> Array:
        """Returns int64[n]: the segment of each row of the table."""
        if self.are_settled([fact.json for fact in facts]):
            return np.full(len(indices), self.segment)
        epochs = self._epochs_of(rows, indices, codes, facts)
        begins: list[int] = []
        for start, stop in pairwise(sorted({0, *epochs, len(indices)})):
            if start in epochs:
                self._told.clear()
            for index in np.sort(grouped(codes[start:stop])[0] + start).tolist():
                fact = facts[codes[index]]
                if fact.json not in self._told:
                    self._told[fact.json] = fact
                    begins.append(index)
        segments = self.segment + np.searchsorted(begins, np.arange(len(indices)), side="right")
        self.segment += len(begins)
        current = self._versions.versions[self._versions.current]
        self._is_settled = all(map(current.fits, self._told.values()))
        return segments

    def _epochs_of(self, rows: ChangeRows, indices: Array, codes: Array, facts: Sequence[ColumnFacts]) -> set[int]:
        """Returns where the version of the rows changes, or what a RELATION tells."""
        before = self._versions.current
        found = np.flatnonzero(np.diff(self._versions.take(rows, indices), prepend=before)).tolist()
        relations = np.flatnonzero(rows.kinds[indices] == TABLE_RELATION)
        for at in relations[np.diff(codes[relations], prepend=-1) != 0].tolist():
            if facts[codes[at]].json != self._relation:
                self._relation = facts[codes[at]].json
                found.append(at)
        epochs = {*found[: max(_MOST_EPOCHS - self._epochs, 0)]}
        self._epochs += len(epochs)
        return epochs


def tables_of_observations(
    observed: Iterable[Observation],
    format: str | None,
    position: pa.DataType,
    known: Mapping[TableName, TableVersions] = NOTHING_KNOWN,
    undelivered: Collection[Described] = (),
) -> pa.Table:
    """Returns the list of tables, as `tables` does.

    observed   of all rows of a stream, in the order of their first rows. A null in a position is before all values
    position   the type of the positions
    known      the versions that tables had before, which the list has too, first
    undelivered   what the stream describes in transactions that were not committed
    """
    versions = copies_of(known, format)
    totals: dict[tuple[TableName, int], list[Any]] = {}
    for one in observed:
        of_table = versions.setdefault(one.table, TableVersions(format=format))
        of_table.current = number = of_table.find(ColumnFacts.from_json(one.facts))
        total = totals.setdefault((one.table, number), [one.first, one.last, 0])
        total[1] = max(total[1], one.last, key=_rank)
        total[2] += one.changes
    return list_of(totals, versions, position, format, undelivered, _counts(known))


def first_versions(
    observed: Iterable[tuple[Part, Observation]],
    format: str | None,
    known: Mapping[TableName, TableVersions] = NOTHING_KNOWN,
    undelivered: Collection[Described] = (),
) -> dict[TableName, dict[Part, int]]:
    """Returns the version of a table's first row in each part of a stream: its index in what `of_table` returns.

    observed, format, known, undelivered   as in `tables_of_observations`; each observation with the part that has it

    Tables with one version are left out. The version is the one that a single reading of the stream finds: it knows the
    list, but not where in the stream a RELATION is, since only row changes are committed.
    """
    observed = [*observed]
    versions = copies_of(known, format)
    for _, one in observed:
        of_table = versions.setdefault(one.table, TableVersions(format=format))
        of_table.current = of_table.find(ColumnFacts.from_json(one.facts))
    for table, of_table in versions.items():
        of_table.current = known[table].current if table in known else 0
    found: dict[TableName, dict[Part, int]] = {}
    for part, one in observed:
        of_table = versions[one.table]
        if one.changes and len(of_table.versions) > 1:
            of_table.current = of_table.find(ColumnFacts.from_json(one.facts))
            found.setdefault(one.table, {}).setdefault(part, of_table.current)
    left_out = {*undelivered_versions(versions, undelivered, _counts(known))}
    for table, of_parts in found.items():
        numbers = range(1, len(versions[table].versions) + 1)
        kept = [number - 1 for number in numbers if (table, number) not in left_out] or [*range(len(numbers))]
        for part, version in of_parts.items():
            of_parts[part] = max(bisect_right(kept, version) - 1, 0)
    return found


def _counts(known: Mapping[TableName, TableVersions]) -> dict[TableName, int]:
    return {table: len(of_table.versions) for table, of_table in known.items()}


def _rank(position: dict[str, Any]) -> list[tuple[bool, Any]]:
    """Returns what sorts positions; a null is before all values."""
    return [(value is not None, value) for value in position.values()]


def _facts(rows: ChangeRows, index: int) -> ColumnFacts:
    return relation_facts(rows, index) if rows.kinds[index] == TABLE_RELATION else image_facts(rows, index)
