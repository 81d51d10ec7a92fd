"""Typed tables: columns, images, errors, columns that change, and rows that are completed or split."""

from __future__ import annotations

import pickle
import re
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import wireformat as wf

from .changes_made import TABLE, TYPES, change, changes, relation

SCHEMA = {"id": "integer", "note": "text", "price": "numeric(6,2)", "day": "date"}
ROW = {"id": "1", "note": "x", "price": "1.50", "day": "2026-11-21"}
INSERTED = {"id": 1, "note": "x", "price": Decimal("1.50"), "day": date(2026, 11, 21)}


def typed(*rows: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """The typed rows, without the columns that are null."""
    options = {"schema": SCHEMA, **options}
    table = wf.arrow.typed(changes(*rows), TABLE, **options)
    table.validate(full=True)
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def test_columns_and_their_types() -> None:
    table = wf.arrow.typed(changes(change("INSERT", ROW, xid=7)), TABLE, schema=SCHEMA)
    columns = {"id": "int32", "note": "string", "price": "decimal128(6, 2)", "day": "date32[day]"}
    listed = ", ".join(f"{name}: {type}" for name, type in columns.items())
    assert {field.name: str(field.type) for field in table.schema} == {
        **columns,
        "_change_type": "string",
        "_sequence": "struct<commit_lsn: int64 not null, ordinal: int64 not null>",
        "_xid": "int64",
        "_commit_time": "timestamp[us, tz=UTC]",
        "_old": f"struct<{listed}>",
        "_unchanged": "list<element: string>",
    }
    assert table.to_pylist() == [
        {**INSERTED, "_change_type": "insert", "_sequence": None, "_xid": 7, "_commit_time": None, "_old": None}
        | {"_unchanged": None}
    ]


def test_kept_columns() -> None:
    """They come first, as they are; also where a change gives two rows or none."""
    rows = changes(
        change("INSERT", ROW),
        change("INSERT", {**ROW, "day": "infinity"}),
        change("INSERT", ROW, table="shop.others"),
        change("UPDATE", {"id": "2"}, {"id": "1"}),
    )
    given = rows.append_column("stream", pa.array(["a", "b", "c", "d"]).dictionary_encode())
    options: dict[str, Any] = {
        "schema": SCHEMA,
        "images": "both",
        "mode": "DROPMALFORMED",
        "keep": ["stream", "message"],
    }
    for source in (given, given.to_batches(max_chunksize=1), iter(given.to_batches())):
        table = wf.arrow.typed(source, TABLE, **options)
        assert table.schema.names[:3] == ["stream", "message", "id"]
        assert table.schema.field("stream").type == given.schema.field("stream").type
        assert table["stream"].to_pylist() == ["a", "d", "d"]
        assert table["message"].to_pylist() == [0, 3, 3]
    assert wf.arrow.typed(given.slice(0, 0), TABLE, **options).schema == table.schema
    assert wf.arrow.typed([], TABLE, **options).schema.field("stream").type == pa.null()
    by_version = wf.arrow.typed(given, TABLE, evolution="versions", mode="PERMISSIVE", keep=["stream"])
    assert [part["stream"].to_pylist() for part in by_version.values()] == [["a", "b", "d"]]
    faults: list[tuple[Any, str]] = [
        ("stream", "expected a list of strings"),
        (["streams"], r"changes have no column 'streams', did you mean 'stream'\?"),
        (["stream", "stream"], "'stream' is named twice"),
    ]
    for keep, words in faults:
        with pytest.raises(wf.OptionError, match=words):
            wf.arrow.typed(given, TABLE, schema=SCHEMA, keep=keep)
    with pytest.raises(wf.OptionError, match="the result has a column 'id' of its own"):
        wf.arrow.typed(given.append_column("id", given["stream"]), TABLE, schema=SCHEMA, keep=["id"])


def test_kinds_of_changes() -> None:
    key = {"id": 1, "note": None, "price": None, "day": None}
    assert typed(
        change("BEGIN", table="a.b"),
        change("INSERT", ROW),
        change("INSERT", ROW, table="shop.others"),
        change("UPDATE", {"id": "2", "price": None, "day": "2026-11-22"}, {"id": "1"}, unchanged=["note"]),
        change("DELETE", None, {"id": "1"}),
        change("DELETE", None, None),
        change("TRUNCATE"),
        change("MESSAGE"),
    ) == [
        {**INSERTED, "_change_type": "insert"},
        {"id": 2, "day": date(2026, 11, 22), "_change_type": "update", "_old": key, "_unchanged": ["note"]},
        {"id": 1, "_change_type": "delete", "_old": key},
        {"_change_type": "delete"},
        {"_change_type": "truncate"},
    ]


def test_the_sequence_of_transactions_is_kept() -> None:
    table = wf.arrow.typed(changes(change("INSERT", ROW), change("TRUNCATE"), sequence=True), TABLE, schema=SCHEMA)
    assert table["_sequence"].to_pylist() == [{"commit_lsn": 1 << 32, "ordinal": number} for number in (0, 1)]


def test_both_images() -> None:
    """A preimage comes where an old image was sent."""
    rows = [change("INSERT", ROW), change("UPDATE", {**ROW, "id": "2"}, ROW), change("UPDATE", {**ROW, "note": "y"})]
    assert [(row["_change_type"], row["id"], row["note"], row.get("_old")) for row in typed(*rows, images="both")] == [
        ("insert", 1, "x", None),
        ("update_preimage", 1, "x", None),
        ("update_postimage", 2, "x", INSERTED),
        ("update_postimage", 1, "y", None),
    ]


def test_types_of_the_rows_and_of_relations() -> None:
    plain = wf.arrow.typed(changes(change("INSERT", ROW)), TABLE)
    assert plain.schema.field("price").type == pa.string()
    described = [relation(TYPES, [-1, -1, (6 << 16 | 2) + 4, -1]), change("INSERT", ROW)]
    assert wf.arrow.typed(changes(*described), TABLE).schema.field("price").type == pa.decimal128(6, 2)
    listed = wf.arrow.tables(changes(*described))
    table = wf.arrow.typed(changes(change("INSERT", ROW)), TABLE, schema=listed)
    assert table.schema.field("price").type == pa.decimal128(6, 2)
    assert table.to_pylist()[0]["price"] == Decimal("1.50")


def test_an_arrow_schema() -> None:
    """A type that Spark has, or the text of a value that has no place in the column's own."""
    schema = pa.schema([("day", pa.string()), ("id", pa.int64())])
    table = wf.arrow.typed(changes(change("INSERT", {**ROW, "day": "infinity"})), TABLE, schema=schema)
    assert table.schema.names[:2] == ["day", "id"]
    assert table.to_pylist()[0]["day"] == "infinity"


def test_no_changes_give_the_schema() -> None:
    assert wf.arrow.typed([], TABLE, schema=SCHEMA).schema.field("price").type == pa.decimal128(6, 2)
    with pytest.raises(wf.BadRows, match="changes of this table, or a schema"):
        wf.arrow.typed(changes(change("INSERT", ROW, table="shop.others")), TABLE)


BAD = change("UPDATE", {**ROW, "day": "infinity"}, {**ROW, "price": "NaN"}, message=4, record=2)
GOOD = change("INSERT", ROW)


def test_failfast_says_where_and_never_what() -> None:
    with pytest.raises(wf.BadCell) as caught:
        wf.arrow.typed(changes(GOOD, {**BAD, "new": [*BAD["new"][:1], ("note", "secret")]}), TABLE, schema=SCHEMA)
    error = caught.value
    assert str(error) == (
        "bad cell: expected a value of the type decimal128(6, 2), got NaN or an infinity, which a decimal cannot hold "
        "[table shop.orders, column price, type numeric(6,2), image old, message 4, record 2]"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert (error.column, error.sql_type, error.path, error.message) == ("price", "numeric(6,2)", "old", 4)
    with pytest.raises(wf.BadCell, match=r"sequence 1/0 / 1, message") as caught:
        wf.arrow.typed(changes(GOOD, BAD, sequence=True), TABLE, schema=SCHEMA)
    assert isinstance(caught.value, wf.DecodeError)


def test_permissive_says_which_cells_are_null() -> None:
    not_finite = "got NaN or an infinity, which a decimal cannot hold"
    words = [
        f"column price, type numeric(6,2), old: expected a value of the type decimal128(6, 2), {not_finite}",
        "column day, type date, new: expected a value of the type date32[day], got an infinite date",
    ]
    before = {**INSERTED, "price": None}
    (good, bad) = typed(GOOD, BAD, mode="PERMISSIVE")
    assert good == {**INSERTED, "_change_type": "insert"}
    assert bad == {"id": 1, "note": "x", "price": Decimal("1.50"), "_change_type": "update", "_old": before} | {
        "_error": "; ".join(words)
    }
    (_, first, second) = typed(GOOD, BAD, mode="PERMISSIVE", images="both")
    assert (first["_error"], second["_error"]) == (words[0], "; ".join(words))


def test_dropmalformed_counts() -> None:
    table = wf.arrow.typed(changes(GOOD, BAD, GOOD), TABLE, schema=SCHEMA, mode="DROPMALFORMED", images="both")
    assert (table.num_rows, table.schema.metadata) == (2, {b"wireformat.dropped": b"1"})


EVOLVED = [
    change("INSERT", {"id": "1", "gone": "x"}, types={"id": "integer", "gone": "text"}),
    change("INSERT", {"id": "5000000000", "day": "2026-11-21"}, types={"id": "bigint", "day": "date"}),
    change(
        "UPDATE",
        {"id": "2", "day": "2026-11-21 08:00:00"},
        types={"id": "bigint", "day": "timestamp without time zone"},
    ),
]


def test_columns_that_change() -> None:
    """All of them, each of the widest type."""
    table = wf.arrow.typed(changes(*EVOLVED), TABLE)
    assert {name: str(table.schema.field(name).type) for name in ("id", "gone", "day")} == {
        "id": "int64",
        "gone": "string",
        "day": "timestamp[us]",
    }
    assert [(row["id"], row["gone"], str(row["day"])) for row in table.to_pylist()] == [
        (1, "x", "None"),
        (5000000000, None, "2026-11-21 00:00:00"),
        (2, None, "2026-11-21 08:00:00"),
    ]


def test_a_table_for_each_version() -> None:
    found = wf.arrow.typed(changes(*EVOLVED), TABLE, evolution="versions")
    assert {number: (table.num_rows, table.schema.names[:2]) for number, table in found.items()} == {
        1: (1, ["id", "gone"]),
        2: (1, ["id", "day"]),
        3: (1, ["id", "day"]),
    }


def test_a_change_of_columns_as_an_error() -> None:
    with pytest.raises(wf.BadRows, match=r"version 2 of the table \[table shop.orders, message 1, record 0\]"):
        wf.arrow.typed(changes(*EVOLVED), TABLE, evolution="error")
    assert wf.arrow.typed(changes(EVOLVED[0]), TABLE, evolution="error").num_rows == 1
    given = {"id": "bigint", "gone": "text"}
    with pytest.raises(wf.BadRows, match="version 2"):
        wf.arrow.typed(changes(*EVOLVED), TABLE, schema=given, evolution="error")
    assert wf.arrow.typed(changes(*EVOLVED), TABLE, schema=given)["id"].to_pylist() == [1, 5000000000, 2]
    listed = wf.arrow.tables(changes(*EVOLVED))
    later = wf.arrow.typed(changes(EVOLVED[1], EVOLVED[1]), TABLE, versions=listed, evolution="error")
    assert later.num_rows == 2, "both changes have the same columns, whichever came before"


def test_completed_rows() -> None:
    rows = [
        change("UPDATE", {"id": "1", "price": "2"}, {**ROW, "note": "long"}, unchanged=["note", "day"]),
        change("UPDATE", {"id": "1", "price": "2"}, {"id": "1"}, unchanged=["note", "day"]),
        change("UPDATE", {"id": "1", "price": "2"}, {"id": "1", "note": "long"}, unchanged=["note", "day"]),
    ]
    assert [(row.get("note"), row.get("_unchanged")) for row in typed(*rows, complete=True)] == [
        ("long", None),
        (None, ["note", "day"]),
        ("long", ["day"]),
    ]
    assert [row.get("note") for row in typed(*rows)] == [None] * 3


def test_a_key_that_changes_gives_a_delete_and_an_insert() -> None:
    rows = [
        change("UPDATE", {"id": "2", "price": "2"}, {"id": "1", "note": None}, unchanged=["note"], xid=1),
        change("UPDATE", {"id": "2", "price": "3"}, {"id": "2", "note": "x"}, xid=2),
        change("UPDATE", {"id": "2", "price": "4"}, xid=3),
        change("UPDATE", {"id": "2", "price": "5"}, {"note": "x"}, xid=4),
    ]
    for images, kind in (("new", "update"), ("both", "update_postimage")):
        found = typed(*rows, split_key_changes=True, keys=["id"], images=images)
        found = [row for row in found if row["_change_type"] != "update_preimage"]
        assert [(row["_xid"], row["_change_type"], row.get("id"), row.get("_unchanged")) for row in found] == [
            (1, "delete", 1, None),
            (1, "insert", 2, ["note", "day"]),
            (2, kind, 2, ["note", "day"]),
            (3, kind, 2, ["note", "day"]),
            (4, kind, 2, ["note", "day"]),
        ]
        assert found[0]["_old"]["id"] == 1
        assert "_old" not in found[1]


def test_a_column_that_an_update_leaves_out_was_not_sent() -> None:
    """As GaussDB's styles do it; PostgreSQL's formats list it. An old row may have its value."""
    rows = [
        change("INSERT", {"id": "1", "note": "x", "price": "1"}),
        change("UPDATE", {"id": "1", "price": "2"}),
        change("UPDATE", {"id": "1", "price": "3"}, {"id": "1", "note": "x", "price": "2"}),
    ]
    schema = {"id": "bigint", "note": "text", "price": "text"}
    for given in (schema, None):  # what there is, is given or known from the INSERT
        found = typed(*rows, schema=given)
        assert [row.get("_unchanged") for row in found] == [None, ["note"], ["note"]]
        found = typed(*rows, schema=given, complete=True)
        assert [(row.get("note"), row.get("_unchanged")) for row in found] == [
            ("x", None),
            (None, ["note"]),
            ("x", None),
        ]
    fixed = pa.schema([("id", pa.int64()), ("note", pa.string())])
    listed = wf.arrow.tables(changes(*rows))
    assert typed(rows[1], schema=fixed, versions=listed)[0]["_unchanged"] == ["note"]


def test_a_key_written_in_another_way_is_the_same_key() -> None:
    schema, types = {"id": "double precision"}, {"id": "double precision"}
    pairs = [("-0", "0"), ("NaN", "NaN"), ("1", "2")]
    rows = [change("UPDATE", {"id": new}, {"id": old}, types=types) for old, new in pairs]
    found = typed(*rows, schema=schema, split_key_changes=True, keys=["id"])
    assert [row["_change_type"] for row in found] == ["update", "update", "delete", "insert"]


KEYS = {
    "boolean": ("t", "f"),
    "integer": ("1", "2"),
    "double precision": ("1.5", "NaN"),
    "numeric(6,2)": ("1.5", "2.5"),
    "numeric": ("1.5", "2.5"),
    "text": ("", "x"),
    "bytea": ("\\x00", "\\x01"),
    "date": ("2026-11-21", "2026-11-22"),
    "time without time zone": ("01:02:03", "01:02:04"),
    "timestamp with time zone": ("2026-11-21 01:02:03+00", "2026-11-21 01:02:04+00"),
    "interval": ("1 day", "2 days"),
    "oidvector": ("1 2", "1 3"),
    "integer[]": ("{1,NULL}", "{2,NULL}"),
    "integer[][]": ("{{1},{2}}", "{{1},{3}}"),
    "numeric(6,2)[]": ("{}", "{1.5}"),
    "text[]": ("{NULL}", '{"NULL"}'),
    "date[]": ("{2026-11-21}", "{2026-11-22}"),
    "mood": ("sad", "glad"),
}
"""SQL type to two values of it."""


@pytest.mark.parametrize("type", KEYS)
def test_a_key_of_any_type(type: str) -> None:
    one, other = KEYS[type]
    schema = {"id": type} if type != "mood" else {"id": "text"}
    rows = [change("UPDATE", {"id": new}, {"id": old}, types={"id": type}) for old, new in ((one, other), (one, one))]
    found = typed(*rows, schema=schema, split_key_changes=True, keys=["id"])
    assert [row["_change_type"] for row in found] == ["delete", "insert", "update"]


def test_an_array_written_in_another_way_is_the_same_key() -> None:
    rows = [change("UPDATE", {"id": "[1:2]={1,02}"}, {"id": "{1,2}"}, types={"id": "integer[]"})]
    (row,) = typed(*rows, schema={"id": "integer[]"}, split_key_changes=True, keys=["id"])
    assert (row["_change_type"], row["id"]) == ("update", [1, 2])


def test_columns_without_names() -> None:
    """As sql-decoding sends them: by their place in the schema that is given."""
    lines = [b"insert into shop.orders values (1, 'x', 1.5, '2026-11-21');", b"delete from shop.orders where id = 1;"]
    rows = wf.arrow.changes(lines, "sql-decoding")
    found = wf.arrow.typed(rows, TABLE, schema=SCHEMA).to_pylist()
    assert {name: found[0][name] for name in SCHEMA} == INSERTED
    assert (found[1]["_change_type"], found[1]["id"]) == ("delete", 1)
    with pytest.raises(wf.BadRows, match="rows that name the types of their values, or a schema"):
        wf.arrow.typed(rows, TABLE)
    with pytest.raises(wf.BadRows, match="expected 1 value, one for each column of the schema"):
        wf.arrow.typed(rows, TABLE, schema={"id": "integer"})


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"kind": "STREAM_CHANGE"}, "got STREAM_CHANGE"),
        ({"kind": "CORRUPT"}, "got CORRUPT"),
        ({"kind": "TRUNCATE"}, "a TRUNCATE without tables"),
    ],
)
def test_what_may_have_changed_the_table_is_refused(row: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.BadRows, match=rf"{words}.*message 1, record 0\]"):
        wf.arrow.typed(changes(GOOD, row), TABLE, schema=SCHEMA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "orders"}, "expected schema.table"),
        ({"table": "shop.*"}, "expected one table, got the pattern"),
        ({"mode": "LAX"}, "option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED"),
        ({"images": "old"}, "option images: expected new, both"),
        ({"evolution": "none"}, "option evolution: expected union, error, versions"),
        ({"split_key_changes": True}, "needs keys"),
        ({"split_key_changes": True, "keys": "id"}, "expected a list of strings"),
        ({"split_key_changes": True, "keys": ["IDs"]}, r"no column 'IDs', did you mean 'id'\?; there are id"),
        ({"split_key_changes": True, "keys": ["id", "id"]}, "option keys: 'id' is named twice"),
        ({"keep": ["recrd"]}, r"option keep: changes have no column 'recrd', did you mean 'record'\?; there are "),
        ({"schema": {}}, "option schema: expected at least one column, got none"),
        ({"schema": {5: "integer"}}, "option schema: expected names of columns, got 5"),
        ({"schema": pa.schema([("id", pa.int32()), ("id", pa.int32())])}, "option schema: 'id' is named twice"),
        ({"schema": {"id": 4}}, "expected an SQL type as text for column id"),
        ({"schema": 4}, "expected a mapping, a pyarrow Schema"),
        ({"schema": {"_old": "text"}}, "a column _old of its own"),
        ({"schema": pa.schema([("id", pa.uint8())])}, "texts cannot be read as the type uint8 of column id"),
        ({"schema": pa.schema([("id", pa.timestamp("ns"))])}, "texts cannot be read as the type timestamp"),
        ({"schema": wf.arrow.tables(changes())}, "option schema: the list of tables has no shop.orders"),
        ({"versions": wf.arrow.tables(changes())}, "option versions: the list of tables has no shop.orders"),
        ({"versions": pa.table({"x": [1]})}, "option versions: expected the list that `tables` gives, missing"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.OptionError, match=words):
        wf.arrow.typed(**{"changes": changes(GOOD), "table": TABLE, "schema": SCHEMA, **options})


