"""Values in binary form to text, without a server: against Python's own types, edges worked out by hand, bad bytes."""

from __future__ import annotations

import math
import struct
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.pgtypes import SQL_NAMES, type_oid
from wireformat.pgtypes.binary import binary_text

EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)


def text(type: str, data: bytes, encoding: str = "utf-8", errors: str = "strict") -> str | None:
    return binary_text(type_oid(type), data, encoding, errors)


def numeric(groups: list[int], weight: int, sign: int, scale: int) -> bytes:
    return struct.pack(f">HhHH{len(groups)}H", len(groups), weight, sign, scale, *groups)


def array(element: str, dimensions: list[tuple[int, int]], items: list[bytes | None]) -> bytes:
    """Length and lower bound of each dimension, then the elements."""
    head = struct.pack(">iiI", len(dimensions), None in items, type_oid(element))
    cells = (struct.pack(">i", -1) if item is None else struct.pack(">i", len(item)) + item for item in items)
    return head + b"".join(struct.pack(">ii", *dimension) for dimension in dimensions) + b"".join(cells)


@given(st.floats())
def test_double(value: float) -> None:
    shown = text("double precision", struct.pack(">d", value))
    assert shown is not None
    read = float(shown)
    assert struct.pack(">d", read) == struct.pack(">d", value) or (math.isnan(read) and math.isnan(value))
    assert len(shown) <= 24


@given(st.floats(width=32))
def test_real_is_read_back_from_its_text(value: float) -> None:
    shown = text("real", struct.pack(">f", value))
    assert shown is not None
    read = struct.pack(">f", float(shown))
    assert read == struct.pack(">f", value) or math.isnan(value)
    assert len(shown) <= 15


FLOATS = {
    ("double precision", 0.1): "0.1",
    ("double precision", -0.0): "-0",
    ("double precision", 1e300): "1e+300",
    ("double precision", 5e-324): "5e-324",
    ("double precision", 123456789012345.0): "123456789012345",
    ("double precision", 1e15): "1e+15",
    ("double precision", 0.0001): "0.0001",
    ("double precision", 0.00001): "1e-05",
    ("double precision", 1e23): "9.999999999999999e+22",
    ("double precision", 2.0**-1017): "7.120236347223045e-307",
    ("double precision", 2.0**63): "9.223372036854776e+18",
    ("real", 9e9): "8.999999e+09",
    ("real", 2.0**-96): "1.2621775e-29",
    ("real", 999999.0): "999999",
    ("real", 1e6): "1e+06",
}


def test_numeric_worked_out() -> None:
    for groups, weight, sign, scale, shown in (
        ([], 0, 0, 0, "0"),
        ([], 0, 0, 2, "0.00"),
        ([1], 0, 0x4000, 0, "-1"),
        ([12, 3000], 0, 0, 2, "12.30"),
        ([1], 25, 0, 0, "1" + "0" * 100),
        ([1], -25, 0, 100, "0." + "0" * 99 + "1"),
        ([10], -1, 0x4000, 3, "-0.001"),
        ([], 0, 0xC000, 0, "NaN"),
        ([], 0, 0xD000, 0, "Infinity"),
        ([], 0, 0xF000, 0, "-Infinity"),
    ):
        assert text("numeric", numeric(groups, weight, sign, scale)) == shown


@given(st.lists(st.integers(0, 9999), max_size=6), st.integers(-8, 8), st.booleans(), st.integers(0, 40))
def test_numeric(groups: list[int], weight: int, negative: bool, scale: int) -> None:
    value = sum(Fraction(group) * Fraction(10) ** (4 * (weight - place)) for place, group in enumerate(groups))
    data = numeric(groups, weight, 0x4000 if negative else 0, scale)
    if (value * 10**scale).denominator > 1:
        with pytest.raises(ValueError, match=r"digits? after the point"):
            text("numeric", data)
        return
    shown = text("numeric", data)
    assert shown is not None
    assert abs(Fraction(shown)) == value
    assert shown.startswith("-") == (negative and value != 0)
    whole, _, fraction = shown.lstrip("-").partition(".")
    assert len(fraction) == scale
    assert whole == "0" or not whole.startswith("0")


