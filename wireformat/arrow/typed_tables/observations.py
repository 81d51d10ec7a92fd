"""What rows say about the columns of their tables, each thing once: little, to be put together from many places."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Array
from .images import combined
from .rows import RELATION, ChangeRows, rows_of_tables
from .tables import tables_schema, version_columns
from .versions import ColumnFacts, TableVersions, image_facts, relation_facts


def sayings_schema(position: pa.DataType) -> pa.Schema:
    """The schema of sayings, with positions of this type."""
    return pa.schema(
        [
            pa.field("table_schema", pa.string()),
            pa.field("table_name", pa.string()),
            pa.field("facts", pa.string()),
            pa.field("first", position),
            pa.field("last", position),
            pa.field("changes", pa.int64()),
        ]
    )


def sayings(batch: pa.RecordBatch, positions: pa.StructArray) -> pa.RecordBatch:
    """What the rows of a batch say, each saying of a table once.

    positions   of each row, in any order
    returns     table_schema, table_name; facts, as JSON; first and last position; changes, without RELATIONs
    """
    rows = rows_of_tables(batch)
    found = []
    if len(rows.kinds):
        ((_, chosen),) = rows.pieces
        taken = positions.take(pa.array(chosen))
        flat = pa.table({str(place): column for place, column in enumerate(taken.flatten())})
        order = np.asarray(pc.sort_indices(flat, [(name, "ascending") for name in flat.column_names]))
        codes = combined([*_table_codes(rows), rows.layouts, _relation_codes(rows)])[order]
        sorted_codes = np.argsort(codes, kind="stable")
        groups = np.split(sorted_codes, np.flatnonzero(np.diff(codes[sorted_codes])) + 1)
        for group in groups:
            own = order[group]
            place = int(own[0])
            is_relation = rows.kinds[place] == RELATION
            facts = relation_facts(rows, place) if is_relation else image_facts(rows, place)
            _, row = rows.at(place)
            found.append(
                {
                    "table_schema": batch["table_schema"][row].as_py(),
                    "table_name": batch["table_name"][row].as_py(),
                    "facts": _to_json(facts),
                    "first": taken[place].as_py(),
                    "last": taken[int(own[-1])].as_py(),
                    "changes": 0 if is_relation else len(own),
                }
            )
    return pa.RecordBatch.from_pylist(found, sayings_schema(positions.type))


def versions_of_sayings(said: Iterable[dict[str, Any]], position: pa.DataType) -> pa.Table:
    """The versions of one table, as `tables` lists them.

    said   rows of sayings, each of their facts once
    """
    versions = TableVersions()
    totals: dict[int, dict[str, Any]] = {}
    for row in sorted(said, key=lambda row: (tuple(row["first"].values()), row["facts"])):
        number = versions.find(_from_json(row["facts"]))
        versions.current = number
        total = totals.setdefault(number, {**row, "changes": 0})
        total["last"] = max(total["last"], row["last"], key=lambda place: tuple(place.values()))
        total["changes"] += row["changes"]
    listed = [
        {**total, "version": number + 1, **version_columns(versions.versions[number])}
        for number, total in sorted(totals.items())
    ]
    return pa.Table.from_pylist(listed, tables_schema(position))


def _table_codes(rows: ChangeRows) -> list[Array]:
    texts = [rows.column(name, pa.string()) for name in ("table_schema", "table_name")]
    return [np.asarray(text.dictionary_encode().indices.fill_null(-1)).astype(np.int64) + 1 for text in texts]


def _relation_codes(rows: ChangeRows) -> Array:
    """int64[n]: RELATIONs that say different things have different numbers; all else has 0."""
    codes = np.zeros(len(rows.kinds), np.int64)
    known: dict[str, int] = {}
    for place in np.flatnonzero(rows.kinds == RELATION).tolist():
        codes[place] = known.setdefault(_to_json(relation_facts(rows, place)), len(known) + 1)
    return codes


def _to_json(facts: ColumnFacts) -> str:
    return json.dumps(
        [list(facts.types.items()), bool(facts.is_complete), facts.typmods, facts.keys, bool(facts.is_untyped)],
        ensure_ascii=False,
    )


def _from_json(text: str) -> ColumnFacts:
    types, is_complete, typmods, keys, is_untyped = json.loads(text)
    return ColumnFacts(dict(types), is_complete, typmods, None if keys is None else tuple(keys), is_untyped)