def test_what_is_no_row_change_table() -> None:
    with pytest.raises(wf.OptionError, match="missing: old, types"):
        wf.arrow.typed(changes(GOOD).drop_columns(["old", "types"]), TABLE)
    with pytest.raises(TypeError, match="expected a pyarrow Table or record batches, got int"):
        wf.arrow.typed(3, TABLE)


@pytest.mark.parametrize(
    ("column", "type"),
    [
        ("kind", pa.int64()),
        ("table_name", pa.int64()),
        ("new", pa.list_(pa.list_(pa.string()))),
        ("types", pa.string()),
        ("detail", pa.string()),
    ],
)
def test_columns_that_cannot_be_read(column: str, type: pa.DataType) -> None:
    """As of a table that was made from pandas."""
    table = changes(GOOD)
    other = table.set_column(table.schema.get_field_index(column), column, pa.nulls(1, type))
    for call in (wf.arrow.tables, lambda changes: wf.arrow.typed(changes, TABLE)):
        with pytest.raises(wf.OptionError, match=f"changes, column {column}: expected .*, got {re.escape(str(type))}"):
            call(other)
        with pytest.raises(wf.OptionError, match=f"changes: expected columns with different names, got {column} twice"):
            call(table.append_column(column, table[column]))
        with pytest.raises(TypeError, match="expected a pyarrow Table or record batches, got DataFrame"):
            call(table.to_pandas())


