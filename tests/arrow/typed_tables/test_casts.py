"""Texts to typed columns: a column is what its values are one by one, whatever stands beside them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.readers.reader import FEW_TEXTS
from wireformat.arrow.typed_tables.casts import _split_arrays, arrow_type, reader_of
from wireformat.arrow.typed_tables.columns import wider
from wireformat.pgtypes import SQL_NAMES
from wireformat.pgtypes.columns import column_type
from wireformat.pgtypes.sql_types import parse_sql_type

from ...servers.values import VALUES


def read(type: str, *texts: str | None) -> tuple[list[Any], dict[int, str]]:
    column = column_type(parse_sql_type(type))
    reader = reader_of(arrow_type(column.arrow), column.reading, column.delimiter)
    assert reader is not None
    values, misfits = reader.read(pa.array(texts, pa.string()))
    assert values.type == reader.type == arrow_type(column.arrow)
    values.validate(full=True)
    assert all(values[place].as_py() is None for place in misfits)
    return values.to_pylist(), misfits


SPANS = [
    "NaN",
    "Infinity",
    "infinity",
    "24:00:00",
    "1",
    "-1",
    "0x1F",
    "+1",
    " 1",
    "1 ",
    "1e5",
    "",
    "t",
    "x",
    "1_0",
    "１",
]
SCALARS = sorted(VALUES)
ELEMENTS = ("integer", "text", "date", "numeric(10,2)", "box", "boolean", "bytea")


@pytest.mark.parametrize("type", SCALARS)
@given(data=st.data())
def test_a_column_is_its_values_one_by_one(type: str, data: st.DataObject) -> None:
    own = st.one_of(st.sampled_from(VALUES[type]), st.none())
    odd = st.one_of(own, st.sampled_from(SPANS), st.text(max_size=6))
    texts = data.draw(st.one_of(st.lists(own, max_size=40), st.lists(odd, max_size=40)))
    check_one_by_one(type, texts)


@pytest.mark.parametrize("type", ELEMENTS)
@given(data=st.data())
def test_arrays_too(type: str, data: st.DataObject) -> None:
    item = st.one_of(st.sampled_from(VALUES[type]), st.none(), st.sampled_from(SPANS))
    delimiter = ";" if type == "box" else ","
    arrays = st.lists(item, max_size=4).map(lambda items: array_text(items, delimiter))
    check_one_by_one(
        f"{type}[]", data.draw(st.lists(st.one_of(arrays, st.none(), st.text('{},;"\\a1[]:= ', max_size=8))))
    )


def check_one_by_one(type: str, texts: list[str | None]) -> None:
    values, misfits = read(type, *texts)
    for place, text in enumerate(texts):
        (value,), wrong = read(type, text)
        assert repr(values[place]) == repr(value)
        assert misfits.get(place) == wrong.get(0)


def array_text(items: list[str | None], delimiter: str) -> str:
    """As array_out prints them: quotes where they are needed."""
    return "{" + delimiter.join(map(_item, items)) + "}"


def _item(item: str | None) -> str:
    if item is None:
        return "NULL"
    if item and item.upper() != "NULL" and not set(item) & set('{},;"\\ \t\n'):
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.lists(st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=4), max_size=6))
def test_arrays_of_texts_come_back(arrays: list[list[str | None]]) -> None:
    assert read("text[]", *[array_text(items, ",") for items in arrays]) == (arrays, {})


UTC = timezone.utc
CASES: dict[tuple[str, str], Any] = {
    ("timestamptz", "2026-11-21 01:02:03+08"): datetime(2026, 11, 20, 17, 2, 3, tzinfo=UTC),
    ("timestamptz", "2026-11-21 01:02:03.5+05:30"): datetime(2026, 11, 20, 19, 32, 3, 500000, tzinfo=UTC),
    ("timestamptz", "1800-01-01 00:00:00+01:02:03"): datetime(1799, 12, 31, 22, 57, 57, tzinfo=UTC),
    ("boolean", "true"): True,
    ("boolean", "0"): False,
    ("bytea", r"a\\b\001\377"): b"a\\b\x01\xff",
    ("blob", "00FF"): b"\x00\xff",
    ("raw", ""): b"",
    ("oidvector", "1 4294967295"): [1, 4294967295],
    ("int2vector", ""): [],
    ("int2vector[]", '{"1 2",3,NULL}'): [[1, 2], [3], None],
    ("integer[]", "[2:3]={1,2}"): [1, 2],
    ("integer[][]", "{{1,2},{3,NULL}}"): [[1, 2], [3, None]],
    ("integer[][]", "{}"): [],
    ("text[]", '{NULL,"NULL",null}'): [None, "NULL", "null"],
    ("box[]", "{(1,1),(0,0);(2,2),(0,0)}"): ["(1,1),(0,0)", "(2,2),(0,0)"],
    ("xid8", "18446744073709551615"): 18446744073709551615,
    ("character(5)", "ab   "): "ab   ",
    ("money", "$1,000.00"): "$1,000.00",
    ("interval", "1 day -00:00:01"): "1 day -00:00:01",
    ("timestamp", "2026-11-21"): datetime(2026, 11, 21),  # noqa: DTZ001 - a type without zone
    ("real", "+1.00000005960464477539062501"): 1.0000001192092896,  # rounded once, not to a double first
    ("real", "+1.00000005960464477539062499"): 1.0,
    ("real", "-1.00000017881393432617187499E0"): -1.0000001192092896,
}


@pytest.mark.parametrize(("type", "text"), CASES)
def test_values(type: str, text: str) -> None:
    assert read(type, text) == ([CASES[type, text]], {})
    (again, _) = read(type, text, None, "no value of any type", text)
    assert again[0] == again[3] == CASES[type, text]


DEEPER = "an array of more than 1 dimension; in `schema`, give its type as T[][], or as text"
MISFITS = {
    ("integer", "2147483648"): "an integer of more than 32 bits",
    ("integer", "0x1F"): "a text that is not an integer",
    ("integer", ""): "a text that is not an integer",
    ("real", "1e39"): "a number too large for 32 bits",
    ("double precision", "1e400"): "a number too large for 64 bits",
    ("double precision", "one"): "a text that is not a number",
    ("numeric(5,2)", "1234.00"): "a number with more than 3 digits before the point",
    ("numeric(38,18)", "340282366920938463804"): "a number with more than 20 digits before the point",
    ("numeric(38,18)", "90089649000000000000.9091408000000000908"): "a number with more than 18 digits after the point",
    ("numeric(5,2)", "1e999999999"): "a number with more than 3 digits before the point",
    ("numeric(5,2)", "0.001"): "a number with more than 2 digits after the point",
    ("numeric(5,2)", "NaN"): "NaN or an infinity, which a decimal cannot hold",
    ("boolean", "yes"): "a text that is not a boolean",
    ("date", "infinity"): "an infinite date",
    ("date", "0044-03-15 BC"): "a date before year 1",
    ("date", "10000-01-01"): "a date after year 9999",
    ("date", "2026-02-29"): "a date that is in no calendar",
    ("date", "2026-01-01 00:00:00"): "a timestamp, not a date",
    ("date", "today"): "a text that is not a date in ISO form, as the server prints it after SET datestyle TO ISO",
    ("time", "24:00:00"): "the end of the day, which the type does not have",
    ("time", "25:00:00"): "a text that is not a time",
    ("timestamp", "-infinity"): "an infinite timestamp",
    ("timestamp", "2026-01-01 00:00:00+00"): "a timestamp with time zone, not a timestamp",
    ("timestamp", "2026-01-01 25:00:00"): "a timestamp that is in no calendar",
    ("timestamptz", "2026-01-01 00:00:00"): "a timestamp, not a timestamp with time zone",
    ("timestamptz", "2026-01-01"): "a date, not a timestamp with time zone",
    ("timestamptz", "0044-03-15 12:00:00+00 BC"): "a timestamp with time zone before year 1",
    ("timestamptz", "10000-01-01 00:00:00+00"): "a timestamp with time zone after year 9999",
    ("timestamptz", "0001-01-01 00:00:00+08"): (
        "a timestamp with time zone that is in no calendar, or in UTC outside of the years 1 to 9999"
    ),
    ("bytea", r"\x0"): "a text that is not pairs of hex digits",
    ("bytea", "\\"): "a text that is not a bytea value",
    ("raw", "0g"): "a text that is not pairs of hex digits",
    ("integer[]", "{{1},{2}}"): DEEPER,
    ("integer[][]", "{{{1}}}"): "an array of more than 2 dimensions; in `schema`, give its type as T[][][], or as text",
    ("integer[][]", "{1}"): "a text that is not an array of 2 dimensions",
    ("integer[]", "{1,2"): "a text that is not an array of 1 dimension",
    ("integer[]", "{1,x}"): "a text that is not an integer, in an element",
    ("integer[][]", "{{1},{x}}"): "a text that is not an integer, in an element",
    ("date[]", "{infinity}"): "an infinite date, in an element",
}


@pytest.mark.parametrize(("type", "text"), MISFITS)
def test_misfits(type: str, text: str) -> None:
    assert read(type, text) == ([None], {0: MISFITS[type, text]})
    assert read(type, None, text, None)[1] == {1: MISFITS[type, text]}


@pytest.mark.parametrize("count", [1, FEW_TEXTS])
@pytest.mark.parametrize(
    ("type", "fits", "misfits"),
    [
        (
            pa.float64(),
            ["9007199254740992", "-9007199254740994", "1152921504606846976", "-9223372036854775808", "-0"],
            ["9007199254740993", "-9007199254740993", "9223372036854775807"],
        ),
        (pa.float32(), ["16777216", "16777218"], ["16777217", "2147483647", "9223372036854775807"]),
    ],
)
def test_integers_as_floats(type: pa.DataType, fits: list[str], misfits: list[str], count: int) -> None:
    """Two integers that become one float would be one key."""
    lists = pa.list_(type)
    for reader, texts, wrong in (
        (reader_of(type, "integer"), [*fits, None, *misfits, "9223372036854775808", "0.5"], len(misfits) + 2),
        (reader_of(lists, "integer"), [f"{{{text}}}" for text in (*fits, *misfits)], len(misfits)),
        (reader_of(lists, "integer vector"), [*fits, *misfits], len(misfits)),
    ):
        assert reader is not None
        values, found = reader.read(pa.array(texts * count, pa.string()))
        shown = [value[0] if isinstance(value, list) else value for value in values.to_pylist()]
        assert shown[: len(fits)] == [*map(int, fits)]
        assert sorted(found) == [row for row in range(len(texts) * count) if row % len(texts) >= len(texts) - wrong]
        assert shown[len(texts) - wrong : len(texts)] == [None] * wrong


def test_a_given_float_does_not_round_integers() -> None:
    """Those of numeric and double precision it rounds, as SQL's casts do."""
    texts = {"id": "9007199254740993", "n": "0.1234567890123456789", "i": "16777217", "s": "32767", "v": "'1 2'"}
    types = ("bigint", "numeric", "integer", "smallint", "oidvector")
    row = " ".join(f"{name}[{type}]:{text}" for (name, text), type in zip(texts.items(), types, strict=True))
    lines = [b"BEGIN 5", f"table public.t: INSERT: {row}".encode(), b"COMMIT 5"]
    schema = {"id": "double precision", "n": "double precision", "i": "real", "s": "real", "v": "double precision[]"}
    (found,) = (
        wf.Capture(lines, "test-decoding", mode="PERMISSIVE").typed("public.t", schema=schema).read_all().to_pylist()
    )
    assert [found[name] for name in texts] == [None, 0.12345678901234568, None, 32767.0, [1.0, 2.0]]
    reason = "an integer that a float of {} bits does not hold"
    assert all(reason.format(bits) in found["_error"] for bits in (32, 64))
    with pytest.raises(wf.BadCell, match=reason.format(64)):
        wf.Capture(lines, "test-decoding").typed("public.t", schema=schema).read_all()


