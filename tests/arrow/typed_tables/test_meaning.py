"""What type names and numbered columns of row changes mean depends on the format they were read from."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.arrow.typed_tables.casts import arrow_type
from wireformat.formats.row import SERVERS
from wireformat.pgtypes.columns import column_type
from wireformat.pgtypes.sql_types import BUILT_IN, parse_sql_type

from .changes_made import TABLE, change, changes, relation

OWN = [b"table public.t: INSERT: id[integer]:1 a[raw]:'cafe' b[double]:'0.5' c[int8]:'zz' d[tinyint]:'300' e[Date]:'x'"]
"""Types of a PostgreSQL user, named like openGauss's and like names that people write."""
AS_SENT = {"id": 1, "a": "cafe", "b": "0.5", "c": "zz", "d": "300", "e": "x"}


def values(rows: Any, **options: Any) -> dict[str, Any]:
    (row,) = wf.arrow.typed(rows, "public.t", **options).to_pylist()
    return {name: row[name] for name in AS_SENT}


def test_every_server_has_its_types() -> None:
    assert set(BUILT_IN) == {*SERVERS, None}


def test_types_of_a_user_are_text() -> None:
    rows = wf.arrow.changes(OWN, "test-decoding")
    assert values(rows) == AS_SENT
    assert values(rows.replace_schema_metadata(None)) == AS_SENT
    of_opengauss = wf.arrow.changes([OWN[0].replace(b" e[Date]:'x'", b"")], "opengauss-test-decoding")
    (row,) = wf.arrow.typed(of_opengauss, "public.t").to_pylist()
    assert (row["a"], row["b"], row["d"]) == (b"\xca\xfe", "0.5", 300)


@pytest.mark.parametrize("format", [*wf.FORMATS, None])
@pytest.mark.parametrize(
    ("name", "value", "servers"),
    [
        ("integer", 7, "postgresql opengauss neither"),
        ("tinyint", 7, "opengauss"),
        ("xid8", 7, "postgresql"),
        ("int4", "7", ""),
        ("INTEGER", "7", ""),
        ("pg_catalog.integer", 7, "postgresql opengauss neither"),
        ("public.integer", "7", ""),
    ],
)
def test_names_on_the_wire(format: str | None, name: str, value: object, servers: str) -> None:
    rows = changes(change("INSERT", {"id": "7"}, types={"id": name}))
    found = wf.arrow.typed(rows, TABLE, format=format)["id"][0].as_py()
    server = {"test-decoding": "postgresql", None: "neither"}.get(format, "opengauss")
    is_built_in = server in servers.split() or (servers and format in ("pgoutput", "gaussdb-binary"))
    assert found == (value if is_built_in else "7")


def test_metadata_outlives_every_step(tmp_path: Path) -> None:
    lines = [b"BEGIN 5", OWN[0].replace(b" e[Date]:'x'", b""), b"COMMIT 5 CSN 9"]
    rows = wf.arrow.changes(lines, "opengauss-test-decoding")
    pq.write_table(rows, tmp_path / "rows.parquet")
    batches = wf.arrow.batches(iter(lines), "opengauss-test-decoding", strict=True, skip_empty_xacts=True)
    with wf.arrow.Transactions() as transactions:
        by_batch = [committed for batch in batches for committed in transactions.take(batch)]
    ways: dict[str, Any] = {
        "whole": wf.arrow.transactions(rows),
        "batches": by_batch,
        "file": wf.arrow.transactions(pq.read_table(tmp_path / "rows.parquet")),
        "filtered": rows.filter(pa.compute.equal(rows["kind"], "INSERT")),
        "together": pa.concat_tables([rows, rows.slice(0, 0)]),
        "dropped": wf.arrow.changes(lines, "opengauss-test-decoding", mode="DROPMALFORMED"),
        "resumed": wf.arrow.transactions([wf.arrow.open_transactions(rows.slice(0, 2)), rows.slice(2)]),
    }
    for name, found in ways.items():
        assert wf.arrow.typed(found, "public.t").to_pylist()[0]["d"] == 300, name
    listed = wf.arrow.tables(rows)
    plain = rows.replace_schema_metadata(None)
    assert wf.arrow.typed(plain, "public.t", schema=listed)["d"].to_pylist() == [300]
    assert wf.arrow.typed(plain, "public.t", format="opengauss-test-decoding")["d"].to_pylist() == [300]
    assert wf.arrow.typed(plain, "public.t")["d"].to_pylist() == ["300"]


