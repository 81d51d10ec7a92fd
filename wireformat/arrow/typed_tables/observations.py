"""Observations: what the rows of one chunk tell about the columns of their tables, small enough to join all chunks'."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrays import Array
from ..codes import combined_codes
from ..schemas import with_format
from .rows import TABLE_RELATION, ChangeRows, chosen_of_batch, rows_of_tables
from .tables import Table, indices_by_table, positions_of, tables_schema, version_columns
from .versions import ColumnFacts, TableVersions, image_facts, relation_facts


class Observation(NamedTuple):
    """A fact about the columns of a table.

    table        schema and name
    facts        as JSON
    first, last  positions of the first and the last row that tells it
    changes      the number of those rows, without RELATION
    """

    table: Table
    facts: str
    first: dict[str, Any]
    last: dict[str, Any]
    changes: int


class Observations:
    """Collects the observations of rows that come in order."""

    def __init__(self) -> None:
        self._found: dict[tuple[Table, str], Observation] = {}

    def take_batch(self, batch: pa.RecordBatch) -> None:
        """Takes the rows of a record batch."""
        rows, positions = rows_of_tables(batch), positions_of(batch)
        chosen = chosen_of_batch(rows)
        self.take(rows, indices_by_table(rows), lambda index: positions[int(chosen[index])].as_py())

    def take(
        self, rows: ChangeRows, tables: Iterable[tuple[Table, Array]], position_of: Callable[[int], dict[str, Any]]
    ) -> None:
        """Takes rows; see `TablesFound.take`."""
        relation_codes = _relation_codes(rows)
        for table, indices in tables:
            codes = combined_codes([rows.layouts[indices], relation_codes[indices]])
            by_code = np.argsort(codes, kind="stable")
            for group in np.split(by_code, np.flatnonzero(np.diff(codes[by_code])) + 1):
                first, last = int(indices[group[0]]), int(indices[group[-1]])
                is_relation = rows.kinds[first] == TABLE_RELATION
                facts = relation_facts(rows, first) if is_relation else image_facts(rows, first)
                ends = [position_of(first), position_of(last)]
                changes = 0 if is_relation else len(group)
                key = table, _to_json(facts)
                known = self._found.get(key)
                if known is not None:  # also of another layout of these rows, which may begin earlier and end later
                    ends = sorted([known.first, known.last, *ends], key=lambda position: (*position.values(),))
                    changes += known.changes
                self._found[key] = Observation(*key, ends[0], ends[-1], changes)

    def found(self) -> list[Observation]:
        """Returns the observations, each once per table."""
        return [*self._found.values()]


def tables_of_observations(observed: Iterable[Observation], format: str | None, position: pa.DataType) -> pa.Table:
    """Returns the list of tables, as `tables` does.

    observed   of all rows of a stream, in the order of their first rows. A null in a position is before all values
    position   the type of the positions
    """
    versions: dict[Table, TableVersions] = {}
    totals: dict[tuple[Table, int], dict[str, Any]] = {}
    for one in observed:
        of_table = versions.setdefault(one.table, TableVersions())
        of_table.current = number = of_table.find(_from_json(one.facts))
        total = totals.setdefault((one.table, number), {"first": one.first, "last": one.last, "changes": 0})
        total["last"] = max(total["last"], one.last, key=_rank)
        total["changes"] += one.changes
    listed = [
        {
            "table_schema": table[0],
            "table_name": table[1],
            "version": number + 1,
            **version_columns(versions[table].versions[number]),
            **total,
        }
        for (table, number), total in sorted(totals.items(), key=itemgetter(0))
    ]
    return pa.Table.from_pylist(listed, with_format(tables_schema(position), format))


def _rank(position: dict[str, Any]) -> list[tuple[bool, Any]]:
    """Returns what sorts positions; a null is before all values."""
    return [(value is not None, value) for value in position.values()]


def _relation_codes(rows: ChangeRows) -> Array:
    """Returns int64[n]: RELATIONs with different facts get different codes; all other rows get 0."""
    codes = np.zeros(len(rows.kinds), np.int64)
    code_of: dict[str, int] = {}
    for index in np.flatnonzero(rows.kinds == TABLE_RELATION).tolist():
        codes[index] = code_of.setdefault(_to_json(relation_facts(rows, index)), len(code_of) + 1)
    return codes


def _to_json(facts: ColumnFacts) -> str:
    return json.dumps(
        [list(facts.types.items()), bool(facts.is_complete), facts.typmods, facts.keys, bool(facts.is_untyped)],
        ensure_ascii=False,
    )


def _from_json(text: str) -> ColumnFacts:
    types, is_complete, typmods, keys, is_untyped = json.loads(text)
    return ColumnFacts(dict(types), is_complete, typmods, None if keys is None else tuple(keys), is_untyped)