def test_many_misfits_in_a_long_column() -> None:
    texts = ["2026-11-21", "infinity", None, "2026-02-30"] * 500
    values, misfits = read("date", *texts)
    assert len(misfits) == 1000
    assert sum(value is not None for value in values) == 500


def test_deep_arrays_do_not_recurse() -> None:
    _, misfits = read("integer[]", "{" * 100_000)
    assert misfits == {0: DEEPER}


TYPES = [arrow_type(text) for text in sorted({column_type(parse_sql_type(name)).arrow for name in SQL_NAMES.values()})]
TYPES += [pa.decimal128(10, 2), pa.decimal128(38, 0), pa.list_(pa.field("element", pa.decimal128(3, 1)))]


def test_the_wider_of_two_types() -> None:
    for one in TYPES:
        for other in TYPES:
            both = wider(one, other)
            assert both == wider(other, one)
            assert wider(both, one) == both
            assert both == pa.string() or pa.types.is_list(both) or pa.nulls(1, one).cast(both).type == both
    assert wider(pa.int16(), pa.decimal128(10, 2)) == pa.decimal128(10, 2)
    assert wider(pa.int64(), pa.decimal128(10, 2)) == pa.decimal128(21, 2)
    assert wider(pa.decimal128(38, 0), pa.decimal128(10, 2)) == pa.string()
    assert wider(pa.int64(), pa.float64()) == pa.string()
    assert wider(pa.bool_(), pa.int32()) == pa.string()


