"""Histories, whole and cut anywhere, lead to the rows of a plain replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

from ....typed_histories import (
    COLUMNS,
    KEYS,
    TYPED,
    Replica,
    Row,
    Values,
    history,
    typed_table,
)
from .changes import BORDERS, LONG, OTHER, SEEDS, STREAM, cut, key, ordered, placed, row


def split(rows: list[Row]) -> list[Row]:
    """Updates that change the key as a delete and an insert, as `split_key_changes` makes them."""
    changes = []
    for change in rows:
        if change.change == "update" and change.old and change.old["id"] != change.new["id"]:
            filled = {**change.new, **{name: change.old.get(name) for name in change.unchanged}}
            unsent = tuple(name for name in change.unchanged if filled[name] is None)
            changes += [
                Row("delete", {}, change.old, (), change.sequence),
                Row("insert", filled, None, unsent, change.sequence),
            ]
        else:
            changes.append(change)
    return changes


def replicated(rows: list[Row]) -> list[Values]:
    replica = Replica()
    for change in rows:
        replica.apply(change)
    return replica.rows


@given(SEEDS, st.integers(1, 6), st.sampled_from([0.0, 0.1]), st.sampled_from([list, split]), BORDERS, st.randoms())
def test_histories(seed: int, parts: int, truncate: float, form: Any, borders: list[int], chance: Any) -> None:
    """Whole, in any order, and cut anywhere; the reference agrees with the server that made them."""
    changes, held = history(parts, 20, seed, truncate)
    assert ordered(replicated(changes)) == ordered(held)
    table = typed_table(form(changes))
    rows = wf.arrow.latest(table, KEYS)
    assert ordered(rows.to_pylist()) == ordered(held)
    assert rows["_unchanged"].null_count == len(rows)
    places = [tuple(place.values()) for place in rows["_sequence"].to_pylist()]
    assert places == sorted(set(places))
    assert set(places) <= {row.sequence for row in changes}
    assert wf.arrow.latest(table.take(chance.sample(range(len(table)), len(table))), KEYS).equals(rows)
    assert wf.arrow.latest(cut(table, borders), KEYS).equals(rows)


@given(SEEDS, BORDERS)
def test_histories_that_begin_in_the_middle(seed: int, borders: list[int]) -> None:
    """Columns that no change has sent are null and named."""
    changes, _ = history(6, 30, seed)
    later = [row for row in changes if row.sequence[0] > 1000 and row.new.get("part", 1) % 3]
    later = [row for row in later if row.old is None or row.old["part"] % 3]
    wanted = replicated(later)
    rows = wf.arrow.latest(cut(typed_table(later), borders), KEYS).to_pylist()
    assert ordered(rows) == ordered(wanted)
    named = {tuple(row[key] for key in KEYS): row["_unchanged"] or [] for row in rows}
    for values in wanted:
        assert set(named[tuple(values[key] for key in KEYS)]) == set(COLUMNS.names) - values.keys()


@given(SEEDS, BORDERS)
def test_rows_without_a_key(seed: int, borders: list[int]) -> None:
    """Histories with whole old rows, with twins of each: counted."""
    changes, held = history(4, 20, seed)
    whole = [row for row in changes if (row.old or row.new)["part"] % 3 == 0]
    twice = [replace(row, sequence=(row.sequence[0], row.sequence[1] + add)) for row in whole for add in (0, 1)]
    table = typed_table(twice)
    rows = wf.arrow.latest(table, [])
    assert ordered(rows.to_pylist()) == ordered([row for row in held if row["part"] % 3 == 0] * 2)
    assert wf.arrow.latest(cut(table, borders), []).equals(rows)


IDS = st.integers(0, 2)
ANYTHING = st.builds(
    lambda change, id, old, long, unchanged: Row(
        change, {} if change == "delete" else row(id, **long), key(id if old is None else old), unchanged
    ),
    st.sampled_from(["insert", "update", "update", "delete"]),
    IDS,
    st.none() | IDS,
    st.sampled_from([LONG, OTHER]),
    st.sampled_from([(), ("raw",), ("raw", "Long a.b")]),
)


@given(st.lists(st.lists(ANYTHING, max_size=6), max_size=8), BORDERS, st.sampled_from([KEYS, ("id",)]))
def test_what_no_server_sends_does_not_depend_on_the_batches(
    transactions: list[list[Row]], borders: list[int], keys: Sequence[str]
) -> None:
    """Changes of rows that are not there, inserts of rows that are."""
    table = typed_table(placed(*transactions))
    assert wf.arrow.latest(cut(table, borders), keys).equals(wf.arrow.latest(table, keys))


@given(st.lists(st.tuples(SEEDS, st.sampled_from([0.0, 0.1])), min_size=1, max_size=3), st.booleans(), st.randoms())
def test_several_streams(of_streams: list[tuple[int, float]], has_key: bool, chance: Any) -> None:
    """With the same keys and the same sequences, mixed in any way; a TRUNCATE empties the table of its stream."""
    tables, wanted = [], []
    for number, (seed, truncate) in enumerate(of_streams):
        changes, held = history(3, 12, seed, truncate)
        if not has_key:
            changes = [row for row in changes if row.change == "truncate" or (row.old or row.new)["part"] % 3 == 0]
            held = [row for row in held if row["part"] % 3 == 0]
        stream = pa.array([9 - number] * len(changes), pa.int16())
        kept = pa.array(range(len(changes)), pa.int64())
        oids = pa.array([None if place % 2 else 5 + number for place in range(len(changes))], pa.int64())
        topics = pa.array(["t"] * len(changes), pa.string())
        others = {STREAM: stream, "topic": topics, "also kept": kept, "_relation_id": oids}
        tables.append(pa.table({**dict(zip(TYPED.names, typed_table(changes), strict=True)), **others}))
        wanted += [f"{9 - number} {row}" for row in ordered(held)]
    stream_by = [STREAM, "topic"]
    keys = KEYS if has_key else ()
    typed = pa.concat_tables(tables)
    rows = wf.arrow.latest(typed, keys, stream_by=stream_by)
    assert rows.column_names == [*stream_by, *COLUMNS.names, "_sequence", "_unchanged"]
    assert sorted(f"{row[STREAM]} {ordered([row])[0]}" for row in rows.to_pylist()) == sorted(wanted)
    places = [(row[STREAM], row["_sequence"]["commit_lsn"]) for row in rows.to_pylist()]
    assert places == sorted(places)
    order = sorted(range(len(typed)), key=lambda place: chance.random())
    by_stream = {number: iter(range(len(table))) for number, table in enumerate(tables)}
    starts = [sum(map(len, tables[:number])) for number in range(len(tables))]
    streams = [number for number, table in enumerate(tables) for _ in range(len(table))]
    mixed = [starts[streams[place]] + next(by_stream[streams[place]]) for place in order]
    assert wf.arrow.latest(cut(typed.take(pa.array(mixed, pa.int64())), order[:20]), keys, stream_by=stream_by).equals(
        rows
    )
    assert wf.arrow.latest(typed.take(pa.array(order, pa.int64())), keys, stream_by=stream_by).equals(rows)