@pytest.mark.parametrize(
    "data",
    [
        numeric([1], 32767, 0, 0),
        numeric([1], 251, 0, 0),
        numeric([], 0, 0, 1001),
        numeric([1], -300, 0, 1200),
        numeric([1], 0, 0, 1001),
    ],
)
def test_a_few_bytes_do_not_become_thousands_of_zeros(data: bytes) -> None:
    assert text("numeric", data) is None
    assert text("numeric[]", array("numeric", [(1, 1)], [data])) is None


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))  # noqa: DTZ001 - UTC by definition
def test_dates_and_times(local: datetime) -> None:
    since = local.replace(tzinfo=timezone.utc) - EPOCH
    micros = since // timedelta(microseconds=1)
    day = f"{local.year:04}-{local:%m-%d}"
    clock = f"{local:%H:%M:%S}" + (f".{local.microsecond:06}".rstrip("0") if local.microsecond else "")
    assert text("date", struct.pack(">i", since.days)) == day
    assert text("time without time zone", struct.pack(">q", micros % 86_400_000_000)) == clock
    assert text("timestamp without time zone", struct.pack(">q", micros)) == f"{day} {clock}"
    assert text("timestamp with time zone", struct.pack(">q", micros)) == f"{day} {clock}+00"


VALUES = {
    ("boolean", b"\x00"): "f",
    ("boolean", b"\x01"): "t",
    ('"char"', b"\x00"): "",
    ('"char"', b"a"): "a",
    ('"char"', b"\xfe"): r"\376",
    ("oid", b"\xff" * 4): "4294967295",
    ("xid8", b"\xff" * 8): "18446744073709551615",
    ("xid", b"\0\0\0\5"): "5",
    ("xid", b"\0\0\0\5\0\0\0\1"): "4294967301",
    ("smallint", b"\xff\xff"): "-1",
    ("bytea", b"\x00\xff"): r"\x00ff",
    ("bytea", b""): r"\x",
    ("json", b' {"a" : 1}'): ' {"a" : 1}',
    ("jsonb", b'\x01{"a": 1}'): '{"a": 1}',
    ("uuid", bytes(range(16))): str(UUID(bytes=bytes(range(16)))),
    ("bit varying", struct.pack(">i", 9) + b"\xaa\x80"): "101010101",
    ("bit", struct.pack(">i", 0)): "",
    ("date", struct.pack(">i", -2_451_545)): "4714-11-24 BC",
    ("date", struct.pack(">i", (1 << 31) - 1)): "infinity",
    ("date", struct.pack(">i", -(1 << 31))): "-infinity",
    ("time without time zone", struct.pack(">q", 86_400_000_000)): "24:00:00",
    ("time with time zone", struct.pack(">qi", 0, 57_540)): "00:00:00-15:59",
    ("time with time zone", struct.pack(">qi", 1, -19_801)): "00:00:00.000001+05:30:01",
    ("interval", struct.pack(">qii", 0, 0, 0)): "00:00:00",
    ("interval", struct.pack(">qii", -1, 3, -14)): "-1 years -2 mons +3 days -00:00:00.000001",
    ("interval", struct.pack(">qii", 0, 1, 12)): "1 year 1 day",
    ("int2vector", array("smallint", [(2, 0)], [b"\x00\x01", b"\xff\xfe"])): "1 -2",
    ("oidvector", array("oid", [], [])): "",
} | {(type, struct.pack(">f" if type == "real" else ">d", value)): shown for (type, value), shown in FLOATS.items()}


@pytest.mark.parametrize(("type", "data"), VALUES)
def test_worked_out(type: str, data: bytes) -> None:
    assert text(type, data) == VALUES[type, data]


