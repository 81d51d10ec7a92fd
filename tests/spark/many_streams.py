"""Many streams in one table of row changes, and what each of them gives by itself: one query tests them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import Phase, given, settings

import wireformat as wf

from .. import engines
from ..histories import histories, table
from ..servers.captures import capture_names, read_capture

STREAM, OFFSET = "stream", "offset"
ORDER = (STREAM, OFFSET, "record")


def truncate_ties(rows: pa.RecordBatch) -> pa.Array:
    """Returns what orders the rows of one TRUNCATE: names of tables, as texts, which Arrow sorts by their bytes."""
    names = [pc.fill_null(rows[name], "") for name in ("table_schema", "table_name")]
    return pc.if_else(pc.equal(rows["kind"], "TRUNCATE"), pc.binary_join_element_wise(*names, "\0"), "")


def in_order(rows: pa.RecordBatch, within: Sequence[str]) -> pa.RecordBatch:
    """Returns the rows of one stream, sorted by position."""
    keys = [rows[name] for name in within]
    if pc.any(pc.equal(rows["kind"], "TRUNCATE")).as_py():
        keys.append(truncate_ties(rows))
    table = pa.table({str(index): key for index, key in enumerate(keys)})
    indices = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    return rows if np.array_equal(indices, np.arange(len(indices))) else rows.take(indices)


def generated(count: int) -> dict[str, pa.Table]:
    """Name to row changes of generated histories; their records are put into messages by chance."""
    found: list[list[wf.Event]] = []

    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None)
    @given(histories())
    def collect(events: list[wf.Event]) -> None:
        found.append(events)

    collect()
    chance = Random(count)
    return {f"generated {number}": in_messages(table(events), chance) for number, events in enumerate(found)}


def in_messages(rows: pa.Table, chance: Random) -> pa.Table:
    """The same records in fewer messages."""
    places: dict[int, tuple[int, int]] = {}
    message, record = 0, -1
    for number in sorted(set(rows["message"].to_pylist())):
        message, record = (message + 1, 0) if chance.random() < 0.5 else (message, record + 1)
        places[number] = message, record
    columns = zip(*[places[number] for number in rows["message"].to_pylist()], strict=True) if len(rows) else ((), ())
    for name, values in zip(("message", "record"), columns, strict=True):
        field = rows.schema.field(name)
        rows = rows.set_column(rows.column_names.index(name), field, pa.array(values, field.type))
    return rows


@cache
def captured() -> dict[str, pa.Table]:
    """Name to row changes of the captures of real servers that say which transaction a streamed block is of."""
    return {
        name: wf.arrow.changes(read_capture(name).messages, "pgoutput" if "pgoutput" in name else "test-decoding")
        for name in capture_names()
        if not name.endswith(("decoding-all", "ing-streaming"))
    }


def one_table(streams: Mapping[str, pa.Table]) -> pa.Table:
    """All streams in one table: `stream`, `offset`, the row-change table, and a column that is only kept."""
    tables = []
    for name, rows in streams.items():
        columns = {STREAM: pa.array([name] * len(rows), pa.string()), OFFSET: rows["message"]}
        columns |= {column: rows[column] for column in rows.column_names if column != "message"}
        columns["kept `.` it"] = pa.array([[name, None]] * len(rows), pa.list_(pa.string()))
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def write_shuffled(rows: pa.Table, folder: Path, files: int, seed: int = 1) -> str:
    """Rows in any order in some Parquet files."""
    places = list(range(len(rows)))
    Random(seed).shuffle(places)
    folder.mkdir(parents=True)
    for number in range(files):
        pq.write_table(rows.take(places[number::files]), folder / f"{number}.parquet")
    return str(folder)


def each_stream(rows: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    """The rows of each stream in their order; those of one TRUNCATE by the names of their tables."""
    names = rows[STREAM].to_pylist()
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    for name, own in places.items():
        (batch,) = rows.take(own).combine_chunks().to_batches()
        yield name, pa.Table.from_batches([in_order(batch, (OFFSET, "record"))])


def expected(rows: pa.Table, **options: Any) -> pa.Table:
    """What `wf.arrow.transactions` gives of each stream."""
    return pa.concat_tables([wf.arrow.transactions(own, **options) for _, own in each_stream(rows)])


PLACES = [(name, "ascending") for name in (STREAM, OFFSET, "record", "table_name")]


def assert_same(found: pa.Table, wanted: pa.Table) -> None:
    """The same rows, in any order; fails at the first place where they differ."""
    assert found.column_names == wanted.column_names
    left, right = (rows.cast(wanted.schema).sort_by(PLACES).combine_chunks() for rows in (found, wanted))
    if not left.equals(right):
        for place in range(max(len(left), len(right))):
            assert engines.rows(left.slice(place, 1)) == engines.rows(right.slice(place, 1)), f"row {place}"
        raise AssertionError("the rows are the same, and the tables are not")
