"""latest: each rule in a few changes; histories, whole and cut anywhere, lead to the rows of a plain replica."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.typed_tables import latest as latest_module
from wireformat.arrow.typed_tables.latest import LatestRows

from ...typed_histories import (
    COLUMNS,
    KEYS,
    SEQUENCE,
    TYPED,
    Replica,
    Row,
    Values,
    history,
    typed_table,
    with_own_relation_id,
)

STREAM = "stream"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes become rows after every few."""
    monkeypatch.setattr(latest_module, "BATCH_ROWS", 2)
    monkeypatch.setattr(latest_module, "COMPACTED_ROWS", 5)


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


def split(rows: list[Row]) -> list[Row]:
    """Updates that change the key as a delete and an insert, as `split_key_changes` makes them."""
    changes = []
    for row in rows:
        if row.change == "update" and row.old and row.old["id"] != row.new["id"]:
            filled = {**row.new, **{name: row.old.get(name) for name in row.unchanged}}
            unsent = tuple(name for name in row.unchanged if filled[name] is None)
            changes += [
                Row("delete", {}, row.old, (), row.sequence),
                Row("insert", filled, None, unsent, row.sequence),
            ]
        else:
            changes.append(row)
    return changes


def replicated(rows: list[Row]) -> list[Values]:
    replica = Replica()
    for row in rows:
        replica.apply(row)
    return replica.rows


BORDERS = st.lists(st.integers(0, 10_000), max_size=30)
SEEDS = st.integers(0, 1 << 32)


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
    for row in wanted:
        assert set(named[tuple(row[key] for key in KEYS)]) == set(COLUMNS.names) - row.keys()


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


VALUES: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "smallint": (pa.int16(), [[-32768], [0], [32767]]),
    "bigint": (pa.int64(), [[-(2**63)], [-1], [0], [2**63 - 1]]),
    "boolean": (pa.bool_(), [[False], [True]]),
    "text": (pa.string(), [[""], ["a"], ["a "], ["A"], ["\0"]]),
    "numeric": (pa.decimal128(38, 2), [[Decimal("0.10")], [Decimal("-0.10")], [Decimal("9" * 36)]]),
    "date": (pa.date32(), [[date(1, 1, 1)], [date(9999, 12, 31)]]),
    "timestamp": (pa.timestamp("us", "UTC"), [[datetime(1, 1, 1)], [datetime(2026, 11, 22, 1, 2, 3, 4)]]),  # noqa: DTZ001
    "time": (pa.time64("us"), [[0], [1]]),
    "bytea": (pa.binary(), [[b""], [b"\0"], [b"\0\0"]]),
    "real": (pa.float32(), [[0.0, -0.0], [float("nan")], [float("inf")], [1.5]]),
    "double precision": (pa.float64(), [[-0.0, 0.0], [float("nan"), -float("nan")], [5e-324]]),
    "integer[]": (pa.list_(pa.int32()), [[[]], [[None]], [[1, 2]], [[1], [1]], [[2, 1]], [[1, None]]]),
    "text[][]": (
        pa.list_(pa.list_(pa.string())),
        [[[]], [[[]]], [[None]], [[["a", "b"]]], [[["a"], ["b"]]], [[["ab"]]]],
    ),
    "double precision[]": (pa.list_(pa.float64()), [[[0.0], [-0.0]], [[float("nan")]], [[0.0, 0.0]]]),
}
"""For types of columns, values of which those in one list are equal."""


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("others", [(), ("other",)], ids=["alone", "beside another column"])
def test_keys_of_every_type(name: str, others: tuple[str, ...]) -> None:
    """Inserts, updates by equal values, moves to the next value and back, deletes; also with a column that is equal."""
    type, groups = VALUES[name]
    columns = pa.schema([pa.field("k", type), pa.field("other", pa.int32()), pa.field("v", pa.int64())])
    inserts = [("insert", values[0], None) for values in groups]
    updates = [("update", values[-1], values[0]) for values in groups]
    away = [("update", values[0], others[-1]) for values, others in zip(groups[1:], groups, strict=False)][::-1]
    deletes = [("delete", values[-1], values[-1]) for values in groups]

    def after(changes: list[tuple[str, Any, Any]], keys: Sequence[str]) -> pa.Table:
        images = [pa.array([one[place] for one in changes], type) for place in (1, 2)]
        numbers = pa.array(range(len(changes)), pa.int64())
        same = pa.array([7] * len(changes), pa.int32())
        has_old = [one[0] != "insert" for one in changes]
        old = pa.StructArray.from_arrays(
            [images[1], same, pa.array([0] * len(changes))],
            fields=list(columns),
            mask=pa.array([not one for one in has_old]),
        )
        typed = pa.table(
            {
                **dict(zip(columns.names, [images[0], same, numbers], strict=True)),
                "_change_type": [one[0] for one in changes],
                "_sequence": pa.array([{"commit_lsn": place, "ordinal": 0} for place in range(len(changes))], SEQUENCE),
                "_xid": numbers,
                "_commit_time": pa.nulls(len(changes), pa.timestamp("us", "UTC")),
                "_old": old,
                "_unchanged": pa.nulls(len(changes), pa.list_(pa.string())),
            }
        )
        rows = wf.arrow.latest(typed, keys)
        one_by_one = wf.arrow.latest(cut(typed, range(len(typed))), keys)
        assert repr(one_by_one.to_pylist()) == repr(rows.to_pylist())  # NaN is not equal to itself
        return rows

    keys = ["k", *others]
    count = len(groups)
    assert after(inserts, keys)["v"].to_pylist() == list(range(count))
    assert after([*inserts, *updates], keys)["v"].to_pylist() == list(range(count, 2 * count))
    assert after([*inserts, *updates, *deletes], keys).num_rows == 0
    assert after([*inserts, deletes[-1], *away], keys).num_rows == count - 1
    assert after([*inserts, *deletes[1:]], keys)["v"].to_pylist() == [0]


