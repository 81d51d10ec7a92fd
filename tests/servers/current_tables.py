"""Current tables next to what servers hold: the same rows, with values compared as values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

import wireformat as wf
from wireformat.arrow.typed_tables.listed import rows_of
from wireformat.identifiers import quote_identifier

from .replica import Table
from .tables import Row

KEYS: dict[str, tuple[str, ...]] = {
    "by_two_keys": ("a", "b"),
    "z1": (),  # the server names it in a TRUNCATE, the rows lie in its partitions
    "z1_1": ("a",),
    "z1_2": ("a",),
    **dict.fromkeys(("by_row", "by_nothing", "without_key", "z"), ()),
}
"""The keys of the workload's tables, where they are not `id`; those in the schema "S.a" have a column of their name."""


def keys_of(table: Table) -> tuple[str, ...]:
    """The columns that tell the table's rows apart; none: the whole row does, or there are only inserts."""
    schema, name = table
    return (name,) if schema == "S.a" else KEYS.get(name, ("id",))


def quoted(table: Table) -> str:
    return ".".join(map(quote_identifier, table))


def typed_rows(table: Table, rows: Sequence[Row], listed: pa.Table, schema: pa.Schema | None = None) -> pa.Table:
    """What a server holds, with the types of the table.

    listed   what `wireformat.arrow.tables` says of the table
    schema   of the columns; else as the list says
    """
    known = rows_of(listed, quoted(table))[-1]
    types = dict(zip(known["columns"], known["types"], strict=True))
    changes = [
        {
            **dict(zip(("table_schema", "table_name"), table, strict=True)),
            "kind": "INSERT",
            "new": list(row.items()),
            "types": [types.get(name) for name in row],
        }
        for row in rows
    ]
    inserts = pa.Table.from_pylist(changes, wf.arrow.CHANGES)
    own = None if schema is None else pa.schema([field for field in schema if not rows or field.name in rows[0]])
    found = wf.arrow.typed(inserts, quoted(table), schema=listed if own is None else own, mode="PERMISSIVE")
    found = found.select([field.name for field in found.schema.field("_old").type])  # the columns of the table
    for field in schema or ():  # one that was dropped
        if field.name not in found.column_names:
            found = found.append_column(field, pa.nulls(len(found), field.type))
    return found if schema is None else found.select(schema.names)


def lines(rows: pa.Table | Iterable[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """The rows in an order of their own, to compare: columns by name, values as Python prints them."""
    found = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr([row[name] for name in names]) for row in found)
