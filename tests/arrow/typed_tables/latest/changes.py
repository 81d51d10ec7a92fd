"""Changes of a table in a few words, cut into record batches, and the rows that they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import wireformat as wf

from ....typed_histories import (
    COLUMNS,
    KEYS,
    Row,
    Values,
    typed_table,
)

STREAM = "stream"


def row(id: int, text: str | None = "x", **others: Any) -> Values:
    return {"part": 1, "id": id, "step_0": text, "Long a.b": None, "raw": None, **others}


def key(id: int) -> Values:
    return {"part": 1, "id": id}


def placed(*transactions: list[Row]) -> list[Row]:
    """The changes with their positions; a transaction is a list of changes."""
    return [
        replace(change, sequence=(10 * number, ordinal))
        for number, changes in enumerate(transactions, 1)
        for ordinal, change in enumerate(changes)
    ]


def cut(table: pa.Table, borders: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """An empty record batch, then those of the table, cut at these rows."""
    yield pa.RecordBatch.from_pylist([], table.schema)
    ends = [0, *sorted(border % (len(table) + 1) for border in borders), len(table)]
    for first, end in pairwise(ends):
        yield from table.slice(first, end - first).combine_chunks().to_batches()


def found(rows: list[Row], keys: Sequence[str] = KEYS) -> list[dict[str, Any]]:
    return wf.arrow.latest(typed_table(rows), keys).to_pylist()


def shown(rows: list[Values]) -> list[list[Any]]:
    return [[row.get(name) for name in COLUMNS.names] for row in rows]


def ordered(rows: list[Values]) -> list[str]:
    return sorted(map(repr, shown(rows)))


def moved(id: int, to: int, **others: Any) -> Row:
    """An update of the key, without the long values, which were not sent."""
    new = {name: value for name, value in row(to, **others).items() if name not in ("Long a.b", "raw")}
    return Row("update", new, key(id), ("Long a.b", "raw"))


LONG = {"Long a.b": "long", "raw": [1, None]}
OTHER = {"Long a.b": "other", "raw": [2]}


BORDERS = st.lists(st.integers(0, 10_000), max_size=30)
SEEDS = st.integers(0, 1 << 32)


INSERT = Row("insert", row(1), sequence=(1, 0))