def test_types_that_no_text_is_read_into() -> None:
    for type in (pa.uint8(), pa.timestamp("ms"), pa.timestamp("us", "Europe/Rome"), pa.list_(pa.uint8()), pa.null()):
        assert reader_of(type) is None


PARTS = ["{", "}", "},{", ",", ";", '"', "\\", "a", "NULL", "é", " ", "[1:2]=", "[0:1][-3:4]", "=", '"x"', '\\"', '""']


@pytest.mark.parametrize("delimiter", [",", ";"])
@given(
    texts=st.lists(st.lists(st.sampled_from(PARTS), max_size=7).map("".join), min_size=1), dimensions=st.integers(1, 3)
)
def test_many_arrays_are_split_as_one_by_one(delimiter: str, texts: list[str], dimensions: int) -> None:
    """Compiled code reads those with quotes, bounds or several dimensions, if there are many."""
    texts = [given for text in texts for given in (text, *("{" * deep + text + "}" * deep for deep in range(1, 4)))]
    split = _split_arrays(delimiter)
    few, misfits = split(pa.array(texts, pa.string()), dimensions)
    many = -(-2 * FEW_TEXTS // len(texts))
    column = pa.array(["{b}", *texts * many, None], pa.string())
    lists, found = split(column[1:], dimensions)
    lists.validate(full=True)
    assert lists.to_pylist() == [*few.to_pylist() * many, None]
    assert found == {time * len(texts) + row: words for time in range(many) for row, words in misfits.items()}


@pytest.mark.parametrize("text", ["-NaN", "+NaN", "+Infinity", "1." + "9" * 401, "9" * 401, "+5", "1e5", "5."])
@pytest.mark.parametrize("type", [pa.float64(), pa.float32(), pa.int32(), pa.decimal128(10, 2)], ids=str)
def test_a_number_is_read_the_same_alone_and_among_others(type: pa.DataType, text: str) -> None:
    """No server prints these; a cast of a column takes some of them, if all its texts are like numbers."""
    reader = reader_of(type)
    assert reader is not None
    (value,), misfits = reader.read(pa.array([text]))
    for others in (["1"] * 300, ["1e400", "NaN", None] * 100, ["a word"] * 300):
        values, found = reader.read(pa.array([*others, text]))
        assert (str(values[-1]), found.get(len(others))) == (str(value), misfits.get(0))