def numbered(rows: list[tuple[Row, int | None]]) -> pa.Table:
    """Changes with the OID of their table, in their order."""
    changes = [replace(row, sequence=(1000 + place, 0)) for place, (row, _) in enumerate(rows)]
    return typed_table(changes).append_column("_relation_id", pa.array([oid for _, oid in rows], pa.int64()))


def inserted(id: int, text: str) -> Row:
    return Row("insert", row(id, text))


DROPPED = [(inserted(1, "old"), 16385), (inserted(2, "old"), 16385), (inserted(1, "new"), 16400)]
COPIED = [(inserted(1, "copied"), None), (Row("delete", {}, row(1, "copied")), 5), (inserted(2, "new"), 6)]
OTHER_NAMES = [
    (inserted(3, "copied"), None),
    (inserted(1, "first"), 16385),
    (inserted(1, "while renamed"), 16400),
    (Row("truncate", {}), 16400),
    (inserted(2, "first again"), 16385),
]
"""A table that had another name for a while, when another table had its name; it begins with a row of a copy."""

NO_OIDS = [(inserted(1, "old"), None), (inserted(2, "old"), None)]


@pytest.mark.parametrize("keys", [KEYS, ()], ids=["by key", "by row"])
@pytest.mark.parametrize("step", [1, 100], ids=["one by one", "whole"])
@pytest.mark.parametrize(
    ("changes", "wanted", "oids"),
    [
        (DROPPED, ["new"], "16385, 16400"),
        (OTHER_NAMES, ["copied", "first", "first again"], "16385, 16400"),
        (DROPPED[:2], ["old", "old"], None),
        (COPIED, ["new"], "5, 6"),
        (NO_OIDS, ["old", "old"], None),
    ],
    ids=["dropped", "renamed", "one table", "copied", "no OIDs"],
)
def test_another_oid_is_another_table(
    changes: Any, wanted: list[str], oids: str | None, step: int, keys: Sequence[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "wireformat"):
        rows = wf.arrow.latest(cut(numbered(changes), range(0, 100, step)), keys)
    assert rows["step_0"].to_pylist() == wanted
    assert "_relation_id" not in rows.column_names
    assert [f"the OIDs {oids};" in record.getMessage() for record in caplog.records] == [True] * (oids is not None)


def test_a_table_with_a_column_like_that_of_oids() -> None:
    changes = placed([Row("insert", row(1, "a")), Row("insert", row(2, "b")), Row("update", row(2, "c"), row(2, "b"))])
    typed = with_own_relation_id(typed_table(changes))
    assert wf.arrow.latest(typed, KEYS)["_relation_id"].to_pylist() == ["a", "c"]
    assert wf.arrow.latest(typed, [])["_relation_id"].to_pylist() == ["a", "c"]


def test_oids_as_streams() -> None:
    rows = wf.arrow.latest(numbered(DROPPED), KEYS, stream_by=["_relation_id"])
    assert rows.select(["_relation_id", "step_0"]).to_pylist() == [
        {"_relation_id": oid, "step_0": text} for oid, text in ((16385, "old"), (16385, "old"), (16400, "new"))
    ]


def test_changes_of_an_earlier_table() -> None:
    """Those that nobody can order are found, those that only that table could not take are not."""
    later = (inserted(2, "new"), 16400)
    with pytest.raises(wf.BadRows, match="1 change that has a _change_type other than"):
        wf.arrow.latest(numbered([(replace(inserted(1, "old"), change="upsert"), 16385), later]), KEYS)
    no_key = (Row("insert", {**row(1), "id": None}), 16385)
    assert len(wf.arrow.latest(numbered([no_key, later]), KEYS)) == 1
    with pytest.raises(wf.BadRows, match="2 changes that have no value in a column of keys"):
        wf.arrow.latest(numbered([no_key, later, no_key]), KEYS)


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


def test_streams_that_cannot_be() -> None:
    typed = typed_table(placed([Row("insert", row(1))])).append_column(STREAM, pa.array([None], pa.string()))
    typed = typed.append_column("half", pa.array([0.5]))
    faults: list[tuple[Any, str]] = [
        (STREAM, "expected a list of strings"),
        (["streams"], "no column 'streams', did you mean 'stream'"),
        ([STREAM, STREAM], "'stream' is named twice"),
        (["id"], "'id' is not a column that typed kept"),
        (["_xid"], "'_xid' is not a column that typed kept"),
        (["half"], "option stream_by: expected integers or strings, 'half' is double"),
        ([STREAM], "1 change that has no value in a column of stream_by: stream"),
    ]
    for stream_by, words in faults:
        with pytest.raises(wf.BadRows if "1 change that" in words else wf.OptionError, match=words):
            wf.arrow.latest(typed, KEYS, stream_by=stream_by)
    with pytest.raises(wf.OptionError, match="'stream' is not a column of the table"):
        wf.arrow.latest(typed, [STREAM])


INSERT = Row("insert", row(1), sequence=(1, 0))
FAULTS: list[tuple[list[Row], Any, str]] = [
    ([INSERT], "id", "option keys: expected a list of strings"),
    ([INSERT], ["nothing"], "option keys: no column 'nothing'"),
    ([INSERT], ["_xid"], "option keys: '_xid' is not a column of the table"),
    ([INSERT], ["id", "id"], "option keys: 'id' is named twice"),
    (
        [INSERT, replace(INSERT, new={**row(1), "id": None})],
        KEYS,
        "1 change that has no value in a column of keys: part, id",
    ),
    ([INSERT, *[replace(INSERT, change="upsert")] * 3], KEYS, "3 changes that have a _change_type other than insert,"),
    ([INSERT, Row("update", row(1), sequence=(2, 0))], [], "1 change that does not contain the whole old row"),
    (
        [INSERT, Row("update", row(1), {**row(1), "raw": None}, ("raw",), (2, 0))],
        [],
        "one that lacks values in which rows differ; pass keys",
    ),
]


@pytest.mark.parametrize(("changes", "keys", "words"), FAULTS)
def test_what_cannot_be(changes: list[Row], keys: Any, words: str) -> None:
    error = wf.BadRows if "that " in words else wf.OptionError
    for typed in (typed_table(changes), cut(typed_table(changes), range(len(changes)))):
        with pytest.raises(error, match=words):
            wf.arrow.latest(typed, keys)


def test_tables_that_cannot_be() -> None:
    typed = typed_table([INSERT])
    place = typed.column_names.index("_sequence")
    with pytest.raises(wf.BadRows, match="1 change that has no _sequence"):
        wf.arrow.latest(typed.set_column(place, "_sequence", pa.nulls(1, SEQUENCE)), KEYS)
    with pytest.raises(wf.OptionError, match="option typed: no column '_old'; there are part"):
        wf.arrow.latest(typed.drop_columns("_old"), KEYS)
    with pytest.raises(wf.OptionError, match="option keys: there are 2 columns 'id'; rename them"):
        wf.arrow.latest(typed.append_column("id", pa.array([1])), ["id"])
    with pytest.raises(wf.OptionError, match="expected a table or record batches, got none; they can be empty"):
        wf.arrow.latest([], KEYS)
    with pytest.raises(wf.OptionError, match="expected record batches with the same columns, got different ones"):
        wf.arrow.latest([typed, typed.append_column("more", pa.array([1]))], KEYS)
    with pytest.raises(TypeError, match="typed: expected a pyarrow Table or record batches, got dict"):
        wf.arrow.latest({1: typed}, KEYS)


def test_transactions_in_another_order_than_their_lsns() -> None:
    """As GaussDB sends them in CSN order. The changes of a row are in order; others are not taken."""
    changes = placed([Row("insert", row(1))], [Row("insert", row(2))], [Row("insert", row(3))], [moved(2, 4)])
    table = typed_table([changes[2], changes[0], changes[1], changes[3]])
    assert wf.arrow.latest(cut(table, range(4)), KEYS).equals(wf.arrow.latest(table, KEYS))
    assert wf.arrow.latest(table, KEYS)["id"].to_pylist() == [1, 3, 4]
    words = r"expected changes of each row in the order of _sequence, after 0/28 / 0, got 0/14 / 0; .*as one table"
    for borders in ([], [1], [1, 2, 3]):
        with pytest.raises(wf.BadRows, match=words):
            wf.arrow.latest(cut(typed_table([changes[3], changes[1]]), borders), KEYS)
    two = [replace(change, sequence=(7, ordinal)) for change, ordinal in zip(changes[:2], (1, 0), strict=True)]
    two[1] = replace(two[1], new=row(1))
    with pytest.raises(wf.BadRows, match="after 0/7 / 1, got 0/7 / 0"):
        wf.arrow.latest(cut(typed_table(two), []), KEYS)


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