@pytest.mark.parametrize("type", [pa.dictionary(pa.int32(), pa.string()), pa.large_string()])
def test_texts_of_any_type(type: pa.DataType) -> None:
    table = changes(GOOD, *EVOLVED)
    names = ["kind", *([] if pa.types.is_dictionary(type) else ["table_schema", "table_name"])]
    other = table
    for name in names:
        other = other.set_column(other.schema.get_field_index(name), name, table[name].cast(type))
    assert wf.arrow.typed(other, TABLE).equals(wf.arrow.typed(table, TABLE))
    assert wf.arrow.tables(other).equals(wf.arrow.tables(table))


def test_the_cut_into_record_batches_does_not_matter() -> None:
    rows = [GOOD, change("UPDATE", {"id": "1", "price": "2"}, {"id": "1"}, unchanged=["note"]), *EVOLVED, GOOD, BAD]
    table = changes(*rows)
    whole = wf.arrow.typed(table, TABLE, mode="PERMISSIVE", images="both")
    for size in (1, 2, 3):
        batches = table.to_batches(max_chunksize=size)
        assert wf.arrow.typed(batches, TABLE, mode="PERMISSIVE", images="both").equals(whole)
        # each batch by itself, as Spark hands them on, with the columns known before
        listed = wf.arrow.tables(table)
        alone = [wf.arrow.typed(batch, TABLE, schema=listed, mode="PERMISSIVE", images="both") for batch in batches]
        assert pa.concat_tables(alone).to_pylist() == whole.to_pylist()


def test_sliced_and_wide_inputs() -> None:
    """A slice of a table, and texts with 64-bit offsets, as other libraries hand them on."""
    table = changes(change("TRUNCATE", table="a.b"), *[change("INSERT", {**ROW, "id": str(n)}) for n in range(9)])
    part = table.slice(3, 4)
    assert wf.arrow.typed(part, TABLE)["id"].to_pylist() == [2, 3, 4, 5]
    names = pa.map_(pa.large_string(), pa.large_string())
    columns = [part[name].cast(names) if name in ("new", "old") else part[name] for name in part.schema.names]
    assert wf.arrow.typed(pa.table(columns, part.schema.names), TABLE)["id"].to_pylist() == [2, 3, 4, 5]