def test_two_formats_are_an_error() -> None:
    rows = wf.arrow.changes(OWN, "test-decoding")
    others = wf.arrow.changes(OWN, "opengauss-test-decoding")
    with pytest.raises(wf.OptionError, match=r"format: expected pgoutput, but the metadata .* say test-decoding"):
        wf.arrow.typed(rows, "public.t", format="pgoutput")
    whole = [wf.arrow.changes([b"BEGIN 5", b"COMMIT 5"], name) for name in ("test-decoding", "opengauss-test-decoding")]
    for verb, given in ((wf.arrow.tables, [rows, others]), (wf.arrow.transactions, whole)):
        with pytest.raises(wf.OptionError, match=r"expected test-decoding, but .* say opengauss-test-decoding"):
            verb(given)
    with pytest.raises(
        wf.OptionError,
        match="some record batches name their format in their metadata, but the first one does not; pass format",
    ):
        wf.arrow.typed([rows.replace_schema_metadata(None), rows], "public.t")
    with pytest.raises(wf.OptionError, match="unknown format 'pgoutptu', did you mean 'pgoutput'"):
        wf.arrow.tables(rows, format="pgoutptu")
    with pytest.raises(wf.OptionError, match="unknown format 'tomorrows'"):
        wf.arrow.tables(rows.replace_schema_metadata({"wireformat.format": "tomorrows"}))


def test_columns_that_are_named_like_numbers() -> None:
    lines = [b"table public.d: INSERT: v[text]:'a' \"$1\"[integer]:5", b'table public.d: DELETE: "$1"[integer]:5']
    for rows in (wf.arrow.changes(lines, "test-decoding"), wf.arrow.changes(lines, "opengauss-test-decoding")):
        found = wf.arrow.typed(rows, "public.d").select(["v", "$1"]).to_pylist()
        assert found == [{"v": "a", "$1": 5}, {"v": None, "$1": 5}]
    one = wf.arrow.changes([b'table public.e: INSERT: "$1"[integer]:5 "$2"[integer]:6'], "test-decoding")
    assert wf.arrow.typed(one, "public.e").select(["$1", "$2"]).to_pylist() == [{"$1": 5, "$2": 6}]


@pytest.mark.parametrize("schema", [{"ID": "integer", "v": "text"}, {"$1": "integer", "$2": "text"}])
def test_a_key_is_not_lost_where_inserts_name_no_columns(schema: dict[str, str]) -> None:
    rows = wf.arrow.changes([b"insert into s.t values (1, 'a');", b"delete from s.t where id = 1;"], "sql-decoding")
    with pytest.raises(wf.OptionError, match=r"rows of s\.t name a column 'id', which is not in the schema"):
        wf.arrow.typed(rows, "s.t", schema=schema)
    assert wf.arrow.typed(rows, "s.t", schema={"id": "integer", "v": "text"})["id"].to_pylist() == [1, 1]
    assert wf.arrow.typed(rows.slice(0, 1), "s.t", schema=schema).num_rows == 1


def test_numbered_columns_of_sql_decoding() -> None:
    """By their place, also where a column is named like another's number; an old row has names."""
    lines = [b"insert into public.s values (7, 'x');", b"delete from public.s where \"$1\" = 'x';"]
    schema = {"id": "integer", "$1": "text"}
    rows = wf.arrow.changes(lines, "sql-decoding")
    for given in (rows, rows.replace_schema_metadata(None)):
        found = wf.arrow.typed(given, "public.s", schema=schema).select(["id", "$1"]).to_pylist()
        assert found == [{"id": 7, "$1": "x"}, {"id": None, "$1": "x"}]
    with pytest.raises(wf.BadRows, match=r"expected 3 values, one for each column of the schema.*got 2"):
        wf.arrow.typed(rows, "public.s", schema={**schema, "more": "text"})


