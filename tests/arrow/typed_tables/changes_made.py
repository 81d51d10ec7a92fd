"""Row-change tables made of a few words, for the tests of what is built on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import wireformat as wf
from wireformat.pgtypes import type_oid

Image = Mapping[str, str | None]
TABLE = "shop.orders"
TYPES = {"id": "integer", "note": "text", "price": "numeric", "day": "date"}


def change(
    kind: str,
    new: Image | None = None,
    old: Image | None = None,
    *,
    types: Mapping[str, str] | None = TYPES,
    unchanged: Sequence[str] | None = None,
    table: str = TABLE,
    **others: Any,
) -> dict[str, Any]:
    """A row of the row-change table."""
    schema, name = table.split(".")
    sent = old if new is None else new
    return {
        "kind": kind,
        "table_schema": schema,
        "table_name": name,
        "new": None if new is None else list(new.items()),
        "old": None if old is None else list(old.items()),
        "types": None if sent is None or types is None else [types[column] for column in sent],
        "unchanged": unchanged,
        **others,
    }


def relation(
    types: Mapping[str, str], typmods: Sequence[int] | None = None, keys: Sequence[str] = ()
) -> dict[str, Any]:
    """A RELATION row."""
    detail = {
        "columns": list(types),
        "type_oids": [type_oid(type) for type in types.values()],
        "typmods": list(typmods or [-1] * len(types)),
        "key_columns": list(keys),
    }
    return {**change("RELATION"), "detail": [(key, json.dumps(value)) for key, value in detail.items()]}


def changes(*rows: dict[str, Any], sequence: bool = False) -> pa.Table:
    """The rows as a table; message is their place. With `sequence`, as `transactions` gives them."""
    table = pa.Table.from_pylist(
        [{"message": place, "record": 0, **row} for place, row in enumerate(rows)], wf.arrow.CHANGES
    )
    if not sequence:
        return table
    values = [{"commit_lsn": 0x100000000 + place // 2, "ordinal": place % 2} for place in range(len(rows))]
    type = pa.struct([pa.field(name, pa.int64(), nullable=False) for name in ("commit_lsn", "ordinal")])
    return table.add_column(0, pa.field("sequence", type, nullable=False), pa.array(values, type))
