"""Each rule in a few changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.typed_tables.latest import LatestRows

from ....typed_histories import (
    COLUMNS,
    KEYS,
    Row,
    Values,
    history,
    typed_table,
)
from .changes import LONG, OTHER, STREAM, cut, found, key, moved, ordered, placed, row, shown

RULES: dict[str, tuple[list[list[Row]], list[Values]]] = {
    "rows are in the order of their last changes": (
        [[Row("insert", row(2)), Row("insert", row(1))], [Row("insert", row(3))], [Row("update", row(2, "y"))]],
        [row(1), row(3), row(2, "y")],
    ),
    "a delete": ([[Row("insert", row(1)), Row("insert", row(2))], [Row("delete", {}, key(1))]], [row(2)]),
    "a delete of a row from before": ([[Row("delete", {}, key(1))]], []),
    "a row that comes and goes": ([[Row("insert", row(1)), Row("delete", {}, key(1))]], []),
    "a row that goes and comes": (
        [[Row("insert", row(1))], [Row("delete", {}, key(1)), Row("insert", row(1, "y"))]],
        [row(1, "y")],
    ),
    "a truncate": ([[Row("insert", row(1)), Row("truncate", {}), Row("insert", row(2))]], [row(2)]),
    "a truncate at the end": ([[Row("insert", row(1))], [Row("truncate", {})]], []),
    "an insert of a key that is there": ([[Row("insert", row(1, **LONG))], [Row("insert", row(1))]], [row(1)]),
    "a value that was not sent": (
        [[Row("insert", row(1, **LONG))], [Row("update", row(1, "y"), None, ("Long a.b", "raw"))]],
        [row(1, "y", **LONG)],
    ),
    "a value that is in the old row": (
        [[Row("update", {**row(1), "raw": None}, row(1, **LONG), ("raw",))]],
        [row(1, raw=[1, None])],
    ),
    "a value that became NULL": (
        [[Row("insert", row(1, **LONG))], [Row("update", row(1, None), None, ("raw",))]],
        [row(1, None, raw=[1, None])],
    ),
    "a key change": ([[Row("insert", row(1, **LONG))], [moved(1, 2, text="y")]], [row(2, "y", **LONG)]),
    "a way of keys in one transaction": (
        [[Row("insert", row(1, **LONG)), moved(1, 2), moved(2, 3), moved(3, 1), moved(1, 4)]],
        [row(4, **LONG)],
    ),
    "a way of keys, one value sent on it": (
        [
            [Row("insert", row(1, **LONG))],
            [moved(1, 2)],
            [Row("update", row(3, **{"Long a.b": "new"}), key(2), ("raw",))],
            [moved(3, 1)],
        ],
        [row(1, **{"Long a.b": "new", "raw": [1, None]})],
    ),
    "keys that are swapped by way of a third": (
        [[Row("insert", row(1, **LONG)), Row("insert", row(2, **OTHER))], [moved(1, -1), moved(2, 1), moved(-1, 2)]],
        [row(1, **OTHER), row(2, **LONG)],
    ),
    "keys that are swapped at once": (
        [
            [Row("insert", row(1, "a")), Row("insert", row(2, "b"))],
            [Row("update", row(2, "a"), row(1, "a")), Row("update", row(1, "b"), row(2, "b"))],
        ],
        [row(2, "a"), row(1, "b")],
    ),
    "a key change that is split": (
        [
            [Row("insert", row(1, **LONG)), Row("insert", row(2, **OTHER))],
            [Row("delete", {}, key(1), (), (20, 7)), Row("insert", row(5), None, ("Long a.b", "raw"), (20, 7))],
        ],
        [row(2, **OTHER), row(5, **LONG)],
    ),
    "an insert after a delete is no key change": (
        [
            [Row("insert", row(1, **LONG))],
            [Row("delete", {}, key(1)), Row("insert", row(5), None, ("Long a.b", "raw"))],
        ],
        [{**row(5), "_unchanged": ["Long a.b", "raw"]}],
    ),
    "values that were never sent": (
        [[moved(1, 2)], [Row("update", row(2, "y", raw=[7]), None, ("Long a.b",))]],
        [{**row(2, "y", raw=[7]), "_unchanged": ["Long a.b"]}],
    ),
    "values of a row that went are not those of the next one": (
        [[Row("insert", row(1, **LONG))], [Row("delete", {}, key(1))], [Row("update", row(1), None, ("raw",))]],
        [{**row(1), "_unchanged": ["raw"]}],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str) -> None:
    """Whole, and in batches of one change."""
    transactions, wanted = RULES[rule]
    changes = [
        replace(change, sequence=change.sequence if change.sequence != (0, 0) else place.sequence)
        for place, change in zip(placed(*transactions), chain(*transactions), strict=True)
    ]
    rows = found(changes)
    assert shown(rows) == shown(wanted)
    assert [row["_unchanged"] for row in rows] == [row.get("_unchanged") for row in wanted]
    places = [tuple(row["_sequence"].values()) for row in rows]
    assert places == sorted(set(places))
    table = typed_table(changes)
    assert wf.arrow.latest(cut(table, range(len(table))), KEYS).to_pylist() == rows


def test_columns() -> None:
    """The streams, the table's columns with their metadata, and what else the docstring says."""
    table = typed_table(placed([Row("insert", row(1))])).append_column(STREAM, pa.array(["a"]))
    schema = table.schema.set(1, table.schema.field(1).with_metadata({"from": "int8"}))
    table = (
        table.cast(schema).append_column("_error", pa.array([None], pa.string())).append_column("lsn", pa.array([7]))
    )
    rows = wf.arrow.latest(table, KEYS, stream_by=[STREAM])
    assert rows.column_names == [STREAM, *COLUMNS.names, "_sequence", "_unchanged"]
    assert all(
        rows.schema.field(name).equals(table.schema.field(name), check_metadata=True) for name in rows.column_names
    )
    empty = wf.arrow.latest(table.slice(0, 0), KEYS, stream_by=[STREAM])
    assert empty.schema.equals(rows.schema, check_metadata=True)
    assert not len(empty)
    assert wf.arrow.latest(table.slice(0, 0).to_reader(), KEYS, stream_by=[STREAM]).equals(empty)