ARRAYS = {
    "empty": ([], [], "{}"),
    "a dimension of length 0": ([(0, 1)], [], "{}"),
    "NULL and words like it": ([(4, 1)], [None, b"NULL", b"null", b"nil"], '{NULL,"NULL","null",nil}'),
    "what needs quotes": (
        [(7, 1)],
        [b"", b" ", b"a,b", b"{", b'"', b"\\", b"\v"],
        '{""," ","a,b","{","\\"","\\\\","\v"}',
    ),
    "what needs none": ([(3, 1)], [b"'", "\u00a0".encode(), "\u2028".encode()], "{',\u00a0,\u2028}"),
    "two dimensions": ([(2, 1), (2, 1)], [b"a", b"b", None, b"d"], "{{a,b},{NULL,d}}"),
    "a lower bound": ([(2, 0)], [b"a", b"b"], "[0:1]={a,b}"),
    "six dimensions": ([(1, 1)] * 5 + [(1, -3)], [b"a"], "[1:1]" * 5 + "[-3:-3]={{{{{{a}}}}}}"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array(name: str) -> None:
    dimensions, items, shown = ARRAYS[name]
    assert text("text[]", array("text", dimensions, items)) == shown


def test_text_in_the_encoding_of_the_database() -> None:
    assert text("text", "中".encode("gbk"), "gbk") == "中"
    assert text("text[]", array("text", [(1, 1)], ["中".encode("gbk")]), "gbk") == "{中}"
    assert text("text", b"a\xff", errors="replace") == "a\ufffd"


@pytest.mark.parametrize(
    ("type", "data"),
    [("text", b"a\xff"), ("jsonb", b"\x01\xff"), ("text[]", array("text", [(1, 1)], [b"\xff"]))],
)
def test_bytes_that_are_no_text_in_the_encoding(type: str, data: bytes) -> None:
    """Told apart from other bad bytes: the decoders have an error of their own for it."""
    with pytest.raises(UnicodeDecodeError):
        text(type, data)
    shown = text(type, data, errors="replace")
    assert shown is not None
    assert "\ufffd" in shown


@pytest.mark.parametrize("type", ["money", "inet", "int4range", "regclass", "point", "money[]"])
def test_a_type_that_is_not_listed(type: str) -> None:
    assert text(type, b"\x00") is None


def test_a_number_in_no_catalogue() -> None:
    assert binary_text(16385, b"\x00", "utf-8", "strict") is None


BAD = {
    "boolean": (b"", b"\x01\x01"),
    '"char"': (b"", b"ab"),
    "smallint": (b"", b"\x00", b"\x00" * 3),
    "bigint": (b"\x00" * 7, b"\x00" * 9),
    "real": (b"\x00" * 8,),
    "numeric": (
        b"",
        numeric([1], 0, 0, 0)[:-1],
        numeric([1], 0, 0, 0) + b"\x00",
        numeric([10000], 0, 0, 0),
        numeric([1], 0, 0x8000, 0),
        numeric([1], -1, 0, 3),
    ),
    "uuid": (b"\x00" * 15,),
    "date": (b"", struct.pack(">i", -2_451_546), struct.pack(">i", 2_145_031_949)),
    "time without time zone": (struct.pack(">q", -1), struct.pack(">q", 86_400_000_001)),
    "time with time zone": (struct.pack(">qi", 0, 57_600), b"\x00" * 8),
    "timestamp without time zone": (struct.pack(">q", 9_223_371_331_200_000_001), b"\x00" * 7),
    "timestamp with time zone": (struct.pack(">q", -211_813_488_000_000_001),),
    "interval": (b"\x00" * 15,),
    "bit": (b"", struct.pack(">i", 9) + b"\x00", struct.pack(">i", -1)),
    "jsonb": (b"", b"\x02{}"),
    "text[]": (
        b"",
        struct.pack(">iiI", -1, 0, 25),
        array("text", [(1, 1)] * 7, [b"a"]),
        array("text", [(1, 1)], [b"a"])[:-1],
        array("text", [(1, 1)], [b"a"]) + b"\x00",
        array("text", [(2, 1)], [b"a"]),
        array("text", [(-1, 1)], []),
        array("text", [(1, (1 << 31) - 1)], [b"a"])[:-6],
        array("integer", [(1, 1)], [b"abcd"]),
        array("text", [(1 << 20, 1), (1 << 20, 1)], [b"a"]),
        struct.pack(">iiI", 0, 2, 25),
        struct.pack(">iiIiii", 1, 0, 25, 1, 1, -2),
    ),
    "integer[]": (array("integer", [(1, 1)], [b"a"]),),
    "int2vector": (array("smallint", [(1, 0)], [None]), array("smallint", [(1, 0)] * 2, [b"ab"])),
}


@pytest.mark.parametrize(("type", "data"), [(type, data) for type, values in BAD.items() for data in values])
def test_bad_bytes_are_told_without_their_value(type: str, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^expected ") as found:
        text(type, data)
    assert not isinstance(found.value, UnicodeError)


@given(st.sampled_from(sorted(SQL_NAMES)), st.binary(max_size=60))
def test_any_bytes_give_text_or_a_value_error(oid: int, data: bytes) -> None:
    try:
        shown = binary_text(oid, data, "utf-8", "strict")
    except ValueError:
        return
    assert shown is None or len(shown) <= 200 * (len(data) + 10)


@given(
    st.sampled_from(["integer", "text", "numeric", "interval", "timestamp with time zone"]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=3),
    st.lists(st.none() | st.binary(max_size=16), max_size=27),
)
def test_any_array_gives_text_or_a_value_error(
    element: str, dimensions: list[tuple[int, int]], items: list[bytes | None]
) -> None:
    count = math.prod(length for length, _ in dimensions) if dimensions else 0
    data = array(element, dimensions, (items * count)[:count])
    try:
        shown = text(f"{element}[]", data)
    except ValueError:
        return
    assert shown is None or shown.endswith("}")
