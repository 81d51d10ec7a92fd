"""The facts of committed transactions as columns, and rows with the facts of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...stream.attempts import TransactionFacts
from ...stream.positions import Position
from ...stream.transactions import Whole
from ..arrays import Array
from ..schemas import SEGMENT, SEQUENCE
from .batch import Rows, Stretch
from .cells import Column, detail, detail_keys

TRANSACTION_FACTS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("xid", pa.int64()),
        ("csn", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_time", pa.int64()),
        ("username", pa.string()),
        ("origin", pa.string()),
    ]
)
"""One row a transaction; times are microseconds since 1970."""


def facts_batch(facts: Sequence[TransactionFacts]) -> pa.RecordBatch:
    """TransactionFacts that the machine said."""
    sequence, xid, csn, commit_lsn, *others = zip(*facts, strict=True) if facts else [()] * len(TRANSACTION_FACTS)
    numbers = [pa.array(column, pa.uint64()).view(pa.int64()) for column in (sequence, xid, csn, commit_lsn)]
    told = [pa.array(column, field.type) for column, field in zip(others, [*TRANSACTION_FACTS][4:], strict=True)]
    return pa.RecordBatch.from_arrays([*numbers, *told], schema=TRANSACTION_FACTS)


class StretchFacts(NamedTuple):
    """The facts of a stretch.

    facts     TRANSACTION_FACTS, one row a transaction
    resent    bool[n]: those that were sent before, in the stretch or ahead of it
    highest   the highest commit_lsn and csn, unsigned
    """

    facts: pa.RecordBatch
    resent: Array
    highest: tuple[int | None, int | None]


def stretch_facts(rows: Rows, stretch: Stretch, position: Position) -> StretchFacts:
    """The facts of whole transactions, those before them at this position: the same as `facts_of` says of one."""
    begins, commits = stretch
    count = len(begins)
    first, last = int(begins[0]), int(commits[-1]) + 1
    ends = {name: rows.numbers(name, commits) for name in ("xid", "csn", "commit_lsn", "lsn", "commit_time")}
    xid, csn, time = (
        found if found.valid.all() else found.or_else(rows.numbers(name, begins))
        for name in ("xid", "csn", "commit_time")
        for found in [ends[name]]
    )
    commit_lsn = ends["commit_lsn"].or_else(ends["lsn"])
    number = Column(position.transactions + 1 + np.arange(count), np.ones(count, bool))
    sequence = commit_lsn.or_else(csn).or_else(number)
    facts = [
        sequence.arrow(pa.int64()),
        *(column.arrow(pa.int64()) for column in (xid, csn, commit_lsn, time)),
        *_names(rows, begins, commits, first, last),
    ]
    resent, highest = _resent(commit_lsn, csn, position)
    return StretchFacts(pa.RecordBatch.from_arrays(facts, schema=TRANSACTION_FACTS), resent, highest)


def whole(rows: Rows, stretch: Stretch, highest: tuple[int | None, int | None]) -> Whole:
    """What the machine needs to know of a stretch."""
    return Whole(rows.control(int(stretch.begins[0])), len(stretch.begins), *highest)


def _names(rows: Rows, begins: Array, commits: Array, first: int, last: int) -> tuple[pa.Array, pa.Array]:
    """username and origin: the COMMIT's, else what an ORIGIN record says, else the BEGIN's."""
    columns = []
    has = detail_keys(rows.batch, commits), detail_keys(rows.batch, begins)
    for key in ("username", "origin"):
        found = [detail(rows.batch, at, key) for at, keys in zip((commits, begins), has, strict=True) if key in keys]
        columns.append(pc.coalesce(*found) if found else pa.nulls(len(begins), pa.string()))
    username, origin = columns
    said = first + np.flatnonzero(rows.is_origin[first:last])
    if len(said):
        names = np.full(len(begins), None, object)
        names[np.searchsorted(begins, said, "right") - 1] = detail(rows.batch, said, "origin").to_pylist()
        origin = pc.coalesce(detail(rows.batch, commits, "origin"), pa.array(names.tolist(), pa.string()), origin)
    return username, origin


def _resent(lsn: Column, csn: Column, position: Position) -> tuple[Array, tuple[int | None, int | None]]:
    """Position.covers of each transaction behind those before it, and the highest numbers of all."""
    lsns, before_lsn, has_lsn = _before(lsn, position.lsn)
    csns, before_csn, has_csn = _before(csn, position.csn)
    covered = lsn.valid & has_lsn & (lsns <= before_lsn)
    resent = covered & (~csn.valid | (has_csn & (csns <= before_csn)))
    return resent, (_highest(lsns, lsn.valid), _highest(csns, csn.valid))


def _before(column: Column, start: int | None) -> tuple[Array, Array, Array]:
    """The numbers, unsigned; before each the highest so far; and whether there is one."""
    values = np.where(column.valid, column.values, 0).view(np.uint64)
    before = np.empty(len(values), np.uint64)
    there = np.empty(len(values), bool)
    before[0], there[0] = (0, False) if start is None else (start, True)
    before[1:], there[1:] = values[:-1], column.valid[:-1]
    return values, np.maximum.accumulate(before), np.logical_or.accumulate(there)


def _highest(values: Array, valid: Array) -> int | None:
    return int(values[valid].max()) if valid.any() else None


def committed(
    rows: pa.RecordBatch, facts: pa.RecordBatch, of: Array, ordinals: Array, schema: pa.Schema, segments: Array
) -> pa.RecordBatch:
    """Row changes with the facts of their transactions, as the schema says.

    of         int64[n]: the row in `facts` of each row's transaction
    ordinals   int64[n]
    segments   int64[n], for `_segment`
    """
    index = pa.array(of)
    told = {
        field.name: pa.nulls(len(of), field.type) if column.null_count == len(column) else column.take(index)
        for field, column in zip(facts.schema, facts.columns, strict=True)
    }
    told["sequence"] = pa.StructArray.from_arrays([told["sequence"], pa.array(ordinals)], fields=list(SEQUENCE))
    if SEGMENT.name in schema.names:
        told[SEGMENT.name] = pa.array(segments, SEGMENT.type)
    columns = [told[field.name].cast(field.type) if field.name in told else rows[field.name] for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
