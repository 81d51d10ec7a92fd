"""Column types are those of docs/types.md, for every type of the catalogue; SQL types are read as servers say."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from wireformat.pgtypes import SQL_NAMES
from wireformat.pgtypes.columns import TYPES, ColumnType, column_type
from wireformat.pgtypes.sql_types import SqlType, is_known, keeps_values, parse_sql_type, with_typmod

SOURCE = Path(__file__).parents[2] / "tools" / "types.csv"
PAGE = Path(__file__).parents[2] / "docs" / "types.md"
PLACEHOLDERS = {
    "numeric(p,s)": ("numeric(9,2)", {"(p, s)": "(9, 2)", "(p,s)": "(9,2)"}),
    "T[]": ("xid8[]", {"element: T": "element: decimal128(20, 0)", "<T": "<decimal(20,0)"}),
    "every other type": ("text", {}),
}
"""A type for each row of the page that stands for many, and what stands for its letters in this type."""


def column(text: str) -> ColumnType:
    return column_type(parse_sql_type(text))


def rows_of_page() -> list[list[str]]:
    """The names, the Arrow type and the Spark type of each row of the table."""
    lines = PAGE.read_text(encoding="utf-8").partition("| SQL type |")[2].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().replace("`", "") for cell in line.split("|")[1:4]] for line in lines]


def test_every_type_has_a_row() -> None:
    listed = [name for names, *_ in rows_of_page() for name in names.split(", ")]
    assert len(listed) == len(set(listed))
    scalars = {name for name in SQL_NAMES.values() if not name.endswith("[]")}
    assert scalars == set(listed) - PLACEHOLDERS.keys()
    assert {name for names in TYPES for name in names} < scalars


@pytest.mark.parametrize("row", rows_of_page(), ids=lambda row: row[0][:30])
def test_the_page_says_the_types(row: list[str]) -> None:
    for name in row[0].split(", "):
        example, letters = PLACEHOLDERS.get(name, (name, {}))
        shown = row[1:]
        for letter, meaning in letters.items():
            shown = [cell.replace(letter, meaning) for cell in shown]
        assert [column(example).arrow, column(example).spark] == shown


@pytest.mark.parametrize("name", [name for name in SQL_NAMES.values() if name.endswith("[]")])
def test_arrays_have_their_elements_type(name: str) -> None:
    element, array = column(name[:-2]), column(name)
    assert array.arrow == f"list<element: {element.arrow}>"
    assert array.spark == f"array<{element.spark}>"
    assert (array.reading, array.dimensions) == (element.reading, 1)


def test_short_names_are_read() -> None:
    """Those of pg_type, but for "char", which in SQL is another type without its quotes."""
    with SOURCE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["name"].startswith("_") and row["sql_name"] != '"char"':
                assert parse_sql_type(row["name"]) == parse_sql_type(row["sql_name"]), row["name"]


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("integer", SqlType("integer")),
        ("INT", SqlType("integer")),
        ("numeric(10,2)", SqlType("numeric", (10, 2))),
        ("decimal( 10 , 2 )[]", SqlType("numeric", (10, 2), 1)),
        ("numeric(5)", SqlType("numeric", (5,))),
        ("numeric(3,-2)", SqlType("numeric", (3, -2))),
        ("timestamp(3) without time zone", SqlType("timestamp without time zone", (3,))),
        ("timestamp(0) with time zone[]", SqlType("timestamp with time zone", (0,), 1)),
        ("timestamptz(3)", SqlType("timestamp with time zone", (3,))),
        ("character varying(20)", SqlType("character varying", (20,))),
        ("float", SqlType("double precision")),
        ("float(24)", SqlType("real")),
        ("FLOAT ( 1 )[]", SqlType("real", (), 1)),
        ("float(25)", SqlType("double precision")),
        ("numeric(1000,-1000)", SqlType("numeric", (1000, -1000))),
        ("interval day to second(3)", SqlType("interval", (3,))),
        ("interval year to month", SqlType("interval")),
        ("bit varying(20)", SqlType("bit varying", (20,))),
        ("integer[][]", SqlType("integer", (), 2)),
        ("pg_catalog.int4", SqlType("integer")),
        ('"char"', SqlType('"char"')),
        ("char(3)", SqlType("character", (3,))),
        ("oid:16385", SqlType("oid:16385")),
        ('shop."T[x]"[]', SqlType('shop."T[x]"[]')),
        ("shop.money(3)", SqlType("shop.money(3)")),
        ("", SqlType("")),
    ],
)
def test_sql_types(text: str, sql: SqlType) -> None:
    assert parse_sql_type(text) == sql
    assert parse_sql_type(str(sql)) == sql


@pytest.mark.parametrize(
    "text",
    [
        *(
            "numeric(5,2,3)",
            "numeric(0,0)",
            "numeric(-5)",
            "numeric(1001)",
            "numeric(5,1001)",
            "integer(5)",
            "int4(5)[]",
        ),
        *("float(0)", "float(54)", "float8(3)", "date(3)", "bytea(3)", "text(3)", "varchar(3,4)", "timestamptz(3,3)"),
    ],
)
def test_modifiers_that_a_type_does_not_have(text: str) -> None:
    assert not is_known(parse_sql_type(text))


BEFORE_AND_AFTER = {
    ("oid", "bigint"): True,
    ("bigint", "oid"): True,
    ("oid", "integer"): False,
    ("integer", "oid"): False,
    ("smallint", "oid"): False,
    ("integer", "bigint"): True,
    ("bigint", "smallint"): True,
    ("integer", "numeric"): True,
    ("tsrange", "text"): True,
    ("tstzrange", "text"): False,
    ("tstzmultirange", "character varying"): False,
    ("abstime", "text"): False,
    ("tinterval", "text"): False,
}
"""The types of a column that is altered, and whether it keeps its values: oid has no negative ones."""


@pytest.mark.parametrize("as_texts", [False, True])
@pytest.mark.parametrize(("before", "after"), BEFORE_AND_AFTER)
def test_values_of_a_column_that_gets_another_type(before: str, after: str, as_texts: bool) -> None:
    kept = keeps_values(parse_sql_type(before), parse_sql_type(after), as_texts=as_texts)
    assert kept == BEFORE_AND_AFTER[before, after]


@pytest.mark.parametrize(
    ("name", "typmod", "text"),
    [
        ("numeric", (10 << 16 | 2) + 4, "numeric(10,2)"),
        ("numeric", (3 << 16 | 0x7FE) + 4, "numeric(3,-2)"),
        ("numeric[]", (5 << 16) + 4, "numeric(5,0)[]"),
        ("numeric", -1, "numeric"),
        ("numeric", None, "numeric"),
        ("numeric(4,1)", 393222, "numeric(4,1)"),
        ("character varying", 24, "character varying(20)"),
        ("character", 10, "character(6)"),
        ("bit", 4, "bit(4)"),
        ("timestamp with time zone", 3, "timestamp(3) with time zone"),
        ("time without time zone", 0, "time(0) without time zone"),
        ("oid:16385", 7, "oid:16385"),
        ("integer", 7, "integer"),
        ("interval", 0x7FFF0003, "interval"),
    ],
)
def test_type_modifiers(name: str, typmod: int | None, text: str) -> None:
    assert str(with_typmod(name, typmod)) == text


@pytest.mark.parametrize(
    ("text", "arrow", "spark"),
    [
        ("numeric", "string", "string"),
        ("numeric(10,2)", "decimal128(10, 2)", "decimal(10,2)"),
        ("numeric(38)", "decimal128(38, 0)", "decimal(38,0)"),
        ("numeric(39,2)", "string", "string"),
        ("numeric(3,-2)", "decimal128(5, 0)", "decimal(5,0)"),
        ("numeric(3,5)", "decimal128(5, 5)", "decimal(5,5)"),
        ("numeric(30,-20)", "string", "string"),
        ("timestamp(3) with time zone", "timestamp[us, tz=UTC]", "timestamp"),
        ("numeric(4,1)[]", "list<element: decimal128(4, 1)>", "array<decimal(4,1)>"),
        ("integer[][]", "list<element: list<element: int32>>", "array<array<int>>"),
        ("int2vector[]", "list<element: list<element: int16>>", "array<array<smallint>>"),
        ("shop.mood[]", "string", "string"),
        ("numeric(p,s)", "string", "string"),
        ("T[]", "string", "string"),
    ],
)
def test_types_with_modifiers(text: str, arrow: str, spark: str) -> None:
    found = column(text)
    assert (found.arrow, found.spark) == (arrow, spark)


def test_the_delimiter_of_boxes() -> None:
    assert [column(name).delimiter for name in ("box[]", "point[]")] == [";", ","]