ROW = {"id": "1", "total": "1.5"}
ROW_TYPES = {"id": "integer", "total": "numeric"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"id": "bigit"}, "unknown type 'bigit' of column id, did you mean 'bigint'"),
        ({"id": "mood"}, "a type that is not built in, such as an enum or a domain, is text"),
        (
            {"totl": "numeric(10,2)"},
            "no row of shop.orders names a column 'totl', did you mean 'total'.; there are id, total",
        ),
        ({"id": "integer", "note": "text"}, "names a column 'note'"),
        (pa.schema([("totl", pa.string())]), "names a column 'totl'"),
    ],
)
def test_misspelled_schemas(schema: Any, words: str) -> None:
    for row in (change("INSERT", ROW, types=ROW_TYPES), relation(ROW_TYPES)):
        with pytest.raises(wf.OptionError, match=words):
            wf.arrow.typed(changes(row), TABLE, schema=schema)


def test_columns_that_rows_may_have() -> None:
    """Keys and partial rows do not say which columns there are; nor do rows of other tables, or none."""
    schema = {"id": "integer", "total": "numeric(10,2)", "note": "text"}
    rows = [
        [],
        [change("INSERT", ROW, types=ROW_TYPES, table="shop.others")],
        [change("DELETE", None, {"id": "1"}), change("TRUNCATE")],
        [change("UPDATE", {"id": "1"})],
        [change("INSERT", ROW, types=ROW_TYPES), change("UPDATE", {"id": "1"}, unchanged=["note"])],
        [
            change("INSERT", ROW, types=ROW_TYPES),
            change("INSERT", {**ROW, "note": "x"}, types={**ROW_TYPES, "note": "text"}),
        ],
    ]
    for given in rows:
        assert wf.arrow.typed(changes(*given), TABLE, schema=schema).schema.names[:3] == list(schema)


def test_a_column_that_came_later_is_unsent_in_older_rows() -> None:
    """ADD COLUMN ... DEFAULT: what an older row holds there was never sent. A dropped column is not listed."""
    types = {"id": "integer", "gone": "text", "added": "text"}
    first = change("INSERT", {"id": "1", "gone": "x"}, types=types)
    second = change("INSERT", {"id": "2", "gone": "x", "added": "y"}, types=types)
    third = change("INSERT", {"id": "3", "added": "y"}, types=types)
    for schema in (None, {"id": "integer", "gone": "text", "added": "text"}):
        found = wf.arrow.typed(changes(first, second, third), TABLE, schema=schema)
        assert found["_unchanged"].to_pylist() == [["added"], None, None]


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("date", "21.11.2026"),
        ("date", "11/21/2026"),
        ("timestamp without time zone", "Sat Nov 21 10:00:00 2026"),
        ("timestamp with time zone", "21/11/2026 10:00:00 CET"),
        ("date[]", "{21.11.2026}"),
    ],
)
def test_dates_in_another_style_say_what_to_set(type: str, text: str) -> None:
    rows = changes(change("INSERT", {"d": text}, types={"d": type}))
    with pytest.raises(wf.BadCell, match="in ISO form, as the server prints it after SET datestyle TO ISO") as caught:
        wf.arrow.typed(rows, TABLE, format="pgoutput")
    assert text.strip("{}") not in str(caught.value)


def read_as(type: Any, *given: tuple[str, str], listed: int = 0) -> list[Any]:
    """The values of texts, each with the type that its row names, in a column of another type."""
    rows = changes(*(change("INSERT", {"x": text}, types={"x": name}) for name, text in given))
    schema = type if listed == 0 else wf.arrow.tables(rows[:listed], format="pgoutput")
    if isinstance(type, str):
        schema = {"x": type}
    elif isinstance(type, pa.DataType):
        schema = pa.schema({"x": type})
    return list(wf.arrow.typed(rows, TABLE, schema=schema, format="pgoutput")["x"].to_pylist())