def test_rows_that_were_there_before() -> None:
    """Without a key, a row that goes more often than it came was there before."""
    changes = placed(
        [Row("delete", {}, row(1)), Row("insert", row(1)), Row("insert", row(1)), Row("update", row(1), row(1))]
    )
    assert shown(found(changes, ())) == shown([row(1), row(1)])
    assert found(changes[:1], ()) == []


def test_a_table_without_columns() -> None:
    changes = placed([Row("insert", {}), Row("insert", {}), Row("delete", {}, {})])
    table = typed_table(changes).drop_columns(COLUMNS.names)
    old = pa.array([None, None, {}], pa.struct([]))
    table = table.set_column(table.column_names.index("_old"), "_old", old)
    rows = wf.arrow.latest(table, [])
    assert rows.to_pylist() == [{"_sequence": {"commit_lsn": 10, "ordinal": 1}, "_unchanged": None}]


def test_a_key_that_was_not_sent() -> None:
    """It is in the old row, as with REPLICA IDENTITY FULL."""
    changes = placed(
        [Row("insert", row(1, **LONG)), Row("insert", row(2, **OTHER))],
        [Row("update", {**row(1, "y"), "raw": None}, row(1, **LONG), ("Long a.b", "raw"))],
    )
    for keys in (["Long a.b"], ["raw", "id"], []):
        assert ordered(found(changes, keys)) == ordered([row(2, **OTHER), row(1, "y", **LONG)])


def test_images_of_both() -> None:
    changes, held = history(12, 20, 6)
    rows = [row for row in changes if (row.old or row.new)["part"] % 3 == 0]
    both = [
        one
        for row in rows
        for one in (
            [Row("update_preimage", row.old or {}, sequence=row.sequence), replace(row, change="update_postimage")]
            if row.change == "update"
            else [row]
        )
    ]
    wanted = ordered([row for row in held if row["part"] % 3 == 0])
    assert ordered(found(both)) == ordered(found(both, ())) == wanted


def test_a_long_way_of_keys() -> None:
    """The time grows with the length, not with its square."""
    ways = [Row("insert", row(0, **LONG)), *(moved(id, id + 1) for id in range(20_000))]
    changes = [replace(change, sequence=(1, ordinal)) for ordinal, change in enumerate(ways)]
    (last,) = found(changes)
    assert shown([last]) == shown([row(20_000, **LONG)])
    assert last["_sequence"] == {"commit_lsn": 1, "ordinal": 20_000}


def test_lsns_are_unsigned() -> None:
    changes = [Row("insert", row(1, "early"), sequence=(5, 0)), Row("update", row(1, "late"), sequence=(-5, 0))]
    assert [one["step_0"] for one in found(changes[::-1])] == ["late"]
    assert wf.arrow.latest(cut(typed_table(changes), [1]), KEYS)["step_0"].to_pylist() == ["late"]
    assert found([*changes, Row("truncate", {}, sequence=(-4, 0))]) == []


def test_results_in_between() -> None:
    """After each batch, also within a transaction; asking does not change what comes later."""
    swap = [moved(1, -1), moved(2, 1), moved(-1, 2)]
    changes = placed([Row("insert", row(1, **LONG)), Row("insert", row(2, **OTHER))], swap, [Row("delete", {}, key(2))])
    rows = LatestRows(KEYS)
    ids = []
    for batch in cut(typed_table(changes), range(len(changes))):
        rows.take(batch)
        ids.append(sorted(rows.result()["id"].to_pylist()))
    assert ids == [[], [1], [1, 2], [-1, 2], [-1, 1], [1, 2], [1]]
    assert shown(rows.result().to_pylist()) == shown([row(1, **OTHER)])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_changes() -> None:
    """A small table that is changed often, with long values: what is held after ten times the changes is as much."""
    text = "x" * 10_000
    held = []
    for count in (40, 400):
        rows = LatestRows(KEYS)
        before = pa.total_allocated_bytes()
        most = 0
        for number in range(count):
            changes = [Row("update", row(id, text), sequence=(10 + number, id)) for id in range(5)]
            rows.take(typed_table(changes).combine_chunks().to_batches()[0])
            most = max(most, pa.total_allocated_bytes() - before)
        held.append(most)
        assert len(rows.result()) == 5
    assert held[1] < 1.5 * held[0]
