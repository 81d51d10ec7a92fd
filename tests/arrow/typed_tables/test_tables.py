"""The list of tables: columns, types, keys, positions and counts, and what is a new version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.arrow.typed_tables.listed import replica_identity

from .changes_made import TYPES, change, changes, relation

ROW = {"id": "1", "note": "x", "price": "1.50", "day": "2026-11-21"}


def listed(*rows: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return wf.arrow.tables(changes(*rows, **options)).to_pylist()


def place(message: int) -> dict[str, int]:
    return {"message": message, "record": 0}


def test_a_table() -> None:
    rows = [
        change("BEGIN", table="a.b"),
        relation(TYPES, [-1, -1, 393222, -1], ["id"]),
        change("INSERT", ROW),
        change("TRUNCATE"),
    ]
    assert listed(*rows) == [
        {
            "table_schema": "shop",
            "table_name": "orders",
            "version": 1,
            "columns": list(TYPES),
            "types": list(TYPES.values()),
            "typmods": [-1, -1, 393222, -1],
            "key_columns": ["id"],
            "first": place(1),
            "last": place(3),
            "changes": 2,
        }
    ]


def test_without_relations() -> None:
    """Types come from the rows; what only they would say is null."""
    (one,) = listed(change("INSERT", ROW))
    assert (one["types"], one["typmods"], one["key_columns"]) == (list(TYPES.values()), None, None)


def test_positions_in_transactions() -> None:
    (one,) = listed(change("INSERT", ROW), change("INSERT", ROW), sequence=True)
    assert (one["first"], one["last"]) == ({"commit_lsn": 1 << 32, "ordinal": 0}, {"commit_lsn": 1 << 32, "ordinal": 1})


def test_rows_without_positions() -> None:
    rows = changes(change("INSERT", ROW)).drop_columns(["message", "record"])
    (one,) = wf.arrow.tables(rows).to_pylist()
    assert (one["first"], one["last"], one["changes"]) == (None, None, 1)
    assert wf.arrow.typed(rows, "shop.orders", schema=wf.arrow.tables(rows)).num_rows == 1


def test_no_rows() -> None:
    assert listed() == []
    assert wf.arrow.tables([]).schema == wf.arrow.tables(changes()).schema


def test_tables_are_sorted() -> None:
    rows = [change("INSERT", ROW, table=name) for name in ("b.a", "a.b", "a.a", "b.a")]
    assert [(row["table_schema"], row["table_name"], row["changes"]) for row in listed(*rows)] == [
        ("a", "a", 1),
        ("a", "b", 1),
        ("b", "a", 2),
    ]


def versions(*rows: dict[str, Any]) -> list[tuple[list[str], int]]:
    """Columns and changes of each version."""
    return [(row["columns"], row["changes"]) for row in listed(*rows)]


def test_parts_of_a_row_are_no_version() -> None:
    """A key, an update with values that were not sent, an old image without its NULLs."""
    parts = [
        change("DELETE", None, {"id": "1"}),
        change("UPDATE", {"id": "1", "price": "2", "day": None}, unchanged=["note"]),
        change("DELETE", None, None),
        change("DELETE", None, {"note": "x", "price": "1"}),
    ]
    assert versions(change("INSERT", ROW), *parts) == [(list(TYPES), 5)]
    assert versions(*parts, change("INSERT", ROW)) == [(list(TYPES), 5)]
    assert versions(*parts) == [(["id", "price", "day", "note"], 4)]


def test_columns_that_come_and_go() -> None:
    fewer = {"id": "1", "note": "x"}
    rows = [change("INSERT", ROW), change("INSERT", fewer), change("INSERT", fewer), change("DELETE", None, fewer)]
    assert versions(*rows) == [(list(TYPES), 1), (["id", "note"], 3)]


def test_a_version_that_comes_again_is_the_same() -> None:
    """As where a streamed transaction of before the change is delivered behind it."""
    rows = [change("INSERT", {"id": "1"}), change("INSERT", ROW)] * 3
    assert versions(*rows) == [(["id"], 3), (list(TYPES), 3)]


def test_another_type_is_another_version() -> None:
    wider = {**TYPES, "id": "bigint"}
    rows = [change("INSERT", ROW), change("DELETE", None, {"id": "1"}, types=wider), change("INSERT", ROW, types=wider)]
    assert [(row["types"], row["changes"]) for row in listed(*rows)] == [
        (list(TYPES.values()), 1),
        (list(wider.values()), 2),
    ]


def test_another_modifier_is_another_version() -> None:
    rows = [relation(TYPES), change("INSERT", ROW), relation(TYPES, [-1, -1, 393222, -1]), change("INSERT", ROW)]
    assert [(row["typmods"][2], row["changes"]) for row in listed(*rows)] == [(-1, 1), (393222, 1)]


def test_many_shapes_of_rows() -> None:
    """More than are told apart at once."""
    names = [f"c{number}" for number in range(9)]
    rows = [
        change(
            "UPDATE",
            {name: "1" for bit, name in enumerate(names) if number >> bit & 1},
            types=dict.fromkeys(names, "text"),
        )
        for number in range(1, 512)
    ]
    ((columns, count),) = versions(*rows)
    assert (sorted(columns), count) == (names, 511)
    table = wf.arrow.typed(changes(*rows), "shop.orders")
    for bit, name in enumerate(names):
        assert table[name].is_valid().to_pylist() == [bool(number >> bit & 1) for number in range(1, 512)]


def test_the_cut_into_record_batches_does_not_matter() -> None:
    rows = [relation(TYPES), *[change("INSERT", {"id": "1"}), change("INSERT", ROW), change("DELETE", None, ROW)] * 3]
    table = changes(*rows)
    for size in (1, 2, 5):
        assert wf.arrow.tables(table.to_batches(max_chunksize=size)).equals(wf.arrow.tables(table))
        assert wf.arrow.tables(pa.Table.from_batches(table.to_batches(max_chunksize=size))).equals(
            wf.arrow.tables(table)
        )


def test_a_replica_identity_that_was_switched() -> None:
    """It makes no new version, whose columns would be the same; but it is not taken for that of all changes."""
    by_id, by_note = (relation(TYPES, [-1, -1, 393222, -1], [key]) for key in ("id", "note"))
    insert = change("INSERT", ROW)
    plain = wf.arrow.tables(changes(by_id, insert, by_id))
    assert replica_identity(plain, "shop.orders") == ["id"]
    switched = wf.arrow.tables(changes(by_id, insert, by_note, insert))
    assert switched["version"].to_pylist() == [1]
    with pytest.raises(wf.OptionError, match=r"replica identity of shop\.orders changed: id; note"):
        replica_identity(switched, "shop.orders")
    whole = wf.arrow.tables(changes(relation(TYPES, keys=[*TYPES]), insert, relation(TYPES), insert))
    assert replica_identity(whole, "shop.orders") == []