@pytest.mark.parametrize(
    ("type", "given", "values"),
    [
        ("double precision", [("real", "0.1"), ("double precision", "0.1")], [0.10000000149011612, 0.1]),
        ("double precision[]", [("real[]", "{0.1}"), ("double precision[]", "{0.1}")], [[0.10000000149011612], [0.1]]),
        ("bytea", [("raw", "DEADBEEF"), ("bytea", "abcd")], [b"\xde\xad\xbe\xef", b"abcd"]),
        ("raw", [("bytea", "abcd"), ("blob", "abcd")], [b"abcd", b"\xab\xcd"]),
        ("raw", [("text", "abcd"), ("mood", "abcd")], [b"\xab\xcd"] * 2),
        (
            "text[]",
            [("box[]", "{(1,1),(0,0);(2,2),(0,0)}"), ("text[]", "{a;b}")],
            [["(1,1),(0,0)", "(2,2),(0,0)"], ["a;b"]],
        ),
        ("integer[]", [("int2vector", "1 2"), ("integer[]", "{1,2}")], [[1, 2], [1, 2]]),
        ("int2vector", [("smallint[]", "{1,2}"), ("oidvector", "3")], [[1, 2], [3]]),
        ("bigint", [("integer", "1"), ("text", "2"), ("numeric", "3")], [1, 2, 3]),
        ("text", [("integer", "1"), ("raw", "AB")], ["1", "AB"]),
    ],
)
def test_the_type_of_a_row_says_how_its_texts_are_written(type: str, given: Any, values: list[Any]) -> None:
    """Whichever type the caller gives for the column."""
    assert read_as(type, *given) == values
    if type != "raw":  # Arrow's binary does not say how texts are written
        assert read_as(arrow_type(column_type(parse_sql_type(type)).arrow), *given) == values


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([("bytea", "abcd"), ("raw", "abcd")], [b"abcd", b"\xab\xcd"]),
        ([("double precision", "0.1"), ("real", "0.1")], [0.1, 0.10000000149011612]),
        ([("real", "0.5"), ("double precision", "0.123456789012345")], [0.5, 0.12345679104328156]),
        ([("raw", "abcd"), ("text", "abcd")], [b"\xab\xcd"] * 2),
    ],
)
def test_a_version_that_a_list_of_tables_lacks(given: Any, values: list[Any]) -> None:
    """Its texts are read as the types of the list."""
    assert read_as(None, *given, listed=1) == values
    assert read_as(None, *given, given[0], listed=1) == [*values, values[0]]


@pytest.mark.parametrize(
    ("names", "type"),
    [
        ("integer real double-precision", pa.float64()),
        ("integer[] real[] double-precision[]", pa.list_(pa.field("element", pa.float64()))),
        ("smallint integer real", pa.string()),
        ("bigint numeric real double-precision", pa.string()),
        ("date timestamp-without-time-zone timestamp-with-time-zone", pa.string()),
    ],
)
def test_the_order_of_versions_does_not_decide_on_their_type(names: str, type: pa.DataType) -> None:
    for order in permutations(name.replace("-", " ") for name in names.split()):
        rows = changes(*(change("INSERT", {"x": None}, types={"x": name}) for name in order))
        assert wf.arrow.typed(rows, TABLE, format="pgoutput").schema.field("x").type == type


def test_elements_may_be_null_whatever_the_schema_says(tmp_path: Path) -> None:
    """As columns may."""
    schema = pa.schema({"x": pa.list_(pa.field("item", pa.int32(), nullable=False))})
    rows = changes(change("INSERT", {"x": "{1,NULL}"}, types={"x": "integer[]"}))
    found = wf.arrow.typed(rows, TABLE, schema=schema)
    assert found.schema.field("x").type == pa.list_(pa.int32())
    pq.write_table(found.select(["x"]), tmp_path / "rows.parquet")
    assert found["x"].to_pylist() == [[1, None]]
